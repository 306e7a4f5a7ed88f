"""The generated code: what it shares, what it leaves out, and where it is kept."""

from __future__ import annotations

from pathlib import Path

from reprise.datalog import Database
from tests.datalog.coretext_reader import read

PATTERNS = """
relation node(v: node key, op: sym) @entity
relation edge(src: node, dst: node key, pos: int key) @entity @older(src)
relation m1(a: node, b: node)
relation m2(a: node, b: node)
relation m3(a: node)
relation m4(a: node, b: node)
m1(A, B) :- edge(A, B, 0), node(A, softmax), node(B, sum).
m2(A, B) :- edge(A, B, 0), node(A, relu), node(B, sum).
m3(B) :- node(B, floor), edge(_, B, _).
m4(A, B) :- node(B, O), O in {floor, ceil}, edge(A, B, 0).
"""


def test_a_constant_selects_the_rules_that_a_new_row_concerns() -> None:
    database = Database(read(PATTERNS))
    database.commit([("node", (0, "softmax"))])
    assert "def insert_0_node" not in "".join(database._runtime.sources.values())
    database.commit([("node", (1, "sum")), ("edge", (0, 1, 0))])
    assert database.rows("m1") == [(0, 1)]
    compiled = [name for name in database._runtime.sources if name.startswith("insert")]
    assert compiled == ["insert_0_node_sum"]


def test_rules_that_begin_alike_share_their_beginning() -> None:
    source = Database(read(PATTERNS)).source()
    (summed,) = (part for part in source.split("\n\n") if "insert_0_node_sum" in part)
    assert summed.strip() == (
        "def insert_0_node_sum(r0):\n"
        "    if (r1 := edge_rows.get(r0[0], EMPTY).get(0)) is not None"
        " and (r2 := node_rows.get(r1[0])) is not None:\n"
        "        if r2[1] == 'relu':\n"
        "            row = (r1[0], r0[0])\n"
        "            if m2_rows.setdefault(row, row) is row:\n"
        "                if not m2_new: touched.append(m2_store)\n"
        "                m2_new.append(row)\n"
        "        elif r2[1] == 'softmax':\n"
        "            row = (r1[0], r0[0])\n"
        "            if m1_rows.setdefault(row, row) is row:\n"
        "                if not m1_new: touched.append(m1_store)\n"
        "                m1_new.append(row)"
    )


def test_of_many_constants_none_is_compared_where_the_value_is_not_among_them() -> None:
    words = ["relu", "softmax", "exp", "log"]
    rules = "".join(
        f"relation n{i}(m: node)\nn{i}(M) :- node(M, sum), edge(N, M, 0), node(N, {word}).\n"
        for i, word in enumerate(words)
    )
    base = PATTERNS.partition("relation m1")[0]
    source = Database(read(base + rules)).source()
    (summed,) = (part for part in source.split("\n\n") if "insert_0_node_sum" in part)
    lines = [line.strip() for line in summed.splitlines()]
    assert "if r2[1] in {'exp', 'log', 'relu', 'softmax'}:" in lines
    assert [line for line in lines if "==" in line] == [
        "if r2[1] == 'exp':",
        "elif r2[1] == 'log':",
        "elif r2[1] == 'relu':",
        "elif r2[1] == 'softmax':",
    ]


def test_an_index_is_built_when_a_rule_first_needs_it() -> None:
    database = Database(
        read("relation e(a: int, b: int)\nrelation p(a: int, b: int)\n"
             "p(X, Y) :- e(X, Y).\np(X, Z) :- p(X, Y), e(Y, Z).")
    )  # fmt: skip
    database.commit({"e": [(i, i + 1) for i in range(5)]})
    stores = database._runtime.stores
    assert (list(stores["e"].indexes), list(stores["p"].indexes)) == ([(0,)], [])
    database.commit({"e": [(5, 6)]})
    assert list(stores["p"].indexes) == [(1,)]
    assert database.count("p") == 21


def test_what_only_has_to_exist_is_not_looped_over() -> None:
    database = Database(
        read("relation e(a: int, b: int)\nrelation n(a: int)\nrelation s(a: int)\n"
             "s(X) :- n(X), e(X, _).")
    )  # fmt: skip
    (source,) = (s for s in database.source().split("\n\n") if "def insert_0_n" in s)
    assert source.count("for ") == 1


def test_more_loops_than_python_nests() -> None:
    chain = ", ".join(f"e(X{i}, X{i + 1})" for i in range(23))
    text = f"relation e(a: int, b: int)\nrelation p(a: int, b: int)\np(X0, X23) :- {chain}."
    database = Database(read(text))
    database.commit({"e": [(i, i + 1) for i in range(25)]})
    expected = [(0, 23), (1, 24), (2, 25)]
    assert database.rows("p") == expected
    database.delete({"e": [(11, 12)]})
    assert database.rows("p") == []
    database.commit({"e": [(11, 12)]})
    assert database.rows("p") == expected


def test_relations_may_have_python_keywords_and_each_others_suffixes_for_names() -> None:
    text = """
    relation for(a: int)
    relation class(a: int, def: int)
    relation load(a: int)
    relation load_store(a: int)
    relation r_rows(a: int)
    relation r(a: int)
    for(X) :- class(X, Y), load(Y).
    load_store(X) :- for(X).
    r_rows(X) :- r(X), load_store(X).
    """
    database = Database(read(text))
    database.commit({"class": [(1, 2)], "load": [(2,)], "r": [(1,)]})
    assert database.rows("r_rows") == [(1,)]


def test_importing_the_engine_loads_no_other_engine() -> None:
    import subprocess
    import sys

    code = "import sys, reprise.datalog; print([m for m in sys.modules if m in {names}])"
    names = "{'clingo', 'pyDatalog', 'numpy', 'onnx', 'z3', 'fractions', 'json', 'difflib'}"
    run = subprocess.run(
        [sys.executable, "-c", code.replace("{names}", names)],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert run.stdout.strip() == "[]"
