"""The canonical style, by example."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.data import data_path
from reprise.lang import ast
from reprise.lang.diagnostics import RulesError
from reprise.lang.format import format_file, format_program, format_text, show
from reprise.lang.layout import WIDTH
from reprise.lang.parse import parse_program, parse_text

SHIPPED = sorted(data_path("rules").rglob("*.rules"))


def check(before: str, after: str) -> None:
    """``before`` is formatted as ``after``, and ``after`` stays as it is."""
    assert format_text(before) == after
    assert format_text(after) == after


def test_spaces_and_line_ends() -> None:
    check(
        'import   "a.rules" ;set s={a,b , -1,}\r\np( X ):-q(X),not r( X ),X>=-1 .\n\n\n\n',
        'import "a.rules"\nset s = {a, b, -1}\np(X) :- q(X), not r(X), X >= -1.\n',
    )
    check("", "")
    check("\ufeff// only\n\n\n", "// only\n")


def test_a_pattern_has_one_line_a_part() -> None:
    check(
        'pattern p "t"{bug:"a/b#1" target:"inductor" v=elu(_,alpha=1.0)  e=exp(v); s=add{v,e}'
        " where v.dtype==float32,v.numel>=10_000 graph downstream(s) in reciprocal_like}",
        """\
pattern p "t" {
    bug: "a/b#1"
    target: inductor
    v = elu(_, alpha=1.0)
    e = exp(v)
    s = add{v, e}
    where v.dtype == float32, v.numel >= 10_000
    graph downstream(s) in reciprocal_like
}
""",
    )


def test_a_rule_breaks_after_its_head_or_at_each_condition() -> None:
    check(
        'deny bad_extent(E, I) "index {I} has extents {N} and {M}" :- operand(E, T, I, P), '
        "extent(T, P, N), N < M.\n"
        "a_long_head(E, I, N, M) :- operand(E, T, I, P), extent(T, P, N), operand(E, U, I, Q), "
        "extent(U, Q, M), not exists { c = cast(t) }, N < M.",
        """\
deny bad_extent(E, I) "index {I} has extents {N} and {M}" :-
    operand(E, T, I, P), extent(T, P, N), N < M.
a_long_head(E, I, N, M) :-
    operand(E, T, I, P),
    extent(T, P, N),
    operand(E, U, I, Q),
    extent(U, Q, M),
    not exists { c = cast(t) },
    N < M.
""",
    )


def test_blocks_stay_on_one_line_if_they_were_and_fit() -> None:
    check(
        """\
op relu(x: T[*D]) -> T[*D] { category activation   where T in signed }
op exp(x: T[*D]) -> T[*D] {
    category exponential }
constraint c : resource on { a = abs(x) } require x.rank > 1
test relu { match { x: float32[2] } no_match {
    x: int8[2]; y = relu(x) } }
""",
        """\
op relu(x: T[*D]) -> T[*D] { category activation; where T in signed }

op exp(x: T[*D]) -> T[*D] {
    category exponential
}

constraint c : resource on { a = abs(x) } require x.rank > 1

test relu {
    match { x: float32[2] }
    no_match {
        x: int8[2]
        y = relu(x)
    }
}
""",
    )


def test_long_lists_are_filled() -> None:
    names = ", ".join(f"operator_number_{i}" for i in range(12))
    formatted = format_text(f"set s = {{{names}}}\npattern p {{ s = f({names}) }}")
    assert all(len(line) <= WIDTH for line in formatted.splitlines())
    assert formatted.splitlines()[1].startswith("    operator_number_0, operator_number_1, ")
    assert format_text(formatted) == formatted


def test_where_clauses_stay_apart_and_are_filled() -> None:
    condition = "x.some_member == 10_000"
    check(
        f"pattern p {{ s = f(x) where {', '.join([condition] * 4)} where A == 1 }}",
        f"""\
