"""What the generator promises of every program, checked against parts that it does not use."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from reprise.lang.dtypes import DTYPES
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.synth.generator import Generator, Growth
from reprise.synth.options import Options, OptionsError
from reprise.uir.graph import Role
from reprise.uir.text import parse_uir, print_uir
from reprise.uir.types import numpy_dtype

COUNT = 60


@pytest.fixture(scope="module")
def unguided(shipped, signatures):
    return Generator(shipped, signatures, Options(), 1)


@pytest.fixture(scope="module")
def guided(shipped, signatures):
    patterns = list(shipped.patterns.values())
    return Generator(shipped, signatures, Options(), 1, patterns=patterns)


def texts(generator, indices):
    made = []
    for index in indices:
        program = generator.program(index).program
        data = {name: array.tobytes() for name, array in program.inputs.items()}
        made.append((print_uir(program.graph), data))
    return made


@pytest.mark.slow
def test_a_program_depends_on_seed_and_number_alone(shipped, signatures):
    known = [p for p in shipped.patterns.values() if p.get("target") == "onnxruntime"]

    def made(seed, indices):
        generator = Generator(shipped, signatures, Options(), seed, patterns=known)
        return texts(generator, indices)

    forwards = made(1, range(20))
    assert made(1, reversed(range(20))) == forwards[::-1]
    assert made(2, range(20)) != forwards


@pytest.mark.slow
def test_the_signatures_accept_every_node(unguided, signatures):
    for index in range(COUNT):
        graph = unguided.program(index).program.graph
        for node in graph.nodes:
            types = [None if t is None else t.type for t in node.inputs]
            given = {name: node.attributes[name] for name in node.given}
            typing = signatures.check(node.op, types, given)
            assert typing.certain
            for type, result in zip(typing.outputs, node.outputs, strict=True):
                assert result is None or result.type == type


def test_programs_can_be_written_and_read(unguided, signatures):
    for index in range(COUNT):
        text = print_uir(unguided.program(index).program.graph)
        assert print_uir(parse_uir(text, "p.uir", signatures)) == text


def test_sources_have_values_of_their_types(unguided):
    for index in range(COUNT):
        program = unguided.program(index).program
        for tensor in program.graph.tensors:
            value = {
                Role.INPUT: program.inputs.get(tensor.name),
                Role.INITIALIZER: tensor.value,
            }.get(tensor.role)
            if tensor.role is not Role.COMPUTED:
                assert value is not None
                assert value.dtype == numpy_dtype(tensor.type.dtype)
                assert value.shape == tensor.type.shape
        assert set(program.inputs) == {
            t.name for t in program.graph.tensors if t.role is Role.INPUT
        }


def test_every_computed_tensor_is_read_or_an_output(unguided):
    for index in range(COUNT):
        graph = unguided.program(index).program.graph
        read = {t.id for n in graph.nodes for t in n.inputs if t is not None}
        outputs = {t.id for t in graph.outputs}
        for tensor in graph.tensors:
            assert tensor.id in read | outputs
        assert len(outputs) == len(graph.outputs)


@pytest.mark.slow
def test_guided_programs_contain_no_known_bug(guided, shipped):
    """Judged by `reprise check`'s matcher, which looks at whole graphs."""
    matcher = Matcher(shipped, list(shipped.patterns.values()))
    for index in range(COUNT):
        made = guided.program(index)
        found = matcher.run(made.program.graph)
        sure = {f.pattern.name for f in found.findings if f.certainty is Truth.YES}
        assert sure <= set(made.completed), print_uir(made.program.graph)


@pytest.mark.slow
def test_guidance_has_something_to_do(guided, unguided, shipped):
    matcher = Matcher(shipped, list(shipped.patterns.values()))
    rejected = sum(guided.program(i).rejected.total() for i in range(COUNT))
    matching = sum(
        any(
            f.certainty is Truth.YES
            for f in matcher.run(unguided.program(i).program.graph).findings
        )
        for i in range(COUNT)
    )
    assert rejected > 0
    assert matching > 0


def test_accepts_is_what_comparing_all_positions_with_all_tensors_gives(unguided):
    guide, vocabulary = unguided.guide, unguided.vocabulary
    for index in range(5):
        graph = unguided.program(index).program.graph
        rows, fitting = set(), defaultdict(set)
        for operator in vocabulary.operators:
            for port, kind in operator.ports:
                for tensor in graph.tensors:
                    if operator.sampler.accepts(port, tensor.type):
                        rows.add((kind, tensor.type.dtype, tensor.type.rank))
                        fitting[kind].add(tensor.id)
        assert set(guide.database.rows("accepts")) == rows
        for operator in vocabulary.operators:
            for _, kind in operator.ports:
                groups = guide.accepted(kind)
                assert {id for group in groups for id in group} == fitting[kind]
                assert all(group == sorted(set(group)) and group for group in groups)


