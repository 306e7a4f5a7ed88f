"""A signature that cannot work is refused when it is loaded, with its place."""

from __future__ import annotations

import pytest

from reprise.lang.diagnostics import RulesError
from reprise.lang.parse import parse_text
from reprise.solve.signatures import Signatures
from reprise.uir.graph import TensorType


def load(text):
    sets = "set floats = {float32, float64}\n"
    return Signatures.of([parse_text(sets + text, "mine.rules")])


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("op f(x: T[N]) -> T[M] {}", "unbound-variable", "nothing binds `M`"),
        ("op f(x: T[N]) -> T[N] { where N == M + 1 }", "unbound-variable", "nothing binds `M`"),
        ("op f(x: T[N]) -> U[N] {}", "unbound-variable", "nothing binds `U`"),
        ("op f(x: T[*D]) -> T[*dorp(D, 0)] {}", "unknown-function", "`dorp` is no shape function"),
        ("op f(x: T[*D]) -> T[*drop(D)] {}", "arity", "`drop` takes 2"),
        ("op f(x: T[*D]) -> T[*D] { where T in flots }", "unknown-set", "`flots` is no set"),
        ("op f(x: T[*D]) -> T[*D] { where y.rank >= 1 }", "unknown-operand", "`y` is no operand"),
        ("op f(x: T[*D]) -> T[*D] { where x.rnk >= 1 }", "unknown-property", "no `rnk`"),
        ("op f(x: T[*D]) -> T[*D] { where odd(x) }", "unknown-condition", "`odd`"),
        ("op f(x: T[*D]) -> T[*D] { attr a: number }", "unknown-type", "`number`"),
        ("op f(x: T[*D]) -> T[*D] { flag comutative }", "unknown-flag", "`comutative`"),
        ("op f(x: T[*D, *E]) -> T[*D] {}", "ambiguous-shape", "one `*` only"),
        ("op f(xs...: T[N]) -> T[N] {}", "variadic-shape", "must be one splat"),
        ("op f(x: T[N]) -> T[N] {} op f(x: T[N]) -> T[N] {}", "shadowed", "declared twice"),
    ],
)
def test_what_cannot_work_is_refused(text, code, words):
    with pytest.raises(RulesError) as caught:
        load(text)
    found = [d for d in caught.value.diagnostics if d.code == code]
    assert found, caught.value.diagnostics
    assert words in found[0].message
    assert found[0].span.file == "mine.rules"


def test_the_order_of_conditions_does_not_matter():
    signatures = load(
        "op f(x: T[N]) -> T[B] { where B == A + 1, A == N * K, K >= 1 attr k as K: int = 2 }"
    )
    assert signatures.infer("f", [TensorType("float32", (3,))]) == [TensorType("float32", (7,))]


def test_a_default_may_depend_on_operands_and_other_attributes():
    signatures = load(
        "op f(x: T[*D]) -> T[*D] {"
        " attr b as B: ints = fill(A, x.rank)  attr a as A: int = x.rank + 1 }"
    )
    completed = signatures.complete_attributes("f", [TensorType("float32", (3, 4))])
    assert completed == {"a": 3, "b": (2, 2, 2)}


def test_what_mentions_an_absent_operand_is_void():
    signatures = load("op f(x: T[N], b?: T[M]) -> T[N] { where M == 2 * N, present(b) or N >= 2 }")

    def fits(*extents):
        operands = [TensorType("float32", (extent,)) for extent in extents]
        return signatures["f"].attempt(operands, {}) is not None

    assert fits(3)
    assert fits(3, 6)
    assert not fits(3, 5)
    assert fits(1, 2)
    assert not fits(1)
