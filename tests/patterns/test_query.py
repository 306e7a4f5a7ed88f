"""Questions: answers name what the model names, and mistakes are shown where the goal has them."""

from pathlib import Path

import pytest

from reprise.datalog import Limits
from reprise.lang.diagnostics import Diagnostic, RulesError
from reprise.patterns.check import UsageError
from reprise.patterns.query import PLACE, ask

ENDLESS = """
relation n(x: int)
n(0).
n(Y) :- n(X), Y == X + 1.
"""
RULES = """
relation after(pass: sym, other: sym)
after("fold", "infer").
after("fuse", "fold").
relation needs(pass: sym, other: sym)
needs(P, Q) :- after(P, Q).
needs(P, R) :- after(P, Q), needs(Q, R).
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "r.rules"
    path.write_text(RULES)
    return path


def wrong(rules: Path, goal: str) -> list[Diagnostic]:
    with pytest.raises(RulesError) as caught:
        ask(rules, goal)
    found = caught.value.diagnostics
    assert not any("query__" in f"{d.message} {d.hint}" for d in found)
    return found


@pytest.mark.parametrize("engine", ["reprise", "pydatalog"])
def test_nodes_and_tensors_are_named(rules: Path, tmp_path: Path, engine: str) -> None:
    if engine == "pydatalog":
        pytest.importorskip("pyDatalog")
    model = tmp_path / "m.uir"
    model.write_text("input: float32[4, 3]\ns = softmax(input, axis=1)\nt = relu(s)\n")
    goal = "node(N, Op), input(N, 0, T), dim(T, 1, D)"
    answer = ask(rules, goal, model=model, engine=engine)
    assert answer.variables == ("N", "Op", "T", "D")
    assert set(answer.rows) == {("s", "softmax", "input", 3), ("t", "relu", "s", 3)}


@pytest.mark.parametrize(
    ("goal", "code", "line", "text"),
    [
        ("neds(X, Y)", "unknown-relation", 1, "neds"),
        ("needs(X, Y), neds(Y, _)", "unknown-relation", 1, "neds"),
        ("\n  needs(X, Y),\n  neds(Y, _)", "unknown-relation", 3, "neds"),
        ("needs(X", "unclosed-bracket", 1, ""),
        ("needs(X, Y), not needs(Y, Z)", "only-negated", 1, "needs(Y, Z)"),
        ("needs(X, Y), Z == X", "unknown-type", 1, "Z"),
    ],
)
def test_a_mistake_is_shown_in_the_goal(
    rules: Path, goal: str, code: str, line: int, text: str
) -> None:
    (found,) = wrong(rules, goal)
    span = found.span
    assert (found.code, span.file, span.line) == (code, PLACE, line)
    assert goal.splitlines()[line - 1][span.column - 1 : span.end_column - 1] == text


@pytest.mark.parametrize(
    ("engine", "limits", "message"),
    [
        ("reprise", Limits(1000, 60.0), r"more than 1,000 facts; most of it was `n`; --max-rows"),
        ("pydatalog", Limits(1000, 0.5), r"longer than 0.5 s; --max-seconds"),
    ],
)
def test_a_question_without_an_end_is_given_up(
    rules: Path, engine: str, limits: Limits, message: str
) -> None:
    if engine == "pydatalog":
        pytest.importorskip("pyDatalog")
    rules.write_text(ENDLESS)
    with pytest.raises(UsageError, match=message):
        ask(rules, "n(X)", engine=engine, limits=limits)


def test_the_name_of_the_goal_is_nobody_s(rules: Path) -> None:
    with pytest.raises(UsageError):
        ask(rules, "query__answer(X)")
    (found,) = wrong(rules, "query_answer(2)")
    assert found.hint is None


def test_what_pydatalog_cannot_answer_is_said_without_the_made_rule(
    rules: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyDatalog")
    with pytest.raises(UsageError, match=r"no aggregates with our meaning$"):
        ask(rules, "N == count{ X : needs(X, _) }", engine="pydatalog")
    assert ask(rules, "N == count{ X : needs(X, _) }").rows == ((2,),)
