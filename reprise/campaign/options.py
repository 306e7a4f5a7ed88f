"""The generator's options as the command line and the store write them: plain values by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from reprise.synth.options import Options, OptionsError


def read_options(given: Mapping[str, Any]) -> Options:
    """The options, by their fields' names, except that ``ops`` and ``no_ops`` (lists of words, with
    commas between) stand for ``include`` and ``exclude``, and ``dtypes`` is such a list too
    (``float32=3,int8``). What is missing is as it is by default.

    Raises OptionsError for what makes no sense.
    """
    plain = {f.name for f in fields(Options)} - {
        "include",
        "exclude",
        "dtypes",
        "weights",
        "also",
        "signatures",
    }
    read: dict[str, Any] = {}
    for name, value in given.items():
        match name:
            case "ops":
                read["include"] = frozenset(_words(value))
            case "no_ops":
                read["exclude"] = frozenset(_words(value))
            case "dtypes":
                read["dtypes"] = _weights(value)
            case "also":
                read["also"] = frozenset(_words(value))
            case "signatures":
                read["signatures"] = tuple(value)
            case _ if name in plain:
                read[name] = value
            case _:
                raise OptionsError(f"there is no option {name}")
    return Options(**read)


def _words(values: Sequence[str]) -> list[str]:
    return [word.strip() for value in values for word in value.split(",") if word.strip()]


def _weights(values: Sequence[str]) -> dict[str, int]:
    weights = {}
    for word in _words(values):
        name, _, weight = word.partition("=")
        if weight and not weight.isdecimal():
            raise OptionsError(f"dtypes: {word}: the weight must be a whole number")
        weights[name] = int(weight or 1)
    return weights
