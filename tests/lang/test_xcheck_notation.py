"""XCheck's notation is read and written, and nothing is lost between it and rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.lang import ast
from reprise.lang.diagnostics import RulesError, Severity
from reprise.lang.format import format_file
from reprise.lang.parse import parse_text
from reprise.lang.ruleset import load_text
from reprise.lang.xcheck_notation import (
    Assertions,
    Constraint,
    Definition,
    Entry,
    Notation,
    parse_notation,
    relation_text,
    write_item,
    write_notation,
)
from reprise.lang.xcheck_rules import Exported, Imported, export_rules, import_notation

TABLE_2_GENERATIVE = [
    '("topo-reshape-relu-shape", ["reshape", "relu"], ["reshape-out-shape", "relu-in-shape"], '
    '"%reshape-out-shape EQUAL %relu-in-shape")',
    '("sem-matmul-k-match", ["matmul"], ["input1-height", "input2-width"], '
    '"%input1-height EQUAL %input2-width")',
    '("param-conv-stride-leq-kernel", ["conv"], ["stride-height", "kernel-height"], '
    '"%stride-height LEQ %kernel-height")',
    '("dtype-abs-supported-type-only", ["abs"], ["input-dtype"], '
    '"%input-dtype IN {FXP8, FXP16, FXP32}")',
    '("res-abs-input-size", ["abs"], ["width", "height", "data-bits", "dram-size"], '
    '"%width TIMES %height TIMES %data-bits LEQ %dram-size")',
]
TABLE_2_MONITORS = [
    '"assert" OutputHeightBeforeFusionPass "==" OutputHeightAfterFusionPass',
    '"assert" TensorWidth "%" SystolicArrayM "==" "0"',
    '"assert" TensorSize "<=" DeviceMemory',
    '"assert" TensorWidth "%" TileWidth "==" "0"',
    '"assert" RuntimeState "!=" "ILLEGAL"',
]
SECTION_3_1 = [
    '("topo-reshape-relu", ["reshape", "relu"], ["reshape-out-shape", "relu-in-shape"], '
    '"%reshape-out-shape EQUAL %relu-in-shape")',
    '"assert" TensorWidth "%" TileWidth "==" "0"',
]
SECTION_4_1 = [
    '("input-size-add", ["add"], ["width1", "height1", "data-bits", "dram-size"], '
    '"%width1 TIMES %height1 TIMES %data-bits LEQ %dram-size")',
    '(..., ..., ["type1"], "%type1 IN {FXP8, FXP16, FXP32}")',
    '("input-size-sub", ["sub"], ["width1", "height1", "data-bits", "dram-size"], '
    '"%width1 TIMES %height1 TIMES %data-bits LEQ %dram-size")',
]
FIGURE_3C = [
    'ArraySize -> ArrayHeight "*" ArrayWidth',
    'PaddingFactorConstraint -> "assert" PaddingFactor "%" Bandwidth "==" "0" '
    '"assert" PaddingFactor "%" ArraySize "==" "0"',
    'NewTensorWidthConstraint -> "assert" NewTensorWidth "%" PaddingFactor "==" "0"',
    'NewTensorHeightConstraint -> "assert" NewTensorHeight "%" PaddingFactor "==" "0"',
]
FIGURE_4 = [
    "assert constr % bandwidth == 0",
    "assert constr % sys_dims == 0",
    "assert new_inp_dim % constr == 0",
]
PAPER = {
    "Table 2, generative": TABLE_2_GENERATIVE,
    "Table 2, monitors": TABLE_2_MONITORS,
    "section 3.1": SECTION_3_1,
    "section 4.1": SECTION_4_1,
    "figure 3c": FIGURE_3C,
    "figure 4": FIGURE_4,
}
EVERYTHING = [line for lines in PAPER.values() for line in lines]


def text_of(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def imported(text: str, klass: str | None = None) -> Imported:
    return import_notation(text, "in.xcheck", klass)


def rules_of(text: str) -> str:
    return format_file(imported(text).file)


def exported(rules: str) -> Exported:
    return export_rules(parse_text(rules, "in.rules"))


def only(text: str) -> ast.ConstraintDecl | ast.MonitorDecl:
    (decl,) = imported(text).file.decls
    assert isinstance(decl, ast.ConstraintDecl | ast.MonitorDecl)
    return decl


# --- the paper -------------------------------------------------------------------------------


@pytest.mark.parametrize("place", PAPER)
def test_notation_to_rules_to_notation(place: str) -> None:
    text = text_of(PAPER[place])
    back = exported(rules_of(text))
    assert back.text == text
    assert back.diagnostics == ()


@pytest.mark.parametrize("place", PAPER)
def test_rules_to_notation_to_rules(place: str) -> None:
    rules = rules_of(text_of(PAPER[place]))
    assert rules_of(exported(rules).text) == rules


def test_the_whole_paper_in_one_file() -> None:
    text = text_of(EVERYTHING)
    rules = rules_of(text)
    assert exported(rules).text == text
    assert rules_of(exported(rules).text) == rules


def test_imported_rules_load_without_complaint() -> None:
    rules = load_text(rules_of(text_of(EVERYTHING)))
    assert rules.warnings == ()
    assert len(rules.constraints) == 9
    assert len(rules.monitors) == 12


def test_a_paste_from_the_paper_with_its_quotes_and_line_ends() -> None:
    pasted = """
        (“topo-reshape-relu-shape”, [“reshape”, "relu"],
         ["reshape-out-shape", "relu-in-shape"],
         "%reshape-out-shape EQUAL %relu-in-shape") “assert” TensorSize “<=” DeviceMemory
        (…, …, ["type1"], "%type1 IN {FXP8, FXP16, FXP32}"),
    """
    lines = [TABLE_2_GENERATIVE[0], TABLE_2_MONITORS[2], SECTION_4_1[1]]
    assert write_notation(parse_notation(pasted, "p")) == text_of(lines)


CLASSES = [
    *zip(
        TABLE_2_GENERATIVE,
        ["topology", "algebraic", "parameter_bound", "data_representation", "resource"],
        strict=True,
    ),
    *zip(
        TABLE_2_MONITORS,
        [
            "semantic_preservation",
            "hardware_feasibility",
            "resource_safety",
            "transformation_correctness",
            "execution_safety",
        ],
        strict=True,
    ),
    *zip(SECTION_4_1, ["resource", "data_representation", "resource"], strict=True),
]


@pytest.mark.parametrize(("text", "klass"), CLASSES)
def test_classes_are_those_of_table_2(text: str, klass: str) -> None:
    assert only(text).klass.text == klass


def test_the_class_can_be_overridden() -> None:
    (decl,) = imported(TABLE_2_GENERATIVE[0], "resource").file.decls
    assert isinstance(decl, ast.ConstraintDecl)
    assert decl.klass.text == "resource"
    assert only("#: class=topology name=mine\n" + TABLE_2_GENERATIVE[4]).name.text == "mine"


# --- what names mean -------------------------------------------------------------------------


def test_arguments_become_expressions_over_the_graph() -> None:
    rules = rules_of(text_of(TABLE_2_GENERATIVE))
    for expected in (
        "n1.shape == x2_1.shape",
        "x1.dim[-1] == x2.dim[-2]",
        "n.strides[0] <= x2.dim[-2]",
        'x1.dtype in {"FXP8", "FXP16", "FXP32"}',
        "x1.dim[-1] * x1.dim[-2] * bits(x1.dtype) <= device(dram_bits)",
    ):
        assert expected in rules


def test_a_dtype_that_the_language_has_is_that_dtype() -> None:
    assert "x1.dtype in {float32, int8}" in rules_of(
        '("dtype-a", ["abs"], ["type"], "%type IN {FLOAT32, int8}")'
    )


def test_an_unknown_argument_is_kept_with_a_warning() -> None:
    text = '("c", ["abs"], ["moon-phase"], "%moon-phase LT 3")\n'
    result = imported(text)
    assert [d.code for d in result.warnings] == ["xcheck-unknown-name"]
    assert str(result.warnings[0].span) == "in.xcheck:1:33"
    rules = format_file(result.file)
    assert 'param("moon-phase") < 3' in rules
    assert exported(rules).text == text


def test_a_local_variable_of_the_compiler_is_kept_with_a_warning() -> None:
    result = imported("assert constr % bandwidth == 0\n")
    assert [d.severity for d in result.warnings] == [Severity.WARNING] * 2
    assert "value(constr) % value(bandwidth) == 0" in format_file(result.file)


def test_definitions_are_put_in() -> None:
    rules = rules_of(text_of(FIGURE_3C))
    assert "padding(factor) % (device(array_m) * device(array_n)) == 0" in rules


# --- export ----------------------------------------------------------------------------------


def test_an_edited_declaration_is_written_anew() -> None:
    rules = rules_of(TABLE_2_GENERATIVE[4]).replace("<= device", "< device")
    result = exported(rules)
    assert [d.code for d in result.diagnostics] == ["xcheck-edited"]
    assert result.text == (
        '("res-abs-input-size", ["abs"], ["width", "height", "data-bits", "dram-size"], '
        '"%width TIMES %height TIMES %data-bits LT %dram-size")\n'
    )


BY_HAND = """
/// K must agree.
constraint k_agrees : algebraic on { m = matmul(a, b) } require a.dim[-1] == b.dim[-2]
constraint fits : resource on { q = abs(x) }
    require x.numel * bits(x.dtype) <= device(dram_bits) and x.rank >= 1
