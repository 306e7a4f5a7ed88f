"""What is known of the device: ``device(key)`` values out of hardware descriptions.

Hardware descriptions are rule files with ``hw(target, key, value)`` facts, as ``reprise mine
hardware`` writes them; ``env("device")`` names the target that ``device(key)`` is about.
"""

from __future__ import annotations

from dataclasses import dataclass

from reprise.datalog import Database
from reprise.lang import core
from reprise.lang.ruleset import RuleSet
from reprise.lang.symbols import suggest
from reprise.patterns.check import UsageError


@dataclass(frozen=True, slots=True)
class Device:
    """A device: the facts that choose it, and what ``device(key)`` says then."""

    name: str | None
    given: tuple[tuple[str, core.Row], ...]
    values: dict[str, core.Value]


def device(rules: RuleSet, name: str | None) -> Device:
    """The device called ``name``, or the only one that is described (None: none is). Raises
    UsageError if there is no such device, or there are several to choose from."""
    program = rules.program.restricted_to(["device", "hw"])
    database = Database(program)
    described = sorted({str(row[0]) for row in database.rows("hw")})
    if name is None and len(described) == 1:
        name = described[0]
    if name is None and described:
        raise UsageError(f"say which device: --device {' or '.join(described)}")
    if name is not None and name not in described:
        known = f"there are {', '.join(described)}" if described else "none is described"
        hint = suggest(name, described) or f"{known}; describe one with --hardware FILE.rules"
        raise UsageError(f"no device is called `{name}`: {hint}")
    given: tuple[tuple[str, core.Row], ...] = ()
    if name is not None:
        _refuse_two_values(rules, name)
        given = (("env", ("device", name)),)
        if "env" in program.relations:
            database.commit(list(given))
    values = {str(row[0]): row[1] for row in database.rows("device")}
    return Device(name, given, values)


def _refuse_two_values(rules: RuleSet, name: str) -> None:
    """Raise UsageError where descriptions disagree about the device."""
    said: dict[str, tuple[object, core.Rule]] = {}
    for rule in rules.program.rules:
        row = [term.value for term in rule.head.terms if isinstance(term, core.Const)]
        if rule.head.relation != "hw" or len(row) != 3 or str(row[0]) != name:
            continue
        key, value = str(row[1]), row[2]
        before, where = said.setdefault(key, (value, rule))
        if before != value:
            raise UsageError(
                f"two things are said of `{name}`: {key} is {before}{_at(where)} and "
                f"{value}{_at(rule)}"
            )


def _at(rule: core.Rule) -> str:
    return "" if rule.span is None else f" ({rule.span.file}:{rule.span.line})"
