"""Every test block of ``coverage.rules``: what the language must cover, row by row."""

from pathlib import Path

import pytest

from reprise.lang.ruleset import load_rules, load_text
from reprise.patterns.testing import CaseResult, run_tests

RULES = Path(__file__).parent / "coverage.rules"
RESULTS = run_tests(load_rules([RULES]))


@pytest.mark.parametrize("result", RESULTS, ids=lambda r: f"{r.subject}:{r.line}")
def test_case(result: CaseResult) -> None:
    assert result.ok, result.message


def test_every_pattern_matches_something_and_refuses_something() -> None:
    kinds: dict[str, set[str]] = {}
    for result in RESULTS:
        kinds.setdefault(result.subject, set()).add(result.kind)
    assert len(kinds) >= 40
    assert all("match" in k or "possible" in k for k in kinds.values())
    undemanding = {name for name, k in kinds.items() if not k & {"no_match", "possible"}}
    assert undemanding == set()


DECLARATIONS = run_tests(load_rules([RULES.with_name("declarations.rules")]))


@pytest.mark.parametrize("result", DECLARATIONS, ids=lambda r: f"{r.subject}:{r.line}")
def test_every_kind_of_declaration(result: CaseResult) -> None:
    assert result.ok, result.message


@pytest.mark.slow
def test_a_test_s_nodes_go_by_their_names() -> None:
    rule = """
pattern p "two in a row" {
    n = neg(x)
    a = abs(n)
}
test p {
    no_match "there it is" {
        x: float32[2]
        first = neg(x)
        second = abs(first)
    }
}
"""
    (result,) = run_tests(load_text(rule))
    assert result.message == "it matches: n = first, a = second"
