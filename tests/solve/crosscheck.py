"""Comparing signatures with another system's shape inference, instance by instance.

An *oracle* says which types an application has, refuses it, or cannot express it. Valid instances
must get the same types from both; that the oracle refuses what a signature refuses is checked
where the oracle looks at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from typing import Any

from reprise.solve.sampling import Instance, Sampler
from reprise.solve.signatures import Signatures
from reprise.uir.graph import TensorType
from reprise.uir.inference import SignatureError, Typing

Oracle = Callable[[str, Instance, Typing], list[TensorType] | None]
"""The result types; None if the oracle cannot express the application. Raises if it refuses it."""


def agree(ours: TensorType, theirs: TensorType) -> bool:
    """Whether the two say the same as far as both know."""
    if theirs.dtype is not None and ours.dtype != theirs.dtype:
        return False
    if ours.shape is None or theirs.shape is None:
        return True
    return len(ours.shape) == len(theirs.shape) and all(
        a is None or b is None or a == b for a, b in zip(ours.shape, theirs.shape, strict=True)
    )


def mutate(instance: Instance, rng: Random) -> Instance:
    """The instance with one operand's extent, rank or dtype changed."""
    operands = list(instance.operands)
    places = [i for i, operand in enumerate(operands) if operand is not None]
    if not places:
        return instance
    i = rng.choice(places)
    operand = operands[i]
    assert operand is not None and operand.shape is not None
    shape, dtype = list(operand.shape), operand.dtype
    kind = rng.choice(["extent", "extent", "rank", "dtype"])
    if kind == "dtype":
        dtype = rng.choice(["float32", "int8", "bool", "string"])
    elif kind == "rank" or not shape:
        shape.insert(rng.randint(0, len(shape)), rng.choice((1, 2)))
    else:
        shape[rng.randrange(len(shape))] += rng.choice((1, 2, 3))  # type: ignore[operator]
    operands[i] = TensorType(dtype, tuple(shape))
    return Instance(tuple(operands), instance.attributes)


def instances(signatures: Signatures, op: str) -> Iterator[tuple[Instance, Typing]]:
    """Random valid instances, and mutants of them that are valid too; without end."""
    rng = Random(f"valid {op}")
    sampler = Sampler(signatures[op])
    while True:
        instance = sampler.draw(rng)
        assert instance is not None, f"{op}: nothing fits"
        yield instance, signatures.check(op, instance.operands, instance.attributes)
        mutant = mutate(instance, rng)
        typing = signatures[op].attempt(mutant.operands, mutant.attributes)
        if typing is not None:
            yield mutant, typing


def refused(
    signatures: Signatures, op: str, rounds: int
) -> Iterator[tuple[Instance, Typing, SignatureError]]:
    """Mutants that the signature refuses; with the typing of what they were made from."""
    rng = Random(f"refused {op}")
    sampler = Sampler(signatures[op])
    for _ in range(rounds):
        instance = sampler.draw(rng)
        assert instance is not None, f"{op}: nothing fits"
        typing = signatures.check(op, instance.operands, instance.attributes)
        mutant = mutate(instance, rng)
        try:
            signatures.check(op, mutant.operands, mutant.attributes)
        except SignatureError as error:
            yield mutant, typing, error


def verify(signatures: Signatures, oracle: Oracle, op: str, wanted: int) -> None:
    """Compare types on as many random valid instances, of those that the oracle can express."""
    compared = 0
    for instance, typing in islice(instances(signatures, op), 20 * wanted):
        theirs = oracle(op, instance, typing)
        if theirs is None:
            continue
        for ours, other in zip(typing.outputs, theirs, strict=False):
            assert agree(ours, other), f"{op}: {ours} here, {other} there: {instance}"
        compared += 1
        if compared == wanted:
            return
    raise AssertionError(f"{op}: only {compared} of {20 * wanted} instances can be expressed")


def tally_refusals(
    signatures: Signatures, oracle: Oracle, op: str, rounds: int, codes: frozenset[str]
) -> tuple[Counter[str], Any]:
    """How many refused mutants the oracle refuses and accepts, and the last that it accepts."""
    tally: Counter[str] = Counter()
    example = None
    for instance, typing, error in refused(signatures, op, rounds):
        if error.code not in codes:
            continue
        try:
            theirs = oracle(op, instance, typing)
        except Exception:  # whatever the oracle throws, it refuses
            tally["refuses"] += 1
            continue
        if theirs is not None:
            tally["accepts"] += 1
            example = (str(error), instance)
    return tally, example
