"""``reprise reduce`` on kernels, with a target that computes nothing but zeros."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from reprise.distill.reduce import Budget, Stop
from reprise.distill.subject import NotShown
from reprise.einsum.distill.reducing import reduce_kernel, size_of
from reprise.einsum.distill.subject import is_about_a_kernel, read_kernel_subject
from reprise.einsum.json_form import dumps
from reprise.einsum.kernel import Drawn, Entries
from reprise.einsum.relations import precompute
from reprise.einsum.text import parse
from reprise.patterns.check import UsageError
from tests.conftest import ROOT, Run, environment

LYING = str(ROOT / "tests" / "einsum" / "targets" / "lying_target.py")
WRONG = "A(i,k) = B(i,j) * C(j,k) where A: ss, B: ds full(seed=1), C: ds:1,0 full(seed=2)"


def written(folder: Path, *texts: str) -> Path:
    file = folder / "kernel.json"
    file.write_text("\n".join(dumps(parse(text).kernel()) for text in texts))
    return file


def test_a_kernel_becomes_small_and_its_folder_a_finding_s(tmp_path: Path) -> None:
    file = written(tmp_path, WRONG)
    assert is_about_a_kernel(file)
    out = tmp_path / "out"
    report = reduce_kernel(read_kernel_subject(file, LYING), out)
    assert report.stop is Stop.MINIMAL
    assert size_of(report.before) == (2, 48) and size_of(report.after) == (1, 2)
    assert {"finding.json", "kernel.json", "repro.py"} <= {path.name for path in out.iterdir()}
    assert json.loads((out / "reduction.json").read_text())["aim"]["key"] == "values"
    assert is_about_a_kernel(out)
    again = reduce_kernel(read_kernel_subject(file, LYING), out)
    assert again.after == report.after
    assert again.runs == 0  # all answers are known


def test_of_two_kernels_the_one_that_fails_by_itself_is_reduced(tmp_path: Path) -> None:
    variant = precompute(
        parse("A(i,k) = B(i,j) * C(j,k) * D(i,k) where B: ds full(seed=1)").kernel(), Random(1)
    )
    assert variant is not None and len(variant.kernels) == 2
    file = tmp_path / "kernels.jsonl"
    file.write_text("\n".join(map(dumps, variant.kernels)))
    subject = read_kernel_subject(file, LYING)
    first, second = subject.kernels
    assert first == variant.kernels[0]
    assert all(isinstance(tensor.data, Drawn | Entries) for tensor in second.operands)
    report = reduce_kernel(subject, tmp_path / "out")
    assert report.before == second and report.stop is Stop.MINIMAL
    file.write_text(dumps(variant.kernels[1]))
    with pytest.raises(UsageError, match="no kernel before it computes"):
        read_kernel_subject(file, LYING)


def test_a_spent_budget_leaves_the_smallest_so_far(tmp_path: Path) -> None:
    file = written(tmp_path, WRONG)
    report = reduce_kernel(
        read_kernel_subject(file, LYING), tmp_path / "out", budget=Budget(runs=2)
    )
    assert report.stop is Stop.BUDGET and report.runs == 2
    assert size_of(report.after) <= size_of(report.before)


def test_a_kernel_that_is_right_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, "A(i,j) = B(i,j) where B: ds empty(seed=1)")
    with pytest.raises(NotShown, match="the verdict is ok"):
        reduce_kernel(read_kernel_subject(file, LYING), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_no_kernel_by_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes no kernels"):
        read_kernel_subject(written(tmp_path, WRONG), "onnxruntime")
    with pytest.raises(UsageError, match="--target"):
        read_kernel_subject(written(tmp_path, WRONG), None)


def interrupted(ready: Path, *arguments: object) -> tuple[int, str]:
    """The exit code of a command that Ctrl-C reaches when a file has a few lines, and what it
    says."""
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "from reprise.cli.main import main; main()"  # a shell may have us ignore the signal
    started = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=environment(), start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    limit = time.monotonic() + 60
    while not (ready.exists() and len(ready.read_bytes().splitlines()) > 4):
        assert started.poll() is None and time.monotonic() < limit
        time.sleep(0.01)
    os.killpg(started.pid, signal.SIGINT)
    said, _ = started.communicate(timeout=60)
    return started.returncode, said


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_reached_and_the_next_call_goes_on(
    tmp_path: Path, reprise: Run
) -> None:
    file = written(tmp_path, WRONG)
    target = tmp_path / "slow.py"
    wait = "import time; time.sleep(0.1)\n        return [np.zeros((0"
    target.write_text(Path(LYING).read_text().replace("return [np.zeros((0", wait))
    out = tmp_path / "reduced"
    reduce = ("reduce", file, "--target", target, "--out", out)
    code, said = interrupted(out / "trials.jsonl", *reduce)
    assert code == 130 and "not minimal: stopped; the same command goes on" in said
    assert json.loads((out / "finding.json").read_text())["verdict"] == "wrong_result"
    kept = len((out / "trials.jsonl").read_text().splitlines())
    after = reprise(*reduce)
    assert after.returncode == 0 and "not minimal" not in after.stdout
    assert len((out / "trials.jsonl").read_text().splitlines()) > kept

    out = tmp_path / "distilled"
    distill = ("distill", file, "--target", target, "--out", out)
    code, said = interrupted(out / "reduced" / "trials.jsonl", *distill)
    assert (
        code == 130
        and f"stopped before there was a rule; the same command goes on from {out}" in said
    )
    assert json.loads((out / "reduced" / "finding.json").read_text())["verdict"] == "wrong_result"
    code, said = interrupted(out / "trials.jsonl", *distill)
    assert code == 130 and "not complete" in said and "the same command goes on" in said
    assert len(list(out.glob("*.rules"))) == 1


@pytest.mark.slow
def test_ctrl_c_before_anything_is_kept_says_no_more(tmp_path: Path) -> None:
    file = written(tmp_path, WRONG)
    begun = tmp_path / "begun"
    target = tmp_path / "slow.py"
    target.write_text(
        Path(LYING).read_text().replace(
            "self.announce = announce",
            f"open({str(begun)!r}, 'w').write('x\\n' * 9); __import__('time').sleep(9)",
        )
    )  # fmt: skip
    out = tmp_path / "out"
    for command in ("reduce", "distill"):
        begun.unlink(missing_ok=True)
        code, said = interrupted(begun, command, file, "--target", target, "--out", out)
        assert (code, said, out.exists()) == (130, "reprise: interrupted\n", False)
