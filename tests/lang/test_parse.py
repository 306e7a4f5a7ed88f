"""The surface syntax, construct by construct, as the tree that it makes."""

from __future__ import annotations

import math

import pytest

from reprise.lang import ast
from reprise.lang.diagnostics import RulesError
from reprise.lang.format import show
from reprise.lang.parse import parse_program, parse_text


def only(text: str) -> ast.Decl:
    (decl,) = parse_text(text).decls
    return decl


def conditions(text: str) -> tuple[ast.Condition, ...]:
    decl = only(f"p() :- {text} .")
    assert isinstance(decl, ast.RuleDecl)
    return decl.body


def condition(text: str) -> ast.Condition:
    (one,) = conditions(text)
    return one


def expr(text: str) -> ast.Expr:
    decl = only(f"set s = {{{text}}}")
    assert isinstance(decl, ast.SetDecl)
    (item,) = decl.items
    return item


def pattern(body: str) -> ast.PatternDecl:
    decl = only(f'pattern p "title" {{ {body} }}')
    assert isinstance(decl, ast.PatternDecl)
    return decl


def call(text: str) -> ast.Call:
    (line,) = pattern(f"s = {text}").lines
    (one,) = line.calls
    return one


def name(text: str) -> ast.Ident:
    return ast.Ident(text)


X, Y = ast.Name("x"), ast.Name("y")
A, B = ast.Variable("A"), ast.Variable("B")


# --- names, numbers, strings -----------------------------------------------------------------


def test_uppercase_is_a_variable_and_lowercase_a_name() -> None:
    assert expr("Axis") == ast.Variable("Axis")
    assert expr("axis") == ast.Name("axis")
    assert expr("transA") == ast.Name("transA")
    assert expr("_") == ast.Wildcard()


@pytest.mark.parametrize("text", ["onnx.LayerNormalization", "com.microsoft.FusedConv", "a.B"])
def test_a_dotted_name_with_a_capital_last_part_is_one_name(text: str) -> None:
    assert expr(text) == ast.Name(text)
    assert call(f"{text}(x)").ops == (name(text),)
    assert condition(f"x.op == {text}") == ast.Comparison(
        (ast.Member(X, name("op")), ast.Name(text)), ("==",)
    )


def test_a_dotted_lowercase_name_is_member_access() -> None:
    assert expr("x.rank") == ast.Member(X, name("rank"))
    assert expr("x.dim[-1]") == ast.Index(ast.Member(X, name("dim")), ast.Number(-1))
    assert expr("x.dim[A].y") == ast.Member(ast.Index(ast.Member(X, name("dim")), A), name("y"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("10_000", 10_000),
        ("-3", -3),
        ("- 3", -3),
        ("--3", 3),
        ("(-3)", -3),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        ("1.5e-3", 0.0015),
        ("-0.0", -0.0),
        ("inf", math.inf),
        ("-inf", -math.inf),
    ],
)
def test_numbers(text: str, value: float) -> None:
    number = expr(text)
    assert isinstance(number, ast.Number)
    assert (number.value, type(number.value)) == (value, type(value))
    assert math.copysign(1, number.value) == math.copysign(1, value)


def test_nan_is_equal_to_itself_in_a_tree() -> None:
    assert expr("nan") == expr("nan")


def test_strings_have_escapes() -> None:
    assert expr(r'"a\"b\\\n\t\x41\u00e9"') == ast.String('a"b\\\n\tAé')
    assert expr('"日本 // no comment"') == ast.String("日本 // no comment")


def test_lists_and_booleans() -> None:
    assert expr("[1, [], true]") == ast.ListExpr(
        (ast.Number(1), ast.ListExpr(()), ast.Boolean(True))
    )
    assert expr("false") == ast.Boolean(False)


# --- expressions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("A + B * C", "A + (B * C)"),
        ("A - B - C", "(A - B) - C"),
        ("A / B * C % D", "((A / B) * C) % D"),
        ("-A * B", "(-A) * B"),
        ("-x.rank + 1", "(-(x.rank)) + 1"),
        ("2 - -3", "2 - (-3)"),
        ("f(A, B)[0].rank", "((f(A, B))[0]).rank"),
    ],
)
def test_precedence_of_arithmetic(text: str, grouped: str) -> None:
    assert expr(text) == expr(grouped)


