"""What ``device(key)`` stands for: facts ``hw(target, key, value)`` of rule files, and values given
one by one.

Keys carry their unit (``dram_bytes``, ``channel_bits``); the same amount in the other unit is
derived. ``array_m`` and ``array_n`` are other names of ``array_rows`` and ``array_cols``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reprise.lang import ast
from reprise.lang.ruleset import RuleSet
from reprise.mining.instrument.errors import InstrumentError

Scalar = int | float | str

_ALIASES = {"array_m": "array_rows", "array_n": "array_cols"}


def device_values(
    hardware: RuleSet | None, target: str | None, given: Iterable[str]
) -> dict[str, Scalar]:
    """Values by key. ``given``: ``key=value``, which override facts; ``target`` chooses among the
    facts of several. Raises InstrumentError for facts that contradict each other and for a
    ``given`` that is none."""
    values = {} if hardware is None else _facts(hardware, target)
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InstrumentError(f"`{text}` is no device value: write KEY=VALUE, as array_m=16")
        values[key.strip().replace("-", "_")] = _scalar(value.strip())
    return _completed(values)


def _facts(rules: RuleSet, target: str | None) -> dict[str, Scalar]:
    rows: dict[str, dict[str, Scalar]] = {}
    for file in rules.files:
        for decl in file.decls:
            if isinstance(decl, ast.RuleDecl) and decl.head.relation.text == "hw" and not decl.body:
                of, key, value = (_constant(arg) for arg in decl.head.args)
                rows.setdefault(str(of), {})[str(key)] = value
    if target is None:
        if len(rows) > 1:
            raise InstrumentError(
                f"the hardware facts are about {', '.join(sorted(rows))}: "
                "say which with --hardware-target"
            )
        return next(iter(rows.values()), {})
    if target not in rows:
        known = ", ".join(sorted(rows)) or "none"
        raise InstrumentError(f"there are no hardware facts about `{target}` (there are: {known})")
    return rows[target]


def _constant(expr: ast.Expr) -> Scalar:
    match expr:
        case ast.Number(value) | ast.String(value) | ast.Boolean(value):
            return value
        case ast.Name(text):
            return text
        case ast.Negate(ast.Number(value)):
            return -value
    raise InstrumentError(f"{expr.span}: a hardware fact holds constants only")


def _scalar(text: str) -> Scalar:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _completed(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """With other names, and bits for bytes and bytes for bits."""
    full = dict(values)
    for alias, key in _ALIASES.items():
        for known, other in ((alias, key), (key, alias)):
            if known in full:
                full.setdefault(other, full[known])
    for key, value in list(full.items()):
        if isinstance(value, int) and "bytes" in key:
            full.setdefault(key.replace("bytes", "bits"), value * 8)
        elif isinstance(value, int) and "bits" in key and value % 8 == 0:
            full.setdefault(key.replace("bits", "bytes"), value // 8)
    return full
