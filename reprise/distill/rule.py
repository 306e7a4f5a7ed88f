"""A distilled pattern as a rule file: its metadata, and tests taken from the samples."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from reprise.campaign.source import RULE_TARGETS
from reprise.distill.conditions import VALUE_RELATIONS, Condition, Holds, Term, literal
from reprise.distill.draft import Draft
from reprise.distill.record import Case
from reprise.lang.diagnostics import RulesError
from reprise.lang.display import shortened
from reprise.lang.ruleset import load_text
from reprise.oracle.crash import parse_key
from reprise.oracle.verdict import Severity, Verdict
from reprise.patterns.check import UsageError
from reprise.patterns.testing import run_tests
from reprise.uir.text import print_uir

if TYPE_CHECKING:
    from reprise.distill.trials import Aim
    from reprise.uir.graph import Graph

_NAME = re.compile(r"[a-z][A-Za-z0-9_]*")
_NAME_MOST = 100
"""Characters of a rule's name that is asked for: it is a file's name too."""
_MOST_CASES = 8
"""Of each kind."""
_SHOWN_VALUES = 1
"""Constants with more elements are written without their values, unless the rule asks for them."""

ADVICE: Mapping[str, str] = {"onnxruntime": "pass disabled_optimizers=[{passes}]"}
"""How to leave out passes, by target."""
BEFORE_RUN: Mapping[str, str] = {"onnxruntime": "crash_at_load"}
"""What rules call a failure before anything is run, of targets that are asked to load and compile
in one call: whoever reads a rule cannot tell which of the two it was."""


def metadata(
    target: str, version: str | None, aim: Aim, bugs: Sequence[str] = ()
) -> tuple[tuple[str, str], ...]:
    """What is known of a defect, as the keys and values of a rule. ``bugs``: where it is reported,
    as a rule says that knows it."""
    unreported = f"not reported: {shortened(in_words(aim), 100)}"
    pairs = [("bug", bug) for bug in bugs or (unreported,)]
    pairs += [("target", name) for name in RULE_TARGETS.get(target, (target.replace("-", "_"),))]
    if version is not None:
        pairs.append(("affects", f"=={version.partition('+')[0]}"))
    pairs.append(("found_by", "reprise"))
    pairs.append(("symptom", symptom(aim, target)))
    pairs += [("pass", name) for name in aim.cures]
    pairs.append(("verdict", "bug"))
    pairs.append(("severity", "low" if aim.severity is Severity.LOW else "medium"))
    if aim.cures and target in ADVICE:
        passes = ", ".join(f"'{name}'" for name in aim.cures)
        pairs.append(("advice", ADVICE[target].format(passes=passes)))
    bare = {"target", "symptom", "verdict", "severity"}
    return tuple((key, value if key in bare else literal(value)) for key, value in pairs)


def in_words(aim: Aim) -> str:
    """What a defect looks like, in a line: for a crash where it is raised and its message."""
    crash = parse_key(aim.symptom)
    parts = aim.symptom.split(" | ") if crash is None else [crash.stage, crash.kind, crash.message]
    return ": ".join(" ".join(part.split()) for part in parts if part.strip())


def symptom(aim: Aim, target: str) -> str:
    """A defect's symptom in the words that rules about a target use."""
    match aim.verdict:
        case Verdict.CRASH:
            crash = parse_key(aim.symptom)
            stage = "compile" if crash is None else crash.stage.rpartition("/")[2]
            if stage in ("load", "compile") and target in BEFORE_RUN:
                return BEFORE_RUN[target]
            return f"crash_at_{stage}" if stage in ("load", "compile", "run") else "crash"
        case Verdict.HANG:
            return "hang"
        case _:
            return "wrong_shape" if aim.kind.endswith("shape") else "wrong_result"


