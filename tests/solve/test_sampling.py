"""Drawing applications from a signature alone."""

from __future__ import annotations

from random import Random

import pytest

from reprise.lang.parse import parse_text
from reprise.solve.sampling import Sampler
from reprise.solve.signatures import Signatures


@pytest.mark.parametrize("op", ["conv2d", "concat", "reshape", "einsum", "quantize_linear", "lstm"])
def test_the_same_seed_draws_the_same(signatures, op):
    def drawn():
        rng = Random(7)
        sampler = Sampler(signatures[op])
        return [sampler.draw(rng) for _ in range(20)]

    first = drawn()
    assert first == drawn()
    assert len(set(map(str, first))) > 10


def test_a_signature_needs_no_more_than_itself():
    """Equations, divisibility, dtype sets and ranks are found from the declaration."""
    text = """
        set halves = {float16, bfloat16}
        op f(x: T[*D, N], y: U[G, N / G]) -> T[*D] {
            attr groups as G: int in 2..inf
            where T in halves, U in halves, U != T, N % G == 0, x.rank == 3
        }
    """
    signatures = Signatures.of([parse_text(text, "mine.rules")])
    sampler = Sampler(signatures["f"])
    rng = Random(1)
    for _ in range(50):
        instance = sampler.draw(rng)
        x, y = instance.operands
        assert x.rank == 3
        assert {x.dtype, y.dtype} == {"float16", "bfloat16"}
        assert y.shape[0] * y.shape[1] == x.shape[2]


def test_what_nothing_satisfies_is_not_drawn():
    signatures = Signatures.of(
        [parse_text("op f(x: T[N]) -> T[N] { where N == N + 1 }", "mine.rules")]
    )
    assert Sampler(signatures["f"]).draw(Random(1), tries=5) is None


def test_most_draws_are_accepted(signatures):
    rng = Random(3)
    tried = accepted = 0
    for op in sorted(signatures):
        if "untyped" in signatures[op].flags:
            continue
        sampler = Sampler(signatures[op])
        for _ in range(5):
            instance = sampler.propose(rng)
            tried += 1
            if instance is not None:
                signature = signatures[op]
                accepted += signature.attempt(instance.operands, instance.attributes) is not None
    assert accepted / tried > 0.8


@pytest.mark.parametrize(
    "op",
    [
        *("attention", "rotary_embedding", "gemm", "reverse_sequence", "pad", "max_unpool"),
        *("quantize_linear", "dequantize_linear", "qlinear_matmul", "matmul_integer"),
        *("conv_integer", "qlinear_conv", "layer_norm", "resize", "rnn", "gru", "lstm"),
    ],
)
def test_operators_with_much_to_relate_are_drawn_well(signatures, op):
    rng, signature = Random(11), signatures[op]
    sampler = Sampler(signature)
    drawn = [sampler.propose(rng) for _ in range(200)]
    fit = [i for i in drawn if i is not None and signature.attempt(i.operands, i.attributes)]
    assert len(fit) >= 0.5 * len(drawn)
    assert len({str(i) for i in fit}) >= 0.8 * len(fit)


def test_optional_operands_that_go_together_are_there_together(signatures):
    """Past keys and values, or lengths, or neither: never one alone."""
    rng, sampler = Random(5), Sampler(signatures["attention"])
    seen = set()
    for _ in range(100):
        operands = (*sampler.draw(rng).operands, *[None] * 4)
        seen.add(tuple(operands[i] is not None for i in (4, 5, 6)))
    assert seen == {(False, False, False), (True, True, False), (False, False, True)}


def test_each_way_to_fit_is_drawn(signatures):
    """Scales: one in all, one for each position of an axis, or one for each block."""
    rng, sampler = Random(2), Sampler(signatures["quantize_linear"])
    seen = set()
    for _ in range(200):
        instance = sampler.draw(rng)
        x, scale = instance.operands[:2]
        block = instance.attributes.get("block_size", 0)
        seen.add("blocks" if block else "one" if scale.elements == 1 else "each")
        assert block == 0 or scale.rank == x.rank
    assert seen == {"one", "each", "blocks"}
