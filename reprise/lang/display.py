"""Values and names as they may be shown to people, whatever a model or a rule puts into them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

HUGE_BITS = 256
"""Integers of more bits are described rather than written out."""


def shown(value: object) -> str:
    """A value as text, however large."""
    if isinstance(value, int) and value.bit_length() > HUGE_BITS:
        return f"an integer of {value.bit_length()} bits"
    return str(value)


def shortened(text: str, most: int) -> str:
    """``text`` in at most so many characters; where some are left out, it ends in ``…``."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``, ``3 matches``, ``4 classes``."""
    plural = "es" if noun.endswith(("ch", "s")) else "s"
    return f"{number} {noun}" if number == 1 else f"{number} {noun}{plural}"


def listed(words: Sequence[str], conjunction: str = "or") -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def tell(line: str) -> None:
    """Write a line to standard error. If nobody reads there any more, that is no reason to stop."""
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """``text`` without characters that steer a terminal or reverse its direction: names come from
    models and rules, not from the user."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
