"""z3 and the native reading say the same of every signature: with every number pinned, z3 finds the
constraints satisfiable just where the signature accepts, and the same result types."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprise.lang.parse import parse_text
from reprise.solve.plan import Normalise
from reprise.solve.sampling import Sampler
from reprise.solve.signatures import Signatures
from reprise.solve.z3_encoding import encode
from reprise.solve.z3_reading import NeedsValue, Symbolic, Unread
from reprise.uir.graph import TensorType
from tests.solve.crosscheck import mutate

SIGNATURES = Signatures.load()
OPERATORS = sorted(op for op in SIGNATURES if op not in ("if", "loop", "scan"))

STRUCTURAL = {
    "chunk",  # how many pieces there are
    "constant_of_shape",  # the rank of the result
    "dequantize_linear",  # which axis the scales are for
    "gather_nd",  # the depth of index tuples
    "quantize_linear",
    "reverse_sequence",  # which axis is the batch
    "scatter_nd",
    "shape",  # which extents are asked for
    "squeeze",  # which extents are 1, where no axes are given
    "transpose",  # the permutation
}
"""Operators whose ranks depend on numbers: these numbers z3 is told, not asked for."""


@cache
def sampler(op):
    return Sampler(SIGNATURES[op])


class Pinned:
    """A signature's constraints on an instance, every number a z3 term that is pinned to its
    value; but for those that the structure depends on (``told``)."""

    def __init__(self, signature, instance):
        self.told = set()
        while True:
            try:
                self._encode(signature, instance)
                return
            except NeedsValue as needed:
                self.told |= {str(t) for t in constants(needed.term)}

    def _encode(self, signature, instance):
        self.context = z3.Context()
        reading = Symbolic(self.context)
        self.pins = []
        axes = {s.variable for s in signature.plan.steps if isinstance(s, Normalise)}
        numbers = {
            a.name
            for a in signature.plan.attributes
            if a.type in ("int", "ints") and a.variable not in axes
        }

        def term(name, value):
            if name in self.told:
                return value
            made = z3.Int(name, self.context)
            self.pins.append(made == value)
            return made

        def terms(name, value):
            if isinstance(value, tuple):
                return tuple(term(f"{name}.{i}", item) for i, item in enumerate(value))
            return term(name, value)

        operands = [
            None if o is None else TensorType(o.dtype, terms(f"operand {i}", o.shape))
            for i, o in enumerate(instance.operands)
        ]
        attributes = {
            name: terms(name, value) if name in numbers else value
            for name, value in instance.attributes.items()
        }
        self.encoding = encode(signature.plan, operands, attributes, reading)
        self.reading = reading

    def holds(self, *more):
        solver = z3.Solver(ctx=self.context)
        for truth in (*(c.truth for c in self.encoding.constraints), *self.pins, *more):
            if truth is False:
                return False
            solver.add(truth)
        answer = solver.check()
        assert answer != z3.unknown, "pinned constraints are decided"
        return answer == z3.sat

    def has_results(self, outputs):
        """Whether the results can be these, as a term."""
        assert len(self.encoding.results) == len(outputs)
        same = []
        for ours, native in zip(self.encoding.results, outputs, strict=True):
            assert ours.dtype == native.dtype
            assert len(ours.shape) == len(native.shape)
            for extent, wanted in zip(ours.shape, native.shape, strict=True):
                assert (extent is None) is (wanted is None)
                if wanted is not None:
                    same.append(self.reading.compare("==", extent, wanted, False))
        return self.reading.every(same)


def constants(term):
    if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
        yield term
    for child in term.children():
        yield from constants(child)


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(OPERATORS), st.integers(0, 2**32), st.integers(0, 2))
def test_z3_with_every_number_pinned_accepts_what_the_signature_accepts(op, seed, changes):
    rng = Random(seed)
    instance = sampler(op).draw(rng)
    for _ in range(changes):
        instance = mutate(instance, rng)
    typing = SIGNATURES[op].attempt(instance.operands, instance.attributes)
    pinned = Pinned(SIGNATURES[op], instance)
    assert pinned.holds() is (typing is not None), instance
    if typing is not None:
        same = pinned.has_results(typing.outputs)
        assert pinned.holds(same)
        assert not pinned.holds(pinned.reading.negation(same))


@pytest.mark.slow
@pytest.mark.parametrize("op", OPERATORS)
def test_every_signature_can_be_read(op):
    rng = Random(f"read {op}")
    told = set()
    for _ in range(3):
        for instance in (valid := sampler(op).draw(rng), mutate(valid, rng)):
            pinned = Pinned(SIGNATURES[op], instance)  # raises Unread otherwise
            told |= pinned.told
            accepted = SIGNATURES[op].attempt(instance.operands, instance.attributes)
            assert pinned.holds() is (accepted is not None), instance
    assert bool(told) <= (op in STRUCTURAL), f"{op}: {told}"


def condition(text, **numbers):
    """Whether z3 accepts a condition on N and M, with the numbers given."""
    signatures = Signatures.of(
        [parse_text(f"op f(x: T[N], y: T[M]) -> T[] {{ where {text} }}", "mine.rules")]
    )
    reading = Symbolic(z3.Context())
    n, m = (z3.Int(name, reading.context) for name in "NM")
    operands = [TensorType("float32", (n,)), TensorType("float32", (m,))]
    solver = z3.Solver(ctx=reading.context)
    for constraint in encode(signatures["f"].plan, operands, {}, reading).constraints:
        if constraint.truth is False:
            return False
        solver.add(constraint.truth)
    solver.add(*(z3.Int(name, reading.context) == value for name, value in numbers.items()))
    return solver.check() == z3.sat


@pytest.mark.slow
@pytest.mark.parametrize("divisor", [-3, -1, 2])
@pytest.mark.parametrize("number", [-4, -1, 0, 5])
def test_division_rounds_down_as_in_python_whatever_the_signs(number, divisor):
    expected = number // divisor, number % divisor
    for op, value in zip("/%", expected, strict=True):
        assert condition(f"N {op} M == {value}", N=number, M=divisor)
        assert not condition(f"N {op} M != {value}", N=number, M=divisor)
        assert condition(f"N {op} ({divisor}) == {value}", N=number)


def test_a_divisor_of_0_satisfies_nothing():
    assert not condition("N / M == 7", M=0)
    assert not condition("N % M != 7", M=0)
    assert not condition("not N / M == 7", M=0)


def test_what_a_guard_rules_out_needs_no_meaning():
    assert condition("M == 0 or N / M == 7", M=0, N=5)
    assert condition("x.rank == 1 or x.dim[1] == 2")
    assert not condition("M == 1 and N / (M - 1) == 7", M=1)


def test_arithmetic_on_floats_is_not_read():
    with pytest.raises(Unread):
        condition("N * 0.5 == 2")
