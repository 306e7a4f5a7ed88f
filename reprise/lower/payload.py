"""Pieces of generated Python source: identifiers for tensors, and arrays written out exactly.

A lowering that writes source keeps small arrays as literals, and puts the bytes of larger ones (or
of any that a literal would not give back bit for bit, such as a NaN with a payload) in base64 into
a table ``DATA`` at the end of the text, so that the program above it stays readable.
"""

from __future__ import annotations

import base64
import builtins
import keyword
import re

import numpy as np

from reprise.uir.graph import Array

LITERAL_ELEMENTS = 16
"""Arrays of more elements than this are written as bytes."""


class Names:
    """Gives every tensor an identifier of its own, as like its name as can be."""

    def __init__(self, reserved: frozenset[str]) -> None:
        """``reserved``: what the source uses for itself, besides keywords and builtins."""
        self._taken = {*reserved, *keyword.kwlist, *keyword.softkwlist, *dir(builtins)}

    def take(self, wish: str, otherwise: str) -> str:
        """An identifier that was not given out before: ``wish`` with other characters than letters,
        digits and ``_`` replaced; ``otherwise`` if nothing is left of it."""
        name = re.sub(r"[^A-Za-z0-9_]", "_", wish) if wish.strip("_. /:") else otherwise
        if name[0].isdigit():
            name = f"t{name}"
        chosen, number = name, 1
        while chosen in self._taken:
            number += 1
            chosen = f"{name}_{number}"
        self._taken.add(chosen)
        return chosen


def literal(array: Array) -> str | None:
    """The array's numbers as nested lists, or None if they would be many, or numpy would not read
    them back (in the array's element type) as the same bits."""
    if array.size > LITERAL_ELEMENTS or array.dtype.kind not in "biufV" or array.size == 0:
        return None
    numbers = array.tolist()
    if array.dtype.kind in "fV":
        # the shortest decimals that the element type reads back as the same number
        shortest = [float(str(value)) for value in array.ravel()]
        numbers = np.array(shortest).reshape(array.shape).tolist()
    with np.errstate(all="ignore"):
        plain = np.array(
            np.where(np.isnan(numbers), np.nan, numbers) if _has_nan(array) else numbers
        )
        if plain.astype(array.dtype).tobytes() != np.ascontiguousarray(array).tobytes():
            return None
    return re.sub(r"\b(nan|inf)\b", r"np.\1", repr(numbers))


def _has_nan(array: Array) -> bool:
    return array.dtype.kind in "fV" and bool(np.isnan(array.astype(np.float64)).any())


def encoded(array: Array) -> str:
    """The array's bytes (little-endian, in C order) in base64."""
    little = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(little.tobytes()).decode()
