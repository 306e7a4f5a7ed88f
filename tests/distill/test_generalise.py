"""Distilling against a target whose defect is known: a rule, planted. What comes out is compared
with it, as text where it is unique, and on fresh programs."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import pytest

from reprise.distill.distilling import distill, sampling_for
from reprise.distill.record import Distilled
from reprise.distill.reduce import Budget
from reprise.distill.sampling import Sampling
from reprise.distill.trials import Aim, Trials
from reprise.lang.format import format_text
from reprise.lang.lint import lint_rules
from reprise.lang.ruleset import load_text
from reprise.patterns.match import Matcher
from reprise.patterns.testing import run_tests
from reprise.patterns.truth import Truth
from reprise.solve.signatures import Signatures
from reprise.targets.discover import Target, read_target
from reprise.uir.program import Program
from reprise.uir.text import parse_uir


@cache
def signatures() -> Signatures:
    return Signatures.load()


def target() -> Target:
    return read_target(Path(__file__).with_name("planted_target.py"))


OPS = frozenset(
    (
        "abs", "neg", "relu", "sin", "cos", "tan", "exp", "tanh",
        "sigmoid", "atan", "leaky_relu", "identity", "add", "sub", "mul", "div",
        "maximum", "sum", "prod", "mean", "max", "min", "softmax", "log_softmax",
        "transpose", "clip", "gemm", "matmul", "argmax",
    )
)  # fmt: skip
"""Operators that are one node of the model each. Others are lowered to several, of which the
planted rule might match some."""


@cache
def sampling() -> Sampling:
    plain = sampling_for(target(), signatures())
    plain.why_not = lambda op, dtypes: None if op in OPS else "is no single node"
    return plain


def program(text: str) -> Program:
    from reprise.distill.subject import input_values

    graph = parse_uir(text, "seed.uir", signatures())
    for node in graph.nodes:
        types = [None if t is None else t.type for t in node.inputs]
        node.attributes = dict(signatures().check(node.op, types, node.attributes).attributes)
    return Program(graph, input_values(graph, {}, Path("seed.uir"), 1), "seed")


def planted(body: str) -> str:
    return f'pattern planted "the defect" {{\n{body}\n}}\n'


def distilled(
    rule: str,
    seed: str,
    monkeypatch: pytest.MonkeyPatch,
    budget: Budget | None = None,
    jobs: int = 1,
) -> Distilled:
    monkeypatch.setenv("PLANTED", planted(rule))
    start = program(seed)
    with Trials(target(), None, jobs=jobs) as trials:
        trials.aim_at(Aim.of(trials.judge(start)))
        assert trials.aim is not None and trials.aim.cures == ("Planted",)
        return distill(start, trials, Random(1), budget, sampling=sampling(), name="found")


def said(result: Distilled) -> list[str]:
    """The rule's lines and clauses, without name and metadata."""
    body = result.text.partition("\n}")[0].splitlines()[1:]
    return [line.strip() for line in body if ": " not in line]


def agree(rule: str, result: Distilled, count: int = 60) -> tuple[int, int, int]:
    """On fresh programs around the seed: matched by both, by the rule found alone, by the planted
    one alone."""
    truth = load_text(planted(rule))
    matcher = Matcher(truth, list(truth.patterns.values()))
    first = result.triggers[0]
    loose = type(result.draft)(tuple(n for n in result.draft.nodes))
    both = extra = missed = 0
    for number in range(count):
        made = sampling().sample(loose, first.place, Random(number), stray=0.7)
        if made is None:
            continue
        fails = any(f.certainty is Truth.YES for f in matcher.run(made.program.graph).findings)
        matches = result.draft.matches(made.program.graph)
        both += fails and matches
        extra += matches and not fails
        missed += fails and not matches
    return both, extra, missed


