"""Operands for results that are required."""

from __future__ import annotations

import doctest
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import reprise.solve.backward
from reprise.lang.parse import parse_text
from reprise.solve.answers import Unknown, Unsatisfiable
from reprise.solve.backward import Backward, Producers
from reprise.solve.sampling import Sampler
from reprise.solve.signatures import Signatures
from reprise.uir.graph import TensorType

SIGNATURES = Signatures.load()
OPERATORS = sorted(op for op in SIGNATURES if op not in ("if", "loop", "scan"))
ROUNDS = 10

_made: dict[str, Backward] = {}


def backward(op):
    return _made.setdefault(op, Backward(SIGNATURES[op]))


def f32(*shape):
    return TensorType("float32", shape)


def is_accepted(op, answer, results):
    """Whether the signature itself says that an instance has these results."""
    instance, typing = answer
    checked = SIGNATURES.check(op, instance.operands, instance.attributes)
    assert checked.outputs == typing.outputs
    return all(checked.outputs[i] == type for i, type in results.items())


def own_signature(text):
    return Signatures.of([parse_text(text, "mine.rules")])["f"]


@pytest.mark.slow
def test_the_examples_of_the_module_are_true():
    failures, tests = doctest.testmod(reprise.solve.backward)
    assert tests > 10
    assert failures == 0


# --- for every operator ------------------------------------------------------------------------


@pytest.mark.slow
def test_what_was_drawn_forwards_is_found_backwards_for_nearly_every_operator():
    found = {}
    for op in OPERATORS:
        rng, sampler = Random(f"there and back {op}"), Sampler(SIGNATURES[op])
        found[op] = 0
        for _ in range(ROUNDS):
            _, typing = sampler.typed(rng)
            results = dict(enumerate(typing.outputs))
            answer = backward(op).inputs_for(rng, results)
            if isinstance(answer, tuple):
                assert is_accepted(op, answer, results)
                found[op] += 1
    lacking = {op: f"{count} of {ROUNDS}" for op, count in found.items() if count < ROUNDS}
    assert len(lacking) <= 0.05 * len(OPERATORS), lacking
    assert not [op for op in OPERATORS if backward(op).counts["refused"]]


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(OPERATORS), st.integers(0, 2**32))
def test_what_is_proved_impossible_is_never_something_that_exists(op, seed):
    """z3 alone, which must not refute what was drawn."""
    rng = Random(seed)
    _, typing = Sampler(SIGNATURES[op]).typed(rng)
    results = dict(enumerate(typing.outputs))
    answer = backward(op).inputs_for(rng, results, tries=0)
    assert not isinstance(answer, Unsatisfiable), str(answer)
    if isinstance(answer, tuple):
        assert is_accepted(op, answer, results)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(OPERATORS), st.integers(0, 2**32))
def test_operands_that_are_given_stay(op, seed):
    rng = Random(seed)
    instance, typing = Sampler(SIGNATURES[op]).typed(rng)
    present = [i for i, o in enumerate(instance.operands[:2]) if o is not None]
    bound = {i: instance.operands[i] for i in present[:1]}
    results = dict(enumerate(typing.outputs))
    answer = backward(op).inputs_for(rng, results, bound, solver=False)
    if isinstance(answer, tuple):
        assert is_accepted(op, answer, results)
        assert all(answer[0].operands[i] == type for i, type in bound.items())


# --- one operator ------------------------------------------------------------------------------


def test_a_reshape_is_found_from_a_given_image():
    image, flat = f32(1, 32, 32), f32(1, 1024)
    answer = backward("reshape").inputs_for(Random(1), {0: flat}, {0: image})
    assert is_accepted("reshape", answer, {0: flat})
    assert answer[0].operands == (image,)


def test_attributes_that_are_given_stay():
    wanted = f32(2, 8, 7, 7)
    for seed in range(10):
        answer = backward("conv2d").inputs_for(
            Random(seed), {0: wanted}, given={"strides": (2, 3), "groups": 4}
        )
        assert is_accepted("conv2d", answer, {0: wanted})
        assert answer[1].attributes["strides"] == (2, 3)
        assert answer[1].attributes["groups"] == 4


