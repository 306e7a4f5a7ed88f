"""Laws that hold for every operator: the compiled and the interpreted reading agree, and knowing
less never gives a different answer, only a vaguer one."""

from __future__ import annotations

from random import Random

import pytest

from reprise.solve.emit import source
from reprise.solve.interpret import interpret
from reprise.solve.sampling import Sampler
from reprise.solve.signatures import Signatures
from reprise.uir.graph import TensorType
from reprise.uir.inference import SignatureError
from tests.solve.crosscheck import mutate

OPERATORS = sorted(op for op in Signatures.load() if op not in ("if", "loop", "scan"))
ROUNDS = 25


@pytest.fixture(scope="module")
def instances(signatures):
    """Valid instances, and mutants that may be invalid, by operator."""
    drawn = {}
    for op in OPERATORS:
        rng = Random(f"law {op}")
        sampler = Sampler(signatures[op])
        valid = [sampler.draw(rng) for _ in range(ROUNDS)]
        assert None not in valid, f"{op}: nothing fits"
        drawn[op] = (valid, [mutate(instance, rng) for instance in valid])
    return drawn


def outcome(function, *args):
    try:
        return function(*args)
    except SignatureError as error:
        return error.code


@pytest.mark.parametrize("op", OPERATORS)
def test_compiled_and_interpreted_readings_agree(signatures, instances, op):
    signature = signatures[op]
    valid, changed = instances[op]
    cases = [(i.operands, i.attributes) for i in [*valid, *changed]]
    fast = 0
    for operands, attributes in cases:
        compiled = signature.compiled(operands, attributes)
        interpreted = outcome(interpret, signature.plan, operands, attributes)
        if compiled is None:
            continue  # left to the interpreter
        fast += 1
        if compiled is False:
            assert isinstance(interpreted, str), (operands, attributes)
        else:
            assert interpreted == compiled, (operands, attributes)
            assert interpreted.certain
    assert fast == len(cases), "the compiled path is left without need"


@pytest.mark.parametrize("op", OPERATORS)
def test_knowing_less_never_gives_another_answer(signatures, instances, op):
    signature = signatures[op]
    rng = Random(f"less {op}")
    for instance in instances[op][0]:
        exact = signature.check(instance.operands, instance.attributes)
        vague_operands = forget(instance.operands, rng)
        vague = interpret(signature.plan, vague_operands, instance.attributes)
        if vague.outputs or "many_results" not in signature.flags:
            assert len(vague.outputs) == len(exact.outputs)
        for known, guess in zip(exact.outputs, vague.outputs, strict=False):
            assert covers(guess, known), (vague_operands, instance.attributes, guess, known)
        for name, value in vague.attributes.items():
            if name in exact.attributes and name not in instance.attributes:
                assert resolves(value, exact.attributes[name]), (name, value)


def forget(operands, rng):
    """Operands with extents unknown or symbolic (equal names for equal extents), sometimes the rank
    or the dtype."""
    seen = {}
    vague = []
    for operand in operands:
        if operand is None:
            vague.append(None)
            continue
        shape = []
        for extent in operand.shape:
            roll = rng.random()
            if roll < 0.3:
                shape.append(seen.setdefault(extent, f"N{extent}"))
            elif roll < 0.5:
                shape.append(None)
            else:
                shape.append(extent)
        dtype = None if rng.random() < 0.1 else operand.dtype
        vague.append(TensorType(dtype, None if rng.random() < 0.1 else tuple(shape)))
    return tuple(vague)


def covers(vague, exact):
    """Whether every fact in ``vague`` is true of ``exact``."""
    if vague.dtype not in (None, exact.dtype):
        return False
    if vague.shape is None or exact.shape is None:
        return True
    return len(vague.shape) == len(exact.shape) and all(
        a is None or b is None or a == b or a == f"N{b}"
        for a, b in zip(vague.shape, exact.shape, strict=True)
    )


def resolves(vague, exact):
    if isinstance(vague, tuple) and isinstance(exact, tuple):
        return len(vague) == len(exact) and all(map(resolves, vague, exact))
    if isinstance(vague, int) and isinstance(exact, int) and vague < 0:
        return True  # an axis of a tensor of unknown rank
    return vague == exact or vague == f"N{exact}"


def test_the_compiled_code_can_be_read(signatures):
    text = source(signatures["bmm"].plan)
    assert "def apply(operands, given):" in text
    assert "if v_K != s[1]: return False" in text
