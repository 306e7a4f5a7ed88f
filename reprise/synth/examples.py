"""A program that matches a pattern, out of the pattern's own tests.

For patterns of which the search of :mod:`reprise.synth.witness` finds none: chance is in the way,
or an operator without a signature.
"""

from __future__ import annotations

from random import Random

from reprise.lang.declared import Pattern
from reprise.lang.diagnostics import RulesError
from reprise.patterns.match import Matcher
from reprise.synth.inputs import fill_constants, value_of
from reprise.synth.values import NoValue
from reprise.synth.witness import Witness, WitnessFinder
from reprise.uir.graph import Role
from reprise.uir.program import Program
from reprise.uir.text import read_givens, read_graph


def example(finder: WitnessFinder, pattern: Pattern, rng: Random) -> Witness | None:
    """The first program of the pattern's ``match`` and ``possible`` cases that matches it and has
    known extents, with values that ``rng`` draws where the case leaves them open; None if there is
    none."""
    rules = finder.rules
    matcher = Matcher(rules, [pattern])
    cases = [
        case
        for test in rules.tests
        if test.subject.text == pattern.name
        for case in test.cases
        if case.kind in ("match", "possible")
    ]
    for case in cases:
        try:
            graph = read_graph(case.lines, finder.signatures)
        except RulesError:
            continue  # written without the signatures that the finder has
        if any(t.type.dtype is None or t.type.elements is None for t in graph.tensors):
            continue
        givens = read_givens(case.lines)
        environment = {str(row[0]): row[1] for name, row in givens if name == "env"}
        try:
            fill_constants(graph, finder.policies, rng)
            inputs = {
                tensor.name: value_of(graph, tensor, finder.policies, rng, "ordinary")
                for tensor in graph.tensors
                if tensor.role is Role.INPUT
            }
        except NoValue:
            continue
        for found in matcher.run(graph, environment).findings:
            return Witness(pattern, Program(graph, inputs), environment, found.certainty)
    return None