pattern p {{
    s = f(x)
    where {condition}, {condition}, {condition},
        {condition}
    where A == 1
}}
""",
    )


def test_long_alternatives_are_filled() -> None:
    ops = "|".join(f"onnx.Operator{number}" for number in range(20))
    text = "pattern p {\n    n1 = " + ops + "(x1)\n    n2 = neg|abs(n1)\n}\n"
    formatted = format_text(text)
    lines = formatted.splitlines()
    assert all(len(line) <= WIDTH for line in lines)
    assert len(lines[1]) > WIDTH - 20 and lines[1].endswith("|")
    assert "".join(map(str.strip, lines)) == "".join(map(str.strip, text.splitlines()))
    assert format_text(formatted) == formatted


def test_long_expressions_break_before_their_operators() -> None:
    term = "some_long_name.some_member"
    formatted = format_text(f"p() :- {term} * {term} + {term} * {term} <= {term} or {term} == 3.")
    assert all(len(line) <= WIDTH for line in formatted.splitlines())
    assert parse_text(formatted).decls
    assert format_text(formatted) == formatted


def test_numbers_keep_their_spelling() -> None:
    check("p(10_000, 1e-3, - 0.50, 1_0.0).", "p(10_000, 1e-3, -0.50, 1_0.0).\n")


def test_only_needed_parentheses_are_kept() -> None:
    check(
        "p() :- ((A) + (B * C)) - (D - E) == (-F)[0], (a() or (b())) and (not (c() and d())).",
        "p() :- A + B * C - (D - E) == (-F)[0], (a() or b()) and not (c() and d()).\n",
    )


def test_blank_lines() -> None:
    check(
        """\
set a = {}


set b = {}
p(X) :- q(X).
pattern p {
    s = f(x)



    t = g(s)

}
test p {

    match { x: int8[] }
}
set c = {}
""",
        """\
set a = {}

set b = {}
p(X) :- q(X).

pattern p {
    s = f(x)

    t = g(s)
}
test p {
    match { x: int8[] }
}

set c = {}
""",
    )


def test_comments_stay_where_they_were() -> None:
    text = """\
// About the file.

// About the import.
import "a.rules"  // behind it

// ---- a section ----

/// Documentation.
set s = {a, b}  // behind a set
set t = {
    a, b,  // one group
    // another
    c
    // nothing
}

/// A pattern.
pattern p "x" {  // behind the brace
    // a bug
    bug: "a#1"  // behind an entry
    s = f(x)  // behind a line

    // before a clause
    where
        A == 1,  // behind a condition
        // before a condition
        B == 2
    graph constant(x)  // behind a clause
    // at the end
}  // behind the block

p(X) :-
    q(X),  // behind
    // before
    r(X).  // last

constraint c : k on {
    a = f(x)  // in it
} require
    A == 1,  // one
    B == 2

test p {
    // before a case
    match {
        x: int8[]  // an input
    }
    no_match { x: int8[] }  // behind a case
}

// The end.
"""
    check(text, text)


def test_a_comment_inside_a_line_moves_before_it() -> None:
    check(
        "pattern p {\n  s = f(x, // why\n    axis=1)\n}\nrelation r(\n  /// not about r\n  a: int)",
        "pattern p {\n    // why\n    s = f(x, axis=1)\n}\n\n// not about r\nrelation r(a: int)\n",
    )


def test_parts_keep_their_order() -> None:
    text = "pattern p {\n    s = f(x)\n    where A == 1\n    t = g(s)\n    target: tvm\n}\n"
    check(text, text)


def test_a_tree_needs_no_text() -> None:
    file = parse_text(
        'import "a"\n/// D\nset s = {a}\np(X) :- q(X).\n'
        "pattern p { s = f(x) where A == 1 graph q(s) }\ntest p { match { x: int8[] } }"
    )
    bare = ast.RuleFile("made", file.imports, file.decls)
    assert parse_text(format_file(bare)) == parse_text(format_file(file))


def test_programs_are_printed_one_line_each() -> None:
    program = parse_program("x: float32[4, N]; output x const w: int8[...] = [1, 2] y, z = f(x, w)")
    assert format_program(program) == (
        "x: float32[4, N]\noutput x\nconst w: int8[...] = [1, 2]\ny, z = f(x, w)\n"
    )


def test_any_node_can_be_shown() -> None:
    (rule,) = parse_text("p(X) :- not exists { c = cast(t) where c.rank == 1 }, f(X) > 2.").decls
    assert isinstance(rule, ast.RuleDecl)
    assert [show(one) for one in rule.body] == [
        "not exists { c = cast(t) where c.rank == 1 }",
        "f(X) > 2",
    ]
    assert show(rule.head.args[0]) == "X"


def test_a_file_with_errors_is_not_formatted() -> None:
    with pytest.raises(RulesError):
        format_text("set s = {a b}")


@pytest.mark.slow
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_rules_survive(path: Path) -> None:
    text = path.read_text()
    formatted = format_text(text, str(path))
    assert parse_text(formatted, str(path)) == parse_text(text, str(path))
    assert format_text(formatted) == formatted
