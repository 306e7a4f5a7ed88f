"""Where a check goes in C++ sources; and with all kinds of them, a program does what it did."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from reprise.mining.instrument.edits import remove
from tests.mining.instrument.conftest import Workshop, monitor

COMPILER = shutil.which("g++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")

UNUSED = ("-Wno-unused-variable", "-Wno-unused-but-set-variable")

HEAD = """\
#include <cassert>
#include <cstdio>
#include <initializer_list>
#include <utility>
struct Sink { template <class T> Sink &operator<<(const T &) { return *this; } };
#define CHECK_EQ(a, b) Sink()
static long trace = 0;
static int f(int v) { trace = trace * 31 + v; return v + 1; }
"""


def cases() -> list[tuple[int, str]]:
    """The line of each site and the body with its check, from ``data/cpp_places.txt``."""
    text = (Path(__file__).parent / "data" / "cpp_places.txt").read_text()
    parts = re.split(r"^@(\d+)\n", text, flags=re.MULTILINE)[1:]
    return [(int(line), body) for line, body in zip(parts[::2], parts[1::2], strict=True)]


def plain(body: str) -> str:
    """The body without its check, and without the braces that the check needs."""
    body = re.sub(r"^[ \t]*CHECK\n", "", body, flags=re.MULTILINE)
    return re.sub(r"<\{ | \}>| CHECK\b(?!_)|(?<=<\{ )CHECK ", "", body)


def program(bodies: list[str]) -> str:
    functions = [f"int t{i}(int n) {{\n{body}return 0;\n}}\n" for i, body in enumerate(bodies)]
    calls = "".join(
        f'  for (int n = 0; n < 8; ++n) std::printf("%d ", t{i}(n));\n' for i in range(len(bodies))
    )
    return (
        HEAD + "".join(functions) + f'int main() {{\n{calls}  std::printf("%ld\\n", trace);\n}}\n'
    )


def shortened(text: str) -> str:
    return re.sub(r"\{ namespace reprise = .*?\}\}\); \}", "CHECK", text)


@pytest.mark.parametrize(("line", "expected"), cases())
def test_a_check_runs_right_after_its_statement_or_before_a_guard(
    workshop: Workshop, line: int, expected: str, no_compiler: None
) -> None:
    source = program([plain(expected)])
    workshop.put({"a.cc": source})
    at = HEAD.count("\n") + 1 + line
    made = workshop.make(monitor('value("x") > 0', f"a.cc:{at}"))
    assert [refusal.reason for refusal in made.refused] == []
    (file,) = made.touched
    assert remove(file.after, file.insertions) == source.encode()
    body = file.after.decode().split("int t0(int n) {\n")[1].rsplit("return 0;", 1)[0]
    assert shortened(body) == expected.replace("<{", "{").replace("}>", "}")


@needs_compiler
@pytest.mark.slow
def test_a_program_with_every_kind_of_check_computes_the_same(workshop: Workshop) -> None:
    bodies = [plain(body) for _, body in cases()]
    source = program(bodies)
    rules, at = "", HEAD.count("\n")
    for number, ((line, _), body) in enumerate(zip(cases(), bodies, strict=True)):
        rules += monitor('value("x") > 2', f"a.cc:{at + 1 + line}", name=f"m{number}")
        at += body.count("\n") + 3
    workshop.put({"a.cc": source})
    made = workshop.make(rules)
    assert made.refused == ()
    printed = {}
    for folder in (workshop.checkout, workshop.copy):
        command = [COMPILER or "", "-std=c++17", "-Wall", "-Werror", *UNUSED, "a.cc", "-o", "a.out"]
        subprocess.run(command, cwd=folder, check=True, timeout=120)
        done = subprocess.run([folder / "a.out"], capture_output=True, check=True, timeout=60)
        printed[folder] = done.stdout
    assert printed[workshop.checkout] == printed[workshop.copy]
    _, records = workshop.run("./a.out")
    checks = records[-1]["checks"]
    assert {check["verdict"] for check in checks.values()} <= {"satisfied", "violated", "unknown"}
    unknown = [key for key, check in checks.items() if check["verdict"] == "unknown"]
    assert len(checks) == len(bodies)
    assert len(unknown) == 1, "a pointer is no number"


@pytest.mark.parametrize(
    ("source", "line", "reason"),
    [
        ("static const int x = 3;\n", 1, "outside of functions"),
        ("struct S { int x = 3; };\n", 1, "outside of functions"),
        ("#define F(x) \\\n  ((x) + 1)\n", 2, "the definition of a macro"),
        ("constexpr int f(int x) {\n  return x;\n}\n", 2, "a constexpr function"),
        ("__global__ void f(int x) {\n  int y = x;\n}\n", 2, "a __global__ function"),
        ("int f() {\n  { int x = 1; }\n  int y = 2; return x;\n}\n", 3, "there is no `x`"),
        ("int f() {\n  // x\n  return 1;\n}\n", 2, "there is no statement on that line"),
        ("int f(int x) {\n  return 1;\n}\n", 2, "mentions none of `x`"),
        ("int f() {\n  if (int x = g()) return 1;\n  return 2;\n}\n", 2, "there is no `x`"),
    ],
)
def test_a_site_where_nothing_can_stand_is_told(
    workshop: Workshop, source: str, line: int, reason: str, no_compiler: None
) -> None:
    workshop.put({"a.cc": source})
    made = workshop.plan(monitor('value("x") > 0', f"a.cc:{line}"))
    assert [reason in refusal.reason for refusal in made.refused] == [True]
    assert made.touched == ()


@pytest.mark.parametrize(
    "expression", ["x++", "x = 3", "g(x)", "delete x", "x; y", "new int", "[&] { return x; }()"]
)
def test_an_expression_that_may_change_something_is_refused(
    workshop: Workshop, expression: str, no_compiler: None
) -> None:
    workshop.put({"a.cc": "int f(int x) {\n  int y = x;\n  return y;\n}\n"})
    made = workshop.plan(monitor(f'value("{expression}") > 0', "a.cc:2"))
    assert len(made.refused) == 1


@pytest.mark.slow
def test_what_a_member_function_says_of_itself_is_read(workshop: Workshop) -> None:
    source = (
        "struct A {\n  int size() const { return 1; }\n"
        "  void f() {\n    assert(size() == 1);\n  }\n};\n"
    )
    workshop.put({"a.hpp": f"#include <cassert>\n{source}"})
    made = workshop.make(monitor('value("size()") == 1', "a.hpp:5"))
    assert made.refused == ()
    check = workshop.text("a.hpp").index("reprise::of<decltype(size())>(size())")
    assert check < workshop.text("a.hpp").index("assert(size() == 1);")


def test_a_name_with_template_arguments_may_be_called_by_its_name(
    workshop: Workshop, no_compiler: None
) -> None:
    workshop.put({"a.cc": "int f(int x) {\n  int y = cast<int>(x);\n  return y;\n}\n"})
    rule = monitor('value("cast<int>(x)") > 0', "a.cc:2")
    assert "calls `cast`" in workshop.plan(rule).refused[0].reason
    assert workshop.plan(rule, may_call=["cast"]).refused == ()


def test_a_file_of_c_is_told_from_others(workshop: Workshop) -> None:
    workshop.put({"a.c": "int f(int x) {\n  return x;\n}\n"})
    (refused,) = workshop.plan(monitor('value("x") > 0', "a.c:2")).refused
    assert refused.reason == "that file is C, and the recorder is C++"


@pytest.mark.slow
def test_getters_are_read(workshop: Workshop) -> None:
    source = "template <class T> int f(const T &x) {\n  int y = x.getRank();\n  return y;\n}\n"
    workshop.put({"a.cc": source})
    made = workshop.make(monitor('value("x.getType().getRank()") > value("y")', "a.cc:2"))
    assert made.refused == ()


@pytest.mark.parametrize(
    ("head", "lines"),
    [
        ("// License\n#pragma once\n#include <vector>\n", 3),
        ("/* License\n */\n#ifndef A_H_\n#define A_H_\n\n#include <vector>\n", 6),
        ("#define _GNU_SOURCE\n#include <vector>\n", 2),
        ("", 0),
        ("// License\n", 1),
        ("#ifdef X\n#include <vector>\n#endif\n", 0),
    ],
)
def test_the_recorder_is_included_where_macros_before_it_are_heeded(
    workshop: Workshop, head: str, lines: int, no_compiler: None
) -> None:
    end = "#endif\n" if "#ifndef" in head else ""
    workshop.put({"a.h": f"{head}inline int f(int x) {{\n  return x;\n}}\n{end}"})
    made = workshop.make(monitor('value("x") > 0', f"a.h:{head.count(chr(10)) + 2}"))
    assert made.refused == ()
    added = workshop.text("a.h").splitlines()
    assert added[lines] == '#include "_reprise_monitor.hpp"'


@pytest.mark.slow
def test_a_header_that_another_folder_includes_finds_its_recorder(workshop: Workshop) -> None:
    main = '#include "../include/a.h"\nint main() {\n  int x = f(2);\n  return x - 3;\n}\n'
    header = "#pragma once\ninline int f(int x) {\n  int y = x + 1;\n  return y;\n}\n"
    workshop.put({"include/a.h": header, "src/main.cc": main})
    rules = monitor('value("y") == 3', "include/a.h:3", name="inner")
    made = workshop.make(rules + monitor('value("x") == 4', "src/main.cc:3", name="outer"))
    assert sorted(made.recorders) == ["include/_reprise_monitor.hpp", "src/_reprise_monitor.hpp"]
    if COMPILER is not None:
        command = [COMPILER, "-std=c++17", "src/main.cc", "-o", "main"]
        subprocess.run(command, cwd=workshop.copy, check=True, timeout=120)
        assert workshop.verdicts("./main") == {"inner": "satisfied", "outer": "violated"}


@pytest.mark.slow
def test_carriage_returns_and_latin_1_are_kept(workshop: Workshop) -> None:
    source = b"// \xe9\r\nint f(int x) {\r\n  int y = x; // \xfc\r\n  return y;\r\n}"
    workshop.put({"a.cpp": source})
    (file,) = workshop.make(monitor('value("y") > 0', "a.cpp:3")).touched
    assert remove(file.after, file.insertions) == source
    assert file.after.count(b"\n") == file.after.count(b"\r\n") == 6


@needs_compiler
@pytest.mark.slow
def test_a_check_that_does_not_compile_is_left_out_and_the_others_stay(workshop: Workshop) -> None:
    source = "struct S { int a; };\nint f(S s) {\n  int y = s.a;\n  int z = y;\n  return z;\n}\n"
    workshop.put({"a.cc": source})
    rules = monitor('value("s.b") > 0', "a.cc:3", name="wrong")
    made = workshop.make(rules + monitor('value("z") > 0', "a.cc:4", name="right"))
    assert [refusal.check.key for refusal in made.refused] == ["wrong"]
    assert "no member named" in made.refused[0].reason
    assert [file.keys for file in made.touched] == [("right",)]


def test_a_file_that_needs_other_headers_is_checked_by_the_grammar(workshop: Workshop) -> None:
    workshop.put({"a.cc": '#include "no/such.h"\nint f(int x) {\n  return x;\n}\n'})
    (file,) = workshop.make(monitor('value("x") > 0', "a.cc:3")).touched
    assert file.verified == "tree-sitter"
