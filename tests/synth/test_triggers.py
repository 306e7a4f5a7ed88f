"""Looking at a node before the engine is asked: no pattern is missed, and few are suspected."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest

from reprise.data import data_path
from reprise.lang.core import Program
from reprise.lang.coretext import format_rule
from reprise.lang.ruleset import load_rules
from reprise.synth.generator import Generator
from reprise.synth.inputs import fill_constants
from reprise.synth.options import Options
from reprise.synth.triggers import Alarm, Triggers
from reprise.synth.vocabulary import read_policies
from reprise.targets.support import forbidden, target_rules
from reprise.uir.graph import Graph, TensorType
from reprise.uir.text import print_uir, read_graph

FLOAT = TensorType("float32", (3, 4))


def learned(program: Program, roots: list[str]) -> Triggers:
    triggers = Triggers()
    triggers.learn(program, roots)
    return triggers


def alarms(triggers: Triggers, graph: Graph) -> list[Alarm]:
    """What each node sets off, in order."""
    present: set[str] = set()
    found = []
    for node in graph.nodes:
        present.add(node.op)
        found.append(triggers.alarm(node, present))
    return found


@pytest.mark.slow
def test_each_match_in_the_shipped_rules_own_tests_sets_off_an_alarm(shipped, signatures):
    """They are matches indeed: ``tests/bugs/test_rules.py``."""
    cases, policies = 0, read_policies(shipped)
    for test in shipped.tests:
        if test.subject.text not in shipped.patterns:
            continue
        triggers = learned(shipped.program, [test.subject.text])
        for case in test.cases:
            if case.kind == "match":
                graph = read_graph(case.lines, signatures)
                fill_constants(graph, policies, Random(0))  # as in programs: probes look for values
                assert any(alarms(triggers, graph)), case.span
                cases += 1
    assert cases > 150


@pytest.mark.slow
@pytest.mark.parametrize("target", ["onnxruntime", "inductor", "tvm"])
def test_programs_are_those_of_a_generator_that_always_asks(signatures, target):
    """Also where operators are drawn that many patterns are about, with empty and special
    values."""
    limits = target_rules(target)
    rules = load_rules([data_path("rules/bugs"), *limits])
    patterns = [p for p in rules.patterns.values() if target in p.meta.get("target", ())]
    ops = {op for p in patterns for op in operators(rules.program, p.name)}
    options = Options(
        nodes=12,
        weights=dict.fromkeys(sorted(ops & set(signatures)), 8.0),
        empty=0.2,
        special=0.3,
        attempts=3,
    )
    asking, looking = (
        Generator(
            rules,
            signatures,
            options,
            5,
            patterns=patterns,
            forbidden=forbidden(rules, limits),
        )
        for _ in range(2)
    )
    asking.guide.triggers.unprobed.add("everything")
    rejected = 0
    for index in range(60):
        expected, found = asking.program(index), looking.program(index)
        assert print_uir(found.program.graph) == print_uir(expected.program.graph)
        assert found.rejected == expected.rejected
        assert found.completed == expected.completed
        rejected += found.rejected.total()
    assert rejected > 0


def operators(program, root):
    """The operators that the rules of a pattern name."""
    text = " ".join(format_rule(r) for r in program.rules if r.head.relation == root)
    return set(text.replace(",", " ").replace(")", " ").replace("{", " ").replace("}", " ").split())


def one(rules_of, text):
    rules = rules_of(f'pattern p "a test" {{\n    target: test\n{text}\n}}\n')
    return learned(rules.program, ["p"])


def test_a_node_of_another_operator_sets_off_nothing(rules_of):
    triggers = one(rules_of, "    e = exp(_)")
    graph = Graph()
    x = graph.add_input("x", FLOAT)
    graph.add_node("log", [x], [("y", FLOAT)])
    graph.add_node("exp", [x], [("z", FLOAT)])
    assert alarms(triggers, graph) == [Alarm.NONE, Alarm.ONCE]


def test_attributes_types_and_makers_are_looked_at(rules_of):
    triggers = one(
        rules_of,
        "    s = softmax(_, axis=1)\n    f = floor(s)\n"
        "    where s.dtype == float32, s.numel >= 10, s.dim[1] == 4",
    )

    def last(axis=1, dtype="float32", shape=(3, 4), between="softmax"):
        graph = Graph()
        type = TensorType(dtype, shape)
        x = graph.add_input("x", type)
        softmax = graph.add_node(between, [x], [("s", type)], {"axis": axis})
        graph.add_node("softmax", [x], [("t", type)], {"axis": axis})
        graph.add_node("floor", [softmax.outputs[0]], [("f", type)])
        return alarms(triggers, graph)

    assert last() == [Alarm.NONE, Alarm.NONE, Alarm.ONCE]
    assert not any(last(axis=0))
    assert not any(last(dtype="float64"))
    assert not any(last(shape=(2, 4)))
    assert not any(last(shape=(4, 3)))
    assert not any(last(between="hardmax"))


def test_items_are_looked_at_place_by_place(rules_of):
    triggers = one(
        rules_of,
        "    y = slice(_, ...)\n"
        "    where attr_at(y, ends, I, E), E in {7, 9}, attr_at(y, steps, I, S), S < 0",
    )

    def suspected(ends, steps):
        graph = Graph()
        x = graph.add_input("x", FLOAT)
        attributes = {"starts": (0, 0), "ends": ends, "axes": (0, 1), "steps": steps}
        graph.add_node("slice", [x], [("y", FLOAT)], attributes)
        return any(alarms(triggers, graph))

    assert suspected((1, 9), (1, -1))
    assert suspected((7, 1), (-2, 1))
    assert not suspected((9, 1), (1, -1))
    assert not suspected((1, 8), (1, -1))


@pytest.mark.parametrize(
    ("condition", "suspected"),
    [
        ("has_negzero(x)", [-0.0, 1.0]),
        ("has_nan(x)", [math.nan, 1.0]),
        ("has_inf(x)", [-math.inf, 1.0]),
        ("x.min < 0", [-1.0, 1.0]),
        ("x.value == 1", [1.0, 1.0]),
    ],
)
def test_what_is_stored_is_looked_at(rules_of, condition, suspected):
    triggers = one(rules_of, f"    e = exp(x)\n    where {condition}")

    def finds(value):
        graph = Graph()
        type = TensorType("float32", (2,))
        stored = None if value is None else np.array(value, np.float32)
        x = (
            graph.add_input("x", type)
            if stored is None
            else graph.add_initializer("x", type, stored)
        )
        graph.add_node("exp", [x], [("y", type)])
        return any(alarms(triggers, graph))

    assert finds(suspected)
    assert not finds([0.0, 0.5])
    assert not finds(None)


def test_rules_for_another_environment_are_left_out(rules_of):
    text = (
        'pattern p "a test" {\n    target: test\n    e = exp(_)\n'
        "    graph downstream(e) in {floor}, env(provider) == cuda\n}\n"
    )
    graph = Graph()
    graph.add_node("exp", [graph.add_input("x", FLOAT)], [("e", FLOAT)])

    def alarm(given):
        triggers = Triggers(given)
        triggers.learn(rules_of(text).program, ["p"])
        return alarms(triggers, graph)

    assert alarm({"env": [("provider", "cuda")]}) == alarm(None) == [Alarm.LASTS]
    assert alarm({"env": [("provider", "cpu")]}) == alarm({"env": []}) == [Alarm.NONE]


def test_a_condition_on_what_comes_after_lasts(rules_of):
    downstream = one(rules_of, "    e = exp(_)\n    graph downstream(e) in {floor, ceil}")
    graph = Graph()
    x = graph.add_input("x", FLOAT)
    graph.add_node("exp", [x], [("e", FLOAT)])
    assert alarms(downstream, graph) == [Alarm.LASTS]


def test_what_only_ceases_to_hold_does_not_last(rules_of):
    triggers = one(
        rules_of, "    e = exp(_)\n    f = floor(e)\n    where fanout(e) == 1, not graph_output(e)"
    )
    graph = Graph()
    x = graph.add_input("x", FLOAT)
    e = graph.add_node("exp", [x], [("e", FLOAT)])
    graph.add_node("floor", [e.outputs[0]], [("f", FLOAT)])
    assert alarms(triggers, graph) == [Alarm.NONE, Alarm.ONCE]


def test_a_pattern_that_is_about_no_node_is_never_left_unasked(rules_of):
    rules = rules_of("relation lonely(t: tensor)\nlonely(T) :- initializer(T), rank(T, 5).\n")
    triggers = learned(rules.program, ["lonely"])
    graph = Graph()
    node = graph.add_node("exp", [graph.add_input("x", FLOAT)], [("y", FLOAT)])
    assert triggers.unprobed == {"lonely"}
    assert triggers.alarm(node, {"exp"}) is Alarm.LASTS


@pytest.mark.slow
def test_few_nodes_are_suspected(shipped, signatures):
    """Otherwise it would be quicker to ask at once."""
    generator = Generator(shipped, signatures, Options(), 1)
    triggers = learned(shipped.program, list(shipped.patterns))
    found = [a for i in range(40) for a in alarms(triggers, generator.program(i).program.graph)]
    assert 0 < sum(map(bool, found)) < len(found) / 10
