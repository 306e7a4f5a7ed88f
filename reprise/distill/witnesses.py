"""Fresh programs made from nothing but a draft's text, by the generator's witness mode."""

from __future__ import annotations

from random import Random

from reprise.distill.draft import Draft
from reprise.distill.sampling import Sample, Sampling
from reprise.lang.ruleset import load_text
from reprise.synth.witness import Witness, WitnessFinder

_ATTEMPTS = 60


def fresh_witnesses(draft: Draft, sampling: Sampling, rng: Random, count: int) -> list[Sample]:
    """Up to ``count`` programs that match the draft's text, of as many seeds.

    Raises RulesError if the text is no rule; that would be a mistake of ours.
    """
    rules = load_text(draft.text())
    finder = WitnessFinder(
        rules, sampling.signatures, why_not=sampling.why_not, unsupported=sampling.unsupported
    )
    pattern = rules.patterns[draft.name]
    made: list[Sample] = []
    for _ in range(count):
        found = finder.find(pattern, Random(rng.randrange(2**63)), attempts=_ATTEMPTS)
        if not isinstance(found, Witness):
            break  # too rare to be found in this way
        place = next(draft.places(found.program.graph), None)
        if place is not None:
            made.append(Sample(found.program, place))
    return made
