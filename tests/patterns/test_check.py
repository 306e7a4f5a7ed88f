"""Checking models: the good among the broken, in parallel, within limits."""

from pathlib import Path

import pytest

from reprise.datalog import Limits
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


def test_what_makes_no_sense_is_said(folder: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        find_models([str(folder / "nothing")])
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


def test_globs_are_expanded_once(folder: Path) -> None:
    found = find_models([str(folder / "*.uir"), str(folder / "a.uir")])
    assert [p.name for p in found] == ["a.uir", "b.uir", "d.uir"]