def test_aggregates() -> None:
    edge = ast.AtomCond(name("edge"), (A, B))
    assert expr("count{ B : edge(A, B) }") == ast.AggregateExpr("count", B, (edge,))
    assert expr("count{ edge(A, B) }") == ast.AggregateExpr("count", None, (edge,))
    assert expr("sum{ A * 2 : edge(A, B), A > B }") == ast.AggregateExpr(
        "sum",
        ast.Binary("*", A, ast.Number(2)),
        (edge, ast.Comparison((A, B), (">",))),
    )


# --- conditions ------------------------------------------------------------------------------


def test_commas_join_at_the_top_level() -> None:
    assert len(conditions("q(X), r(X) or s(X), not t(X)")) == 3


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("a() or b() and c()", "a() or (b() and c())"),
        ("not a() and b()", "(not a()) and b()"),
        ("not A == B", "not (A == B)"),
        ("not x in floats", "not (x in floats)"),
        ("(A + 1) * 2 == B and (A == B)", "((A + 1) * 2) == B and (A == B)"),
    ],
)
def test_precedence_of_connectives(text: str, grouped: str) -> None:
    assert condition(text) == condition(grouped)


def test_parentheses_hold_conditions_and_values_alike() -> None:
    both = condition("((A) == (B + 1)) or ((A in {1, 2}))")
    assert show(both) == "A == B + 1 or A in {1, 2}"
    deep = condition("((((A == B or a()))) and b())")
    assert show(deep) == "(A == B or a()) and b()"


def test_comparisons_chain() -> None:
    assert condition("0 <= A < B != 3") == ast.Comparison(
        (ast.Number(0), A, B, ast.Number(3)), ("<=", "<", "!=")
    )


def test_membership() -> None:
    assert condition("A in {1, x}") == ast.Membership(A, ast.SetDomain((ast.Number(1), X)))
    assert condition("A not in floats") == ast.Membership(
        A, ast.NamedDomain(name("floats")), negated=True
    )
    assert condition("A in 0..x.rank - 1") == ast.Membership(
        A,
        ast.RangeDomain(ast.Number(0), ast.Binary("-", ast.Member(X, name("rank")), ast.Number(1))),
    )
    assert condition("A not\n  // why\n in {}") == condition("A not in {}")


def test_context() -> None:
    domain = ast.SetDomain((ast.Name("pad"),))
    assert condition("upstream[1..3](x) in {pad}") == ast.Context(
        "upstream", (1, 3), name("x"), domain
    )
    assert condition("not user(x) in {pad}") == ast.Not(
        ast.Context("user", None, name("x"), domain)
    )
    assert condition("user(x) not in {pad}") == condition("not user(x) in {pad}")


def test_a_relation_may_be_called_like_a_context_word() -> None:
    assert condition("user(A, B)") == ast.AtomCond(name("user"), (A, B))


def test_exists_holds_lines_and_conditions() -> None:
    both = condition("exists { c = cast(t) where c.rank == 1, q(c) }")
    assert isinstance(both, ast.Exists)
    assert (len(both.lines), len(both.conditions)) == (1, 2)
    assert condition("exists { c = cast(t), c.rank == 1; q(c) }") == both
    assert condition("exists { c = cast(t) c.rank == 1, q(c) }") == both
    assert condition("exists { c.rank == 1, q(c), c = cast(t) }") == both


def test_a_line_of_exists_may_have_several_results() -> None:
    found = condition("exists { r = relu(x); v, i = topk(r) where q(v) }")
    assert isinstance(found, ast.Exists)
    assert [len(line.names) for line in found.lines] == [1, 2]
    assert len(found.conditions) == 1


def test_keywords_are_names_where_no_keyword_can_stand() -> None:
    text = """
        where = where(set, in)
        graph = sum(count)
        s = op|pattern{test, monitor}
        where max(A, B) == count, min in {sum, max}
    """
    parsed = pattern(text)
    assert [line.names[0].text for line in parsed.lines] == ["where", "graph", "s"]
    assert len(parsed.where) == 2
    assert isinstance(only("output(X) :- set(X), op(X, relu)."), ast.RuleDecl)
    assert isinstance(only("test(X) :- exists(X), const(X)."), ast.RuleDecl)


# --- SSA lines -------------------------------------------------------------------------------


