"""Algorithm 1 of the first paper, on an example worked out by hand.

The proposals are given: a script says which node is proposed when. What the algorithm makes of
them (what is matched, excluded, taken back, accepted, and when B is emptied) is compared with the
lines of the paper, step by step.
"""

from __future__ import annotations

from random import Random

import pytest

from reprise.facts.facts import entity_facts, facts_of
from reprise.synth.generator import Event, Generator, Growth
from reprise.synth.options import Options
from reprise.uir.graph import TensorType

KNOWN = """
pattern rounded_sum "floor of a sum over the last axis" {
    target: test
    s = sum(_, axes=[1])
    f = floor(s)
}
pattern big_exp "exp of at least ten elements" {
    target: test
    e = exp(_)
    where e.numel >= 10
}
"""


class Scripted(Growth):
    """Growth with given proposals: (operator, operand, attributes)."""

    def __init__(self, generator, script):
        self.script = list(script)
        events: list[Event] = []
        super().__init__(generator, Random(0), "script", events)
        self.snapshots: list[tuple[str, object]] = []

    def run(self):
        self.guide.begin()
        x = self.graph.add_input("x", TensorType("float32", (3, 4)))
        self.guide.keep(self.guide.commit(entity_facts(x)).accepts, [x])
        self.by_id[x.id] = x
        self.by_name = {"x": x}
        self.x = x
        begin, self.guide.begin = self.guide.begin, lambda: None
        try:
            for position in range(self.options.nodes):
                self.grow(position)
        finally:
            self.guide.begin = begin
        return self.graph

    def _propose(self):
        op, operand, attributes = self.script.pop(0)
        operator = self.vocabulary.by_name[op]
        tensor = next(t for t in self.graph.tensors if t.name == operand)
        typing = operator.signature.check((tensor.type,), attributes)
        from reprise.solve.sampling import Instance

        return self._build(operator, {0: tensor}, Instance((tensor.type,), attributes), typing)


@pytest.fixture
def generator(rules_of, signatures):
    rules = rules_of(KNOWN)
    options = Options(nodes=3, attempts=3)
    return Generator(rules, signatures, options, 0, patterns=list(rules.patterns.values()))


def steps(growth):
    return [(e.step, e.position, e.attempt, e.node, e.completed, e.excludes) for e in growth.events]


@pytest.mark.slow
def test_the_hand_worked_example(generator):
    script = [
        # position 0: nothing is wrong with the first proposal
        ("sum", "x", {"axes": (1,)}),
        # position 1: completes `rounded_sum`; the same again is excluded; so is another floor of
        # the same sum; a ceil is not
        ("floor", "v0", {}),
        ("floor", "v0", {}),
        ("ceil", "v0", {}),
        # position 2: B is empty again, so floor may be proposed, and is rejected; then exp of 12
        # elements completes the other pattern; the R-th attempt is accepted whatever it completes
        ("floor", "v0", {}),
        ("exp", "x", {}),
        ("exp", "x", {}),  # excluded: its key is in B
        ("floor", "v0", {}),  # excluded
        ("exp", "v0", {}),  # 3 elements: completes nothing, and so is accepted
    ]
    growth = Scripted(generator, script)
    growth.run()
    assert steps(growth) == [
        ("reset", 0, 0, "", (), 0),
        ("propose", 0, 1, "sum(x)", (), 0),
        ("accept", 0, 1, "sum(x)", (), 0),
        ("reset", 1, 0, "", (), 0),
        ("propose", 1, 1, "floor(v0)", ("rounded_sum",), 0),
        ("reject", 1, 1, "floor(v0)", ("rounded_sum",), 1),
        ("propose", 1, 2, "floor(v0)", ("rounded_sum",), 1),
        ("excluded", 1, 2, "floor(v0)", ("rounded_sum",), 1),
        ("propose", 1, 2, "ceil(v0)", (), 1),
        ("accept", 1, 2, "ceil(v0)", (), 1),
        ("reset", 2, 0, "", (), 0),
        ("propose", 2, 1, "floor(v0)", ("rounded_sum",), 0),
        ("reject", 2, 1, "floor(v0)", ("rounded_sum",), 1),
        ("propose", 2, 2, "exp(x)", ("big_exp",), 1),
        ("reject", 2, 2, "exp(x)", ("big_exp",), 2),
        ("propose", 2, 3, "exp(x)", ("big_exp",), 2),
        ("excluded", 2, 3, "exp(x)", ("big_exp",), 2),
        ("propose", 2, 3, "floor(v0)", ("rounded_sum",), 2),
        ("excluded", 2, 3, "floor(v0)", ("rounded_sum",), 2),
        ("propose", 2, 3, "exp(v0)", (), 2),
        ("accept", 2, 3, "exp(v0)", (), 2),
    ]
    assert [n.op for n in growth.graph.nodes] == ["sum", "ceil", "exp"]
    assert growth.rejected == {"rounded_sum": 2, "big_exp": 1}
    assert not growth.completed


