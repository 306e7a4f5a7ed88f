"""Printing core programs: as rules, which read back the same, and for clingo."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from reprise.datalog import UnsupportedError
from reprise.datalog.export import to_clingo, to_clingo_in_part
from reprise.lang.core import Arith, Atom, Column, Compare, Const, Program, Relation, Rule, Var
from reprise.lang.coretext import format_program, format_rule, format_value
from tests.datalog.coretext_reader import read
from tests.datalog.random_programs import programs


@pytest.mark.slow
@given(programs(products=True))
@settings(max_examples=40, deadline=None)
def test_a_printed_program_reads_back_as_itself(program: Program) -> None:
    text = format_program(program)
    assert format_program(read(text)) == "".join(
        line for line in text.splitlines(keepends=True) if not line.startswith("//")
    )


def test_declarations_and_rules_look_like_a_rule_file() -> None:
    text = (
        "relation edge(src: node, dst: node key, pos: int key) @entity @older(src)\n"
        "relation constant(v: node)\n"
        "relation fanout(v: node, n: int)\n"
        "\n"
        "constant(V) :- node(V, _), not varies(V), V != 3.\n"
        'fanout(V, N) :- node(V, O), N == count{ W : edge(V, W, _) }, O in {relu, "a b"}.\n'
    )
    assert format_program(read(text)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [("relu", "relu"), ("onnx.Foo", '"onnx.Foo"'), ("not", '"not"'), ("X", '"X"'), ("", '""'),
     ("é\n", '"é\\n"'), (3, "3"), (-3, "-3"), (1.0, "1.0"), (1e-05, "1.0e-05"), (1e300, "1.0e+300"),
     (float("inf"), "inf")],
)  # fmt: skip
def test_values(value: int | float | str, text: str) -> None:
    assert format_value(value) == text
    if not isinstance(value, str):
        assert float(text) == value


def test_parentheses_appear_where_they_are_needed() -> None:
    a, b, c = Var("A"), Var("B"), Var("C")
    product = Arith("*", (Arith("+", (a, b)), Arith("neg", (c,))))
    difference = Arith("-", (a, Arith("-", (b, Arith("max", (c, Const(-1)))))))
    rule = Rule(Atom("p", (product,)), (Compare("<", difference, Const(0)),))
    assert format_rule(rule) == "p((A + B) * -C) :- A - (B - max(C, -1)) < 0."


def test_variables_get_valid_distinct_names() -> None:
    names = ("x.dim[0]", "X_dim_0", "_used", "_used", "_once", "3")
    rule = Rule(Atom("p", tuple(map(Var, names))), ())
    assert format_rule(rule) == "p(X_dim_0_2, X_dim_0, Used, Used, _, V3)."


def test_clingo_text() -> None:
    program = read("""
    relation node(v: node key, op: sym)
    relation Loud(v: node)
    relation n(v: node, k: int)
    Loud(V) :- node(V, "a b"), not n(V, _).
    n(V, K / 2) :- node(V, O), O not in {x, y}, K == count{ W : node(W, O) }.
    """)
    assert to_clingo(program, {"node": [(3, "a b")]}) == (
        'x_Loud(V0) :- node(V0,"a b"), not n(V0,_).\n'
        "n(V0,((V1 - (((V1 \\ 2) + 2) \\ 2)) / 2)) :- node(V0,V2), "
        'V2 != "x", V2 != "y", V1 = #count{ V3 : node(V3,V2) }.\n'
        'node(3,"a b").\n'
    )


@pytest.mark.parametrize(
    "rule",
    [
        "p(N) :- N == prod{ X : q(X) }.",
        "p(N) :- q(N), N < 1.5.",
        "p(N) :- N == max{ X : a(X) }.",
        "p(bits(float32)) :- q(_).",
    ],
)
def test_what_clingo_cannot_say_is_refused(rule: str) -> None:
    with pytest.raises(UnsupportedError):
        to_clingo(read(f"relation p(n: int)\nrelation q(n: int)\nrelation a(v: any)\n{rule}"))


def test_relations_may_have_any_name() -> None:
    relation = Relation("my relation!", ())
    program = Program({relation.name: relation}, (Rule(Atom(relation.name, ()), ()),))
    assert to_clingo(program) == "x_my_20_relation_21_.\n"


def test_rules_that_clingo_cannot_express_are_left_out_and_named() -> None:
    column = Column("x", "float")
    relations = {name: Relation(name, (column,)) for name in ("a", "b")}
    x = Var("X")
    said = Rule(Atom("b", (x,)), (Atom("a", (x,)),))
    unsaid = Rule(Atom("b", (x,)), (Atom("a", (x,)), Compare("<", x, Const(0.5))))
    text, refused = to_clingo_in_part(Program(relations, (unsaid, said)))
    assert text.splitlines() == [
        "% left out: clingo has no comparison of floats: b(X) :- a(X), X < 0.5.",
        "b(V0) :- a(V0).",
    ]
    assert len(refused) == 1
