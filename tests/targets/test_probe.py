"""Probing: the table is what the target declines, the rest is told; same seed, same table."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.targets.discover import parse_target
from reprise.targets.probe import probe
from reprise.targets.support import Support
from tests.conftest import Run

PICKY = """
NAME = "picky"
LOWERING = "onnx"
MODES = ("optimised", "unoptimised")
DEVICES = ("cpu",)


class Runner:
    def __init__(self, device, announce):
        import onnx

        self.onnx = onnx

    def versions(self):
        return {"picky": "3"}

    def run(self, model, inputs, mode, disabled):
        if mode == "optimised":
            raise NotImplementedError("only an optimiser would say that")
        (node, *_) = self.onnx.load_from_string(model).graph.node
        x = next(iter(inputs.values()))
        if node.op_type == "Exp" and x.dtype == "float64":
            raise NotImplementedError("no exp of doubles")
        if node.op_type == "Exp" and x.ndim == 0:
            raise NotImplementedError("no exp of scalars")
        if node.op_type == "Log" and x.dtype == "float32":
            raise ValueError("log is broken")
        if node.op_type == "Clip" and x.dtype == "float64":
            raise NotImplementedError("no clip of doubles")
        return []

    def passes(self, model):
        return []

    def is_unsupported(self, error):
        return isinstance(error, NotImplementedError)
"""


@pytest.fixture
def picky(tmp_path: Path) -> Path:
    file = tmp_path / "picky.py"
    file.write_text(PICKY)
    return file


@pytest.mark.slow
def test_what_is_declined_every_time_is_the_table(picky: Path) -> None:
    report = probe(parse_target(str(picky)), ["exp", "log", "clip"], instances=12)
    assert set(report.support.table) == {("exp", ("float64",)), ("clip", ("float64", "..."))}
    assert "no exp of doubles" in report.support.table["exp", ("float64",)]
    assert (report.support.versions, report.support.mode) == ({"picky": "3"}, "unoptimised")


def test_what_fails_now_and_then_or_otherwise_is_told(picky: Path) -> None:
    report = probe(parse_target(str(picky)), ["exp", "log"], instances=12)
    doubtful = {group.key: group for group in report.doubtful}
    assert ("log", ("float32",)) in doubtful
    assert ("exp", ("float32",)) in doubtful
    scalars = doubtful["exp", ("float32",)]
    assert 0 < len(scalars.failing) < len(scalars.cases)
    assert all("[]" in case.application for case in scalars.failing)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_table_whatever_the_jobs(picky: Path) -> None:
    target = parse_target(str(picky))
    first, second = (probe(target, ["exp", "gather"], jobs=jobs) for jobs in (1, 2))
    assert first.support == second.support
    assert first.groups == second.groups
    assert probe(target, ["exp", "gather"], seed=1).groups != first.groups


@pytest.mark.slow
def test_rules_of_the_target_foresee_what_its_table_cannot_say() -> None:
    report = probe(parse_target("onnxruntime"), ["gelu", "scatter_elements", "cumsum"])
    assert not report.doubtful
    assert not report.overcautious
    cases = [case for group in report.groups for case in group.cases]
    assert any(case.forbidden for case in cases)


@pytest.mark.slow
def test_the_command_writes_the_table(reprise: Run, picky: Path, tmp_path: Path) -> None:
    out = tmp_path / "picky.toml"
    done = reprise("targets", "probe", picky, "--op", "exp", "--instances", "12", "--out", out)
    assert done.returncode == 1, "there is something to look at"
    assert "exp(float32)" in done.stderr and "no exp of scalars" in done.stderr
    assert Support.load("picky", tmp_path).why_not("exp", ["float64"])
    printed = reprise("targets", "probe", picky, "--op", "exp", "--instances", "12")
    assert printed.stdout == out.read_text()


@pytest.mark.slow
def test_the_command_lists_targets_and_says_which_do_not_work(
    reprise: Run, picky: Path, tmp_path: Path
) -> None:
    done = reprise("targets", "list", picky, "onnxruntime")
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].split()[:2] == ["picky", "onnx"]
    broken = tmp_path / "broken.py"
    broken.write_text(PICKY.replace("import onnx", "import a_compiler_that_is_missing"))
    done = reprise("targets", "list", broken)
    assert done.returncode == 1
    assert "No module named 'a_compiler_that_is_missing'" in done.stderr


def test_the_command_explains_mistakes(reprise: Run, picky: Path) -> None:
    for arguments, says in (
        (["probe", "onnxruntme"], "did you mean `onnxruntime`"),
        (["probe", picky, "--op", "epx"], "epx"),
        (["list", "onnxruntime@/no/python"], "no interpreter"),
    ):
        done = reprise("targets", *arguments)
        assert done.returncode == 2 and says in done.stderr
        assert "Traceback" not in done.stderr
