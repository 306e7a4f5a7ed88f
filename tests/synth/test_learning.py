"""A generator that learns a rule while it runs makes the programs of one that always knew it."""

from __future__ import annotations

from random import Random

import pytest

from reprise.campaign.source import SourceRequest, known_bugs, open_source
from reprise.data import data_path
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.patterns.match import Matcher
from reprise.synth.generator import Generator
from reprise.synth.options import Options
from reprise.uir.text import print_uir

ABOUT = frozenset(
    {"relu", "clip", "identity", "transpose", "gemm", "sigmoid", "mul", "div", "where", "neg"}
)
OPTIONS = Options(nodes=6, include=ABOUT, no_inputs=0.3)
PROGRAMS = 60


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return load_rules([data_path("rules/bugs")])


def generator(rules: RuleSet, names: list[str], options: Options = OPTIONS) -> Generator:
    made = open_source(SourceRequest(3, options, guided=False))
    return Generator(
        rules,
        made.vocabulary.signatures,
        options,
        3,
        patterns=[rules.patterns[name] for name in names],
        environment={"provider": "cpu"},
    )


def texts(generator: Generator, indices: range) -> list[str]:
    return [print_uir(generator.program(i).program.graph) for i in indices]


@pytest.mark.slow
def test_learning_is_as_good_as_knowing(rules: RuleSet) -> None:
    names = [p.name for p in known_bugs(rules, "onnxruntime")]
    Random(0).shuffle(names)
    always = generator(rules, names)
    learning = generator(rules, names[:10])
    for name in names[10:20]:
        learning.learn(rules, [rules.patterns[name]])
    learning.learn(rules, [rules.patterns[name] for name in names[20:]])
    assert texts(learning, range(PROGRAMS)) == texts(always, range(PROGRAMS))


@pytest.mark.slow
def test_what_was_learned_changes_what_comes_after(rules: RuleSet) -> None:
    names = [p.name for p in known_bugs(rules, "onnxruntime")]
    learning, never, always = (generator(rules, n) for n in ([], [], names))
    before = texts(learning, range(PROGRAMS))
    learning.learn(rules, [rules.patterns[name] for name in names])
    assert before == texts(never, range(PROGRAMS))
    after = texts(learning, range(PROGRAMS))
    assert after == texts(always, range(PROGRAMS)) != before


@pytest.mark.slow
def test_what_was_learned_is_avoided(rules: RuleSet) -> None:
    pattern = rules.patterns["ort_quick_gelu"]
    narrow = Options(nodes=6, include=frozenset({"sigmoid", "mul"}), dtypes={"float64": 1})
    learning = generator(rules, [], narrow)
    matcher = Matcher(rules, [pattern])

    def matching() -> int:
        graphs = (learning.program(i).program.graph for i in range(100))
        return sum(bool(matcher.run(graph).findings) for graph in graphs)

    assert matching() > 0
    learning.learn(rules, [pattern])
    assert matching() == 0
