"""The loop: every number once, in order, whoever does the work and whatever happens to them."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from reprise.campaign.findings import read_detail, read_npz
from reprise.campaign.records import End
from reprise.campaign.run import Budget, Campaign
from reprise.campaign.scheduler import LocalProcesses
from reprise.campaign.store import Run
from reprise.campaign.writer import RunWriter
from reprise.oracle.verdict import Verdict
from tests.campaign.toy import Silent, ToySource, contents, fuzz, toy_info, toy_work

TESTS = 150


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run by one process."""
    path = tmp_path_factory.mktemp("runs") / "alone"
    assert fuzz(path, TESTS) is End.DONE
    return path


@pytest.mark.slow
def test_a_run_finds_what_is_there(alone: Path) -> None:
    run = Run.open(alone)
    assert run.tests == TESTS
    assert {s.signature for s in run.signatures} == {
        "no kernel of the first kind",
        "'the second kind'",
        "differs",
    }
    assert run.verdicts[Verdict.INVALID] == 0
    assert run.verdicts[Verdict.OK] + len(run.findings) == TESTS
    assert run.suppressed["toy_tanh"].rejected > 0
    assert [s.end for s in run.sessions] == [End.DONE]


@pytest.mark.slow
def test_some_findings_are_filed_under_the_rule_they_match(alone: Path) -> None:
    run = Run.open(alone)
    filed = [f for f in run.findings if f.rule == "toy_tanh"]
    for finding in run.findings:
        if finding.folder is None:
            continue
        text = (finding.folder / "program.uir").read_text()
        source = ToySource().program(finding.index).program.graph
        ops = [node.op for node in source.nodes]
        assert all(op in text for op in ops)
        matches = ("tanh", "neg") in itertools.pairwise(ops)
        crash = finding.verdict is Verdict.CRASH
        assert (finding.rule == "toy_tanh") == (matches and crash)
        detail = read_detail(finding.folder)
        assert [m.rule for m in detail.matches] == (["toy_tanh"] if matches else [])
    assert all(f.verdict is Verdict.CRASH for f in filed)


def test_a_findings_folder_is_complete(alone: Path) -> None:
    run = Run.open(alone)
    finding = next(f for f in run.findings if f.folder and f.signature == "differs")
    assert finding.folder is not None
    detail = read_detail(finding.folder)
    assert (detail.index, detail.verdict, detail.seed) == (finding.index, finding.verdict, 42)
    assert detail.confirmation == finding.confirmation
    assert finding.confirmation is not None and not finding.confirmation.flaky
    assert sorted(detail.files) == sorted(p.name for p in finding.folder.iterdir())
    assert detail.versions == {"toy": "1.0"}
    program = ToySource().program(finding.index).program
    inputs = read_npz(finding.folder / "inputs.npz")
    assert (inputs["x"] == program.inputs["x"]).all()
    outputs = read_npz(finding.folder / "outputs.npz")
    assert outputs["optimised.0"].tolist() == [2, 2, 2]
    assert outputs["unoptimised.0"].tolist() == [1, 1, 1]


@pytest.mark.slow
def test_two_processes_make_the_same_run(alone: Path, tmp_path: Path) -> None:
    assert fuzz(tmp_path / "run", TESTS, jobs=2) is End.DONE
    assert contents(tmp_path / "run") == contents(alone)