@pytest.mark.parametrize("tries", [0, 8])
def test_strides_divide_what_they_must(tries):
    """A strided transposed convolution reaches only some extents: the rest must give way."""
    wanted = f32(1, 6, 31, 17)
    given = {"strides": (5, 4), "groups": 3}
    answer = backward("conv_transpose2d").inputs_for(
        Random(3), {0: wanted}, given=given, tries=tries
    )
    assert is_accepted("conv_transpose2d", answer, {0: wanted})


def test_extents_in_the_billions_are_found():
    for op, wanted in (
        ("conv2d", f32(1, 1, 3_000_000_019, 7)),
        ("reshape", f32(2**31, 3)),
        ("concat", f32(5_000_000_000, 2)),
        ("matmul", f32(2**33, 2**32)),
        ("depth_to_space", f32(1, 1, 2**31, 2**31)),
    ):
        answer = backward(op).inputs_for(Random(1), {0: wanted})
        assert is_accepted(op, answer, {0: wanted}), op


def test_only_some_results_need_be_required():
    answer = backward("topk").inputs_for(Random(1), {1: TensorType("int64", (3, 5))})
    assert answer[1].outputs[1] == TensorType("int64", (3, 5))


@pytest.mark.slow
def test_the_same_generator_state_gives_the_same_answer_whatever_was_asked_before():
    questions = [("conv2d", f32(2, 3, 5, 5)), ("gemm", f32(3, 4)), ("max_unpool", f32(1, 1, 9))]
    for tries in (0, 8):
        for op, wanted in questions:
            fresh = Backward(SIGNATURES[op])
            used = Backward(SIGNATURES[op])
            for other in range(5):
                used.inputs_for(Random(other), {0: f32(*(3,) * len(wanted.shape))}, tries=tries)
                used.inputs_for(Random(other), {0: wanted}, tries=tries)
            for seed in range(4):
                asked = [
                    b.inputs_for(Random(seed), {0: wanted}, tries=tries) for b in (fresh, used)
                ]
                assert asked[0] == asked[1]


def test_answers_vary_with_the_generator_even_those_of_z3():
    answers = {
        str(backward("conv2d").inputs_for(Random(seed), {0: f32(1, 4, 6, 6)}, tries=0)[0])
        for seed in range(40)
    }
    assert len(answers) >= 4


def test_an_answer_may_be_changed_without_harm():
    asked = Backward(SIGNATURES["conv2d"])
    first = asked.inputs_for(Random(1), {0: f32(1, 4, 6, 6)}, tries=0)
    first[0].attributes.clear()
    first[1].outputs.clear()
    again = asked.inputs_for(Random(1), {0: f32(1, 4, 6, 6)}, tries=0)
    assert is_accepted("conv2d", again, {0: f32(1, 4, 6, 6)})


# --- what is impossible ------------------------------------------------------------------------


def test_a_clash_is_named_by_rule_and_line():
    signature = own_signature(
        """op f(x: T[N, M]) -> T[N, K] {
            attr stride as S: int in 2..4
            where T in {float16, float32}
            where K == N * S + 1
            where M >= 3
            where N % 2 == 0
        }"""
    )
    asked = Backward(signature)
    answer = asked.inputs_for(Random(1), {0: f32(4, 13)})
    assert answer[0].attributes == {"stride": 3}
    answer = asked.inputs_for(Random(1), {0: f32(4, 41)})
    assert isinstance(answer, Unsatisfiable)
    assert answer.rank is None
    lines = {clash.span.line for clash in answer.clashes}
    assert {2, 4} <= lines
    assert not lines & {3, 5, 6}
    assert "K == N * S + 1" in str(answer)
    odd = asked.inputs_for(Random(1), {0: f32(5, 16)})
    assert [clash.text for clash in odd.clashes] == ["result 0 is float32[5, 16]", "N % 2 == 0"]
    dtype = asked.inputs_for(Random(1), {0: TensorType("int8", (4, 13))})
    assert any("T in {float16, float32}" in clash.text for clash in dtype.clashes)
    assert asked.counts == {"native": 1, "unsatisfiable": 3}


