"""What lowering invents never gets a name that a rule file uses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reprise.lang.diagnostics import RulesError
from reprise.lang.ruleset import RuleSet, load_text
from reprise.patterns.testing import run_tests


def failures(rules: RuleSet) -> list[str]:
    results = run_tests(rules)
    assert results
    return [result.message for result in results if not result.ok]


@pytest.mark.parametrize(
    "declared",
    [
        "relation downstream_exp(n: node)\ndownstream_exp(N) :- node(N, relu).\n",
        'pattern downstream_exp "another" { n = abs(x) m = abs(n) }\n',
    ],
)
def test_relations(declared: str) -> None:
    text = """
pattern p "p" { n = neg(x) graph downstream(n) in {exp} }
test p {
    match    { x: float32[4]; n = neg(x); e = exp(n) }
    no_match { x: float32[4]; n = neg(x); e = relu(n) }
}
"""
    assert failures(load_text(declared + text)) == []


def test_the_relation_of_a_constraint_s_lines() -> None:
    text = """
c__guard(N) :- node(N, relu).
constraint c : algebraic on { m = matmul(a, b) } require a.dim[-1] == b.dim[-2]
test c { holds { a: float32[2, 3]; b: float32[3, 4]; m = matmul(a, b) } }
test c__guard { no_match { a: float32[2, 3]; b: float32[3, 4]; m = matmul(a, b) } }
"""
    assert failures(load_text(text)) == []


def test_tensors() -> None:
    text = """
pattern p "p" { v, i = topk(x, ...) y = add(v_1, _) w = neg(i) }
test p {
    match { x: float32[4, 4]; v, i = topk(x, k=2, axis=1); w = neg(i); y = add(x, x) }
}
"""
    assert failures(load_text(text)) == []


@pytest.mark.slow
def test_values_whatever_their_variables_are_called() -> None:
    """The rules of ``coverage.rules`` with each variable in turn called as lowering might."""
    text = (Path(__file__).parents[1] / "patterns" / "coverage.rules").read_text()
    variables = set(re.findall(r"(?<![\w.\"])[A-Z]\w*(?![\w.\"(])", text))
    assert len(variables) > 5
    for invented in ("E1", "K2", "A3", "D4", "R5", "L6", "_"):
        names = {name: f"{invented[:1]}{n}" for n, name in enumerate(sorted(variables), 1)}
        if invented == "_":
            names = {name: f"{name}x1_0" for name in variables}
        assert failures(load_text(_renamed(text, names))) == []


def _renamed(text: str, names: dict[str, str]) -> str:
    return re.sub(r"(?<![\w.\"])[A-Z]\w*(?![\w.\"(])", lambda found: names[found[0]], text)


def test_variables_do_not_look_like_a_pattern_s_nodes_and_tensors() -> None:
    with pytest.raises(RulesError) as caught:
        load_text('pattern p "p" { n = neg(x) where x.dim[0] == N_n, x.dim[1] == N_n }')
    (found,) = caught.value.diagnostics
    assert (found.code, found.hint) == ("reserved-name", "call it `Nn`")
    load_text("r(N_n) :- node(N_n, relu).")  # a rule has no lines