@pytest.mark.slow
def test_a_resumed_run_is_the_same_run(alone: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    fuzz(path, 90, jobs=2)
    assert fuzz(path, TESTS, resume=True) is End.DONE
    assert contents(path) == contents(alone)
    sessions = Run.open(path).sessions
    assert [(s.first, s.next, s.jobs) for s in sessions] == [(0, 90, 2), (90, TESTS, 1)]


@pytest.mark.slow
def test_progress_is_that_of_the_whole_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    fuzz(path, 60)
    writer = RunWriter.resume(path, 1)
    campaign = Campaign(writer, toy_work(), Budget(90), Silent())
    campaign.run()
    tally, run = campaign.tally, Run.open(path)
    writer.close()
    assert (tally.tests, tally.done, tally.verdicts.total()) == (90, 30, 90)
    assert dict(tally.verdicts) == {v: n for v, n in run.verdicts.items() if n}
    assert len(tally.defects) == len(run.defects) == 3
    assert tally.rejected == {rule: s.rejected for rule, s in run.suppressed.items()}
    assert tally.before + tally.seconds >= run.sessions[0].seconds


@pytest.mark.slow
def test_a_time_budget_counts_all_sessions(tmp_path: Path) -> None:
    path = tmp_path / "run"
    assert fuzz(path, None, seconds=1.0, source=ToySource(seconds=0.01)) is End.DONE
    first = Run.open(path)
    assert first.seconds >= 0.9  # how much more depends on the machine
    assert fuzz(path, None, seconds=3.0, source=ToySource(seconds=0.01), resume=True) is End.DONE
    run = Run.open(path)
    assert run.seconds >= 2.9
    assert run.tests > first.tests > 0
    assert fuzz(path, None, seconds=1.0, source=ToySource(), resume=True) is End.DONE
    assert Run.open(path).tests == run.tests  # nothing of the budget was left


@pytest.mark.slow
def test_the_budget_is_kept_while_a_test_hangs(tmp_path: Path) -> None:
    start = time.monotonic()
    assert fuzz(tmp_path / "run", None, seconds=1.0, source=ToySource(seconds=30)) is End.DONE
    assert time.monotonic() - start < 10


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_session_cleanly(
    tmp_path: Path, alone: Path, jobs: int, number: signal.Signals
) -> None:
    path = tmp_path / "run"
    threading.Timer(1.5, os.kill, (os.getpid(), number)).start()
    assert fuzz(path, None, jobs=jobs, source=ToySource(seconds=0.01)) is End.INTERRUPTED
    run = Run.open(path)
    assert run.sessions[0].end is End.INTERRUPTED
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if run.tests <= TESTS:
        fuzz(path, TESTS, resume=True)
        assert contents(path) == contents(alone)


@pytest.mark.slow
def test_our_own_mistakes_are_counted_and_do_not_stop_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run"
    fuzz(path, 20, source=ToySource(stumbles=7))
    run = Run.open(path)
    assert run.tests == 20
    assert run.verdicts[Verdict.INVALID] == 1
    (finding,) = (f for f in run.findings if f.verdict is Verdict.INVALID)
    assert finding.index == 7
    assert finding.folder is not None
    detail = json.loads((finding.folder / "finding.json").read_text())
    assert "the generator stumbles" in detail["evidence"]["traceback"]
    assert run.redundancy.reports == len([f for f in run.findings if f.verdict.is_finding])


@pytest.mark.slow
def test_a_test_that_kills_our_processes_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "run"
    fuzz(path, 30, jobs=2, source=ToySource(dies=11))
    run = Run.open(path)
    assert run.tests == 30
    assert [(f.index, f.signature) for f in run.findings if f.verdict is Verdict.INVALID] == [
        (11, "reprise: process died")
    ]


@pytest.mark.slow
def test_processes_that_are_killed_at_random_change_nothing(alone: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    writer = RunWriter.create(path, toy_info(), 2)
    work = toy_work(ToySource(seconds=0.01))
    scheduler = LocalProcesses(work, 2)
    stop, killed = threading.Event(), list[int]()

    def kill() -> None:
        for number in range(4):
            while not stop.wait(0.2) and len(scheduler.pids) < 2:
                pass
            for pid in scheduler.pids[number % 2 :][:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            stop.wait(0.3)  # until it is noticed

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        campaign = Campaign(writer, work, Budget(TESTS), Silent(), jobs=2, scheduler=scheduler)
        assert campaign.run() is End.DONE
    finally:
        stop.set()
        killer.join()
        writer.close()
    assert killed
    assert contents(path) == contents(alone)


@pytest.mark.slow
def test_targets_that_are_killed_at_random_end_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What SIGKILL does to a target's process is an outcome; so is garbage on its connection."""
    monkeypatch.setenv("TOY", "dies garbage")
    path = tmp_path / "run"
    fuzz(path, 60)
    run = Run.open(path)
    assert run.tests == 60
    assert {s.signature for s in run.signatures} >= {"died", "garbage"}
    assert run.verdicts[Verdict.INVALID] == 0


@pytest.mark.slow
def test_a_target_that_is_killed_from_outside_is_a_flaky_finding(tmp_path: Path) -> None:
    """Whoever did it (an out-of-memory killer, say), the run goes on, and says that it was once."""
    path = tmp_path / "run"
    writer = RunWriter.create(path, toy_info())
    work = toy_work(ToySource(seconds=0.01))
    bench = work.open()
    killed: list[int] = []

    def kill() -> None:
        for _ in range(200):
            time.sleep(0.02)
            pid = bench.process.pid
            if pid is not None and pid not in killed and len(killed) < 3:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    campaign = Campaign(writer, work, Budget(TESTS), Silent(), bench=bench)
    try:
        assert campaign.run() is End.DONE
    finally:
        killer.join()
        writer.close()
    run = Run.open(path)
    assert len(killed) == 3
    assert run.tests == TESTS
    ended = [f for f in run.findings if f.signature == "died"]
    assert all(f.confirmation and f.confirmation.flaky for f in ended if f.folder)
    others = [f for f in run.findings if f.signature != "died"]
    assert not any(f.confirmation.flaky for f in others if f.confirmation)


@pytest.mark.slow
def test_nothing_is_left_running(alone: Path, tmp_path: Path) -> None:
    before = children()
    fuzz(tmp_path / "run", 30, jobs=2)
    deadline = time.monotonic() + 5
    while children() - before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not children() - before


def children() -> set[str]:
    """Our processes, but for the one in which multiprocessing keeps its books."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            if "resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_text():
                found.add(pid)
    return found
