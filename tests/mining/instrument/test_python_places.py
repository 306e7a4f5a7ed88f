"""Where a check goes in Python sources, and that the rest of the file stays as it is."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from reprise.mining.instrument.edits import remove
from tests.mining.instrument.conftest import Workshop, monitor

PREAMBLE = "exec(__import__("


def lines_with(workshop: Workshop, source: str, line: int, value: str = "x") -> list[str]:
    """The instrumented file's lines, a check of ``value`` being written CHECK."""
    workshop.put({"a.py": source})
    made = workshop.make(monitor(f'value("{value}") > 0', f"a.py:{line}"))
    assert [r.reason for r in made.refused] == []
    (file,) = made.touched
    assert remove(file.after, file.insertions) == source.encode()
    compile(file.after, "a.py", "exec")
    return [shortened(line) for line in file.after.decode().splitlines()]


def shortened(line: str) -> str:
    start = line.find("_reprise[")
    if start < 0 or line.startswith(PREAMBLE):
        return line
    end = line.index("> 0)", start) + 4
    return line[:start] + "CHECK" + line[end:]


def cases() -> list[tuple[int, str]]:
    """The line of each site and the program with its check, from ``data/python_places.txt``."""
    text = (Path(__file__).parent / "data" / "python_places.txt").read_text()
    parts = re.split(r"^@(\d+)\n", text, flags=re.MULTILINE)[1:]
    return [(int(line), program) for line, program in zip(parts[::2], parts[1::2], strict=True)]


@pytest.mark.parametrize(("line", "expected"), cases())
def test_a_check_runs_right_after_its_statement_or_before_a_guard(
    workshop: Workshop, line: int, expected: str
) -> None:
    plain = re.sub(r"^[ \t]*CHECK\n|CHECK; |; CHECK", "", expected, flags=re.MULTILINE)
    added = lines_with(workshop, plain, line)
    assert added[0].startswith(PREAMBLE)
    assert added[1:] == expected.splitlines()


@pytest.mark.parametrize(
    ("head", "count"),
    [
        ("", 0),
        ("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n", 2),
        ('"""Doc."""\n', 1),
        ('# c\n"""Doc."""\n\nfrom __future__ import annotations\n', 4),
        ("from __future__ import (\n    annotations,\n)\n", 3),
    ],
)
def test_the_recorder_is_loaded_after_what_must_come_first(
    workshop: Workshop, head: str, count: int
) -> None:
    added = lines_with(workshop, head + "x = 1\n", count + 1)
    assert added[:count] == head.splitlines()
    assert added[count].startswith(PREAMBLE)


def test_a_docstring_that_shares_its_line_stays_one(workshop: Workshop) -> None:
    workshop.put({"a.py": '"""Doc."""; x = 1\nprint(__doc__)\n'})
    workshop.make(monitor('value("x") == 1', "a.py:1"))
    printed, records = workshop.run(sys.executable, "a.py")
    assert printed == "Doc.\n"
    assert records[-1]["checks"]["m"]["verdict"] == "satisfied"


def test_carriage_returns_are_kept_and_used(workshop: Workshop) -> None:
    workshop.put({"a.py": b"x = 1\r\ny = 2\r\n"})
    made = workshop.make(monitor('value("x") == 1', "a.py:1"))
    (file,) = made.touched
    assert file.after.count(b"\n") == file.after.count(b"\r\n") == 4
    assert workshop.python() == {"m": "satisfied"}


@pytest.mark.slow
def test_a_missing_final_end_of_line_stays_missing(workshop: Workshop) -> None:
    workshop.put({"a.py": "if 1:\n    x = 1"})
    made = workshop.make(monitor('value("x") == 1', "a.py:2"))
    (file,) = made.touched
    assert not file.after.endswith(b"\n")
    assert remove(file.after, file.insertions) == b"if 1:\n    x = 1"
    assert workshop.python() == {"m": "satisfied"}


def test_a_byte_order_mark_stays_first(workshop: Workshop) -> None:
    workshop.put({"a.py": b"\xef\xbb\xbfx = 1\n"})
    made = workshop.make(monitor('value("x") == 1', "a.py:1"))
    assert made.touched[0].after.startswith(b"\xef\xbb\xbfexec(")
    assert workshop.python() == {"m": "satisfied"}


def test_latin_1_is_kept_byte_by_byte(workshop: Workshop) -> None:
    first = b"# -*- coding: latin-1 -*-\n"
    source = first + b"s\xe9 = '\xfc'; x = len(s\xe9)  # \xe4\nprint(ascii(s\xe9))\n"
    workshop.put({"a.py": source})
    made = workshop.make(monitor('value("x") == 1', "a.py:2"))
    (file,) = made.touched
    assert remove(file.after, file.insertions) == source
    printed, records = workshop.run(sys.executable, "a.py")
    assert printed == "'\\xfc'\n"
    assert records[-1]["checks"]["m"]["verdict"] == "satisfied"


def test_names_of_a_class_are_seen_in_its_body(workshop: Workshop) -> None:
    workshop.put({"a.py": "class C:\n    x = 3\n    y = x * 2\n\n    def f(self): pass\n"})
    workshop.make(monitor('value("y") == 2 * value("x")', "a.py:3"))
    assert workshop.python() == {"m": "satisfied"}


