"""What a pattern's metadata may say. These values steer selection, levels and reports, so a
misspelt one must not pass for "nothing said"."""

from __future__ import annotations

from reprise.lang import ast
from reprise.lang.symbols import Report, suggest

VOCABULARY = {
    "verdict": ("bug", "fixed", "limitation", "not_a_bug"),
    "severity": ("low", "medium", "high", "critical"),
    "symptom": (
        "wrong_result",
        "wrong_dtype",
        "wrong_shape",
        "crash",
        "crash_at_load",
        "crash_at_compile",
        "crash_at_run",
        "hang",
        "memory",
        "not_folded",
        "mutated_input",
        "accepts_invalid",
    ),
}
"""Keys with a closed set of values."""

CONSTRAINT_CLASSES = (
    "topology",
    "algebraic",
    "parameter_bound",
    "data_representation",
    "resource",
    "cardinality",
)
MONITOR_CLASSES = (
    "semantic_preservation",
    "hardware_feasibility",
    "resource_safety",
    "transformation_correctness",
    "execution_safety",
)
"""The classes of the second paper's Table 2 (and cardinality, of its §3.1)."""


def check_metadata(decl: ast.PatternDecl, report: Report) -> None:
    """Report values outside a key's vocabulary, and version specifiers that are none (PEP 440)."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    for entry in decl.meta:
        key = entry.key.text
        known = VOCABULARY.get(key)
        if known is not None and entry.value not in known:
            report.error(
                "unknown-value",
                f"`{entry.value}` is no {key}",
                entry.span,
                suggest(entry.value, known) or f"one of: {', '.join(known)}",
            )
        if key == "affects":
            try:
                SpecifierSet(entry.value)
            except InvalidSpecifier:
                report.error(
                    "bad-versions",
                    f'"{entry.value}" selects no versions',
                    entry.span,
                    'write conditions such as ">=1.17,<1.28" or "==0.25.*"',
                )


def check_class(decl: ast.ConstraintDecl | ast.MonitorDecl, report: Report) -> None:
    """Report a class that is none of the paper's."""
    known = CONSTRAINT_CLASSES if isinstance(decl, ast.ConstraintDecl) else MONITOR_CLASSES
    if decl.klass.text not in known:
        kind = "constraints" if isinstance(decl, ast.ConstraintDecl) else "monitors"
        report.error(
            "unknown-class",
            f"`{decl.klass.text}` is no class of {kind}",
            decl.klass.span,
            suggest(decl.klass.text, known) or f"one of: {', '.join(known)}",
        )