constraint window : parameter_bound on { c = conv2d(_, w, strides=_, ...) }
    require w.dim[2] >= 1
monitor aligned : execution_safety on pass "layout" {
    assert tensor(width) % device(array_m) == 0
    assert before(size) == after(size)
}
"""


def test_declarations_written_by_hand_come_back_the_same() -> None:
    first = exported(BY_HAND)
    assert [d.code for d in first.diagnostics] == ["xcheck-no-form"]
    assert first.text == (
        "# K must agree.\n"
        '("k-agrees", ["matmul"], ["input1-height", "input2-width"], '
        '"%input1-height EQUAL %input2-width")\n'
        '("fits", ["abs"], ["size", "data-bits", "dram-size", "rank"], '
        '"%size TIMES %data-bits LEQ %dram-size AND %rank GEQ 1")\n'
        "#: class=execution_safety pass=layout\n"
        'Aligned -> "assert" TensorWidth "%" SystolicArrayM "==" "0" '
        '"assert" SizeBeforeLayoutPass "==" SizeAfterLayoutPass\n'
    )
    again = exported(rules_of(first.text))
    assert again.text == first.text
    assert again.diagnostics == ()


NO_FORM = [
    "constraint c : topology on { a = abs(x) where x.rank > 1 } require x.rank < 5",
    "constraint c : topology on { a = abs(x) } require exists { b = exp(a) }",
    "constraint c : topology on { a = abs(x)  b = exp(x) } require a.rank == b.rank",
    "constraint c : topology on { a = abs|exp(x) } require a.rank == 1",
    "constraint c : topology on { a = concat(x, y, axis=1) } require x.rank == 1",
    "constraint c : topology on { a = abs(x) } require constant(x)",
    'monitor m : execution_safety on pass "a b" { assert tensor(x) == 1 }',
]


@pytest.mark.parametrize("rules", NO_FORM)
def test_what_the_notation_cannot_say_is_an_error_and_not_lost(rules: str) -> None:
    result = exported(rules)
    assert result.text == ""
    assert [d.code for d in result.diagnostics] == ["xcheck-no-form"]
    assert result.diagnostics[0].span.line == 1


def test_other_declarations_are_left_out_with_a_warning() -> None:
    result = exported("set s = {relu}\n" + rules_of(TABLE_2_GENERATIVE[1]))
    assert result.text == TABLE_2_GENERATIVE[1] + "\n"
    assert [d.code for d in result.diagnostics] == ["xcheck-left-out"]


def test_comments_are_kept() -> None:
    text = f"# don't forget\n# two lines\n{TABLE_2_GENERATIVE[1]}\n# the end\n"
    assert exported(rules_of(text)).text == text


# --- mistakes --------------------------------------------------------------------------------

BROKEN = {
    '("a" ["abs"], ["x"], "%x LT 1")': (1, 6, "expected `,` after the identifier"),
    '("a", ["abs"], ["width"], "%widht LT 1")': (1, 28, "not among the arguments"),
    '("a", ["abs"], ["x"], "%x LESSER 1")': (1, 27, "expected a comparison"),
    '("a", ["abs"], ["x"], "%x IN {}")': (1, 30, "empty set"),
    '("a", ["abs"], ["x"], "%x LT (1")': (1, 32, "expected `)`"),
    '("a", ["abs"], ["x"], "")': (1, 23, "the relation is empty"),
    '("a", ["abs", ["x"], "%x LT 1")': (1, 15, "expected an operator in quotes"),
    '("a", ["abs"], ["x], "%x LT 1")': (1, 23, "expected `,` or `]`"),
    '"assert" A "==" ': (1, 17, "expected a name or a value"),
    '"assert" A': (1, 11, "expected a comparison"),
    "Name ->": (1, 8, "expected a name or a value"),
    "hello": (1, 1, "expected a constraint or an assertion"),
    "#: colour=red\nassert a == 1": (1, 1, "is no directive"),
    '("x", [], [], "1 LT 2"), ("x", [], [], "1 LT 2")': (1, 27, "stands twice"),
    "é": (1, 1, "expected a constraint or an assertion"),
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_mistake_is_shown_where_it_is(text: str) -> None:
    with pytest.raises(RulesError) as caught:
        parse_notation(text, "f")
    first = caught.value.diagnostics[0]
    line, column, message = BROKEN[text]
    assert (first.span.line, first.span.column) == (line, column), first
    assert message in first.message


def test_every_broken_entry_is_reported_at_once() -> None:
    text = f'("a", ["abs"])\n{TABLE_2_GENERATIVE[0]}\n"assert" ==\n("b", 3)\n'
    with pytest.raises(RulesError) as caught:
        parse_notation(text, "f")
    assert [d.span.line for d in caught.value.diagnostics] == [1, 3, 4]


@pytest.mark.slow
def test_hostile_input_ends_in_a_diagnostic() -> None:
    deep = "(" * 100_000 + "1"
    for text in (
        f'("a", ["abs"], ["x"], "{deep}")',
        f"assert {deep} == 1",
        'assert "(" ' * 5_000,
        '("a", ["abs"], ["x"], "%x' + " PLUS %x" * 100_000 + ' LT 1")',
        "[" * 100_000,
    ):
        with pytest.raises(RulesError):
            parse_notation(text, "f")


@pytest.mark.slow
def test_a_megabyte_is_read_in_seconds() -> None:
    lines = [f'("c{i}", ["abs"], ["width"], "%width LT {i}")' for i in range(25_000)]
    assert len(parse_notation("\n".join(lines), "f").entries) == 25_000


# --- random notation -------------------------------------------------------------------------

words = st.from_regex(r"[a-z]{1,6}(-[a-z0-9]{1,4}){0,2}", fullmatch=True)
numbers = st.one_of(
    st.integers(0, 10**12),
    st.floats(0, 1e12, allow_nan=False).map(abs),
).map(ast.Number)


def negated(expr: ast.Expr) -> ast.Expr:
    return expr if isinstance(expr, ast.Number) else ast.Negate(expr)


def expressions(leaves: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(ast.Binary, st.sampled_from("+-*/%"), inner, inner),
            inner.map(negated),
        ),
        max_leaves=6,
    )


def conditions(leaves: st.SearchStrategy[ast.Expr], sets: bool) -> st.SearchStrategy[ast.Condition]:
    terms = expressions(leaves)
    operators = st.sampled_from(["==", "!=", "<=", ">=", "<", ">"])
    atoms = st.lists(terms, min_size=2, max_size=3).flatmap(
        lambda operands: st.builds(
            ast.Comparison,
            st.just(tuple(operands)),
            st.tuples(*[operators] * (len(operands) - 1)),
        )
    )
    if sets:
        members = st.lists(leaves, min_size=1, max_size=3).map(lambda i: ast.SetDomain(tuple(i)))
        atoms = st.one_of(atoms, st.builds(ast.Membership, terms, members, st.booleans()))
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.builds(ast.Not, inner),
            st.builds(ast.And, st.lists(inner, min_size=2, max_size=3).map(tuple)),
            st.builds(ast.Or, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        ),
        max_leaves=4,
    )


@st.composite
def constraints(draw: st.DrawFn) -> Constraint:
    known = ["width", "input2-height", "output-shape", "data-bits", "dram-size", "axis"]
    known += ["add-in-shape", "abs-in2-width", "conv-out-rank", "stride-height", "device-x"]
    arguments = draw(st.lists(st.sampled_from(known) | words, min_size=1, max_size=4, unique=True))
    leaves = st.one_of(
        st.sampled_from(arguments).map(lambda a: ast.Name(f"%{a}")),
        numbers,
        st.sampled_from(["FXP8", "int8", "float32"]).map(ast.Name),
    )
    condition = draw(conditions(leaves, sets=True))
    operators = draw(
        st.none() | st.lists(st.sampled_from(["abs", "conv", "add"]), max_size=3).map(tuple)
    )
    identifier = draw(st.none() | words)
    text = relation_text(condition)
    return Constraint(identifier, operators, tuple(arguments), text, condition)


@st.composite
def assertions(draw: st.DrawFn) -> Assertions:
    quoted = draw(st.booleans())
    leaves = st.one_of(
        st.sampled_from(["TensorWidth", "TileWidth", "constr", "a.b", "X"]).map(ast.Name),
        numbers,
        st.sampled_from(["ILLEGAL", "a b"]).map(ast.String),
    )
    count = draw(st.integers(1, 3))
    made = [draw(conditions(leaves, sets=False)) for _ in range(count)]
    label = draw(st.sampled_from(["Alpha", "BetaConstraint"])) if count > 1 else None
    return Assertions(label, tuple(made), quoted)


@st.composite
def notations(draw: st.DrawFn) -> Notation:
    items = draw(st.lists(st.one_of(constraints(), assertions()), min_size=1, max_size=4))
    entries, seen = [], set()
    for item in items:
        if isinstance(item, Constraint) and item.identifier is not None:
            if item.identifier in seen:
                continue
            seen.add(item.identifier)
        comments = draw(st.lists(st.sampled_from(["a note", "it's so", "100 %"]), max_size=2))
        entries.append(Entry(item, tuple(comments)))
    return Notation(tuple(entries))


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(notations())
def test_what_is_written_is_read_back(notation: Notation) -> None:
    text = write_notation(notation)
    read = parse_notation(text, "f")
    assert read.entries == notation.entries
    assert write_notation(read) == text


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(notations())
def test_random_notation_survives_the_way_through_rules(notation: Notation) -> None:
    text = write_notation(notation)
    rules = rules_of(text)
    back = exported(rules)
    assert [d for d in back.diagnostics if d.severity is Severity.ERROR] == []
    assert back.text == text
    assert rules_of(back.text) == rules


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='()[],"%.assert->ABx01=<>*{}# \n“…', max_size=60))
def test_any_text_is_read_or_refused_with_places(text: str) -> None:
    try:
        notation = parse_notation(text, "f")
    except RulesError as error:
        assert all(d.span.line >= 1 and d.span.column >= 1 for d in error.diagnostics)
    else:
        assert write_notation(parse_notation(write_notation(notation), "f")) == write_notation(
            notation
        )


def test_a_definition_prints_in_its_style() -> None:
    entries = parse_notation('A -> B "*" C\nD -> B * C\n', "f").entries
    assert [write_item(e.item) for e in entries] == ['A -> B "*" C', "D -> B * C"]
    assert all(isinstance(e.item, Definition) for e in entries)


def test_the_table_ships() -> None:
    assert (Path(__file__).parents[2] / "extractors" / "xcheck" / "names.toml").is_file()
