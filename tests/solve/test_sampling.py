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
