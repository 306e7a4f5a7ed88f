"""What ``device(key)`` stands for: facts ``hw(device, key, value)`` of rule files, and values given
one by one.

Keys carry their unit (``dram_bytes``, ``channel_bits``); the same amount in the other unit is
derived, as it is under another name (``array_m`` for ``array_rows``) that
``extractors/hardware/keys.toml`` gives it.
"""

from __future__ import annotations

from collections.abc import Iterable

from reprise.facts.hardware import choose_device, values_of
from reprise.lang.ruleset import RuleSet
from reprise.mining.hardware.formats import load_keys
from reprise.mining.instrument.errors import InstrumentError

Scalar = int | float | str


def device_values(
    hardware: RuleSet | None, name: str | None, given: Iterable[str]
) -> dict[str, Scalar]:
    """Values by key. ``given``: ``key=value``, which override facts; ``name`` chooses among the
    devices that facts are about. Raises DeviceError as ``choose_device``, and where facts
    contradict each other; InstrumentError for a ``given`` that is none."""
    described = {} if hardware is None else _facts(hardware, name)
    values: dict[str, Scalar] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InstrumentError(f"`{text}` is no device value: write KEY=VALUE, as array_m=16")
        values[key.strip().replace("-", "_")] = _scalar(value.strip())
    keys = load_keys()
    return {**keys.completed(described), **keys.completed(values)}


def _facts(rules: RuleSet, name: str | None) -> dict[str, Scalar]:
    chosen = choose_device(rules, name)
    return {} if chosen is None else values_of(rules, chosen)


def _scalar(text: str) -> Scalar:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