@pytest.mark.parametrize(
    ("op", "wanted", "bound"),
    [
        ("reshape", f32(1, 1024), {0: f32(3, 5)}),
        ("equal", f32(2), {}),
        ("conv2d", f32(1, 2, 9, 9), {0: f32(1, 4, 5, 5), 1: f32(2, 4, 7, 7), 2: f32(3)}),
        ("relu", f32(2, 3), {0: f32(3, 2)}),
        ("global_avg_pool", f32(1, 2, 3), {}),
        ("bmm", f32(2, 3, 4), {0: f32(2, 3, 5), 1: f32(2, 6, 4)}),
    ],
)
def test_what_cannot_be_is_said_to_be_impossible(op, wanted, bound):
    answer = backward(op).inputs_for(Random(1), {0: wanted}, bound)
    assert isinstance(answer, Unsatisfiable), answer
    assert answer.clashes
    assert str(answer).startswith(f"{op}: nothing has this result: ")


@pytest.mark.parametrize(
    ("op", "results", "operand"),
    [
        ("pad", [f32(3, 3, 3)], f32(2, 2, 2)),
        ("split", [f32(1, 2)] * 11, f32(11, 2)),
        ("sum", [f32(1, 1, 1, 1, 1)], f32(3, 3, 3, 3, 3)),
    ],
)
def test_long_lists_are_not_ruled_out(op, results, operand):
    answer = backward(op).inputs_for(Random(1), dict(enumerate(results)), {0: operand}, tries=0)
    assert not isinstance(answer, Unsatisfiable), str(answer)


def test_what_is_too_hard_is_unknown_and_counted():
    """Fermat's last theorem for exponent 3: z3 gives up, and says so."""
    signature = own_signature(
        """op f(x: T[A, B, C]) -> T[K] {
            where A >= 1, B >= 1, C >= 1, A * A * A + B * B * B == C * C * C, K == A + B + C
        }"""
    )
    asked = Backward(signature)
    answer = asked.inputs_for(Random(1), {0: f32(1_000_003)})
    assert isinstance(answer, Unknown)
    assert asked.counts == {"unknown": 1}
    assert "there may be" in str(answer)


# --- producers ---------------------------------------------------------------------------------


def test_a_producer_reads_an_available_tensor_if_it_can():
    available = [f32(7, 7), f32(1, 32, 32)]
    made = backward("reshape").producer(Random(1), f32(1, 1024), available)
    assert made.bound == {0: 1}
    assert made.instance.operands[0] == available[1]
    assert made.typing.outputs[made.output] == f32(1, 1024)


def test_a_producer_makes_do_with_new_operands():
    made = backward("reshape").producer(Random(1), f32(1, 1024), [f32(7, 7)])
    assert made.bound == {}
    assert made.typing.outputs[made.output] == f32(1, 1024)


def test_earlier_tensors_are_preferred():
    available = [f32(2, 3), f32(1, 3)]
    for seed in range(10):
        made = backward("add").producer(Random(seed), f32(2, 3), available)
        assert list(made.bound.values()) == [0]


def test_no_more_tensors_are_tried_than_asked_for():
    available = [f32(7, 7)] * 3 + [f32(1, 32, 32)]
    assert backward("reshape").producer(Random(1), f32(1, 1024), available).bound == {0: 3}
    assert backward("reshape").producer(Random(1), f32(1, 1024), available, most=3).bound == {}


def test_a_piece_is_produced_by_cutting():
    made = backward("split").producer(Random(1), f32(2, 3))
    assert set(made.typing.outputs) == {f32(2, 3)}


@pytest.mark.slow
def test_nearly_every_producer_that_is_offered_can_make_it():
    producers = Producers([backward(op) for op in OPERATORS])
    rng = Random(5)
    for wanted in (
        f32(2, 3),
        f32(),
        TensorType("int64", (4,)),
        TensorType("bool", (2, 1, 3)),
        TensorType("float16", (1, 4, 6, 6)),
    ):
        offered = producers.of(wanted)
        assert len(offered) > 20
        missing = []
        for asked in offered:
            made = asked.producer(rng, wanted, [f32(2, 3), f32(1, 4, 6, 6)])
            if made is None:
                missing.append(asked.signature.name)
                continue
            assert made.typing.outputs[made.output] == wanted
            checked = asked.signature.check(made.instance.operands, made.instance.attributes)
            assert checked.outputs == made.typing.outputs
        # many have no scalar for a result, which the index by rank does not see
        share = 0.1 if wanted.shape else 0.2
        assert len(missing) <= share * len(offered), (wanted, missing)
