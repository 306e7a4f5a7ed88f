"""``reprise rules``: each command as its user meets it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from reprise.lang.catalogue import catalogue, own_program
from reprise.lang.ruleset import load_rules
from tests.conftest import Run, environment

GOOD = """\
/// A value multiplied by itself.
pattern squared "squared" {
    target: tvm
    m = mul(x, x)
    where x.rank >= 1
}
test squared {
    match { x: float32[4]; m = mul(x, x) }
    no_match "two values" { x: float32[4]; y: float32[4]; m = mul(x, y) }
}
"""
UGLY = 'pattern   squared "squared"{m=mul(x,x)\nwhere x.rank>=1}  // a comment\n'
MISSPELT = 'pattern squared "squared" { m = mull(x, x) }\n'
SYNTAX = 'pattern squared "squared" { m = mul(x, }\n'


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.rules"
    path.write_text(GOOD)
    return path


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def bytes_in(*arguments: str, folder: Path, data: bytes) -> tuple[int, str, str]:
    """The command's exit code and what it wrote, with ``data`` on standard input."""
    done = subprocess.run(
        [sys.executable, "-m", "reprise", *arguments],
        input=data,
        env=environment(),
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


# --- lint ------------------------------------------------------------------------------------


def test_lint_is_content(reprise: Run, good: Path) -> None:
    done = reprise("rules", "lint", good)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 file: no problems\n", "")


def test_lint_shows_the_line_a_caret_and_a_hint(reprise: Run, tmp_path: Path) -> None:
    done = reprise("rules", "lint", write(tmp_path, "bad.rules", MISSPELT))
    assert done.returncode == 2
    assert "bad.rules:1:33" in done.stdout
    assert "mull(x, x)" in done.stdout
    assert "^" in done.stdout
    assert "did you mean `mul`?" in done.stdout


def test_lint_reports_all_files_at_once(reprise: Run, tmp_path: Path) -> None:
    write(tmp_path, "rules/a.rules", MISSPELT)
    write(tmp_path, "rules/b.rules", SYNTAX)
    done = reprise("rules", "lint", "rules")
    assert done.returncode == 2
    assert "a.rules:1:" in done.stdout
    assert "b.rules:1:" in done.stdout


def test_lint_as_json(reprise: Run, tmp_path: Path, good: Path) -> None:
    done = reprise("rules", "lint", "--format", "json", write(tmp_path, "bad.rules", MISSPELT))
    assert done.returncode == 2
    report = json.loads(done.stdout)
    assert (report["version"], report["files"]) == (1, 1)
    (found,) = report["diagnostics"]
    assert found["code"] == "unknown-operator"
    assert (found["file"].endswith("bad.rules"), found["line"], found["column"]) == (True, 1, 33)
    clean = json.loads(reprise("rules", "lint", "--format", "json", good).stdout)
    assert clean["diagnostics"] == []


def test_lint_of_a_missing_file_is_a_usage_error(reprise: Run) -> None:
    done = reprise("rules", "lint", "missing.rules")
    assert done.returncode == 2
    assert "missing.rules" in done.stderr


def test_lint_of_bytes_that_are_no_text(reprise: Run, tmp_path: Path) -> None:
    done = reprise("rules", "lint", write(tmp_path, "bytes.rules", b"set a = {\xff}\n"))
    assert done.returncode == 2
    assert "UTF-8" in done.stdout


CASES = """\
test squared {
    match { x: float32[2]; m = mull(x, x) }
    match { x: float32[2]; y: float32[3]; m = mul(x, x); z = matmul(x, y) }
    no_match { x: float32[2]; evn(provider, cuda) }
    no_match { x: float32[2]; env(provider) }
    todo_match { x: float32[2]; m = mul(x, y) }
}
"""


def test_lint_checks_the_programs_of_tests(reprise: Run, tmp_path: Path) -> None:
    pattern = GOOD[: GOOD.index("test squared")]
    path = write(tmp_path, "cases.rules", pattern + CASES)
    done = reprise("rules", "lint", "--format", "json", path)
    assert done.returncode == 2
    found = json.loads(done.stdout)["diagnostics"]
    first = pattern.count("\n") + 2
    assert [(d["line"] - first, d["severity"]) for d in found] == [
        (0, "error"),
        (1, "error"),
        (2, "error"),
        (3, "error"),
        (4, "warning"),
    ]
    for said, word in zip(found, ("`mull`", "matmul", "`evn`", "`env`", "`y`"), strict=True):
        assert word in said["message"]


@pytest.mark.slow
def test_lint_of_standard_input(tmp_path: Path) -> None:
    code, out, _ = bytes_in("rules", "lint", "-", folder=tmp_path, data=MISSPELT.encode())
    assert code == 2
    assert "<stdin>:1:33" in out
    assert "mull(x, x)" in out
    assert bytes_in("rules", "lint", "-", folder=tmp_path, data=GOOD.encode())[0] == 0


@pytest.mark.parametrize("command", ["lint", "fmt"])
def test_standard_input_that_is_no_text(tmp_path: Path, command: str) -> None:
    code, out, err = bytes_in("rules", command, "-", folder=tmp_path, data=b"// caf\xe9\n")
    assert code == 2
    assert "<stdin>:1:7: error[not-utf-8]" in out + err


# --- fmt -------------------------------------------------------------------------------------


def test_fmt_formats_in_place_and_is_then_content(reprise: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "ugly.rules", UGLY)
    os.chmod(path, 0o640)
    assert reprise("rules", "fmt", "--check", path).returncode == 1
    assert path.read_text() == UGLY
    done = reprise("rules", "fmt", path)
    assert done.returncode == 0
    assert "formatted" in done.stdout
    assert "// a comment" in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert reprise("rules", "fmt", "--check", path).returncode == 0
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("command", ["lint", "fmt", "lower"])
def test_a_folder_without_rules_is_a_usage_error(
    reprise: Run, tmp_path: Path, command: str
) -> None:
    done = reprise("rules", command, tmp_path)
    assert done.returncode == 2
    assert "no .rules file" in done.stderr


def test_a_case_that_derives_too_much_fails_and_the_others_run(
    reprise: Run, tmp_path: Path
) -> None:
    (tmp_path / "endless.rules").write_text(
        "relation n(x: int)\nn(0).\nn(Y) :- n(X), Y == X + 1.\n"
        "pattern p { a = abs(x) where n(5) }\n"
        "test p { match { x: float32[2]; a = abs(x) } }\n"
        "pattern q { a = neg(x) }\n"
        "test q { match { x: float32[2]; a = neg(x) } }\n"
    )
    done = reprise("rules", "test", "--max-rows", "1000", "endless.rules")
    assert done.returncode == 1
    assert "more than 1,000 facts; most of it was `n`; --max-rows" in done.stdout
    assert "1 passed, 1 failed" in done.stdout


def test_fmt_keeps_a_link_a_link(reprise: Run, tmp_path: Path) -> None:
    path = write(tmp_path, "ugly.rules", UGLY)
    link = tmp_path / "link.rules"
    link.symlink_to(path)
    assert reprise("rules", "fmt", link).returncode == 0
    assert link.is_symlink()
    assert path.read_text() != UGLY


def test_fmt_formats_the_good_files_beside_a_broken_one(reprise: Run, tmp_path: Path) -> None:
    ugly = write(tmp_path, "r/ugly.rules", UGLY)
    broken = write(tmp_path, "r/broken.rules", SYNTAX)
    done = reprise("rules", "fmt", "r")
    assert done.returncode == 2
    assert "broken.rules:1:" in done.stderr
    assert ugly.read_text() != UGLY
    assert broken.read_text() == SYNTAX


def test_fmt_of_standard_input(reprise: Run, tmp_path: Path) -> None:
    done = reprise("rules", "fmt", "-", input=UGLY)
    assert done.returncode == 0
    assert 'pattern squared "squared" {' in done.stdout


# --- test ------------------------------------------------------------------------------------


def test_test_counts_what_passed(reprise: Run, good: Path) -> None:
    done = reprise("rules", "test", good)
    assert (done.returncode, done.stdout) == (0, "2 passed, 0 failed\n")
    assert reprise("rules", "test", "-v", good).stdout.count("passed squared") == 2


def test_test_says_which_condition_failed(reprise: Run, tmp_path: Path) -> None:
    text = GOOD.replace("x.rank >= 1", "x.rank >= 2")
    done = reprise("rules", "test", write(tmp_path, "wrong.rules", text))
    assert done.returncode == 1
    assert "x.rank >= 2" in done.stdout
    assert "1 passed, 1 failed" in done.stdout


def test_test_fails_when_no_test_ran(reprise: Run, tmp_path: Path) -> None:
    done = reprise("rules", "test", write(tmp_path, "none.rules", GOOD.split("test squared")[0]))
    assert done.returncode == 1
    assert "no test ran" in done.stderr


def test_test_as_json(reprise: Run, good: Path) -> None:
    report = json.loads(reprise("rules", "test", "--format", "json", good).stdout)
    assert [case["outcome"] for case in report["cases"]] == ["passed", "passed"]
    assert report["cases"][1]["title"] == "two values"


def test_test_of_rules_that_do_not_load(reprise: Run, tmp_path: Path) -> None:
    done = reprise("rules", "test", write(tmp_path, "bad.rules", MISSPELT))
    assert done.returncode == 2
    assert "bad.rules:1:33" in done.stderr


# --- list, show, lower -----------------------------------------------------------------------


def test_list_of_a_file(reprise: Run, good: Path) -> None:
    done = reprise("rules", "list", good)
    assert done.stdout.split() == ["squared", "pattern", "tvm", "squared"]
    assert reprise("rules", "list", "--target", "inductor", good).stdout == ""
    (entry,) = json.loads(reprise("rules", "list", "--format", "json", good).stdout)["rules"]
    assert (entry["name"], entry["kind"], entry["targets"]) == ("squared", "pattern", ["tvm"])


@pytest.mark.slow
def test_list_of_what_ships(reprise: Run) -> None:
    done = reprise("rules", "list", "--kind", "pattern", "--target", "onnxruntime")
    assert done.returncode == 0
    assert "32228" in done.stdout


def test_list_of_one_target(reprise: Run, good: Path) -> None:
    assert "squared" in reprise("rules", "list", "--target", "tvm", good).stdout
    done = reprise("rules", "list", "--target", "nope", good)
    assert done.returncode == 2
    assert "no rule is about it (they are about tvm)" in done.stderr


def test_list_and_show_do_not_lower_again(good: Path) -> None:
    load_rules([good])  # into the cache
    entries = catalogue(load_rules([good]))
    assert [(e.name, e.kind, e.line) for e in entries] == [("squared", "pattern", 2)]
    code = (
        "import sys; from reprise.cli.main import run;"
        f"run(['rules', 'list', {str(good)!r}]); listed = set(sys.modules);"
        f"run(['rules', 'show', '--rules', {str(good)!r}, 'squared']);"
        "print(sorted(listed & {'reprise.lang.parse', 'reprise.lang.loading', 'reprise.datalog'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("squared")
    assert "m = mul(x, x)" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_show_prints_source_documentation_and_tests(reprise: Run, good: Path) -> None:
    done = reprise("rules", "show", "squared", "--rules", good)
    assert done.returncode == 0
    assert "/// A value multiplied by itself." in done.stdout
    assert "m = mul(x, x)" in done.stdout
    assert 'no_match "two values"' in done.stdout


def test_show_knows_the_library(reprise: Run) -> None:
    assert "constant(T) :-" in reprise("rules", "show", "constant").stdout
    assert "op softmax" in reprise("rules", "show", "softmax").stdout


def test_show_of_nothing_suggests(reprise: Run) -> None:
    done = reprise("rules", "show", "softmaxx")
    assert done.returncode == 2
    assert "did you mean `softmax`" in done.stderr
    assert "UIR calls this operator `relu`" in reprise("rules", "show", "onnx.Relu").stderr


def test_lower_prints_core_datalog(reprise: Run, good: Path) -> None:
    done = reprise("rules", "lower", good)
    assert done.returncode == 0
    assert "squared(" in done.stdout
    assert ":-" in done.stdout
    assert "downstream" not in done.stdout  # only what the file needs


def test_clingo_gets_what_it_can_express_and_the_rest_is_named(
    reprise: Run, tmp_path: Path
) -> None:
    text = "relation v(x: float)\na(X) :- v(X).\nb(X) :- v(X), X < 0.5.\n"
    done = reprise("rules", "lower", "--clingo", write(tmp_path, "f.rules", text))
    assert done.returncode == 2
    assert "a(V0) :- v(V0)." in done.stdout.splitlines()
    assert "left out: clingo has no comparison of floats: b(X)" in done.stderr


@pytest.mark.parametrize(("option", "word"), [("--python", "def "), ("--clingo", " :- ")])
def test_lower_for_an_engine(reprise: Run, good: Path, option: str, word: str) -> None:
    done = reprise("rules", "lower", option, good)
    assert done.returncode == 0
    assert word in done.stdout
    if option == "--python":
        compile(done.stdout, "lowered.py", "exec")


@pytest.mark.slow
@pytest.mark.parametrize("of", ["good.rules", "tests/patterns", "rules/bugs/tvm"])
def test_what_lower_prints_is_a_rule_file_that_says_the_same(
    reprise: Run, good: Path, tmp_path: Path, of: str
) -> None:
    path = good if of == good.name else Path(__file__).parents[2] / of
    lowered = write(tmp_path, "lowered.rules", reprise("rules", "lower", path).stdout)
    done = reprise("rules", "lint", lowered)
    assert (done.returncode, done.stdout) == (0, "1 file: no problems\n")
    before, after = (own_program(load_rules([p])) for p in (path, lowered))
    assert Counter(rule.head.relation for rule in before.rules) == Counter(
        rule.head.relation for rule in after.rules
    )


def test_a_case_that_means_nothing_of_its_subject_is_refused(reprise: Run, tmp_path: Path) -> None:
    text = "pattern p {\n    a = abs(x)\n}\ntest p { holds { x: float32[2]; a = abs(x) } }\n"
    done = reprise("rules", "lint", write(tmp_path, "f.rules", text))
    assert done.returncode == 2
    assert "f.rules:4:10: error[wrong-case]: `holds` is for constraints; `p` is none" in done.stdout


# --- query -----------------------------------------------------------------------------------

FAMILY = """\
relation parent(a: sym, b: sym)
parent("ann", "bob").
parent("bob", "cid").
parent("cid", "dan").
ancestor(A, B) :- parent(A, B).
ancestor(A, C) :- parent(A, B), ancestor(B, C).
"""


@pytest.mark.parametrize("engine", ["reprise", "pydatalog"])
def test_query(reprise: Run, tmp_path: Path, engine: str) -> None:
    file = write(tmp_path, "family.rules", FAMILY)

    def ask(goal: str) -> str:
        done = reprise("query", "--engine", engine, file, goal)
        assert done.returncode == 0, done.stderr
        return str(done.stdout)

    assert ask('ancestor("bob", X)').split() == ["X", "cid", "dan"]
    assert ask('ancestor(X, Y), parent(Y, "dan")').split() == ["X", "Y", "ann", "cid", "bob", "cid"]
    assert ask('ancestor("dan", "ann")') == "no\n"
    assert ask('ancestor("ann", "dan")') == "yes\n"
    assert ask('not parent("ann", "dan")') == "yes\n"


def test_query_as_json(reprise: Run, tmp_path: Path) -> None:
    file = write(tmp_path, "family.rules", FAMILY)
    report = json.loads(reprise("query", "--format", "json", file, 'parent("ann", X)').stdout)
    assert report["answers"] == [{"X": "bob"}]


def test_query_about_a_model(reprise: Run, tmp_path: Path, good: Path) -> None:
    model = write(tmp_path, "m.uir", "x: float32[4, 2]\nm = mul(x, x)\n")
    done = reprise("query", good, "squared(N)", "--model", model)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


@pytest.mark.parametrize(
    "goal", ["", "parent(", "ancestr(X, Y)", "parent(X, Y). parent(Y, Z)", "X"]
)
def test_a_bad_goal_is_bad_input(reprise: Run, tmp_path: Path, goal: str) -> None:
    done = reprise("query", write(tmp_path, "family.rules", FAMILY), goal)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "internal fault" not in done.stderr


# --- XCheck ----------------------------------------------------------------------------------

TUPLE = '("sem-matmul-k-match", ["matmul"], ["input1-height", "input2-width"], "%input1-height EQUAL %input2-width")\n'  # noqa: E501


def test_xcheck_there_and_back(reprise: Run, tmp_path: Path) -> None:
    done = reprise("rules", "import-xcheck", write(tmp_path, "c.xcheck", TUPLE))
    assert (done.returncode, done.stderr) == (0, "")
    rules = write(tmp_path, "c.rules", done.stdout)
    assert reprise("rules", "lint", rules).returncode == 0
    assert reprise("rules", "fmt", "--check", rules).returncode == 0
    assert reprise("rules", "export-xcheck", rules).stdout == TUPLE


def test_xcheck_mistakes_are_shown(reprise: Run, tmp_path: Path) -> None:
    done = reprise("rules", "import-xcheck", write(tmp_path, "c.xcheck", TUPLE.replace("EQ", "Q")))
    assert done.returncode == 2
    assert "c.xcheck:1:" in done.stderr
    assert "^" in done.stderr
    assert done.stdout == ""
