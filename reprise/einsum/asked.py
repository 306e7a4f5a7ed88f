"""Options as people write them (``2..4``, ``uniform=3,full``) to :class:`Options`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from reprise.einsum.kernel import KernelError, Level, Structure
from reprise.einsum.options import Budget, Options

_RANGES = ("operands", "ranks", "terms", "extents")
_BUDGETS = ("elements", "iterations", "entries")


def read_options(given: Mapping[str, Any], targets: tuple[str, ...] = ()) -> Options:
    """Options from what was given by name; the others are as they are by default.

    Raises KernelError, which says which option is wrong.
    """
    budget = Budget()
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in _BUDGETS:
            bounds: Any = {name: _bounds(name, value)}
            budget = replace(budget, **bounds)
        elif name == "memory":
            budget = replace(budget, memory=_bounds(name, value)[1])
        else:
            values[name] = _value(name, value)
    if "sums" not in values and values.get("operands", (2, 2))[1] < 2:
        values["sums"] = 0.0
    return Options(**values, budget=budget, targets=targets)


def _value(name: str, value: Any) -> Any:
    if name in _RANGES:
        low, high = _range(name, value)
        return low if low is not None else high, high
    if name == "levels":
        return tuple(_one(name, word, Level) for word in value.split(","))
    if name == "structures":
        pairs = (word.partition("=") for word in value.split(","))
        return tuple(
            (_one(name, word, Structure), _number(name, weight) if weight else 1.0)
            for word, _, weight in pairs
        )
    if name == "densities":
        densities = tuple(_number(name, word) for word in value.split(","))
        if not all(0 <= density <= 1 for density in densities):
            raise KernelError("--densities: a density is between 0 and 1")
        return densities
    if name == "dtypes":
        return tuple(value.split(","))
    return value


def _one(name: str, word: str, kind: type[Level] | type[Structure]) -> Level | Structure:
    try:
        return kind(word)
    except ValueError:
        known = ", ".join(kind)
        raise KernelError(f"--{name}: {word!r} is none of {known}") from None


def _range(name: str, text: str) -> tuple[int | None, int]:
    """``2..4``; of a number alone the second only."""
    low, dots, high = text.partition("..")
    try:
        if not dots:
            return None, int(text)
        return int(low), int(high)
    except ValueError:
        raise KernelError(f"--{name}: {text!r} is no range: write 2..4") from None


def _bounds(name: str, text: str) -> tuple[int, int]:
    low, high = _range(name, text)
    if not 0 <= (low or 0) <= high:
        raise KernelError(f"--{name}: {text} is no range")
    return low or 0, high


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise KernelError(f"--{name}: {text!r} is no number") from None
