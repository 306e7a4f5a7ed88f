"""The patterns of the generation benchmark: those that ship, then synthetic ones.

The synthetic ones are those of :mod:`benchmarks.workload` as ``.rules`` text: the same shapes,
attributes, sizes and graph conditions, with operators of ours in place of ``op00`` … ``op37``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from benchmarks import workload
from reprise.data import data_path
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet, load_rules

_WITH_AXIS = ("softmax", "log_softmax", "hardmax", "argmax", "argmin")
_BINARY = ("add", "sub", "mul", "div", "pow", "atan2", "equal", "less", "greater", "mod")
_UNARY = (
    *("relu", "elu", "exp", "log", "abs", "neg", "floor", "ceil", "sigmoid", "tanh", "sqrt", "erf"),
    *("sin", "cos", "reciprocal", "sign", "round", "softplus", "identity", "gelu", "celu", "selu"),
)


def known_bugs(count: int) -> tuple[RuleSet, list[Pattern]]:
    """A rule set, and ``count`` of its patterns: the shipped ones first, by name."""
    folder = data_path("rules/bugs")
    shipped = load_rules([folder])
    names = sorted(shipped.patterns)[:count]
    missing = workload.patterns(count - len(names))
    if not missing:
        return shipped, [shipped.patterns[name] for name in names]
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "synthetic.rules"
        path.write_text("\n".join(map(rules_text, missing)), encoding="utf-8")
        rules = load_rules([folder, path])
    return rules, [rules.patterns[name] for name in (*names, *(p.name for p in missing))]


def rules_text(pattern: workload.Pattern) -> str:
    """A synthetic pattern in our language."""
    axes = {v: str(value) for v, _, value in pattern.attributes}
    for i, pair in enumerate(pattern.equal):
        axes.update(dict.fromkeys(pair, f"A{i}"))
    lines = []
    for v, op in enumerate(pattern.nodes):
        sources = {position: source for source, target, position in pattern.edges if target == v}
        operator = _operator(op, v in axes, 1 in sources)
        count = 2 if operator in _BINARY else 1
        operands = [f"v{sources[i]}" if i in sources else "_" for i in range(count)]
        if v == pattern.constant and 0 not in sources:
            operands[0] = "c"
        axis = [f"axis={axes[v]}"] if operator in _WITH_AXIS else []
        lines.append(f"v{v} = {operator}({', '.join([*operands, *axis, '...'])})")
    lines += [f"where v{v}.numel >= {least}" for v, least in pattern.large]
    if pattern.constant >= 0 and any("(c" in line for line in lines):
        lines.append("where constant(c)")
    if pattern.downstream:
        lines.append(f"graph downstream(v{len(pattern.nodes) - 1}) in {_class(pattern.downstream)}")
    if pattern.present:
        lines.append(f"graph elsewhere(v0) in {_class(pattern.present)}")
    body = "\n".join(f"    {line}" for line in ("target: synthetic", *lines))
    return f'pattern {pattern.name} "synthetic" {{\n{body}\n}}\n'


def _operator(op: str, axis: bool, two: bool) -> str:
    """Our operator for one of the workload's; one number always gives the same."""
    names = _WITH_AXIS if axis else _BINARY if two else _UNARY
    return names[workload.OPS.index(op) % len(names)]


def _class(name: str) -> str:
    found = dict.fromkeys(_operator(op, False, False) for op in workload.CLASSES[name])
    return "{" + ", ".join(found) + "}"
