"""``reprise xcheck`` as its user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reprise.data import data_path
from reprise.lang.ruleset import load_rules
from reprise.xcheck.store import XRun
from tests.conftest import environment
from tests.forking import forked

HERE = Path(__file__).parent
PICKY = ["--target", str(HERE / "picky.py"), "--rules", str(HERE / "picky.rules")]
Done = subprocess.CompletedProcess[str]


def xcheck(folder: Path, *arguments: str) -> Done:
    return forked(["xcheck", *arguments], folder, environment(), 300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("command")


@pytest.fixture(scope="module")
def done(folder: Path) -> Done:
    """A run of 12 models, in ``run``."""
    return xcheck(folder, *PICKY, "--models", "12", "--out", "run")


@pytest.mark.slow
def test_findings_are_told_with_their_constraint_and_its_source(done: Done) -> None:
    assert done.returncode == 1, done.stderr
    assert "12 models; 4 of 4 constraints violated" in done.stdout
    assert "accepted silently though a constraint is violated, at the end" in done.stdout
    assert "same_type (picky.py:4)" in done.stdout
    assert "crashed, in codegen" in done.stdout


@pytest.mark.slow
def test_a_table_says_what_became_of_each_class(done: Done) -> None:
    lines = done.stdout.splitlines()
    head = next(line.split() for line in lines if line.split()[:1] == ["class"])
    row = next(line.split() for line in lines if line.split()[:1] == ["cardinality"])
    assert dict(zip(head, row, strict=True))["rejected"] != "-"


def test_progress_goes_to_standard_error(done: Done) -> None:
    assert "run: from the start; 4 constraints" in done.stderr
    assert "from the start" not in done.stdout


@pytest.mark.slow
def test_a_run_is_resumed_with_its_own_options(done: Done, folder: Path) -> None:
    again = xcheck(folder, "--resume", "run", "--models", "14", "--format", "json")
    assert again.returncode == 1, again.stderr
    told = json.loads(again.stdout)
    assert told["models"] == 14 and told["target"].endswith("picky.py")
    assert {c["constraint"] for c in told["coverage"]} == {
        "two_operands", "same_type", "add_fits", "never_13",
    }  # fmt: skip
    other = xcheck(folder, "--resume", "run", "--seed", "3")
    assert other.returncode == 2 and "--seed" in other.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "--target"),
        (["--target", "nosuch"], "no compiler `nosuch`"),
        (["--resume", "nowhere"], "no run in this folder"),
        (["--target", "onnxruntime", "--device", "toaster"], "no device is called `toaster`"),
        (["--target", "onnxruntime", "--rules", "nowhere"], "nowhere"),
    ],
)
def test_what_is_wrong_is_told(folder: Path, arguments: list[str], message: str) -> None:
    found = xcheck(folder, *arguments)
    assert found.returncode == 2 and message in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.slow
def test_a_run_without_findings_ends_well(tmp_path: Path) -> None:
    rules = tmp_path / "one.rules"
    rules.write_text("constraint two : cardinality on { n = add(...) } require arity(n) == 2\n")
    found = xcheck(tmp_path, *PICKY[:2], "--rules", str(rules), "--out", "run")
    assert found.returncode == 0, found.stderr
    assert "findings" not in found.stdout


@pytest.mark.slow
def test_ctrl_c_stops_a_run_that_can_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reprise", "xcheck", *PICKY, "--time", "10m", "--out", "run"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment()},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("run/models/*.onnx")) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "reprise xcheck --resume run" in said
    assert XRun.open(tmp_path / "run").models


def test_the_devices_that_ship_have_a_memory() -> None:
    rules = load_rules([data_path("rules/hardware")])
    known: dict[str, set[str]] = {}
    for rule in rules.program.rules:
        if rule.head.relation == "hw":
            target, key, _ = (getattr(term, "value", None) for term in rule.head.terms)
            known.setdefault(str(target), set()).add(str(key))
    assert known and all({"dram_bytes", "dram_bits"} <= keys for keys in known.values())


def test_every_constraint_that_ships_says_where_it_is_from() -> None:
    rules = load_rules([data_path("rules/constraints")])
    assert rules.constraints
    assert [n for n, c in rules.constraints.items() if not c.meta.get("from")] == []
