"""Checking models: the good among the broken, in parallel, within limits."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from reprise.datalog import Limits
from reprise.lang.diagnostics import RulesError
from reprise.lang.ruleset import load_rules, load_text
from reprise.patterns.check import (
    Checker,
    CheckOptions,
    UsageError,
    check_models,
    environment_names,
    find_models,
    parse_environment,
    parse_target,
)
from reprise.patterns.reports.text import places_text
from tests.conftest import ROOT

RULE = 'pattern p "any abs" {\n    target: onnxruntime\n    a = abs(x)\n}\n'
RUNAWAY = """
relation pairs(a: tensor, b: tensor, c: tensor, d: tensor, e: tensor, f: tensor, g: tensor)
pairs(A, B, C, D, E, F, G) :-
    tensor(A), tensor(B), tensor(C), tensor(D), tensor(E), tensor(F), tensor(G).
pattern runaway "billions of facts" {
    a = abs(x)
    where pairs(x, _, _, _, _, _, _)
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.uir").write_text("x: float32[2]\ny = abs(x)\n")
    (tmp_path / "b.uir").write_text("x: float32[2]\ny = abss(x)\n")
    (tmp_path / "c.onnx").write_bytes(b"\xff\xfe")
    (tmp_path / "d.uir").write_text("x: float32[2]\ny = neg(x)\n")
    (tmp_path / "p.rules").write_text(RULE)
    return tmp_path


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_good_are_checked_among_the_broken(folder: Path, jobs: int) -> None:
    paths = find_models([str(folder)])
    options = CheckOptions((folder / "p.rules",))
    reports = list(check_models(paths, options, jobs=jobs))
    assert [Path(r.path).name for r in reports] == ["a.uir", "b.uir", "c.onnx", "d.uir"]
    assert [len(r.matches) for r in reports] == [1, 0, 0, 0]
    assert [len(r.errors) for r in reports] == [0, 1, 1, 0]
    assert "abss" in reports[1].errors[0][0]


def test_a_rule_that_would_derive_billions_is_stopped(folder: Path) -> None:
    lines = ["x: float32[2]", *(f"y{i} = abs(x)" for i in range(30))]
    (folder / "wide.uir").write_text("\n".join(lines))
    checker = Checker(CheckOptions((), limits=Limits(10_000, 20.0)), load_text(RUNAWAY))
    report = checker.check(folder / "wide.uir")
    message, hint = report.errors[0]
    assert message == (
        "stopped, because the rules derived more than 10,000 facts; most of it was `pairs`"
    )
    assert "--max-rows" in (hint or "")
    assert not checker.check(folder / "a.uir").errors  # the checker is still good


def test_a_rule_that_takes_too_long_is_stopped(folder: Path) -> None:
    lines = ["x: float32[2]", *(f"y{i} = abs(x)" for i in range(30))]
    (folder / "wide.uir").write_text("\n".join(lines))
    checker = Checker(CheckOptions((), limits=Limits(10**9, 0.2)), load_text(RUNAWAY))
    message, hint = checker.check(folder / "wide.uir").errors[0]
    assert "ran longer than 0.2 s" in message
    assert "--max-seconds" in (hint or "")


def test_an_environment_that_nothing_asks_for_is_warned_of() -> None:
    rules = load_text(RULE.replace("a = abs(x)", 'a = abs(x)  graph env("firmware") == 3'))

    def warnings(*names: str) -> tuple[str, ...]:
        return Checker(CheckOptions((), None, dict.fromkeys(names, 1)), rules).warnings

    assert warnings() == warnings("firmware", "isa", "provider") == ()
    (misspelt,) = warnings("isa", "providor")
    assert misspelt.startswith("--env providor: ")
    assert "`provider`" in misspelt
    (unknown,) = warnings("colour")
    assert "firmware" in unknown


@pytest.mark.slow
def test_the_manual_lists_targets_and_environment_names() -> None:
    manual = (ROOT / "docs" / "check.md").read_text()
    listed = manual[manual.index("## Only what concerns you") :]
    targets = {
        target
        for pattern in load_rules((ROOT / "rules" / "bugs",)).patterns.values()
        for target in pattern.meta.get("target", ())
    }
    written = " ".join(listed.split())
    in_order = sorted(targets)
    words = ", ".join(f"`{t}`" for t in in_order[:-1]) + f" and `{in_order[-1]}`"
    assert f"the targets {words};" in written
    assert f"Names are {', '.join(f'`{n}`' for n in environment_names())}, and" in written


LINT = """
/// Matrices have a multiple of 16 columns.
constraint aligned : resource on { m = matmul(a, b) } require b.dim[1] % 16 == 0
/// Nodes that do not finish.
deny slow(N, S) "{N} takes {S}, and {nothing}" :- node(N, conv2d), S == 2 + 3.
deny wide(T, D) "{T} has {D} columns" :- dim(T, 1, D), D > 100.
deny narrowed(T) "{T} of rank {R} comes from {U}" :-
    rank(T, R), output(N, _, T), input(N, 0, U), rank(U, S), R < S.
deny unread(T) "nobody reads {T}" :- output(_, _, T), not input(_, _, T), not graph_output(T).
"""
MATMUL = "x: float32[4, 8]\nw: float32[8, {}]\nm = matmul(x, w)\nr = relu(m)\n"


def violations(folder: Path, columns: str) -> list[tuple[str, str, str, str]]:
    path = folder / "m.uir"
    path.write_text(MATMUL.format(columns))
    rules = folder / "l.rules"
    rules.write_text(LINT)
    (report,) = check_models([path], CheckOptions((rules,)))
    assert not report.errors
    return [(m.kind, m.rule, m.certainty, m.title) for m in report.matches]


@pytest.mark.slow
def test_constraints_and_deny_rules_are_checked(folder: Path) -> None:
    assert violations(folder, "16") == []
    title = "Matrices have a multiple of 16 columns."
    assert violations(folder, "24") == [("constraint", "aligned", "yes", title)]
    assert violations(folder, "N") == [("constraint", "aligned", "possible", title)]
    assert violations(folder, "160") == [
        ("deny", "wide", "yes", f"{tensor} has 160 columns") for tensor in ("w", "m", "r")
    ]


def test_a_violation_names_its_nodes_and_values(folder: Path) -> None:
    path = folder / "c.uir"
    path.write_text("x: float32[1, 3, 8, 8]\nw: float32[2, 3, 3, 3]\nc = conv2d(x, w)\n")
    checker = Checker(CheckOptions((), explain=True), load_text(LINT))
    (match,) = checker.check(path).matches
    assert match.nodes == {"n": "c"}
    assert match.values == {"S": 5}
    assert match.title == "c takes 5, and {nothing}"
    assert [line.facts[0] for line in match.explanation] == ["node(c, conv2d)"]


def test_a_message_may_tell_what_only_the_body_has(folder: Path) -> None:
    path = folder / "r.uir"
    path.write_text("x: float32[2, 3]\ns = sum(x, axes=[1], keepdims=false)\nt = relu(s)\n")
    checker = Checker(CheckOptions(()), load_text(LINT))
    assert [m.title for m in checker.check(path).matches] == ["s of rank 1 comes from x"]


def test_the_library_s_own_constraints_are_not_what_was_asked_for(folder: Path) -> None:
    (folder / "l.rules").write_text(LINT)
    (folder / "i.rules").write_text('import "l.rules"\n' + RULE)
    checker = Checker(CheckOptions((folder / "i.rules",)))
    assert checker.rule_count == 1 + len(set(checker.rules.patterns) - {"p"})
    assert not checker.denies


def test_what_makes_no_sense_is_said(folder: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        find_models([str(folder / "nothing")])
    with pytest.raises(UsageError, match="empty"):  # an unset variable is not this folder
        find_models(["", str(folder)])
    empty = folder / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match=r"no \.onnx"):
        find_models([str(empty)])
    with pytest.raises(UsageError, match="not a version"):
        parse_target("onnxruntime==latest")
    with pytest.raises(UsageError, match="NAME=VALUE"):
        parse_environment(["isa"])
    with pytest.raises(UsageError, match="no rule is about it"):
        Checker(CheckOptions((), parse_target("nothing")), load_text(RULE))


def test_a_dangling_link_is_an_error_of_its_own(folder: Path) -> None:
    (folder / "gone.onnx").symlink_to(folder / "nowhere")
    assert folder / "gone.onnx" in find_models([str(folder)])
    checker = Checker(CheckOptions(()), load_text(RULE))
    assert checker.check(folder / "gone.onnx").errors


def test_a_folder_that_cannot_be_read_is_an_error_of_its_own(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = folder / "closed"
    closed.mkdir()
    scan = os.scandir

    def refuse(path: Any = ".") -> Any:
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert closed in find_models([str(folder)])
    assert find_models([str(closed)]) == [closed]
    report = Checker(CheckOptions(()), load_text(RULE)).check(closed)
    assert report.errors == (("Permission denied", None),)
    with pytest.raises(RulesError, match="cannot read this folder"):
        load_rules([folder])


def test_globs_are_expanded_once(folder: Path) -> None:
    found = find_models([str(folder / "*.uir"), str(folder / "a.uir")])
    assert [p.name for p in found] == ["a.uir", "b.uir", "d.uir"]


def test_a_folder_s_environments_and_second_copies_are_left_out(tmp_path: Path) -> None:
    finding = "run/findings/00000001"
    for name in (
        "a.uir", "sub/e.uir", ".venv/b.onnx", "sub/.git/c.uir", "env/pyvenv.cfg", "env/lib/d.onnx",
        f"{finding}/finding.json", f"{finding}/model.onnx", f"{finding}/program.uir",
        f"{finding}/reduced/finding.json", f"{finding}/reduced/program.uir",
        "other/model.onnx", "other/program.uir",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [path.relative_to(tmp_path).as_posix() for path in find_models([str(tmp_path)])]
    assert found == [
        "a.uir", "other/model.onnx", "other/program.uir", f"{finding}/model.onnx",
        f"{finding}/reduced/program.uir", "sub/e.uir",
    ]  # fmt: skip
    for asked in (".venv", "env"):  # what is asked for by name is searched
        assert len(find_models([str(tmp_path / asked)])) == 1


def test_a_version_that_no_rule_is_about_is_warned_of() -> None:
    rules = load_text(RULE.replace("onnxruntime\n", 'onnxruntime affects: ">=1.2,<1.32"\n'))
    for version, warnings in [("1.27", 0), ("1.72", 1)]:
        options = CheckOptions((), parse_target(f"onnxruntime=={version}"))
        assert len(Checker(options, rules).warnings) == warnings
    assert "1.72" in Checker(options, rules).warnings[0]
    assert "the newest that they name is 1.32" in Checker(options, rules).warnings[0]


MINED = """
hw("board", "dram_bytes", 64).
constraint fits : resource on {
    target: genesys
    from: "memory.py:12"
    a = abs(x)
} require x.bytes <= device(dram_bytes)
constraint any_compiler : resource on { a = abs(x) } require x.rank == 1
"""


def test_a_constraint_about_another_compiler_is_left_out(folder: Path) -> None:
    rules = load_text(MINED)
    for target, named in (("genesys", ["fits", "any_compiler"]), ("tvm", ["any_compiler"])):
        checker = Checker(CheckOptions((), parse_target(target)), rules)
        assert [c.name for c in checker.constraints] == named


def test_a_violation_says_where_its_constraint_comes_from(folder: Path) -> None:
    (folder / "big.uir").write_text("x: float32[99]\ny = abs(x)\n")
    options = CheckOptions((), environment={"device": "board"})
    (found,) = Checker(options, load_text(MINED)).check(folder / "big.uir").matches
    assert (found.rule, found.certainty) == ("fits", "yes")
    text = places_text([found])
    assert "target:   genesys" in text and "from:     memory.py:12" in text


def test_a_device_that_no_rule_describes_is_told() -> None:
    options = CheckOptions((), environment={"device": "bord"})
    (warning,) = Checker(options, load_text(MINED)).warnings
    assert "bord" in warning and "`board`" in warning
