"""``reprise fuzz`` as its user meets it: exit codes, what it says, how it stops and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from reprise.campaign.records import End
from reprise.campaign.store import Run
from reprise.oracle.verdict import Verdict
from tests.campaign.toy import contents
from tests.conftest import environment
from tests.forking import forked

Done = subprocess.CompletedProcess[str]

SMALL = "--target onnxruntime --ops relu,clip,transpose,gemm,abs --dtypes float64,float32 --nodes 4"
"""A corner of the vocabulary with two known bugs in it."""


EXPECTED = {"ort_32228", "ort_32228_output", "ort_24158"}
"""Rules about the operators that the runs use: which of them are met depends on the seed."""


def command(arguments: str | Sequence[str]) -> list[str]:
    words = arguments.split() if isinstance(arguments, str) else list(arguments)
    return [sys.executable, "-m", "reprise", "fuzz", *words]


def fuzz(folder: Path, arguments: str | Sequence[str]) -> Done:
    words = arguments.split() if isinstance(arguments, str) else list(arguments)
    return forked(["fuzz", *words], folder, environment(), 300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def unguided(folder: Path) -> Done:
    """A run that meets known bugs, in ``run``."""
    return fuzz(folder, f"{SMALL} --tests 150 --no-guidance --out run")


@pytest.mark.slow
def test_known_bugs_are_found_and_filed(folder: Path, unguided: Done) -> None:
    assert unguided.returncode == 1, unguided.stderr
    run = Run.open(folder / "run")
    assert run.tests == 150
    known = {d.rule for d in run.defects} & EXPECTED
    assert known
    assert not run.info.guided
    assert run.verdicts[Verdict.INVALID] == 0
    for rule in known:
        assert f"known: {rule}" in unguided.stdout and f"known: {rule}" in unguided.stderr
    assert "150 tests in" in unguided.stdout
    assert all(f.confirmation and not f.confirmation.flaky for f in run.findings if f.folder)


@pytest.mark.slow
def test_guidance_keeps_them_away(folder: Path, unguided: Done) -> None:
    done = fuzz(folder, f"{SMALL} --tests 150 --out guided")
    run = Run.open(folder / "guided")
    assert not {d.rule for d in run.defects} & EXPECTED, done.stderr
    met = {d.rule for d in Run.open(folder / "run").defects} & EXPECTED
    assert met <= {rule for rule, one in run.suppressed.items() if one.rejected}
    assert "suppressed by" in done.stdout


@pytest.mark.slow
def test_a_run_that_is_complete_goes_on_only_with_more(folder: Path, unguided: Done) -> None:
    done = fuzz(folder, "--resume run")
    assert done.returncode == 2
    assert "this run is complete (150 tests" in done.stderr and "larger --tests" in done.stderr
    done = fuzz(folder, "--resume run --seed 3")
    assert done.returncode == 2
    assert "leave out --seed" in done.stderr


@pytest.mark.slow
def test_a_folder_with_a_run_is_refused(folder: Path, unguided: Done) -> None:
    done = fuzz(folder, f"{SMALL} --tests 5 --out run")
    assert done.returncode == 2
    assert "holds a run already" in done.stderr and "--resume run" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "--target NAME"),
        ("--target onxruntime", "onnxruntime"),
        ("--target onnxruntime@/no/python", "no interpreter /no/python"),
        ("--target onnxruntime --time soon", "no duration"),
        ("--target onnxruntime --time 0s", "more than nothing"),
        ("--target onnxruntime --tests 0", "--tests"),
        ("--target torch-sparse --max-elements 0", "--max-elements"),
        ("--target onnxruntime --ops nonsense --tests 1", "nonsense"),
        ("--target onnxruntime --dtypes float31 --tests 1", "float31"),
        ("--target onnxruntime --dtypes float32=many --tests 1", "whole number"),
        ("--resume nowhere", "no run in this folder"),
    ],
)
def test_what_cannot_work_is_said_at_once(tmp_path: Path, arguments: str, message: str) -> None:
    done = fuzz(tmp_path, arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interpreter_without_the_compiler(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    done = fuzz(tmp_path, f"--target onnxruntime@{python} --tests 1")
    assert done.returncode == 2
    assert str(python) in done.stderr and "numpy" in done.stderr


def begin(folder: Path, arguments: str) -> subprocess.Popen[str]:
    """Start a campaign, and wait until it has recorded something."""
    process = subprocess.Popen(
        command(arguments),
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(1200):
        time.sleep(0.1)
        if process.poll() is not None:
            raise AssertionError(process.communicate())
        if (folder / "run/store.sqlite").is_file():
            try:
                if Run.open(folder / "run").tests:
                    return process
            except Exception:
                continue
    process.kill()
    raise AssertionError(process.communicate())


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_ctrl_c_stops_and_resume_goes_on(
    tmp_path: Path, folder: Path, unguided: Done, jobs: int
) -> None:
    process = begin(tmp_path, f"{SMALL} --no-guidance --time 1h --out run -j {jobs}")
    second = fuzz(tmp_path, "--resume run --time 2h")
    assert second.returncode == 2
    assert f"another campaign is writing to this folder (process {process.pid}" in second.stderr
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody gets it
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "stopped; to go on: reprise fuzz --resume run" in out
    assert "Traceback" not in err
    before = Run.open(tmp_path / "run")
    assert before.sessions[-1].end is End.INTERRUPTED
    tests = before.tests + 20
    done = fuzz(tmp_path, f"--resume run --tests {tests} --time 2h")
    assert done.returncode in (0, 1), done.stderr
    after = Run.open(tmp_path / "run")
    assert after.tests == tests
    assert [s.next for s in after.sessions] == [before.tests, tests]
    both = min(tests, 150)
    runs = after, Run.open(folder / "run")
    ours, theirs = ([f.index for f in run.findings if f.index < both] for run in runs)
    assert ours == theirs


@pytest.mark.slow
def test_kill_minus_nine_at_random_points(folder: Path, tmp_path: Path, unguided: Done) -> None:
    """The command itself, killed again and again: in the end the run is the uninterrupted one."""
    start = f"{SMALL} --no-guidance --out run -j 2"
    process = begin(tmp_path, f"{start} --time 1h")
    for number in range(5):
        time.sleep(0.05 * number)
        process.kill()
        process.communicate()
        done = Run.open(tmp_path / "run").tests
        if done >= 150:
            break
        process = subprocess.Popen(
            command("--resume run --tests 150 --time 1h"),
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(6)
    process.kill()
    process.communicate()
    if Run.open(tmp_path / "run").tests < 150:
        assert fuzz(tmp_path, "--resume run --tests 150 --time 1h").returncode == 1
    whole, pieces = contents(folder / "run"), contents(tmp_path / "run")
    if pieces["tests"] == 150:
        assert pieces["signatures"] == whole["signatures"]
        assert pieces["findings"] == whole["findings"]


@pytest.mark.slow
def test_a_full_disk_is_said_and_mended(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(56 * 1024))
        done = fuzz(disk, f"{SMALL} --tests 400 --no-guidance --out run --keep 100")
        assert done.returncode == 2, done.stdout + done.stderr
        assert "the disk is full" in done.stderr
        assert "reprise fuzz --resume run" in done.stderr
        assert "Traceback" not in done.stderr
        ballast.unlink()
        recorded = Run.open(disk / "run").tests
        done = fuzz(disk, f"--resume run --tests {recorded + 3}")
        assert done.returncode in (0, 1), done.stderr
        assert Run.open(disk / "run").tests == recorded + 3
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_rules_that_changed_end_a_run(tmp_path: Path) -> None:
    rules = tmp_path / "my.rules"
    text = 'pattern mine "two of them" {{ target: onnxruntime\n a = abs(x)\n b = {}(a) }}\n'
    rules.write_text(text.format("relu"))
    done = fuzz(tmp_path, f"{SMALL} --tests 3 --rules my.rules --out run")
    assert done.returncode == 0, done.stderr
    assert Run.open(tmp_path / "run").info.rules == ("mine",)
    rules.write_text(text.format("abs"))
    done = fuzz(tmp_path, "--resume run --tests 6")
    assert done.returncode == 2
    assert "the rules have changed" in done.stderr
    rules.write_text("pattern broken {")
    done = fuzz(tmp_path, f"{SMALL} --tests 3 --rules my.rules --out other")
    assert done.returncode == 2
    assert not (tmp_path / "other").exists()
