"""Comparing kernels with another implementation, on random applications."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from reprise.solve.sampling import Instance
from reprise.solve.signatures import Signatures
from reprise.uir.graph import TensorType
from reprise.uir.inference import Typing
from reprise.uir.semantics import UndefinedError, apply, causes
from tests.solve.crosscheck import instances
from tests.uir.semantics.agreement import coarsest, difference
from tests.uir.semantics.differences import Difference, find
from tests.uir.semantics.drawing import operands, repair

Array = np.ndarray[Any, Any]
Other = Callable[[str, list[Any], Instance, Typing], list[Array] | None]
"""The other implementation's results; None if it cannot express the application, or refuses it."""


def compare(
    signatures: Signatures,
    op: str,
    other: Other,
    known: dict[str, list[Difference]],
    wanted: int,
    tries: int,
    dtype: str | None = None,
) -> Counter[str]:
    """Compare up to ``wanted`` of ``tries`` random applications of an operator; how many agree, and
    why others were not compared. With ``dtype``, only applications that have an operand or result
    of that type. Raises AssertionError at a difference that is not known."""
    rng = np.random.default_rng(1)
    tally: Counter[str] = Counter()
    with warnings.catch_warnings():
        for instance, typing in islice(instances(signatures, op), tries):
            instance = repair(rng, op, instance)
            typing = signatures.check(op, instance.operands, instance.attributes)
            if dtype and not any(t and t.dtype == dtype for t in _types(instance, typing)):
                continue
            attributes = dict(typing.attributes)
            values = operands(rng, op, instance, attributes)
            warnings.simplefilter("error")
            try:
                ours = apply(op, values, attributes, typing.outputs)
            except UndefinedError:
                tally["undefined"] += 1
                continue
            fragile = causes(op, values, attributes)
            warnings.simplefilter("ignore")
            theirs = other(op, values, instance, typing)
            if theirs is None:
                tally["not expressible"] += 1
                continue
            listed = find(known, op, attributes, values)
            if listed is not None and listed.loose is None:
                tally["known difference"] += 1
                continue
            precision = coarsest(_types(instance, typing))
            if listed is not None and precision == "float64":
                precision = listed.loose or precision
            elif listed is not None and listed.loose == "float16" and precision == "float32":
                precision = "float16"
            for i, (one, two) in enumerate(zip(ours, theirs, strict=False)):
                if i in fragile:
                    tally["fragile"] += 1
                    continue
                found = difference(one, two, precision)
                assert found is None, f"{op}, output {i}: {found}\n{instance}"
            tally["agree"] += 1
            if tally["agree"] == wanted:
                break
    return tally


def _types(instance: Instance, typing: Typing) -> list[TensorType | None]:
    return [*instance.operands, *typing.outputs]
