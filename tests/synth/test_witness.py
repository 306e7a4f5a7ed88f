"""Witnesses: every shipped pattern has one, and what has none is told why."""

from __future__ import annotations

from random import Random

import pytest

from reprise.campaign.source import SourceRequest, open_finder
from reprise.data import data_path
from reprise.lang.ruleset import load_rules
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.synth.examples import example
from reprise.synth.witness import NoWitness, Witness, WitnessFinder
from reprise.uir.text import print_uir

PATTERNS = sorted(load_rules([data_path("rules/bugs")]).patterns)
RARE = {"ort_30513", "ort_31980", "ort_layer_norm_exponent_bias", "tvm_20015"}
"""Those of which a witness takes seconds to find."""
BY_EXAMPLE = {
    "ort_batch_norm_in_place",
    "ort_scan_nothing",
    "tvm_20047_broadcast",
    "tvm_normalize_nothing",
}
"""Those that chance does not meet: the first of their own examples stands in."""
NO_PROGRAM = {"ort_split_to_sequence"}
"""A sequence is no value of a program. `ort_split_to_sequence_at` is the same for programs."""


@pytest.fixture(scope="module")
def finder(shipped, signatures):
    return WitnessFinder(shipped, signatures)


def every_pattern():
    return [pytest.param(n, marks=[pytest.mark.slow] if n in RARE else []) for n in PATTERNS]


@pytest.mark.slow
@pytest.mark.parametrize("name", every_pattern())
def test_every_shipped_pattern_has_a_witness(name):
    finder, pattern = open_finder(SourceRequest(0), name)
    if name in BY_EXAMPLE | NO_PROGRAM:
        witness = example(finder, pattern, Random(0))
        assert (witness is None) is (name in NO_PROGRAM)
        if witness is None:
            return
    else:
        witness = finder.find(pattern, Random(0))
    assert isinstance(witness, Witness)
    found = Matcher(finder.rules, [pattern]).run(witness.program.graph, witness.environment)
    assert witness.certainty in {f.certainty for f in found.findings}
    assert witness.certainty is not Truth.NO


def test_the_same_seed_finds_the_same(finder, shipped):
    pattern = shipped.patterns["pytorch_189787"]

    def text(seed):
        witness = finder.find(pattern, Random(seed))
        return print_uir(witness.program.graph)

    assert text(1) == text(1)
    assert text(1) != text(2)


def test_what_cannot_match_says_how_far_it_got(rules_of, signatures):
    rules = rules_of(
        """
        pattern never "the product of extents is one more than the element count" {
            target: test
            r = relu(_)
            where r.numel == r.dim[0] * 7 + 3, r.dim[0] == 5, r.rank == 1
        }
        """
    )
    answer = WitnessFinder(rules, signatures).find(rules.patterns["never"], Random(0), attempts=5)
    assert isinstance(answer, NoWitness)
    assert answer.attempts == 5
