"""What counts as wrong, and how a finding is told."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from reprise.einsum.data import materialise
from reprise.einsum.filing import KnownKernels
from reprise.einsum.findings import reproducer
from reprise.einsum.oracle import KernelOracle
from reprise.einsum.reference import bounds, reference
from reprise.einsum.results import Unreadable, dense_result, is_ours, judged, wrong_result
from reprise.einsum.self_check import checks, self_check
from reprise.einsum.symptom import symptom_of
from reprise.einsum.testing import REFERENCE, KernelTest, alone
from reprise.einsum.text import parse
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.translate.script import script
from reprise.oracle.verdict import Verdict
from reprise.targets.discover import TargetError, parse_target
from reprise.targets.interface import Ended, Failure, Job, ModeResult, Outcome, Stage
from reprise.targets.process import Jobs, TargetProcess
from tests.conftest import Run

HERE = Path(__file__).parent
KERNEL = parse("A(i) = B(i) where i=3, A: s, B: s {(0): 2, (2): 1}").kernel()


def listed(coordinates: list[list[int]], values: list[float]):
    return dense_result(KERNEL, np.array(coordinates, "int64").reshape(-1, 1), np.array(values))


def test_entries_are_added_up_and_a_coordinate_that_is_listed_twice_is_told_apart() -> None:
    dense, wrong = listed([[0], [2], [0]], [1.0, 1.0, 1.0])
    assert dense.tolist() == [2.0, 0.0, 1.0]
    assert wrong is not None and wrong.kind == "twice" and wrong.family == "entries"


def test_a_coordinate_outside_of_the_output_is_wrong() -> None:
    _, wrong = listed([[0], [3]], [2.0, 1.0])
    assert wrong is not None and wrong.kind == "outside" and "(3,)" in wrong.text


def test_order_and_explicit_zeros_do_not_matter() -> None:
    dense, wrong = listed([[2], [1], [0]], [1.0, 0.0, 2.0])
    assert wrong is None
    assert dense.tolist() == [2.0, 0.0, 1.0]


def test_a_nan_is_wrong_whatever_else_is() -> None:
    stored = materialise(KERNEL)
    dense = np.array([2.0, np.nan, 1.0])
    wrong = wrong_result(KERNEL, dense, reference(KERNEL, stored), bounds(KERNEL, stored))
    assert wrong is not None and wrong.kind == "nan"


def test_what_is_no_result_is_nobodys_wrong_result() -> None:
    with pytest.raises(Unreadable):
        dense_result(KERNEL, np.zeros((2, 3), "int64"), np.zeros(2))


@pytest.mark.parametrize(
    "arrays",
    [
        (),
        (np.zeros(3),),
        (np.zeros((2, 3), "int64"), np.zeros(2)),
        (np.zeros((2, 1), "int64"), np.zeros((2, 1))),
        (np.zeros((2, 1)), np.zeros(2)),
        (np.zeros(0, "int64"), np.array(["1", "2", "3"])),
        (np.zeros(0, "int64"), np.zeros(3, "complex128")),
    ],
)
def test_an_answer_that_is_no_result_is_ours(arrays: tuple[np.ndarray, ...]) -> None:
    def run(job: Job) -> Outcome:
        return Outcome(Ended.ANSWERED, {mode: ModeResult(arrays, None, 0.0) for mode in job.modes})

    test = KernelTest("k0", {REFERENCE: alone(KERNEL)})
    answers = cast(Jobs, SimpleNamespace(run=run))
    assert symptom_of(KERNEL, BACKENDS["torch-sparse"], answers).verdict is Verdict.INVALID
    examination = KernelOracle(BACKENDS["torch-sparse"])(test, b"", answers)
    assert examination.judgement.verdict is Verdict.INVALID
    with pytest.raises(TargetError, match=r"self-check failed at .*: Unreadable: "):
        self_check(parse_target(str(HERE / "lying_target.py")), answers)


def test_a_later_kernel_is_held_against_what_it_was_given() -> None:
    kernels = [
        parse("T(i) = B(i) where i=2, T: d, B: d {(0): 1, (1): 2}").kernel(),
        parse("A(i) = T(i) * C(i) where i=2, T: d, C: d {(0): 3, (1): 3}").kernel(),
    ]
    arrays = (*_dense([9.0, 9.0]), *_dense([27.0, 27.0]))
    outcome = Outcome(Ended.ANSWERED, {"v": ModeResult(arrays, None, 0.0)})
    ran = judged(kernels, alone(kernels[1]), outcome, "v")
    assert ran.wrong is not None
    assert ran.culprit == kernels[0]


def _dense(values: list[float]):
    return np.zeros(0, "int64"), np.array(values)


def test_an_exception_out_of_our_own_functions_is_ours() -> None:
    def failed(*frames: str) -> Failure:
        return Failure(Stage.RUN, "TypeError", "", frames)

    assert is_ours(failed("einsum_script.py:reference", "einsum_script.py:entries"))
    assert not is_ours(failed("einsum_script.py:reference"))
    assert not is_ours(failed("einsum_script.py:entries", "sparse/_coo.py:todense"))


def test_the_self_check_covers_every_format_of_matrices() -> None:
    names = [name for name, _ in checks()]
    assert {"unpack ss:1,0", "pack ds:1,0", "dense product, again"} <= set(names)


def test_no_campaign_begins_on_a_target_that_fails_the_self_check() -> None:
    target = parse_target(f"{HERE / 'lying_target.py'}@{sys.executable}")
    with TargetProcess(target) as process:
        process.start()
        with pytest.raises(TargetError, match="self-check failed at dense product"):
            self_check(target, process)


@pytest.mark.slow
def test_no_campaign_begins_that_has_no_kernel_to_test(reprise: Run, tmp_path: Path) -> None:
    harsh = tmp_path / "harsh.rules"
    harsh.write_text('deny none(O) "{O}" :- operand(O, _, _).\n')
    target = f"{HERE / 'lying_target.py'}@{sys.executable}"
    out = tmp_path / "run"
    done = reprise("fuzz", "--target", target, "--steer", harsh, "--out", out)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "reprise: no kernel with these options keeps to the rules\n"
    assert not (out / "store.sqlite").exists()


def test_evidence_says_each_thing_once() -> None:
    failure = Failure(Stage.RUN, "KeyError", "no such block", ("torch/sparse.py:spmm",))
    calls = []

    def run(job: Job) -> Outcome:
        calls.append(job)
        return Outcome(Ended.ANSWERED, {mode: ModeResult((), failure, 0.0) for mode in job.modes})

    process = cast(Jobs, SimpleNamespace(run=run))
    oracle = KernelOracle(BACKENDS["torch-sparse"])
    kernel = parse("A(i,k) = B(i,j) * C(j,k) where B: ds full(seed=1)").kernel()
    found = oracle(KernelTest("k0", {REFERENCE: alone(kernel)}), b"", process)
    small = oracle.smaller(found, process)
    assert len(calls) > 2 and small.judgement.evidence["reduced in"]
    for examination in (found, small):
        told = {k: str(v) for k, v in examination.judgement.evidence.items() if v and k != "crash"}
        twice = [(a, b) for a in told for b in told if a != b and told[a] in told[b]]
        assert twice == []
        assert {"shown", "type", "message"} <= set(told)
        head = reproducer(examination.shown or (), examination, oracle.translator)
        assert f"{told['shown']}: KeyError: no such block" in head


def test_a_finding_is_not_made_smaller_into_another_known_bug(tmp_path: Path) -> None:
    kernel = parse("A(i,k) = B(i,j) * C(j,k) where B: ds full(seed=1), C: ds full(seed=2)").kernel()
    test = KernelTest("k0", {REFERENCE: alone(kernel)})
    backend = BACKENDS["torch-sparse"]
    model = script(backend.translator, {REFERENCE: (kernel,)})
    known = tmp_path / "known.rules"
    known.write_text(
        'import "einsum/facts.rules"\n'
        'deny known(A) "" :- output_tensor(A), not operand(1, _, _).\n'
        'shows("known", "wrong_result").\n'
    )
    shown = []
    target = parse_target(str(HERE / "lying_target.py"))
    with TargetProcess(target) as process:  # computes zeros
        for bugs in (None, KnownKernels("torch-sparse", (known,))):
            examination = KernelOracle(backend, bugs)(test, model, process)
            (smaller,) = examination.shown
            shown.append(len(smaller.accesses))
    assert shown == [1, 2]