def rule_name(target: str, draft: Draft, aim: Aim) -> str:
    """A name made from the target, what is to blame, and the operators."""
    ops = [line.label or line.ops[0] if line.ops else "any" for line in draft.nodes]
    parts = [target, *(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", p) for p in aim.cures[:1]), *ops[:3]]
    name = re.sub(r"[^a-z0-9]+", "_", "_".join(parts).lower()).strip("_")
    return name if name[:1].isalpha() else f"rule_{name}"


def rule_title(draft: Draft, aim: Aim, target: str) -> str:
    """What goes wrong, in a line."""
    ops = [line.label or "|".join(line.ops[:3]) or "any" for line in draft.nodes]
    return f"{', then '.join(ops)}: {symptom(aim, target).replace('_', ' ')}"


def with_tests(draft: Draft, cases: Iterable[Case]) -> tuple[str, list[Case]]:
    """The rule's text with those of the cases that come out as they should, and these cases.

    A sample that was a boundary when it was made may be none any more; it is left out.
    """
    candidates = _chosen(draft, cases)
    while True:
        text = draft.text(_tests(draft, candidates))
        try:
            results = run_tests(load_text(text))
        except RulesError as error:
            lines = {d.span.line for d in error.diagnostics}
            bad = {i for i, first, last in _spans(text) if any(first <= n <= last for n in lines)}
            if not bad:
                raise
            candidates = [c for i, c in enumerate(candidates) if i not in bad]
            continue
        bad = {i for i, result in enumerate(results) if not result.ok}
        if not bad:
            return text, candidates
        candidates = [c for i, c in enumerate(candidates) if i not in bad]


def _spans(text: str) -> Iterator[tuple[int, int, int]]:
    """The cases of a rule's text: number, first and last line."""
    starts = [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if re.match(r"    (no_)?match\b", line)
    ]
    for i, start in enumerate(starts):
        yield i, start, (starts[i + 1] if i + 1 < len(starts) else start + 1000) - 1


def _chosen(draft: Draft, cases: Iterable[Case]) -> list[Case]:
    """Of each kind a few that are still on their side, no two alike, the simplest first."""
    fit: dict[str, list[Case]] = {"match": [], "no_match": []}
    seen: set[str] = set()
    for case in cases:
        text = program_text(case.sample.program.graph, draft.conditions)
        matches = draft.matches(case.sample.program.graph)
        if text in seen or matches != (case.kind == "match"):
            continue
        seen.add(text)
        fit[case.kind].append(case)
    return [*fit["match"][:_MOST_CASES], *fit["no_match"][:_MOST_CASES]]


def _tests(draft: Draft, cases: Sequence[Case]) -> str:
    if not cases:
        return ""
    lines = [f"test {draft.name} {{"]
    for case in cases:
        title = f" {literal(shortened(case.title, 60))}" if case.title else ""
        lines.append(f"{case.kind}{title} {{")
        lines.append(program_text(case.sample.program.graph, draft.conditions))
        lines.append("}")
    return "\n".join([*lines, "}"]) + "\n"


_TYPED = re.compile(r"([a-z]\w*): \w+\[[^]]*\](?=[^=]* = [a-z_0-9.]+\()")


def program_text(graph: Graph, conditions: Sequence[Condition] = ()) -> str:
    """A program as the lines of a test case: without what follows from signatures, and without
    values and versions that no condition asks for."""
    kinds = {t.kind for c in conditions for t in _terms_of(c)}
    values = kinds & {"value", "min", "max", "at"}
    values |= {c.relation for c in conditions if isinstance(c, Holds)} & set(VALUE_RELATIONS)
    lines = []
    for line in print_uir(graph, limit=None if values else _SHOWN_VALUES).splitlines():
        if line.startswith("opset(") and "opset" not in kinds:
            continue
        if not line.startswith("const "):
            line = _TYPED.sub(r"\1", line)
        lines.append(line)
    return "\n".join(lines)


def _terms_of(condition: Condition) -> list[Term]:
    found = [getattr(condition, name, None) for name in ("term", "left", "right")]
    return [term for term in found if isinstance(term, Term)]


def check_name(name: str) -> None:
    """Raises UsageError for what cannot be a rule's name and its file's. Empty: one is made up."""
    if name and (len(name) > _NAME_MOST or not _NAME.fullmatch(name)):
        raise UsageError(
            f"{name[:_NAME_MOST]!r} cannot be a rule's name: write a small letter, then letters, "
            f"digits and `_`, at most {_NAME_MOST}"
        )


def named(
    draft: Draft,
    name: str,
    target: str,
    version: str | None,
    aim: Aim,
    bugs: Sequence[str] = (),
) -> Draft:
    """The draft with a name, a title and metadata."""
    return replace(
        draft,
        name=name or rule_name(target, draft, aim),
        title=rule_title(draft, aim, target),
        meta=metadata(target, version, aim, bugs),
    )