@pytest.mark.parametrize(
    "options",
    [
        Options(nodes=1),
        Options(nodes=30),
        Options(dtypes={"float16": 1}),
        Options(dtypes={"bool": 1}),
        Options(min_rank=0, max_rank=0),
        Options(max_rank=5),
        Options(min_rank=3, max_rank=3),
        Options(max_extent=1),
        Options(max_elements=1),
        Options(empty=1.0),
        Options(initializers=0.0, no_inputs=0.0),
        Options(no_inputs=1.0),
        Options(special=1.0),
        Options(backward=1.0),
        Options(include=frozenset({"convolution", "activation"})),
        Options(include=frozenset({"split", "topk", "lstm"})),
        Options(exclude=frozenset({"linear_algebra", "relu"})),
        Options(weights={"arithmetic": 0.0, "relu": 50.0}),
    ],
    ids=lambda options: ", ".join(
        f"{k}={sorted(v) if isinstance(v, frozenset) else v}"
        for k, v in vars(options).items()
        if v != vars(Options())[k]
    ),
)
def test_options_are_kept(shipped, signatures, options):
    generator = Generator(shipped, signatures, options, 3)
    categories = {n: signatures[n].category for n in signatures}
    for index in range(10):
        graph = generator.program(index).program.graph
        assert 0 < len(graph.nodes) <= options.nodes
        for node in graph.nodes:
            names = {node.op, categories[node.op]}
            assert not options.include or names & options.include
            assert not names & options.exclude
            assert options.weights.get(categories[node.op], 1.0) > 0 or node.op in options.weights
        for tensor in graph.tensors:
            assert tensor.type.dtype in options.dtypes
            assert tensor.type.rank <= options.max_rank
            assert tensor.type.elements <= options.max_elements
            assert all(e <= options.max_extent for e in tensor.type.shape)
        roles = {t.role for t in graph.tensors}
        if options.no_inputs == 1.0:
            assert Role.INPUT not in roles
        if options.initializers == 0.0 and options.no_inputs == 0.0:
            assert Role.INITIALIZER not in roles


@pytest.mark.slow
def test_empty_extents_occur_when_asked_for(shipped, signatures):
    generator = Generator(shipped, signatures, Options(empty=1.0), 3)
    tensors = [t for i in range(20) for t in generator.program(i).program.graph.tensors]
    assert any(0 in t.type.shape for t in tensors)
    generator = Generator(shipped, signatures, Options(empty=0.0), 3)
    tensors = [t for i in range(20) for t in generator.program(i).program.graph.tensors]
    assert not any(0 in t.type.shape for t in tensors)


def test_backward_insertion_makes_what_the_next_node_reads(shipped, signatures, monkeypatch):
    generator = Generator(shipped, signatures, Options(backward=0.5), 3)
    made = []
    produce = Growth._produce

    def watched(growth, operator, bound, instance, typing):
        candidate = produce(growth, operator, bound, instance, typing)
        if candidate is not None:
            made.append((candidate.node, operator.name))
        return candidate

    monkeypatch.setattr(Growth, "_produce", watched)
    followed = 0
    for index in range(20):
        made.clear()
        nodes = generator.program(index).program.graph.nodes
        following = dict(pairwise(nodes))
        for producer, name in made:
            consumer = following.get(producer)
            if consumer is not None:
                assert consumer.op == name
                assert any(t is not None and t.producer is producer for t in consumer.inputs)
                followed += 1
    assert followed > 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": 0}, "nodes"),
        ({"special": 1.5}, "special"),
        ({"min_rank": 3, "max_rank": 2}, "ranks"),
        ({"dtypes": {"float31": 1}}, "float31"),
        ({"dtypes": {"float32": 0}}, "no element type"),
        ({"key": "none"}, "key"),
    ],
)
def test_options_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(OptionsError, match=message):
        Options(**arguments)


def test_unknown_operators_are_refused(shipped, signatures):
    with pytest.raises(OptionsError, match="softmacks"):
        Generator(shipped, signatures, Options(include=frozenset({"softmacks"})), 0)


def test_variety(unguided, signatures):
    """Dtypes, ranks, fan-out, several results, initializers beside inputs: all of it occurs."""
    graphs = [unguided.program(i).program.graph for i in range(200)]
    tensors = [t for g in graphs for t in g.tensors]
    nodes = [n for g in graphs for n in g.nodes]
    assert {t.type.dtype for t in tensors} == {d for d, n in Options().dtypes.items() if n}
    assert {t.type.rank for t in tensors} >= {0, 1, 2, 3, 4}
    assert {DTYPES[t.type.dtype].kind for t in tensors} >= {"float", "int", "bool"}
    assert any(len(n.outputs) > 1 for n in nodes)
    assert any(len(n.inputs) != len(set(map(id, n.inputs))) for n in nodes)
    assert len({n.op for n in nodes}) > 120
    assert len({signatures[n.op].category for n in nodes}) >= 30
