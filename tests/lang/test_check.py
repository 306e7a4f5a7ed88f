"""What the checker refuses, and where it points: one small file for each kind of mistake."""

import pytest

from reprise.lang.diagnostics import Diagnostic, RulesError, Severity
from reprise.lang.ruleset import load_text


def problems(text: str) -> list[Diagnostic]:
    try:
        return list(load_text(text, "t.rules").warnings)
    except RulesError as error:
        return error.diagnostics


def pattern(lines: str) -> str:
    return "pattern p {\n" + lines + "\n}\n"


MISTAKES = {
    "unknown operator": (pattern("    s = sofmax(x)"), "unknown-operator", 2, "`softmax`"),
    "unknown set as operator": (pattern("    s = no_such_set(x)"), "unknown-operator", 2, None),
    "unknown relation": (
        pattern("    s = abs(x)\n    where constnt(x)"),
        "unknown-relation",
        3,
        "`constant`",
    ),
    "unknown attribute": (pattern("    s = softmax(x, axes=1)"), "unknown-attribute", 2, "`axis`"),
    "unknown field": (
        pattern("    s = abs(x)\n    where x.rnk == 2"),
        "unknown-field",
        3,
        "`rank`",
    ),
    "unknown dtype": (
        pattern("    s = abs(x)\n    where x.dtype == flaot32"),
        "unknown-name",
        3,
        "`float32`",
    ),
    "unknown name": (pattern("    s = abs(x)\n    where y.rank == 2"), "unknown-name", 3, None),
    "unknown set": (
        pattern("    s = abs(x)\n    where x.dtype in flots"),
        "unknown-set",
        3,
        "`floats`",
    ),
    "unknown function": (
        pattern("    s = abs(x)\n    where fanot(s) == 1"),
        "unknown-function",
        3,
        "`fanout`",
    ),
    "unknown flag": ("relation r(a: node) @entiti\n", "unknown-flag", 1, "`entity`"),
    "unknown column": ("relation r(a: node) @entity @older(b)\n", "unknown-column", 1, None),
    "unknown subject": (
        "test nothing { match { x: float32[1]; a = abs(x) } }\n",
        "unknown-subject",
        1,
        None,
    ),
    "missing import": ('import "std/flwo.rules"\n', "missing-import", 1, "std/flow.rules"),
    "too many operands": (pattern("    s = abs(x, y)"), "wrong-arity", 2, None),
    "too few operands": (pattern("    s = matmul(x)"), "wrong-arity", 2, "..."),
    "relation arity": (pattern("    s = abs(x)\n    where constant(x, x)"), "wrong-arity", 3, None),
    "dtype against number": (
        pattern("    s = abs(x)\n    where x.dtype == 3"),
        "type-mismatch",
        3,
        None,
    ),
    "order on symbols": (
        pattern("    s = abs(x)\n    where x.dtype < float32"),
        "type-mismatch",
        3,
        None,
    ),
    "arithmetic on a dtype": (
        pattern("    s = abs(x)\n    where x.dtype + 1 == 2"),
        "type-mismatch",
        3,
        None,
    ),
    "number where a node is wanted": (
        "r(N) :- node(N, _), input(N, 0, T), output(T, 0, _).\n",
        None,
        1,
        None,
    ),
    "defined twice": (pattern("    s = abs(x)\n    s = neg(x)"), "defined-twice", 3, None),
    "cyclic pattern": (pattern("    a = add(b, x)\n    b = add(a, y)"), "cyclic-pattern", 2, None),
    "declared twice": (pattern("    s = abs(x)") * 2, "shadowed", 4, None),
    "set hides a dtype": ("set float32 = {abs}\n", "shadowed", 1, None),
    "category hides an operator": (
        "op foo(x: T[*D]) -> T[*D] {\n    category abs\n}\n",
        "shadowed",
        2,
        None,
    ),
    "cyclic set": ("set a = {b}\nset b = {a}\n", "cyclic-set", 1, None),
    "misspelt set member": ("set floaty = {float16, flaot32}\n", "unknown-name", 1, "`float32`"),
    "empty range": (pattern("    s = abs(x)\n    where x.rank in 4..2"), "empty-range", 3, None),
    "contradiction": (
        pattern("    s = abs(x)\n    where x.rank == 2, x.rank == 3"),
        "never-matches",
        3,
        None,
    ),
    "impossible interval": (
        pattern("    s = abs(x)\n    where x.dim[0] > 5, x.dim[0] < 3"),
        "never-matches",
        3,
        None,
    ),
    "negative extent": (
        pattern("    s = abs(x)\n    where x.dim[0] < 0"),
        "never-matches",
        3,
        None,
    ),
    "axis beyond the rank": (
        pattern("    s = abs(x)\n    where x.rank == 2, x.dim[3] == 1"),
        "never-matches",
        3,
        None,
    ),
    "two dtypes": (
        pattern("    s = abs(x)\n    where x.dtype == int8, x.dtype in floats"),
        "never-matches",
        3,
        None,
    ),
    "unsafe head": (
        "r(N, X) :- node(N, _).\nrelation r(n: node, x: int)\n",
        "unsafe-variable",
        1,
        None,
    ),
    "unsafe comparison": (pattern("    s = abs(x)\n    where A > 3"), "unsafe-variable", 3, None),
    "unsafe negation": (
        "relation r(n: node)\nr(N) :- node(N, _), not input(N, 0, T).\n",
        None,
        2,
        "_",
    ),
    "negation cycle": (
        "relation a(n: node)\nrelation b(n: node)\n"
        "a(N) :- node(N, _), not b(N).\nb(N) :- node(N, _), not a(N).\n",
        "not-stratified",
        3,
        None,
    ),
    "aggregate cycle": (
        "relation a(n: node, c: int)\na(N, C) :- node(N, _), C == count{ M : a(M, N) }.\n",
        None,
        2,
        None,
    ),
    "untyped relation": ("r(X) :- X == Y, r(Y).\n", None, 1, None),
    "wildcard compared": (
        pattern("    s = abs(x)\n    where x.rank == _"),
        "wildcard-compared",
        3,
        None,
    ),
    "rest in the middle": (pattern("    s = concat(..., x)"), "misplaced-rest", 2, None),
    "path upside down": (
        pattern("    s = abs(x)\n    graph upstream[3..1](x) in {pad}"),
        "empty-range",
        3,
        None,
    ),
    "too many alternatives": (
        pattern(
            "    s = add{add{add{add{a, b}, add{c, d}}, add{e, f}}, add{add{g, h}, add{i, j}}}"
        ),
        "too-many-alternatives",
        1,
        None,
    ),
    "typed line in a pattern": (pattern("    s: float32[2] = abs(x)"), None, 2, None),
    "field without a position": (
        pattern("    s = abs(x)\n    where x.dim == 2"),
        "missing-index",
        3,
        None,
    ),
    "attribute out of its domain": (pattern("    s = conv2d(x, w, groups=0)"), None, 2, None),
    "message about a variable without a value": (
        'deny d(N) "{N} has {Ops}" :- node(N, Op).\n',
        "unknown-variable",
        1,
        "`{Ops}`",
    ),
    "relation of the library": ("relation node(n: node)\n", "shadowed", 1, "std/graph.rules"),
    "pattern named as a relation of the library": (
        "pattern arity { a = abs(x) }\n",
        "shadowed",
        1,
        "std/graph.rules",
    ),
    "unsatisfiable chain": (
        pattern("    s = abs(x)\n    where 5 <= x.rank < 4"),
        "never-matches",
        3,
        None,
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_told_at_its_place(name: str) -> None:
    text, code, line, hint = MISTAKES[name]
    found = [d for d in problems(text) if d.severity is Severity.ERROR]
    assert found, "nothing was reported"
    first = found[0]
    assert first.span.file == "t.rules"
    assert code is None or first.code == code, [(d.code, d.message) for d in found]
    assert first.span.line == line, first
    if hint is not None:
        assert hint in (first.hint or "") + first.message, first


def test_all_mistakes_of_a_file_are_told_at_once() -> None:
    text = pattern("    s = sofmax(x)\n    where y.rank == 2, x.dtype == flaot32")
    assert {d.code for d in problems(text)} >= {"unknown-operator", "unknown-name"}
    assert len(problems(text)) == 3


def test_a_syntax_error_hides_no_other_mistake() -> None:
    broken = "pattern q {\n    a = abs(x\n}\n"
    found = {(d.code, d.span.line) for d in problems(broken + pattern("    s = sofmax(x)"))}
    assert ("unknown-operator", 5) in found
    assert any(line <= 3 for _, line in found)


def test_what_a_broken_declaration_declares_is_not_called_unknown() -> None:
    text = "relation r(n: node @entity\n" + pattern("    s = abs(x)\n    where r(s)")
    assert {d.span.line for d in problems(text)} == {1}


def test_a_name_error_hides_no_contradiction() -> None:
    text = pattern("    s = sofmax(x)") + pattern(
        "    s = abs(x)\n    where x.rank == 2, x.rank == 3"
    ).replace("pattern p", "pattern q")
    assert {d.code for d in problems(text)} == {"unknown-operator", "never-matches"}


def test_a_negative_axis_is_refused_with_the_way_to_say_it() -> None:
    (found,) = problems(pattern("    s = softmax(x, axis=-1)"))
    assert "x.rank - 1" in (found.hint or "")


@pytest.mark.parametrize(
    "entry",
    ['affects: "<=1.x"', "verdict: bgu", "severity: hgih", "symptom: wrong_reslt"],
)
def test_metadata_is_checked(entry: str) -> None:
    (found,) = problems(pattern(f"    {entry}\n    s = abs(x)"))
    assert found.span.line == 2


@pytest.mark.slow
def test_runaway_patterns_are_refused_at_once() -> None:
    operands = ", ".join(f"a{i}" for i in range(20))
    assert problems(pattern(f"    s = add{{{operands}}}"))[0].code == "too-many-alternatives"
    chain = "\n".join(f"    n{i} = abs(n{i - 1})" for i in range(1, 80))
    assert problems(pattern(chain))[0].code == "too-long"
    nested = "".join(f"set s{i} = {{s{i + 1}, s{i + 1}}}\n" for i in range(3000))
    assert problems(nested + "set s3000 = {abs}\n")[0].code == "too-deeply-nested"


def test_a_diagnostic_points_at_the_name_itself() -> None:
    (found,) = problems(pattern("    s = sofmax(x)"))
    assert (found.span.column, found.span.end_column) == (9, 15)


def test_variables_are_called_as_the_author_calls_them() -> None:
    conditions = "not dim(x, N, 2), count{ M : M > 3 } == 2"
    found = problems(pattern(f"    a = abs(x)\n    where {conditions}"))
    assert [d.message for d in found] == [
        "`N` occurs only under `not` in `not dim(x, N, 2)`",
        "`M` has no value in the aggregated value",
        "`M` has no value in `M > 3`",
    ]


def test_what_is_right_is_not_complained_about() -> None:
    assert not problems(pattern("    s = softmax(x, axis=A)\n    where x.dim[A] >= 2"))
