"""Hostile, broken and very large input: a tree or diagnostics, soon, and nothing else."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.data import data_path
from reprise.lang import tables
from reprise.lang.diagnostics import Diagnostic, RulesError
from reprise.lang.format import format_text
from reprise.lang.parse import MAX_DEPTH, MAX_ERRORS, parse_file, parse_program, parse_text
from reprise.lang.render import render

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = [path.read_text() for path in sorted(data_path("rules").rglob("*.rules"))]


def problems(text: str, parse: object = parse_text) -> list[Diagnostic]:
    try:
        parse(text, "t")  # type: ignore[operator]
    except RulesError as error:
        return error.diagnostics
    return []


def codes(text: str) -> set[str]:
    return {problem.code for problem in problems(text)}


@pytest.mark.parametrize(
    "text",
    [
        f"p() :- {'(' * 100_000}X == 1{')' * 100_000}.",
        f"p() :- {'(' * 100_000}",
        f"p({'[' * 100_000}{']' * 100_000}).",
        f"p() :- {'not ' * 100_000}q().",
        f"p({'-' * 100_000}X).",
        f"p({'+'.join(['a'] * 10_000)}).",
        f"p(a{'.b' * 10_000}).",
        f"p(a{'[0]' * 10_000}).",
        f'pattern p "x" {{ s = {"f(" * 10_000}x{")" * 10_000} }}',
        f"p() :- {'exists { ' * 1000}q(){' }' * 1000}.",
    ],
    ids=["parens", "open", "lists", "not", "minus", "plus", "member", "index", "calls", "exists"],
)
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    assert codes(text) == {"too-deeply-nested"}


def test_the_declarations_after_one_that_is_too_deep_are_still_read() -> None:
    text = f"p() :- {'(' * 1000}q(){')' * 1000}.\nset s = {{a b}}\n"
    assert [(d.code, d.span.line) for d in problems(text)] == [
        ("too-deeply-nested", 1),
        ("missing-token", 2),
    ]


def test_a_tree_of_the_greatest_depth_can_be_walked() -> None:
    for text in (
        f"p(X) :- X == {'+'.join(['a'] * (MAX_DEPTH - 10))}.",
        f"p(X) :- {'not exists { ' * 60}q(X){' }' * 60}.",
        f"p(X) :- X == {'f(1 - [2 * ' * 40}X{'])' * 40}.",
        f'pattern p "x" {{ s = {"f(via {a}(" * 60}x{"))" * 60} }}',
    ):
        tree = parse_text(text)
        assert hash(tree) == hash(parse_text(text))
        assert repr(tree)
        formatted = format_text(text)
        assert parse_text(formatted) == tree
        assert format_text(formatted) == formatted


def test_what_is_long_is_not_deep() -> None:
    assert not problems(f"p() :- {' and '.join(['q()'] * 3000)}.")
    assert not problems(f"p() :- {' < '.join(['X'] * 3000)}.")
    assert not problems(f"set s = {{{', '.join(['a'] * 10_000)}}}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "parse"),
    [
        ("p(X, Y) :- q(X, Z), r(Z, Y), X < Y.\n", parse_text),
        ("y = add(x, x, axis=1)\n", parse_program),
    ],
)
def test_time_grows_with_size(unit: str, parse: object) -> None:
    def seconds(count: int) -> float:
        begin = time.process_time()  # others may be at work on the machine
        assert not problems(unit * count, parse)
        return time.process_time() - begin

    seconds(100)
    small = min(seconds(400) for _ in range(3))
    assert min(seconds(4000) for _ in range(2)) < 40 * small + 0.1


@pytest.mark.slow
def test_a_file_full_of_errors_is_given_up() -> None:
    assert len(problems("p(X) :- q(X Y).\n" * 20_000)) == MAX_ERRORS
    assert len(problems("$ " * 20_000)) == MAX_ERRORS
    assert len(problems("a b " * 20_000)) <= MAX_ERRORS
    assert problems(")" * 20_000)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"set s = {\xff}", "not-utf-8"),
        ("set s = {}\n// é".encode("latin-1"), "not-utf-8"),
        (b"set\0 s = {}", "bad-character"),
        (b"set s = {\x1b[0m}", "bad-character"),
        ("set s = {}".encode("utf-16"), "not-utf-8"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, code: str) -> None:
    path = tmp_path / "f.rules"
    path.write_bytes(data)
    with pytest.raises(RulesError) as error:
        parse_file(path)
    assert error.value.diagnostics[0].code == code


def test_the_place_of_a_byte_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "f.rules"
    path.write_bytes("set s = {}\n// é".encode() + b"\xe9")
    with pytest.raises(RulesError) as error:
        parse_file(path)
    (problem,) = error.value.diagnostics
    assert str(problem.span) == f"{path}:2:5"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.rules", "a\0b", "x" * 5000):
        with pytest.raises(RulesError) as error:
            parse_file(path)
        assert [d.code for d in error.value.diagnostics] == ["unreadable-file"]


def test_empty_and_odd_but_fine() -> None:
    for text in ("", "\n\n", "\ufeff", "// only a comment", "/// only documentation", "\r\n \t"):
        file = parse_text(text)
        assert (file.imports, file.decls) == ((), ())
    assert parse_text("\ufeffset s = {a}\r\n") == parse_text("set s = {a}")


@settings(max_examples=100, deadline=None)
@given(st.text() | st.text('(){}[],.;:-=<>"_?/ \n\\aA1 not in where pattern', max_size=60))
def test_any_text_parses_or_is_explained(text: str) -> None:
    lines = text.removeprefix("\ufeff").split("\n")
    for parse in (parse_text, parse_program):
        for problem in problems(text, parse):
            span = problem.span
            assert 1 <= span.line <= span.end_line <= len(lines)
            assert 1 <= span.column <= len(lines[span.line - 1]) + 1
            assert render([problem], {"t": text})


def test_shipped_rules_with_mistakes_in_them_are_explained() -> None:
    """Characters and tokens lost, doubled, swapped: nothing but diagnostics comes out."""
    signs = '( ) { } [ ] , . ; : :- = == .. ... -> | @ * - _ _? "'
    tokens = (signs + " x X 1 1.5 not in where op test").split(" ")
    dice = random.Random(1)
    for _ in range(150):
        text = dice.choice(SHIPPED)
        begin = dice.randrange(len(text))
        text = text[begin : begin + 800]
        for _ in range(dice.randrange(1, 5)):
            i = dice.randrange(len(text) + 1)
            middle, skip = dice.choice([("", 3), (dice.choice(tokens), 0), (text[:i][-9:], 0)])
            text = text[:i] + middle + text[i + skip :]
        found = problems(text)
        assert render(found, {"t": text}) or not found
        if not found:
            formatted = format_text(text)
            assert parse_text(formatted) == parse_text(text)
            assert format_text(formatted) == formatted


@pytest.mark.slow
def test_shipped_rules_are_read_quickly() -> None:
    """1,400 lines in a quarter of a second, with room for a busy machine."""
    lines = sum(text.count("\n") for text in SHIPPED)
    best = 60.0
    for _ in range(3):
        begin = time.perf_counter()
        for text in SHIPPED:
            parse_text(text)
        best = min(best, time.perf_counter() - begin)
    assert best / lines * 1400 < 0.75


# --- the tables ------------------------------------------------------------------------------

SCRIPT = """
import sys, time
begin = time.process_time()
from reprise.lang.parse import parse_text
from reprise.lang.tables import cache_folder
assert parse_text("p(X) :- q(X).").decls
print(cache_folder(), "lark" in sys.modules, time.process_time() - begin)
"""


def cold_start(cache: str, home: str) -> list[str]:
    environment = {**os.environ, "XDG_CACHE_HOME": cache, "HOME": home, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SCRIPT]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()


@pytest.mark.slow
def test_the_second_start_needs_no_lark(tmp_path: Path) -> None:
    folder, lark, _ = cold_start(str(tmp_path), "/nonexistent")
    assert (folder, lark) == (str(tmp_path / "reprise"), "True")
    (kept,) = (tmp_path / "reprise").iterdir()
    assert min(float(cold_start(str(tmp_path), "")[2]) for _ in range(2)) < 0.3
    kept.write_text("not json")
    assert cold_start(str(tmp_path), "/nonexistent")[1] == "True"
    assert cold_start(str(tmp_path), "/nonexistent")[1] == "False"


@pytest.mark.slow
def test_an_unwritable_cache_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert cold_start(str(tmp_path / "file"), str(tmp_path / "file"))[1] == "True"
    assert cold_start("relative/ignored", str(tmp_path))[0] == str(tmp_path / ".cache/reprise")


def test_the_grammar_has_no_conflicts(caplog: pytest.LogCaptureFixture) -> None:
    import logging

    import lark

    lark.logger.setLevel(logging.DEBUG)
    text = data_path("grammars/rules.lark").read_text()
    lark.Lark(text, parser="lalr", start=["start", "program"], debug=True)
    assert not [record for record in caplog.records if "conflict" in record.message.lower()]


def test_every_alternative_of_the_grammar_has_its_action() -> None:
    from reprise.lang.build import Builder

    grammar = tables.load_tables()
    needed = {p.action for p in grammar.productions if p.mode == tables.BUILD}
    assert not [action for action in needed if not hasattr(Builder, action)]