def test_operands() -> None:
    operands = call("f(x, x[1], _, _?, none, g(y), ...)").operands
    assert operands == (
        ast.TensorRef(name("x")),
        ast.TensorRef(name("x"), 1),
        ast.AnyOperand(),
        ast.AnyOperand(optional=True),
        ast.AbsentOperand(),
        ast.Call((name("g"),), (ast.TensorRef(name("y")),), ()),
        ast.RestOperands(),
    )


def test_via() -> None:
    (bounded,) = call("f(via[0..2] casts(x))").operands
    assert bounded == ast.Via(ast.NamedDomain(name("casts")), (0, 2), ast.TensorRef(name("x")))
    (free,) = call("f(via {identity, cast}(g(x)))").operands
    assert isinstance(free, ast.Via)
    assert free.path is None
    assert isinstance(free.operand, ast.Call)


def test_attributes() -> None:
    values = {
        "A": A,
        "1": ast.Number(1),
        "[1, 0]": ast.ListExpr((ast.Number(1), ast.Number(0))),
        "in 0..1": ast.RangeDomain(ast.Number(0), ast.Number(1)),
        "in {linear, cubic}": ast.SetDomain((ast.Name("linear"), ast.Name("cubic"))),
        "in modes": ast.NamedDomain(name("modes")),
        "absent": ast.Name("absent"),
        "x.rank - 1": ast.Binary("-", ast.Member(X, name("rank")), ast.Number(1)),
        '"q"': ast.String("q"),
    }
    for text, value in values.items():
        assert call(f"f(x, axis={text})").attributes == (ast.AttributeArg(name("axis"), value),)


def test_alternatives_and_unordered_operands() -> None:
    (line,) = pattern("g = gemm(a, b, ...) or add{matmul(a, b), c}").lines
    assert [one.unordered for one in line.calls] == [False, True]
    assert call("relu|onnx.Sigmoid|tanh(c)").ops == tuple(
        map(name, ["relu", "onnx.Sigmoid", "tanh"])
    )


def test_lines_need_no_separator() -> None:
    joined = pattern("v = elu(_)   e = exp(v); s = add{v, e}\n v, i = topk(s)")
    assert [len(line.names) for line in joined.lines] == [1, 1, 1, 2]


def test_the_parts_of_a_pattern() -> None:
    parsed = pattern(
        'bug: "a#1" target: inductor; since: 2.13 opset: 17 bug: "b#2" s = f(x)'
        " where A == 1, B == 2 graph constant(x) where q(s)"
    )
    assert [(entry.key.text, entry.value) for entry in parsed.meta] == [
        ("bug", "a#1"),
        ("target", "inductor"),
        ("since", "2.13"),
        ("opset", "17"),
        ("bug", "b#2"),
    ]
    assert (len(parsed.lines), len(parsed.where), len(parsed.graph)) == (1, 3, 1)


# --- other declarations ----------------------------------------------------------------------


def test_relations() -> None:
    decl = only("relation edge(src: node, dst: node key) @entity @older(src, dst)")
    assert decl == ast.RelationDecl(
        name("edge"),
        (
            ast.ColumnDecl(name("src"), name("node")),
            ast.ColumnDecl(name("dst"), name("node"), key=True),
        ),
        (ast.Flag(name("entity")), ast.Flag(name("older"), (name("src"), name("dst")))),
    )


def test_facts_rules_and_deny_rules() -> None:
    assert only("p(1, x).") == ast.RuleDecl(ast.AtomCond(name("p"), (ast.Number(1), X)), ())
    deny = only('deny p(A) "index {A}" :- q(A), A in 1..3.')
    assert isinstance(deny, ast.DenyDecl)
    assert (deny.message, len(deny.body)) == ("index {A}", 2)


