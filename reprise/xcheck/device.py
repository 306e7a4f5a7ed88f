"""What is known of the device: ``device(key)`` values out of hardware descriptions.

Hardware descriptions are rule files with ``hw(target, key, value)`` facts, as ``reprise mine
hardware`` writes them; ``env("device")`` names the target that ``device(key)`` is about.
"""

from __future__ import annotations

from dataclasses import dataclass

from reprise.datalog import Database
from reprise.facts.hardware import choose_device, values_of
from reprise.lang import core
from reprise.lang.ruleset import RuleSet


@dataclass(frozen=True, slots=True)
class Device:
    """A device: the facts that choose it, and what ``device(key)`` says then."""

    name: str | None
    given: tuple[tuple[str, core.Row], ...]
    values: dict[str, core.Value]


def device(rules: RuleSet, name: str | None) -> Device:
    """The device called ``name``, or the only one that is described (None: none is). Raises
    DeviceError as :func:`~reprise.facts.hardware.choose_device`, and where descriptions disagree
    about it."""
    database = Database(rules.program.restricted_to(["device"]))
    name = choose_device(rules, name)
    given: tuple[tuple[str, core.Row], ...] = ()
    if name is not None:
        values_of(rules, name)
        given = (("env", ("device", name)),)
        if "env" in database.program.relations:
            database.commit(list(given))
    return Device(name, given, {str(row[0]): row[1] for row in database.rows("device")})
