"""What only lint says: clashes that need arithmetic, duplicates, and advice."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.lang import core, never
from reprise.lang.diagnostics import RulesError, Severity
from reprise.lang.lint import lint, lint_rules
from reprise.lang.ruleset import load_text


def codes(folder: Path, text: str) -> list[tuple[str, int]]:
    path = folder / "t.rules"
    path.write_text(text)
    try:
        found = lint([path])
        assert not any(d.severity is Severity.ERROR for d in found)
    except RulesError as error:
        found = error.diagnostics
    return [(d.code, d.span.line) for d in found]


def pattern(conditions: str, name: str = "p") -> str:
    test = f"test {name} {{ match {{ x: float32[2, 2]; s = abs(x) }} }}\n"
    return f"pattern {name} {{\n    s = abs(x)\n    where {conditions}\n}}\n{test}"


@pytest.mark.parametrize(
    "conditions",
    [
        "x.dim[0] * 2 == 7",
        "x.dim[0] + x.dim[1] < 0",
        "x.dim[0] < x.dim[1], x.dim[1] < x.dim[0]",
        "x.rank == A, A % 2 == 0, A % 2 == 1",
        "x.dim[0] / 4 == 2, x.dim[0] < 8",
        "x.rank > 3 or x.rank < 2, x.rank in 2..3",
    ],
)
def test_clashing_arithmetic_is_refused(tmp_path: Path, conditions: str) -> None:
    found = codes(tmp_path, pattern(conditions))
    assert ("never-matches", 3) in found


@pytest.mark.parametrize(
    "conditions",
    [
        "x.dim[0] * 2 == 8",
        "x.dim[0] < x.dim[1]",
        "x.rank > 3 or x.rank < 2",
        "x.dim[0] % x.dim[1] == 0",
        "x.dim[0] * x.dim[1] >= 1024, x.dim[0] <= 512",
    ],
)
def test_what_can_match_is_not_refused(tmp_path: Path, conditions: str) -> None:
    assert codes(tmp_path, pattern(conditions)) == []


def test_a_pattern_that_repeats_another_is_refused(tmp_path: Path) -> None:
    text = pattern("x.rank == 2") + pattern("x.rank == 2", "q")
    assert ("shadowed", 6) in codes(tmp_path, text)


def test_the_same_pattern_for_another_target_is_fine(tmp_path: Path) -> None:
    first = pattern("x.rank == 2").replace("    s = abs", "    target: tvm\n    s = abs", 1)
    second = pattern("x.rank == 2", "q").replace(
        "    s = abs", "    target: inductor\n    s = abs", 1
    )
    assert codes(tmp_path, first + second) == []


def test_advice(tmp_path: Path) -> None:
    text = "pattern p {\n    s = softmax(x, axis=A)\n}\nr(N) :- node(N, Op), arity(N, C).\n"
    assert codes(tmp_path, text) == [
        ("untested", 1),
        ("used-once", 2),
        ("used-once", 4),
        ("used-once", 4),
    ]


def test_a_pattern_named_like_an_operator_is_warned_of(tmp_path: Path) -> None:
    assert codes(tmp_path, pattern("x.rank == 2", "relu")) == [("named-like-operator", 1)]


VARIABLES = st.sampled_from([core.Var("A"), core.Var("B")])
NUMBERS = st.integers(-1, 3)
SIMPLE = st.lists(
    st.one_of(
        st.builds(
            core.Compare,
            st.sampled_from(["==", "<", "<=", ">", ">="]),
            VARIABLES,
            st.builds(core.Const, NUMBERS),
        ),
        st.builds(
            core.Compare,
            st.sampled_from(["==", "<", "<=", ">", ">="]),
            st.builds(core.Const, NUMBERS),
            VARIABLES,
        ),
        st.builds(core.Compare, st.just("=="), VARIABLES, VARIABLES),
        st.builds(core.Member, VARIABLES, st.lists(NUMBERS, min_size=1).map(tuple)),
        st.builds(
            lambda extent: core.Atom("dim", (core.Var("T"), core.Var("I"), extent)), VARIABLES
        ),
    ),
    max_size=6,
)


@given(SIMPLE)
def test_intervals_decide_simple_bodies_as_z3_does(body: list[core.Literal]) -> None:
    rule = core.Rule(core.Atom("p", ()), tuple(body), "p")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(never, "unsatisfiable", None)  # it is not asked
        found = never.clash(rule)
    assert (found is None) == (never.unsatisfiable(rule) is None)


def test_z3_is_asked_about_the_rest() -> None:
    a, b = core.Var("A"), core.Var("B")
    for body in (
        (core.Compare("<", a, b), core.Compare("<", b, a)),
        (core.Member(a, (1, 2)), core.Compare("!=", a, core.Const(1)), _not(a, 2)),
        (
            core.Atom("rank", (core.Var("T"), a)),
            core.Compare("==", core.Arith("*", (a, core.Const(2))), core.Const(7)),
        ),
    ):
        assert never.clash(core.Rule(core.Atom("p", ()), body, "p")) is not None


def _not(variable: core.Var, value: int) -> core.Compare:
    return core.Compare("!=", variable, core.Const(value))


@pytest.mark.parametrize(
    "conditions",
    [
        "A > 0, A < 1",
        "A * 2 > 0, A * 2 < 1",
        "A > 0, A != 0.5, A < 1",
        "A >= 1, A <= 1",
        "A in {0.5, 2}, A < 1",
    ],
)
def test_an_attribute_may_lie_between_whole_numbers(conditions: str) -> None:
    text = f'pattern p "p" {{ y = elu(x, alpha=A)\n where {conditions} }}'
    assert not [d for d in lint_rules(load_text(text)) if d.code == "never-matches"]


@pytest.mark.parametrize(
    "conditions",
    [
        "x.rank > 2, x.rank < 3",
        "x.rank == 2.5",
        "x.numel in {1.5, 2.5}",
        "x.dim[0] * 2 == 7",
        "A > 1, A < 1",
        "A > 1, A <= 1",
        "A < 1, A >= 1",
        "A >= 1, A <= 1, A != 1",
    ],
)
def test_but_not_outside_its_bounds_nor_a_count_between_whole_numbers(conditions: str) -> None:
    text = f'pattern p "p" {{ y = elu(x, alpha=A)\n where {conditions} }}'
    with pytest.raises(RulesError) as caught:
        lint_rules(load_text(text))
    assert {d.code for d in caught.value.diagnostics} >= {"never-matches"}


def test_what_lowering_invents_stands_where_it_was_asked_for() -> None:
    text = pattern("downstream[1..2](s) in {exp}, not upstream(x) in {pad}")
    rules = load_text(text).program.rules
    assert all(rule.span is not None for rule in rules)
    near = [r for r in rules if r.head.relation.startswith("downstream") and r.span is not None]
    assert {(r.span.file, r.span.line) for r in near if "exp" in r.head.relation} == {("<text>", 1)}
