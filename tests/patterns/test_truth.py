"""The three-valued solver: one place, some facts, and what they decide."""

from collections.abc import Sequence

from reprise.lang import core
from reprise.patterns.truth import UNKNOWN, Solver, Truth

SCHEMA = {
    "node": core.Relation("node", (core.Column("n", "node", True), core.Column("op", "sym"))),
    "dim": core.Relation(
        "dim",
        (
            core.Column("t", "tensor", True),
            core.Column("axis", "int", True),
            core.Column("extent", "int"),
        ),
        unknown=("unknown_dim", "unknown_rank"),
    ),
    "unknown_dim": core.Relation(
        "unknown_dim", (core.Column("t", "tensor", True), core.Column("axis", "int", True))
    ),
    "unknown_rank": core.Relation("unknown_rank", (core.Column("t", "tensor", True),)),
    "env": core.Relation(
        "env", (core.Column("name", "sym", True), core.Column("value", "any")), unknown=("always",)
    ),
    "big": core.Relation("big", (core.Column("t", "tensor"),)),
}
T, N, M, A = core.Var("T"), core.Var("N"), core.Var("M"), core.Var("A")
BIG = core.Rule(
    core.Atom("big", (T,)), (core.Atom("dim", (T, A, N)), core.Compare(">", N, core.Const(10)))
)


class Facts:
    """A database that only looks things up."""

    def __init__(self, **rows: list[core.Row]) -> None:
        self.rows = rows

    def match(self, relation: str, pattern: Sequence[core.Value | None]) -> list[core.Row]:
        return [
            row
            for row in self.rows.get(relation, [])
            if all(p is None or p == v for p, v in zip(pattern, row, strict=True))
        ]


def ask(facts: Facts, *literals: core.Literal, **bindings: core.Value) -> Truth:
    solver = Solver(core.Program(SCHEMA, (BIG,)), facts)
    return solver.ask(literals, dict(bindings)).truth


def test_a_known_extent_decides() -> None:
    facts = Facts(dim=[(0, 0, 4)])
    dim = core.Atom("dim", (T, core.Const(0), N))
    assert ask(facts, dim, core.Compare(">=", N, core.Const(2)), T=0) is Truth.YES
    assert ask(facts, dim, core.Compare(">=", N, core.Const(5)), T=0) is Truth.NO


def test_an_unknown_extent_leaves_it_open() -> None:
    facts = Facts(unknown_dim=[(0, 0)])
    dim = core.Atom("dim", (T, core.Const(0), N))
    assert ask(facts, dim, core.Compare(">=", N, core.Const(2)), T=0) is Truth.UNKNOWN


def test_what_is_open_is_an_extent_of_its_own_axis() -> None:
    """A batch of unknown size is no empty axis after the first."""
    facts = Facts(dim=[(7, 1, 8)], unknown_dim=[(7, 0)])
    empty = core.Atom("dim", (T, A, core.Const(0)))
    assert ask(facts, empty, core.Compare(">", A, core.Const(0)), T=7) is Truth.NO
    assert ask(facts, empty, core.Compare("==", A, core.Const(0)), T=7) is Truth.UNKNOWN
    rankless = Facts(unknown_rank=[(7,)])
    assert ask(rankless, empty, core.Compare(">", A, core.Const(0)), T=7) is Truth.UNKNOWN


def test_what_fails_anyway_is_no_even_if_something_else_is_open() -> None:
    facts = Facts(unknown_dim=[(0, 0)], dim=[(0, 1, 3)])
    first = core.Atom("dim", (T, core.Const(0), N))
    second = core.Atom("dim", (T, core.Const(1), M))
    conditions = [core.Compare("==", N, core.Const(1)), core.Compare("==", M, core.Const(4))]
    assert ask(facts, first, second, *conditions, T=0) is Truth.NO


def test_an_axis_beyond_a_known_rank_is_no() -> None:
    assert ask(Facts(dim=[(0, 0, 4)]), core.Atom("dim", (T, core.Const(7), N)), T=0) is Truth.NO


def test_negation_of_the_open_is_open() -> None:
    facts = Facts(unknown_dim=[(0, 0)])
    assert ask(facts, core.Atom("dim", (T, core.Const(0), core.Const(1)), True), T=0) is (
        Truth.UNKNOWN
    )


def test_a_derived_relation_is_open_where_its_rules_are() -> None:
    facts = Facts(dim=[(0, 0, 4), (1, 0, 4)], unknown_dim=[(0, 1)])
    assert ask(facts, core.Atom("big", (T,)), T=0) is Truth.UNKNOWN
    assert ask(facts, core.Atom("big", (T,)), T=1) is Truth.NO
    assert ask(facts, core.Atom("big", (T,), True), T=1) is Truth.YES


def test_an_environment_that_was_not_given_is_open() -> None:
    env = core.Atom("env", (core.Const("isa"), A))
    wanted = core.Compare("==", A, core.Const("avx512"))
    assert ask(Facts(), env, wanted) is Truth.UNKNOWN
    assert ask(Facts(env=[("isa", "avx2")]), env, wanted) is Truth.NO


def test_arithmetic_on_the_unknown_is_unknown_and_on_nothing_is_false() -> None:
    facts = Facts(unknown_dim=[(0, 0)])
    dim = core.Atom("dim", (T, core.Const(0), N))
    doubled = core.Arith("*", (N, core.Const(2)))
    assert ask(facts, dim, core.Compare(">", doubled, core.Const(3)), T=0) is Truth.UNKNOWN
    by_zero = core.Arith("/", (core.Const(1), core.Const(0)))
    assert ask(facts, core.Compare("==", by_zero, core.Const(0))) is Truth.NO


def test_the_answer_names_the_condition_that_failed() -> None:
    facts = Facts(dim=[(0, 0, 1)])
    failing = core.Compare(">=", N, core.Const(2))
    solver = Solver(core.Program(SCHEMA, ()), facts)
    answer = solver.ask([core.Atom("dim", (T, core.Const(0), N)), failing], {"T": 0})
    assert answer.failed is not None
    assert answer.failed.literal == failing
    assert answer.failed.left == 1


def test_aggregates_over_the_open_are_open() -> None:
    total = core.Aggregate(M, "sum", N, (core.Atom("dim", (T, A, N)),))
    enough = core.Compare(">=", M, core.Const(5))
    assert ask(Facts(dim=[(0, 0, 2), (0, 1, 3)]), total, enough, T=0) is Truth.YES
    assert ask(Facts(dim=[(0, 0, 2), (0, 1, 2)]), total, enough, T=0) is Truth.NO
    assert ask(Facts(dim=[(0, 0, 2)]), total, core.Compare("==", M, core.Const(2)), T=0) is (
        Truth.YES
    )


def test_unknown_is_one_value() -> None:
    assert repr(UNKNOWN) == "?"
