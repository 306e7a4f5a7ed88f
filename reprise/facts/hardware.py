"""What hardware descriptions say: ``hw(device, key, value)`` facts of rule files, and which of the
devices that they describe is meant.

``reprise mine hardware`` writes such facts; ``env("device")`` names the device that ``device(key)``
asks about. Keys carry their unit (``dram_bytes``, ``channel_bits``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reprise.data import data_path
from reprise.lang import core
from reprise.lang.diagnostics import Span
from reprise.lang.ruleset import RuleSet
from reprise.lang.spelling import did_you_mean

RELATION = "hw"

_NAMED = 8
"""How many devices a message names: a registry of targets describes hundreds."""


class DeviceError(Exception):
    """A device that is not described, or in two ways; for people."""


@dataclass(frozen=True, slots=True)
class Said:
    """One fact about a device."""

    device: str
    key: str
    value: core.Value
    span: Span | None


def facts_of_devices(rules: RuleSet) -> Iterator[Said]:
    """The facts, in the order in which they are written. A rule that derives some is none."""
    for rule in rules.program.rules:
        if rule.head.relation == RELATION and not rule.body:
            row = [term.value for term in rule.head.terms if isinstance(term, core.Const)]
            if len(row) == 3:
                yield Said(str(row[0]), str(row[1]), row[2], rule.span)


def default_hardware() -> tuple[Path, ...]:
    """The descriptions that ship."""
    return (data_path("rules/hardware"),)


def devices(rules: RuleSet) -> list[str]:
    """The names of the devices that are described, sorted."""
    return sorted({said.device for said in facts_of_devices(rules)})


def choose_device(rules: RuleSet, name: str | None) -> str | None:
    """The device called ``name``, or the only one that is described (None: none is). Raises
    DeviceError if there is no such device, there are several to choose from, or what is said of it
    contradicts itself."""
    described = devices(rules)
    if name is None and len(described) > 1:
        raise DeviceError(f"say which device: --device {_listed(described, ' or ')}")
    if name is None:
        return described[0] if described else None
    if name not in described:
        raise DeviceError(
            f"no device is called `{name}`: {_near(name, described)} "
            "(--hardware FILE.rules describes others)"
        )
    return name


def _near(name: str, described: list[str]) -> str:
    """The devices that ``name`` may mean, and which there are."""
    known = f"there are {_listed(described, ', ')}" if described else "none is described"
    # Nobody types `nvidia/nvidia-a100` from memory: a part of a name finds those that have it.
    part = [device for device in described if name and name.lower() in device.lower()]
    if part and len(described) > _NAMED:
        return f"{_listed(part, ', ')} {'have' if len(part) > 1 else 'has'} it in the name; {known}"
    hint = did_you_mean(name, described)
    return f"{hint} {known}" if hint else known


def _listed(names: list[str], between: str) -> str:
    """The first few of the names, and of many how many more there are and where."""
    if len(names) <= _NAMED:
        return between.join(names)
    more = len(names) - _NAMED
    return f"{between.join(names[:_NAMED])}{between}{more} more (the `hw(NAME, …)` facts name all)"


def values_of(rules: RuleSet, name: str) -> dict[str, core.Value]:
    """What is said of a device, by key. Raises DeviceError where two facts disagree."""
    found: dict[str, Said] = {}
    for said in facts_of_devices(rules):
        if said.device != name:
            continue
        before = found.setdefault(said.key, said)
        if before.value != said.value:
            raise DeviceError(
                f"two things are said of `{name}`: {said.key} is {before.value}{_at(before)} and "
                f"{said.value}{_at(said)}"
            )
    return {key: said.value for key, said in found.items()}


def _at(said: Said) -> str:
    return "" if said.span is None else f" ({said.span.file}:{said.span.line})"
