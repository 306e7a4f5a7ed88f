"""The law of the two readings: with nothing unknown, the engine and the solver agree.

Random graphs over the operators that ``coverage.rules`` speaks of. Wherever a pattern's structure
occurs, the solver's answer at that place is YES exactly if the engine derived the match there.
"""

from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.facts.facts import facts_of
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Graph, TensorType
from reprise.uir.inference import SignatureError

RULES = Path(__file__).parent / "coverage.rules"
UNARY = ["relu", "tanh", "exp", "abs", "neg", "elu", "identity", "floor", "softmax", "sum", "cast"]
BINARY = ["add", "mul", "sub", "div", "maximum", "minimum", "remainder"]


@cache
def rules() -> RuleSet:
    return load_rules([RULES])


@cache
def signatures() -> Signatures:
    return Signatures.of(rules().files)


@cache
def matcher() -> Matcher:
    # what no graph decides is left to the tests of possible matches
    open_ones = ("r2", "r6", "r13", "r14")
    return Matcher(
        rules(), [p for name, p in rules().patterns.items() if not name.startswith(open_ones)]
    )


def random_graph(seed: int, size: int) -> Graph:
    """A graph of ``size`` nodes at most, typed by the signatures."""
    random = Random(seed)
    graph = Graph()
    shapes = [(4,), (3, 3), (2, 3), (1, 4), (2, 3, 4)]
    for i in range(random.randint(1, 3)):
        graph.add_input(f"x{i}", TensorType("float32", random.choice(shapes)))
    for _ in range(size):
        recent = graph.tensors[-4:]
        if random.random() < 0.5:
            op, operands = random.choice(UNARY), [random.choice(recent)]
        else:
            op, operands = random.choice(BINARY), [random.choice(recent) for _ in range(2)]
        rank = operands[0].type.rank or 0
        attributes: dict[str, object] = {}
        if op == "softmax":
            attributes["axis"] = random.randrange(max(rank, 1))
        if op == "sum":
            attributes["axes"] = (random.randrange(max(rank, 1)),)
        if op == "cast":
            attributes["to"] = random.choice(["float16", "float32", "float64"])
        try:
            typing = signatures().check(op, [t.type for t in operands], attributes)
        except SignatureError:
            continue
        outputs = [(f"t{len(graph.tensors)}", t) for t in typing.outputs]
        graph.add_node(op, operands, outputs, typing.attributes, given=frozenset(attributes))
    read = {t for n in graph.nodes for t in n.inputs}
    graph.outputs = [t for t in graph.tensors if t not in read]
    return graph


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_the_engine_and_the_solver_agree(seed: int, size: int) -> None:
    graph = random_graph(seed, size)
    found = matcher().run(graph, near=True)
    assert all(f.certainty is Truth.YES for f in found.findings)
    places = {(f.pattern.name, tuple(f.nodes.values())) for f in found.findings}
    derived = {(p.name, row) for p in matcher().patterns for row in found.database.rows(p.name)}
    assert places == derived


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_forgetting_an_extent_never_turns_yes_into_no(seed: int, size: int) -> None:
    graph = random_graph(seed, size)
    before = {(f.pattern.name, tuple(f.nodes.values())) for f in matcher().run(graph).findings}
    for tensor in graph.tensors:
        shape = tensor.type.shape
        if shape and tensor.id % 2:
            tensor.type = TensorType(tensor.type.dtype, (None, *shape[1:]))
    after = {(f.pattern.name, tuple(f.nodes.values())) for f in matcher().run(graph).findings}
    assert before <= after
    assert list(facts_of(graph))
