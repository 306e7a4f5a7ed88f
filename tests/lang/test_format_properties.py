"""Random trees and random comments through the formatter."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.lang import ast
from reprise.lang.build import CASE_KINDS, CONTEXT_WORDS, META_KEYS
from reprise.lang.format import format_file, format_program, format_text, show
from reprise.lang.parse import parse_program, parse_text
from reprise.lang.tables import load_tables
from reprise.lang.tokens import scan

KEYWORDS = frozenset(load_tables().keywords)


@st.composite
def make(draw: st.DrawFn, what: Callable[..., Any], *parts: st.SearchStrategy[Any]) -> Any:
    """As ``st.builds``, whose record of how each node was made outgrows the nodes."""
    return what(*map(draw, parts))


names = st.sampled_from(
    ["x", "y", "conv2d", "a_long_name_for_a_tensor_in_a_long_line", "transA", "relu", "float32"]
) | st.from_regex(r"[a-z][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(lambda n: n not in KEYWORDS)
qualified = st.sampled_from(["onnx.LayerNormalization", "com.microsoft.FusedConv", "a.b.C1"])
variables = st.sampled_from(["A", "N", "Long_Variable_Name"]) | st.from_regex(
    r"[A-Z][a-zA-Z0-9_]{0,5}", fullmatch=True
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.one_of(
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False),
    st.just(math.nan),
)


def idents(of: st.SearchStrategy[str] = names) -> st.SearchStrategy[ast.Ident]:
    return make(ast.Ident, of)


def tuples(of: st.SearchStrategy, least: int = 0, most: int = 3) -> st.SearchStrategy[tuple]:
    return st.lists(of, min_size=least, max_size=most).map(tuple)


leaves = st.one_of(
    make(ast.Variable, variables),
    make(ast.Wildcard),
    make(ast.Number, numbers),
    make(ast.String, texts),
    make(ast.Boolean, st.booleans()),
    make(ast.Name, names | qualified),
)
paths = st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda p: (min(p), max(p)))
relations = idents(names.filter(lambda n: n not in CONTEXT_WORDS))
tensors = make(ast.TensorRef, idents(), st.none() | st.integers(0, 3))
rest = st.just(()) | st.just((ast.RestOperands(),))


def in_order(low: ast.Expr, high: ast.Expr) -> bool:
    if isinstance(low, ast.Number) and isinstance(high, ast.Number):
        return not low.value > high.value
    return True


def is_context(expr: ast.Expr) -> bool:
    return isinstance(expr, ast.CallExpr) and expr.function.text in CONTEXT_WORDS


def domains_of(exprs: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Domain]:
    return st.one_of(
        make(ast.SetDomain, tuples(exprs)),
        st.tuples(exprs, exprs).filter(lambda b: in_order(*b)).map(lambda b: ast.RangeDomain(*b)),
        make(ast.NamedDomain, idents(names | qualified)),
    )


@st.composite
def comparisons(draw: st.DrawFn, exprs: st.SearchStrategy[ast.Expr]) -> ast.Comparison:
    operands = draw(tuples(exprs, 2, 4))
    signs = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    return ast.Comparison(operands, draw(tuples(signs, len(operands) - 1, len(operands) - 1)))


def checks_of(exprs: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Condition]:
    return st.one_of(
        comparisons(exprs),
        make(
            ast.Membership,
            exprs.filter(lambda e: not is_context(e)),
            domains_of(exprs),
            st.booleans(),
        ),
        make(ast.AtomCond, relations, tuples(exprs)),
        make(
            ast.Context,
            st.sampled_from(sorted(CONTEXT_WORDS)),
            paths,
            idents(),
            domains_of(exprs),
        ),
    )


def compounds_of(
    exprs: st.SearchStrategy[ast.Expr], conditions: st.SearchStrategy[ast.Condition]
) -> st.SearchStrategy[ast.Expr]:
    return st.one_of(
        make(ast.Member, exprs, idents()),
        make(ast.Index, exprs, exprs),
        make(ast.CallExpr, idents(names | qualified), tuples(exprs)),
        make(ast.Binary, st.sampled_from("+-*/%"), exprs, exprs),
        make(ast.Negate, exprs.filter(lambda e: not isinstance(e, ast.Number))),
        make(ast.ListExpr, tuples(exprs)),
        make(
            ast.AggregateExpr,
            st.sampled_from(["count", "sum", "min", "max", "prod"]),
            st.none() | exprs,
            tuples(conditions, 1, 2),
        ),
    )


def calls_of(
    exprs: st.SearchStrategy[ast.Expr], operands: st.SearchStrategy[ast.Operand]
) -> st.SearchStrategy[ast.Call]:
    return make(
        lambda ops, args, more, attributes, unordered: ast.Call(
            ops, args + more, attributes, unordered
        ),
        tuples(idents(names | qualified), 1, 3),
        tuples(operands),
        rest,
        tuples(make(ast.AttributeArg, idents(), exprs | domains_of(exprs))),
        st.booleans(),
    )


plain_operands = st.one_of(tensors, make(ast.AnyOperand, st.booleans()), make(ast.AbsentOperand))
small_exprs = leaves | compounds_of(leaves, checks_of(leaves))
small_binds = make(ast.Bind, tuples(idents(), 1, 2), tuples(calls_of(leaves, plain_operands), 1, 2))
small_conditions = st.one_of(
    checks_of(small_exprs),
    make(ast.Exists, tuples(small_binds, 0, 2), tuples(checks_of(leaves), 0, 2)),
)
exprs = small_exprs | compounds_of(small_exprs, small_conditions)
domains = domains_of(exprs)
joined = st.one_of(
    make(ast.Not, small_conditions),
    make(ast.And, tuples(small_conditions, 2, 3)),
    make(ast.Or, tuples(small_conditions, 2, 3)),
)
conditions = st.one_of(
    small_conditions,
    joined,
    make(ast.Not, joined),
    make(ast.And, tuples(joined, 2, 3)),
    make(ast.Or, tuples(joined, 2, 3)),
    make(ast.Exists, tuples(small_binds, 0, 2), tuples(joined, 0, 2)),
)
operands = st.one_of(
    plain_operands,
    calls_of(leaves, plain_operands),
    make(
        ast.Via,
        make(ast.SetDomain, tuples(exprs)) | make(ast.NamedDomain, idents(names | qualified)),
        paths,
        plain_operands | calls_of(leaves, plain_operands),
    ),
)
calls = calls_of(exprs, operands)
binds = make(ast.Bind, tuples(idents(), 1, 2), tuples(calls, 1, 2))
docs = tuples(
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=9).map(str.rstrip),
    0,
    2,
)
type_names = make(ast.Variable, variables) | make(ast.Name, names)
splats = make(
    ast.Splat,
    make(ast.Variable, variables) | make(ast.CallExpr, idents(), tuples(exprs)),
)
types = make(ast.TypeExpr, type_names, st.none() | tuples(exprs | splats))
results = st.tuples(st.none() | idents(), types)
attributes = make(
    ast.AttrDecl, idents(), st.none() | variables, idents(), st.none() | domains, st.none() | exprs
)
columns = make(ast.ColumnDecl, idents(), idents(), st.booleans())
flags = make(ast.Flag, idents(), tuples(idents()))


def meta(kind: str) -> st.SearchStrategy[ast.MetaEntry]:
    return make(ast.MetaEntry, idents(st.sampled_from(sorted(META_KEYS[kind]))), texts)


@st.composite
def typed_binds(draw: st.DrawFn) -> ast.Bind:
    line = draw(binds)
    written = draw(tuples(st.none() | types, len(line.names), len(line.names)))
    return ast.Bind(line.names, line.calls, written if any(written) else ())


lines = st.one_of(
    make(ast.InputLine, idents(), types),
    make(ast.InputLine, idents(), types, st.just(True), st.none() | exprs),
    binds,
    typed_binds(),
    make(ast.OutputLine, idents()),
    make(ast.Given, make(ast.AtomCond, idents(), tuples(exprs))),
)
cases = make(ast.Case, st.sampled_from(sorted(CASE_KINDS)), tuples(lines), texts)
decls = st.one_of(
    make(ast.SetDecl, idents(), tuples(exprs, 0, 12), docs),
    make(ast.RelationDecl, idents(), tuples(columns), tuples(flags, 0, 2), docs),
    make(ast.RuleDecl, make(ast.AtomCond, idents(), tuples(exprs)), tuples(conditions), docs),
    make(
        ast.DenyDecl,
        make(ast.AtomCond, idents(), tuples(exprs)),
        texts,
        tuples(conditions),
        docs,
    ),
    make(
        ast.PatternDecl,
        idents(),
        texts,
        tuples(meta("pattern")),
        tuples(binds),
        tuples(conditions),
        tuples(conditions),
        docs,
    ),
    make(
        ast.OpDecl,
        idents(names | qualified),
        tuples(
            st.one_of(
                make(ast.Param, idents(), types),
                make(ast.Param, idents(), types, st.just(True)),
                make(ast.Param, idents(), types, st.just(False), st.just(True)),
            )
        ),
        tuples(results, 1, 2),
        st.none() | idents(),
        tuples(attributes),
        tuples(conditions),
        tuples(idents(), 0, 2),
        docs,
    ),
    make(
        ast.ConstraintDecl,
        idents(),
        idents(),
        tuples(binds),
        tuples(conditions),
        tuples(conditions, 1, 3),
        tuples(meta("constraint")),
        docs,
    ),
    make(
        ast.MonitorDecl,
        idents(),
        idents(),
        texts,
        tuples(st.tuples(conditions, st.none() | texts)),
        tuples(meta("monitor")),
        docs,
    ),
    make(ast.TestDecl, idents(names | qualified), tuples(cases), docs),
)
files = make(ast.RuleFile, st.just("<text>"), tuples(make(ast.Import, texts), 0, 2), tuples(decls))


def comments_of(text: str) -> Counter[str]:
    """The comments, as a person would count them."""
    return Counter(
        re.sub(r"^///?(?!/)", "", comment).strip() for _, comment in parse_text(text).comments
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(files)
def test_what_is_printed_parses_to_the_same_tree(file: ast.RuleFile) -> None:
    text = format_file(file)
    assert parse_text(text) == file
    assert format_text(text) == text


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(tuples(lines, 0, 6))
def test_a_program_is_printed_and_parsed_back(program: tuple[ast.Line, ...]) -> None:
    assert parse_program(format_program(program)) == program


@settings(max_examples=60, deadline=None)
@given(conditions)
def test_any_condition_shows_on_one_line(condition: ast.Condition) -> None:
    text = show(condition)
    assert "\n" not in text
    (decl,) = parse_text(f"p() :- {text} .").decls
    assert isinstance(decl, ast.RuleDecl)
    assert decl.body == (condition,)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(files, st.data())
def test_no_comment_is_lost_wherever_it_stands(file: ast.RuleFile, data: st.DataObject) -> None:
    text = format_file(file)
    tokens = scan(text, "<text>", load_tables())
    rows = text.split("\n")
    count = len(tokens.kinds)
    places = data.draw(st.sets(st.integers(0, count - 1), max_size=6))
    for n in sorted(places, reverse=True):
        row, column = tokens.lines[n] - 1, tokens.columns[n] - 1
        comment = data.draw(st.sampled_from(["// note", "/// looks like documentation", "//// --"]))
        line_end = data.draw(st.sampled_from(["\n", "\n\n\n", "\r\n"]))
        before = data.draw(st.sampled_from(["", " ", "\n", "\n\n"]))
        rows[row] = f"{rows[row][:column]}{before}{comment} {n}{line_end}{rows[row][column:]}"
    commented = "\n".join(rows)
    parsed = parse_text(commented)
    formatted = format_file(parsed, commented)
    assert parse_text(formatted) == parsed
    assert comments_of(formatted) == comments_of(commented)
    assert format_text(formatted) == formatted