def test_the_last_attempt_is_accepted_even_if_it_completes_a_pattern(generator):
    x = ("exp", "x", {})
    script = [
        ("sum", "x", {"axes": (1,)}),
        ("sum", "x", {"axes": (1,), "keepdims": True}),
        ("floor", "v0", {}),  # R = 3: rejected
        ("floor", "v1", {}),  # rejected: another sum, another key
        x,  # the third attempt: accepted
    ]
    growth = Scripted(generator, script)
    growth.run()
    assert [n.op for n in growth.graph.nodes] == ["sum", "sum", "exp"]
    assert list(growth.completed) == ["big_exp"]
    assert growth.rejected == {"rounded_sum": 2}


def test_a_rejected_candidate_leaves_no_trace(generator):
    """The live prefixes (the engine's state) after a rejection are those before the proposal."""
    growth = Scripted(
        generator, [("sum", "x", {"axes": (1,)}), ("exp", "x", {}), ("ceil", "x", {})]
    )
    database = generator.guide.database

    def state():
        return {name: database.rows(name) for name in generator.guide.program.relations}

    before = {}
    take_back = growth._take_back

    def watched(candidate):
        take_back(candidate)
        assert state() == before["state"]
        assert growth.graph.mark() == before["mark"]

    growth._take_back = watched
    build = growth._build

    def building(*arguments):
        before["state"], before["mark"] = state(), growth.graph.mark()
        return build(*arguments)

    growth._build = building
    growth.options = Options(nodes=2, attempts=3)
    growth.run()
    assert [n.op for n in growth.graph.nodes] == ["sum", "ceil"]
    known = {fact for fact in facts_of(growth.graph) if fact[0] in database.program.relations}
    stored = {(name, row) for name in {f[0] for f in known} for row in database.rows(name)}
    assert stored == known


def test_the_papers_key_excludes_more(rules_of, signatures):
    """`floor` after *any* sum: the paper's key names the operator that makes the operand only."""
    rules = rules_of(KNOWN)
    script = [
        ("sum", "x", {"axes": (1,)}),
        ("sum", "x", {"axes": (1,), "keepdims": True}),
        ("floor", "v0", {}),
        ("floor", "v1", {}),
        ("ceil", "x", {}),
    ]

    def outcome(key):
        options = Options(nodes=3, attempts=3, key=key)
        made = Generator(rules, signatures, options, 0, patterns=list(rules.patterns.values()))
        growth = Scripted(made, script)
        growth.run()
        return [e.step for e in growth.events if e.position == 2]

    assert outcome("paper") == [
        "reset",
        "propose",
        "reject",
        "propose",
        "excluded",
        "propose",
        "accept",
    ]
    assert outcome("exact") == [
        "reset",
        "propose",
        "reject",
        "propose",
        "reject",
        "propose",
        "accept",
    ]