def test_names_of_a_class_are_not_seen_in_its_methods(workshop: Workshop) -> None:
    workshop.put({"a.py": "class C:\n    x = 3\n    def f(self):\n        y = 1\n"})
    made = workshop.plan(monitor('value("y") == value("x")', "a.py:4"))
    assert [r.reason for r in made.refused] == ["there is no `x` in that scope"]


def test_before_reads_what_was_there_before_the_statement(workshop: Workshop) -> None:
    source = "def f(n):\n    if n > 3: return n\n    n = f(n + 1)\n    return n\nprint(f(1))\n"
    workshop.put({"a.py": source})
    made = workshop.make(monitor('before("n") < after("n") and after("n") == 4', "a.py:3"))
    assert made.refused == ()
    printed, records = workshop.run(sys.executable, "a.py")
    assert printed == "4\n"
    check = records[-1]["checks"]["m"]
    assert check["counts"] == {"satisfied": 3}
    assert check["first"] == {"satisfied": {"before n": 3, "n": 4}}


@pytest.mark.parametrize(
    ("source", "site", "reason"),
    [
        ("x = 1\n", "a.py:3", "the file has 2 lines"),
        ("x = 1\n\n# x\n", "a.py:3", "there is no statement on that line"),
        ("x = 1\ny = 2\n", "a.py:2", "mentions none of `x` (it is bound on line 1)"),
        ("def f():\n    x = 1\ny = x\n", "b.py:1", "there is no such file"),
        ("x = 1\n", "../a.py:1", "outside of the checkout"),
        ("@T.prim_func\ndef f(x):\n    y = x\n", "a.py:3", "@T.prim_func reads the function"),
        ("y = [x for x in z]\n", "a.py:1", "there is no `x` in that scope"),
        ("y = lambda x: x\n", "a.py:1", "there is no `x` in that scope"),
        ("x = = 1\n", "a.py:1", "the grammar cannot read the source there"),
    ],
)
def test_a_site_that_is_not_there_is_told(
    workshop: Workshop, source: str, site: str, reason: str
) -> None:
    workshop.put({"a.py": source, "c.py": "x = 1\n"})
    rules = monitor('value("x") > 0', site) + monitor('value("x") > 0', "c.py:1", name="other")
    made = workshop.make(rules)
    assert [refusal.check.key for refusal in made.refused] == ["m"]
    assert reason in made.refused[0].reason
    assert [file.path for file in made.touched] == ["c.py"]


@pytest.mark.parametrize(
    ("assertion", "reason"),
    [
        ('value("x") % device(array_m) == 0', "give --device-value array_m=VALUE"),
        ('value("f(x)") == 0', "makes a call, which may change what happens"),
        ('value("x +") == 0', "is no Python expression"),
        ("tensor(width) % 4 == 0", "is no value at a line of the sources"),
        ("device(array_m) == 4", "reads no value of the compiler"),
    ],
)
def test_a_condition_that_cannot_be_checked_is_told(
    workshop: Workshop, assertion: str, reason: str
) -> None:
    workshop.put({"a.py": "x = 1\n"})
    device = {"array_m": 4} if "==" in assertion and "reads no" in reason else {}
    made = workshop.plan(monitor(assertion, "a.py:1"), device)
    assert reason in made.refused[0].reason
    assert made.touched == ()


def test_a_monitor_without_a_place_is_told(workshop: Workshop) -> None:
    workshop.put({"a.py": "x = 1\n"})
    (refusal,) = workshop.plan(monitor('value("x") == 1')).refused
    assert "from:" in refusal.reason


def test_of_several_places_those_with_the_values_are_taken(workshop: Workshop) -> None:
    workshop.put({"a.py": "x = 1\ny = 2\nx = 3\n"})
    made = workshop.make(monitor('value("x") == 1', "a.py:1", "a.py:2", "a.py:3"))
    assert made.refused == ()
    assert [site.line for site in made.placed["m"]] == [1, 3]
    (record,) = [r for r in workshop.run(sys.executable, "a.py")[1] if r["kind"] == "run"]
    assert record["checks"]["m"]["counts"] == {"satisfied": 1, "violated": 1}
    assert record["checks"]["m"]["verdict"] == "violated"


def test_a_file_that_python_cannot_compile_is_checked_by_the_grammar(workshop: Workshop) -> None:
    workshop.put({"a.py": "x = 1\nprint x\n"})
    (file,) = workshop.make(monitor('value("x") == 1', "a.py:1")).touched
    assert file.verified == "tree-sitter"


def test_methods_that_only_look_are_called_if_somebody_says_so(workshop: Workshop) -> None:
    source = "class C:\n    def get(self, n): return self\n    extent = 8\nx = C()\n"
    workshop.put({"a.py": source})
    rules = monitor('value("x.get(1).extent + 1") % 3 == 0', "a.py:4")
    assert "makes a call" in workshop.plan(rules).refused[0].reason
    made = workshop.make(rules, may_call=["get"])
    assert made.refused == ()
    assert workshop.python() == {"m": "satisfied"}


@pytest.mark.slow
def test_a_file_nested_very_deeply_is_read_in_time(workshop: Workshop) -> None:
    """In generated files; to ask every node for its parent would take minutes."""
    deep = "(" * 20_000 + "1" + ")" * 20_000
    workshop.put({"a.py": f"y = 2\nx = {deep}\nz = x\n"})
    made = workshop.make(monitor('value("x") > 0', "a.py:3"))
    assert made.refused == ()