def test_operators() -> None:
    decl = only(
        """op conv(x: T[N, C / G, *D], b?: T[K], xs...: T[*drop(D, A)]) -> T[N, ?], i: int64[...] {
            category convolution
            attr stride as St: int in 1..3 = 1   attr mode: sym in {"a", "b"}
            flag commutative, random
            where T in floats
            where N > 1
        }"""
    )
    assert isinstance(decl, ast.OpDecl)
    assert [(p.name.text, p.optional, p.variadic) for p in decl.params] == [
        ("x", False, False),
        ("b", True, False),
        ("xs", False, True),
    ]
    assert decl.params[2].type.shape == (
        ast.Splat(ast.CallExpr(name("drop"), (ast.Variable("D"), A))),
    )
    (_, first), (second_name, second) = decl.results
    assert first.shape == (ast.Variable("N"), ast.Wildcard())
    assert second_name == name("i")
    assert second.shape is None
    assert decl.category == name("convolution")
    assert decl.attributes[0] == ast.AttrDecl(
        name("stride"),
        "St",
        name("int"),
        ast.RangeDomain(ast.Number(1), ast.Number(3)),
        ast.Number(1),
    )
    assert decl.attributes[1].default is None
    assert decl.flags == (name("commutative"), name("random"))
    assert len(decl.where) == 2


def test_an_operator_needs_no_body() -> None:
    decls = parse_text("op f(x: T[*D]) -> T[*D]\np(X) :- q(X).").decls
    assert [type(decl) for decl in decls] == [ast.OpDecl, ast.RuleDecl]


def test_constraints_and_monitors() -> None:
    constraint = only("constraint c : resource on { a = abs(x) where A > 1 } require A < 2, B < 3;")
    assert isinstance(constraint, ast.ConstraintDecl)
    assert (len(constraint.lines), len(constraint.where), len(constraint.require)) == (1, 1, 2)
    monitor = only('monitor m : k on pass padding { assert A % 2 == 0 "even"; assert a() or b() }')
    assert isinstance(monitor, ast.MonitorDecl)
    assert monitor.pass_name == "padding"
    assert [message for _, message in monitor.asserts] == ["even", None]


def test_tests_hold_programs() -> None:
    decl = only('test onnx.Foo { match { x: float32[2] } todo_no_match "later" { } }')
    assert isinstance(decl, ast.TestDecl)
    assert [(case.kind, case.title) for case in decl.cases] == [
        ("match", ""),
        ("todo_no_match", "later"),
    ]


def test_programs() -> None:
    lines = parse_program(
        """
        x: float32[4, N]; const w: float32[4] = 0.0  const p: int64[2] = [1, 0]
        u: float32[...]
        y: float32[?, 3] = onnx.Foo(x, w)
        v: float32[3], i = topk(x)
        output y, v
        opset("", 17) env(isa, avx512)
        """
    )
    kinds = [type(line).__name__ for line in lines]
    assert kinds == ["InputLine"] * 4 + ["Bind"] * 2 + ["OutputLine"] * 2 + ["Given"] * 2
    typed = lines[5]
    assert isinstance(typed, ast.Bind)
    assert typed.types[0] is not None
    assert typed.types[1] is None
    assert parse_program("") == ()


# --- documentation, comments, places ---------------------------------------------------------


def test_documentation_belongs_to_the_next_declaration() -> None:
    file = parse_text(
        "/// One.\n///   Two.\n// aside\nset s = {}  /// not this\n\n/// Three\np(1)."
    )
    assert [decl.doc for decl in file.decls] == [("One.", "  Two."), ("Three",)]
    assert [text for _, text in file.comments] == ["// aside", "/// not this"]


def test_nodes_know_their_places() -> None:
    file = parse_text('\ufeff// c\r\n\tp(X) :-\r\n  q("é", x.dim[1]).\r\n', "f.rules")
    (rule,) = file.decls
    assert str(rule.span) == "f.rules:2:2"
    assert (rule.span.end_line, rule.span.end_column) == (3, 20)
    assert isinstance(rule, ast.RuleDecl)
    (atom,) = rule.body
    assert isinstance(atom, ast.AtomCond)
    assert [(arg.span.column, arg.span.end_column) for arg in atom.args] == [(5, 8), (10, 18)]


def test_spans_do_not_matter_for_equality() -> None:
    assert parse_text("p(X):-q(X).", "f") == parse_text("p(X)\n  :- q(X) . // c", "f")


def test_all_errors_of_a_file_are_reported_at_once() -> None:
    with pytest.raises(RulesError) as error:
        parse_text("set a = {b c}\np(X) :- X.\nset d = e\nq(Y) :- r(Y)")
    assert [d.span.line for d in error.value.diagnostics] == [1, 2, 3, 4]


def test_imports_may_stand_anywhere() -> None:
    file = parse_text('import "a.rules"\nset s = {}\nimport "b.rules";')
    assert [one.path for one in file.imports] == ["a.rules", "b.rules"]
