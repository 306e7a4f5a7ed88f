"""What was seen of a condition in one compilation: the entries of a model's behaviour vector."""

from __future__ import annotations

from enum import Enum


class Seen(Enum):
    """A constraint's verdict on a model, or a monitor's on a compilation, as stored."""

    SATISFIED = "satisfied"
    VIOLATED = "violated"
    UNKNOWN = "unknown"  # the model leaves it open; the compiler's value was never a number
    ERROR = "error"  # a monitor's values could not be read
    NOT_REACHED = "not_reached"  # the constraint's guard matches nowhere; the monitor was not run


Vector = tuple[tuple[str, Seen], ...]
"""Conditions by name, sorted, without those that were not reached."""
