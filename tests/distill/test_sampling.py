"""Samples match the draft that they are made for, by the shipped matcher too, and have what was
wished for."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import pytest

from reprise.distill.conditions import Place, Term
from reprise.distill.draft import Draft, draft_of
from reprise.distill.generalise.specific import specific
from reprise.distill.sampling import Sampling, Wish
from reprise.distill.subject import input_values
from reprise.lang.ruleset import load_rules, load_text
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.solve.signatures import Signatures
from reprise.synth.vocabulary import read_policies
from reprise.uir.graph import Attribute, Role
from reprise.uir.program import Program
from reprise.uir.text import parse_uir, print_uir
from reprise.uir.types import numpy_dtype

SEED = """
x: float32[3, 4]
w: float32[4, 4]
t = transpose(w, perm=[1, 0])
g = gemm(x, t)
"""


@cache
def sampling() -> Sampling:
    return Sampling(Signatures.load(), read_policies(load_rules([])))


@cache
def start() -> tuple[Program, Draft, Place]:
    signatures = sampling().signatures
    graph = parse_uir(SEED, "seed.uir", signatures)
    for node in graph.nodes:
        types = [None if t is None else t.type for t in node.inputs]
        node.attributes = dict(signatures.check(node.op, types, node.attributes).attributes)
    program = Program(graph, input_values(graph, {}, Path("seed.uir"), 0), "seed")
    draft, place = draft_of(program, "p")
    return program, draft, place


@pytest.mark.slow
def test_samples_match_the_text_of_their_draft_and_are_programs() -> None:
    _, draft, place = start()
    half = [c for c in specific(draft, place) if "dim" not in str(c) and "input" not in str(c)]
    for narrow in (draft, draft.with_(*half)):
        rules = load_text(narrow.text())
        matcher = Matcher(rules, list(rules.patterns.values()))
        shapes = set()
        for number in range(30):
            sample = sampling().sample(narrow, place, Random(number), stray=0.6)
            assert sample is not None
            graph = sample.program.graph
            found = matcher.run(graph).findings
            assert any(f.certainty is Truth.YES for f in found), print_uir(graph)
            assert all(c.holds(sample.place) for c in narrow.conditions)
            shapes.add(str(sample.place.tensors["x1"].type))
            for tensor in graph.tensors:
                if tensor.role is Role.INPUT:
                    value = sample.program.inputs[tensor.name]
                    assert value.shape == tensor.type.shape
                    assert value.dtype == numpy_dtype(tensor.type.dtype or "")
        assert len(shapes) > 5


def test_the_same_generator_state_gives_the_same_sample() -> None:
    program, draft, place = start()
    made = [
        sampling().sample(draft, place, Random(5), inputs=program.inputs, stray=0.5)
        for _ in range(2)
    ]
    assert made[0] is not None and made[1] is not None
    assert print_uir(made[0].program.graph) == print_uir(made[1].program.graph)
    for name, value in made[0].program.inputs.items():
        assert value.tobytes() == made[1].program.inputs[name].tobytes()


def test_what_is_not_asked_for_is_as_in_the_seed() -> None:
    program, draft, place = start()
    sample = sampling().sample(draft, place, Random(1), inputs=program.inputs, stray=0.0)
    assert sample is not None
    assert all(c.holds(sample.place) for c in specific(draft, place))
    for name, value in (("x1", "w"), ("x2", "x")):
        assert sample.program.inputs[name].tobytes() == program.inputs[value].tobytes()


@pytest.mark.parametrize(
    ("wish", "term", "expected"),
    [
        (Wish("dim", "x1", 1, 7), Term("dim", "x1", "", 1), 7),
        (Wish("dtype", "x1", "", "float64"), Term("dtype", "x2"), "float64"),
        (Wish("attr", "n1", "perm", (0, 1)), Term("attr", "n1", "perm"), (0, 1)),
        (Wish("attr", "n2", "alpha", 2.5), Term("attr", "n2", "alpha"), 2.5),
        (Wish("reader", "n1", "", True), Term("fanout", "n1"), 2),
        (Wish("opset", "", "", 17), Term("opset"), 17),
    ],
)
def test_wishes_come_true(wish: Wish, term: Term, expected: Attribute) -> None:
    program, draft, place = start()
    sample = sampling().sample(draft, place, Random(3), [wish], inputs=program.inputs, stray=0.0)
    assert sample is not None
    assert term.read(sample.place) == expected


def test_a_wish_that_cannot_come_true_gives_no_sample() -> None:
    _, draft, place = start()
    rank = Wish("rank", "x1", "", 3)  # gemm takes matrices
    assert sampling().sample(draft, place, Random(0), [rank], tries=20) is None


@pytest.mark.parametrize("role", ["input", "stored", "computed", "folded"])
def test_sources_come_from_where_they_are_wished_to(role: str) -> None:
    _, draft, place = start()
    wish = Wish("role", "x1", "", role)
    sample = sampling().sample(draft, place, Random(2), [wish], stray=0.0)
    assert sample is not None
    tensor = sample.place.tensors["x1"]
    varies = tensor.id in sample.place.around.varies
    computed = tensor.role is Role.COMPUTED
    assert (varies, computed) == (role in ("input", "computed"), role in ("computed", "folded"))
