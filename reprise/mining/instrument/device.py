"""What ``device(key)`` stands for: facts ``hw(device, key, value)`` of rule files, and values given
one by one.

Keys carry their unit (``dram_bytes``, ``channel_bits``); the same amount in the other unit is
derived. ``array_m`` and ``array_n`` are other names of ``array_rows`` and ``array_cols``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reprise.facts.hardware import choose_device, values_of
from reprise.lang.ruleset import RuleSet
from reprise.mining.instrument.errors import InstrumentError

Scalar = int | float | str

_ALIASES = {"array_m": "array_rows", "array_n": "array_cols"}


def device_values(
    hardware: RuleSet | None, name: str | None, given: Iterable[str]
) -> dict[str, Scalar]:
    """Values by key. ``given``: ``key=value``, which override facts; ``name`` chooses among the
    devices that facts are about. Raises DeviceError as ``choose_device``, and where facts
    contradict each other; InstrumentError for a ``given`` that is none."""
    values = {} if hardware is None else _facts(hardware, name)
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InstrumentError(f"`{text}` is no device value: write KEY=VALUE, as array_m=16")
        values[key.strip().replace("-", "_")] = _scalar(value.strip())
    return _completed(values)


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
