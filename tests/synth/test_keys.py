"""Keys are what they claim: candidates with the same operator and key are alike to the pattern."""

from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from reprise.facts.facts import entity_facts
from reprise.lang.ruleset import load_text
from reprise.synth.generator import Generator, Growth
from reprise.synth.keys import positions
from reprise.synth.options import Options


def test_a_key_is_what_the_pattern_looks_at(shipped):
    (softmax,) = {(p.tensors, p.values) for p in positions(shipped.patterns["pytorch_189787"])["s"]}
    assert softmax == (("T_s",), ("A",))  # which tensor, along which axis: not its extent


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "target"), [(0, "inductor"), (1, "onnxruntime"), (2, "tvm")])
def test_same_operator_and_key_means_same_fate(shipped, signatures, seed, target):
    """Over growing random programs, propose many candidates at the same place, and compare those
    that share operator and key at a position of a pattern: the pattern is complete for all of
    them or for none."""
    patterns = [
        p
        for p in shipped.patterns.values()
        if p.get("target") == target and len(p.alternatives) <= 8
    ]
    weights = {"softmax_like": 6.0, "reduction": 3.0, "rounding": 5.0, "linear_algebra": 3.0}
    options = Options(nodes=6, weights=weights, special=0.0)
    generator = Generator(shipped, signatures, options, seed, patterns=patterns)
    compared = 0
    for index in range(4):
        growth = Growth(generator, Random(f"{seed}/{index}"), "p")
        generator.guide.begin()
        for position in range(options.nodes):
            fates = defaultdict(set)
            for _ in range(25):
                candidate = growth._propose()
                if candidate is None:
                    continue
                node = candidate.node
                done = defaultdict(set)
                for completed in candidate.effect.completed:
                    for name, n in zip(completed.pattern.nodes, completed.nodes, strict=True):
                        if n == node.id:
                            done[completed.pattern.name].add(name)
                sources = any(t.id >= candidate.graph_mark for t in node.inputs if t is not None)
                for pattern in patterns:
                    for name in pattern.nodes:
                        keys = generator.keys.of(pattern.name, name, node.id, {})
                        if any(keys) and not sources:
                            # all alternatives together: the fate is that of the pattern
                            fate = name in done[pattern.name]
                            fates[(pattern.name, name, node.op, keys)].add(fate)
                growth._take_back(candidate)
            for place, seen in fates.items():
                compared += 1
                assert len(seen) == 1, place
            growth.grow(position)
    assert compared > 10


@pytest.mark.slow
def test_ranges_contribute_one_bit(signatures):
    text = """
        pattern p "elu of many elements" { target: t  e = elu(_, alpha=1.0)  where e.numel >= 100 }
    """
    rules = load_text(text)
    generator = Generator(rules, signatures, Options(), 0, patterns=list(rules.patterns.values()))
    guide = generator.guide

    def key(shape, alpha):
        from reprise.uir.graph import Graph, TensorType

        guide.begin()
        graph = Graph()
        x = graph.add_input("x", TensorType("float32", shape))
        guide.commit(entity_facts(x))
        node = graph.add_node("elu", [x], [("y", x.type)], {"alpha": alpha})
        guide.commit(entity_facts(node))
        (only,) = generator.keys.of("p", "e", node.id, {})
        return only

    assert key((10, 10), 1.0) == key((200,), 1.0)
    assert key((10, 10), 1.0) != key((9, 10), 1.0)
    assert key((10, 10), 1.0) != key((10, 10), 0.5)