CASES = {
    "nothing but the operator": (
        "n = sin(x)",
        "x: float32[2, 3]; y = sin(x)",
        ["n1 = sin(_)"],
    ),
    "a line that does not matter": (
        "n = sin(x)",
        "x: float32[2, 3]; a = relu(x); y = sin(a); z = neg(y)",
        ["n2 = sin(_)"],
    ),
    "two lines": (
        "r = relu(x)  c = sin(r)",
        "x: float32[2, 3]; a = relu(x); y = sin(a)",
        ["n1 = relu(_)", "n2 = sin(n1)"],
    ),
    "a set of operators": (
        "n = sin|cos|tan(x)",
        "x: float32[2, 3]; y = sin(x)",
        ["n1 = cos|sin|tan(_)"],
    ),
    "a category": (
        "n = reduction(x, ...)",
        "x: float32[2, 3]; y = sum(x, axes=[1])",
        ["n1 = reduction(x1)", "where x1.rank >= 1"],  # of a scalar, a sum is the scalar
    ),
    "an element type": (
        "n = sin(x) where x.dtype == float64",
        "x: float64[2, 3]; y = sin(x)",
        ["n1 = sin(x1)", "where x1.dtype == float64"],
    ),
    "some element types": (
        "n = abs(x) where x.dtype in {float64, int32}",
        "x: float64[2, 3]; y = abs(x)",
        ["n1 = abs(x1)", "where x1.dtype in {float64, int32}"],
    ),
    "a named set of element types": (
        "n = abs(x) where x.dtype in floats",
        "x: float32[2, 3]; y = abs(x)",
        ["n1 = abs(x1)", "where x1.dtype in floats"],
    ),
    "an extent": (
        "n = sin(x) where x.dim[1] == 3",
        "x: float32[2, 3]; y = sin(x)",
        ["n1 = sin(x1)", "where x1.dim[1] == 3"],
    ),
    "a least extent": (
        "n = sin(x) where x.dim[1] >= 6",
        "x: float32[2, 9]; y = sin(x)",
        ["n1 = sin(x1)", "where x1.dim[1] >= 6"],
    ),
    "a greatest extent": (
        "n = sin(x) where x.dim[0] <= 11, x.rank == 2",
        "x: float32[2, 9]; y = sin(x)",
        ["n1 = sin(x1)", "where x1.rank == 2, x1.dim[0] <= 11"],
    ),
    "equal extents": (
        "n = sin(x) where x.dim[0] == x.dim[1], x.rank == 2",
        "x: float32[3, 3]; y = sin(x)",
        ["n1 = sin(x1)", "where x1.rank == 2, x1.dim[0] == x1.dim[1]"],
    ),
    "a rank": (
        "n = sin(x) where x.rank >= 3",
        "x: float32[2, 3, 2, 1]; y = sin(x)",
        ["n1 = sin(x1)", "where x1.rank >= 3"],
    ),
    "an attribute": (
        "n = softmax(x, axis=1)",
        "x: float32[2, 3, 2]; y = softmax(x, axis=1)",
        ["n1 = softmax(_, axis=1)"],
    ),
    "the last axis": (
        "n = softmax(x) where n.axis == x.rank - 1",
        "x: float32[2, 3, 2]; y = softmax(x, axis=2)",
        ["n1 = softmax(x1)", "where n1.axis == x1.rank - 1"],
    ),
    "a range of an attribute": (
        "n = leaky_relu(x) where n.alpha < 0.0",
        "x: float32[2]; y = leaky_relu(x, alpha=-0.5)",
        None,
    ),
    "a permutation that moves nothing": (
        "n = transpose(x) where identity(n, perm)",
        "x: float32[2, 3, 4]; y = transpose(x, perm=[0, 1, 2])",
        ["n1 = transpose(_)", "where identity(n1, perm)"],
    ),
    "a flag": (
        "n = sum(x, keepdims=true)",
        "x: float32[2, 3]; y = sum(x, axes=[1], keepdims=true)",
        ["n1 = sum(x1, keepdims=true)", "where x1.rank >= 1"],
    ),
    "an optional attribute that is there": (
        "n = clip(x, min=_, ...)",
        "x: float32[2]; y = clip(x, min=-1.0, max=1.0)",
        None,
    ),
    "operands in either order": (
        "s = sin(x) m = mul{s, y}",
        "x: float32[2, 3]; y: float32[2, 3]; s = sin(x); m = mul(y, s)",
        ["n1 = sin(_)", "n2 = mul{_, n1}"],
    ),
    "operands in this order": (
        "s = sin(x) m = sub(y, s)",
        "x: float32[2, 3]; y: float32[2, 3]; s = sin(x); m = sub(y, s)",
        ["n1 = sin(_)", "n2 = sub(_, n1)"],
    ),
    "the same tensor twice": (
        "m = mul(x, x)",
        "x: float32[2, 3]; m = mul(x, x)",
        ["n1 = mul(x1, x1)"],
    ),
    "the same tensor by chance": (
        "m = mul(x, y)",
        "x: float32[2, 3]; m = mul(x, x)",
        ["n1 = mul(_, _)"],
    ),
    "a stored operand": (
        "m = mul(x, w) where initializer(w)",
        "x: float32[2, 3]; const w: float32[3] = [1.0, 2.0, 3.0]; m = mul(x, w)",
        ["n1 = mul(_, x2)", "where initializer(x2)"],
    ),
    "an operand that varies": (
        "f = sin(x) where not constant(x)",
        "x: float32[2, 3]; f = sin(x)",
        ["n1 = sin(x1)", "where not constant(x1)"],
    ),
    "a constant's value": (
        "m = mul(x, w) where w.value == 1.0",
        "x: float32[2, 3]; const w: float32[3] = 1.0; m = mul(x, w)",
        None,
    ),
    "a constant's sign": (
        "m = mul(x, w) where w.min < 0.0",
        "x: float32[2, 3]; const w: float32[3] = [-1.0, -2.5, 0.5]; m = mul(x, w)",
        None,
    ),
    "read once": (
        "r = relu(x) f = sin(r) graph fanout(r) == 1",
        "x: float32[2]; r = relu(x); f = sin(r)",
        ["n1 = relu(_)", "n2 = sin(n1)", "graph fanout(n1) == 1"],
    ),
    "no output": (
        "r = relu(x) f = sin(r) graph not graph_output(r)",
        "x: float32[2]; r = relu(x); f = sin(r)",
        ["n1 = relu(_)", "n2 = sin(n1)", "graph not graph_output(n1)"],
    ),
    "an optional operand": (
        "g = gemm(x, y, ...)",
        "x: float32[2, 3]; y: float32[3, 2]; g = gemm(x, y)",
        ["n1 = gemm(_, _, _?)"],
    ),
    "an optional operand that is left out": (
        "g = gemm(x, y)",
        "x: float32[2, 3]; y: float32[3, 2]; g = gemm(x, y)",
        ["n1 = gemm(_, _)"],
    ),
    "no power of two": (
        "n = sin(x) where x.dim[1] not in powers_of_two, x.rank == 2",
        "x: float32[2, 9]; y = sin(x)",
        ["n1 = sin(x1)", "where x1.rank == 2, x1.dim[1] not in powers_of_two"],
    ),
    "the extent of a result": (
        "n = matmul(x, y) where n.dim[-1] >= 3",
        "x: float32[2, 3]; y: float32[3, 4]; n = matmul(x, y)",
        None,
    ),
    "a scalar, of whatever it is made": (
        "n = max(x) where n.rank == 0, x.rank >= 1",
        "x: float32[3]; y = max(x, axes=[0])",
        None,
    ),
    "one element, of whatever rank": (
        "n = sin(x) where x.numel == 1, x.rank >= 1",
        "x: float32[1, 1]; y = sin(x)",
        None,
    ),
    "two dimensions together": (
        "n = sin(x) where x.numel >= 12",
        "x: float32[4, 8]; y = sin(x)",
        None,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_planted_defect_is_found_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule, seed, expected = CASES[name]
    result = distilled(rule, seed.replace("; ", "\n"), monkeypatch)
    assert result.record.complete
    if expected is not None:
        assert said(result) == expected
    both, extra, missed = agree(rule, result)
    assert both >= 3
    assert extra == 0, result.text
    assert missed <= both // 10, result.text
    rules = load_text(result.text)
    assert not lint_rules(rules)
    assert format_text(result.text) == result.text
    outcomes = run_tests(rules)
    assert outcomes and all(one.ok for one in outcomes)


@pytest.mark.slow
def test_the_answer_does_not_depend_on_the_number_of_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule, seed, _ = CASES["an element type"]
    first, second = (
        distilled(rule, seed.replace("; ", "\n"), monkeypatch, jobs=jobs) for jobs in (1, 2)
    )
    assert first.text == second.text
    assert first.record.experiments == second.record.experiments


@pytest.mark.slow
def test_a_budget_that_is_spent_leaves_a_rule_that_is_too_narrow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule, seed, _ = CASES["nothing but the operator"]
    result = distilled(rule, seed.replace("; ", "\n"), monkeypatch, Budget(runs=20))
    assert not result.record.complete
    assert result.record.interrupted
    assert any("x1.dim[0] == 2" in str(c) for c in result.draft.conditions)
    assert all(outcome.ok for outcome in run_tests(load_text(result.text)))
