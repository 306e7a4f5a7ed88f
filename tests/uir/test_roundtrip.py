"""Printing and reading again gives the same graph, for random graphs."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprise.solve.sampling import Sampler
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Graph, TensorType
from reprise.uir.text import parse_uir, print_uir
from reprise.uir.types import numpy_dtype

SIGNATURES = Signatures.load()
OPERATORS = sorted(op for op in SIGNATURES if op not in ("if", "loop", "scan"))
SAMPLERS = {op: Sampler(SIGNATURES[op]) for op in OPERATORS}

names = st.from_regex(r"[a-z][a-zA-Z0-9_]{0,6}", fullmatch=True)
extents = st.one_of(
    st.integers(0, 9),
    st.none(),
    st.from_regex(r"[A-Z][a-z0-9]?", fullmatch=True),
    st.text(min_size=1, max_size=5).filter(lambda t: t.isprintable()),
)
dtypes = st.sampled_from(
    ["float32", "float16", "bfloat16", "float64", "int8", "uint64", "int4", "bool", "string"]
)
kinds = st.builds(
    TensorType,
    st.one_of(dtypes, st.none()),
    st.one_of(st.none(), st.lists(extents, max_size=3).map(tuple)),
)
scalars = st.one_of(st.integers(-(2**63), 2**63), st.booleans(), st.floats(), st.text(max_size=6))
attributes = st.dictionaries(
    names, st.one_of(scalars, st.lists(scalars, max_size=3).map(tuple)), max_size=3
)


def value_of(draw, dtype, shape):
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    if dtype == "string":
        words = ["a", 'b"c\\', "", "\n", "é"]
        data = np.array([words[i] for i in rng.integers(0, 5, shape).reshape(-1)], dtype=object)
        return data.reshape(shape)
    values = rng.integers(0, 3, shape) * (0.1 if "float" in dtype else 1)
    if "float" in dtype and draw(st.booleans()):
        special = rng.choice([np.inf, -np.inf, np.nan, -0.0])
        values = np.where(rng.random(shape) < 0.3, special, values)
    return values.astype(numpy_dtype(dtype))


@st.composite
def graphs(draw):
    """Graphs of foreign operators over tensors of any type, and of UIR's over valid ones."""
    domains = st.sampled_from(["", "com.acme"])
    graph = Graph(opsets=draw(st.dictionaries(domains, st.integers(1, 25))))
    taken = set()

    def fresh():
        name = draw(names.filter(lambda n: n not in taken and n not in print_keywords))
        taken.add(name)
        return name

    for _ in range(draw(st.integers(1, 3))):
        kind = draw(kinds)
        if draw(st.booleans()):
            graph.add_input(fresh(), kind)
            continue
        known = kind.dtype is not None and kind.elements is not None and draw(st.booleans())
        value = value_of(draw, kind.dtype, kind.shape) if known else None
        graph.add_initializer(fresh(), kind, value)
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            foreign_node(draw, graph, fresh)
        else:
            native_node(draw, graph, fresh)
    read = {t for node in graph.nodes for t in node.inputs}
    loose = [t for t in graph.tensors if t.producer is not None and t not in read]
    named = draw(st.lists(st.sampled_from(graph.tensors), unique=True, max_size=2))
    graph.outputs = [*(t for t in named if t not in loose), *loose]
    return graph


print_keywords = {"none", "via", "const", "output", "true", "false", "inf", "nan", "absent"}


def foreign_node(draw, graph, fresh):
    operands = draw(st.lists(st.one_of(st.none(), st.sampled_from(graph.tensors)), max_size=3))
    given_ = draw(attributes)
    results = [(fresh(), draw(kinds)) for _ in range(draw(st.integers(1, 2)))]
    graph.add_node("onnx.Foo", operands, results, given_, given=frozenset(given_))


def native_node(draw, graph, fresh):
    op = draw(st.sampled_from(OPERATORS))
    instance = SAMPLERS[op].draw(Random(draw(st.integers(0, 999))))
    typing = SIGNATURES.check(op, instance.operands, instance.attributes)
    operands = [o and graph.add_input(fresh(), o) for o in instance.operands]
    graph.add_node(
        op,
        operands,
        [(fresh(), type_) for type_ in typing.outputs],
        typing.attributes,
        given=frozenset(instance.attributes),
    )


def described(graph):
    """The graph as plain data; NaN by its text, so that it equals itself."""
    number = {tensor: i for i, tensor in enumerate(graph.tensors)}
    return (
        graph.opsets,
        [
            (t.name, t.type, t.role, t.value is not None and (t.value.dtype, str(t.value.tolist())))
            for t in graph.tensors
        ],
        [
            (
                n.op,
                [None if t is None else number[t] for t in n.inputs],
                [number[t] for t in n.outputs],
                {k: repr(v) for k, v in n.attributes.items()},
                n.given,
            )
            for n in graph.nodes
        ],
        [number[t] for t in graph.outputs],
    )


@pytest.mark.slow
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_reading_what_was_printed_gives_the_same_graph(graph):
    text = print_uir(graph)
    again = parse_uir(text, "t.uir", SIGNATURES)
    assert described(again) == described(graph)
    assert print_uir(again) == text
