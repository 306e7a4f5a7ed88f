"""One writer, one truth: locks, full disks, jumping clocks, and kill -9 at any point."""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reprise.campaign import writer as module
from reprise.campaign.records import End, Record, StoreError
from reprise.campaign.store import Run
from reprise.campaign.writer import RunWriter
from reprise.oracle.verdict import Verdict
from tests.campaign.runs import FILES, add, info, made, record
from tests.campaign.toy import contents
from tests.conftest import ROOT

TESTS = 60


# --- one writer ----------------------------------------------------------------------------------


def test_two_campaigns_on_one_folder_are_refused(tmp_path: Path) -> None:
    writer = made(tmp_path / "run", 10)
    with pytest.raises(StoreError, match=f"another campaign.*process {os.getpid()} on"):
        RunWriter.resume(tmp_path / "run")
    with pytest.raises(StoreError, match="another campaign"):
        RunWriter.create(tmp_path / "run", info())
    add(writer, [record(10)])
    writer.commit()
    writer.close()
    RunWriter.resume(tmp_path / "run").close()


def test_a_folder_with_a_run_is_not_begun_again(tmp_path: Path) -> None:
    made(tmp_path / "run", 10).close()
    with pytest.raises(StoreError, match=r"holds a run already.*--resume"):
        RunWriter.create(tmp_path / "run", info())
    assert Run.open(tmp_path / "run").tests == 10


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match="holds other things"):
        RunWriter.create(tmp_path, info())
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(StoreError, match="is a file"):
        RunWriter.create(tmp_path / "thesis.tex", info())


def test_a_test_out_of_turn_is_refused(tmp_path: Path) -> None:
    writer = made(tmp_path / "run", 10)
    for index in (9, 11):
        with pytest.raises(ValueError, match="10 is next"):
            writer.add(record(index))
    writer.close()


# --- kill -9 -------------------------------------------------------------------------------------

CAMPAIGN = """
import random, signal, sys, time
from pathlib import Path
from reprise.campaign.records import End, StoreError
from reprise.campaign.writer import RunWriter
from tests.campaign.runs import FILES, info, record

path, tests, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
print("ready", flush=True)
try:
    writer = RunWriter.resume(path)
except StoreError:                        # there is none yet
    writer = RunWriter.create(path, info())
for index in range(writer.next, tests):
    each = record(index)
    new = writer.is_new(each) and each.verdict.is_finding
    writer.add(each, FILES if writer.wants_folder(each) else None)
    if new or rng.random() < 0.1:
        writer.commit()
        if new:
            print(index, flush=True)      # reported
    time.sleep(rng.random() * 0.004)
writer.commit(End.DONE)
"""


def uninterrupted(path: Path) -> dict[str, object]:
    writer = made(path, TESTS)
    writer.commit(End.DONE)
    writer.close()
    return contents(path)


def killed_and_resumed(path: Path, seed: int) -> set[int]:
    """Run a campaign that is killed four times, then let finish; what it reported."""
    rng = random.Random(seed)
    reported: set[int] = set()
    for session in range(5):
        process = subprocess.Popen(
            [sys.executable, "-c", CAMPAIGN, str(path), str(TESTS), str(session)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if session < 4:
            time.sleep(rng.random() * 0.15)
            process.kill()
        reported |= {int(line) for line in process.stdout.read().split()}
        process.stdout.close()
        assert process.wait() == 0 or session < 4
    return reported


@pytest.mark.parametrize(
    "seeds", [range(3), pytest.param(range(3, 53), marks=pytest.mark.slow)], ids=["few", "fifty"]
)
def test_kill_minus_nine_loses_nothing_and_counts_nothing_twice(
    tmp_path: Path, seeds: range
) -> None:
    expected = uninterrupted(tmp_path / "whole")
    for seed in seeds:
        path = tmp_path / f"run{seed}"
        reported = killed_and_resumed(path, seed)
        assert contents(path) == expected
        run = Run.open(path)
        assert reported <= {f.index for f in run.findings}
        assert {s.first_index for s in run.signatures if s.verdict.is_finding} >= reported
        folders = {f.folder for f in run.findings if f.folder}
        assert set((path / "findings").iterdir()) == folders


def test_a_campaign_that_dies_between_folder_and_row(tmp_path: Path) -> None:
    """The folder is in place, its row is not: it is removed, and the test done again."""
    writer = made(tmp_path / "run", 10)
    crash = Record(10, Verdict.CRASH, "new")
    writer.add(crash, FILES)
    (tmp_path / "run/findings/.new-00000011").mkdir()
    (tmp_path / "run/findings/my notes").mkdir()
    writer.close()  # as a kill does: nothing is committed
    assert (tmp_path / "run/findings/00000010").is_dir()
    writer = RunWriter.resume(tmp_path / "run")
    assert writer.next == 10
    names = {p.name for p in (tmp_path / "run/findings").iterdir()}
    assert "00000010" not in names and ".new-00000011" not in names
    assert "my notes" in names
    writer.add(crash, FILES)
    writer.commit()
    writer.close()
    assert [f.index for f in Run.open(tmp_path / "run").findings][-1] == 10


def test_a_campaign_that_dies_while_it_begins(tmp_path: Path) -> None:
    """Nothing but a lock and an empty store is there: the folder can be used again."""
    (tmp_path / "lock").write_text("process 1 on nowhere")
    (tmp_path / "store.sqlite").touch()
    with pytest.raises(StoreError, match="ended before it began"):
        RunWriter.resume(tmp_path)
    made(tmp_path, 5).close()
    assert Run.open(tmp_path).tests == 5


# --- full disks ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_disk_that_is_full_at_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write to a finding's folder fails in turn: the message says so, and nothing is left."""
    real_open, real_fsync, real_rename = open, os.fsync, os.rename
    for step in range(20):
        path = tmp_path / f"run{step}"
        writer = made(path, 10)
        writer.commit()
        left = [step]

        def spend() -> None:
            left[0] -= 1  # noqa: B023
            if left[0] < 0:  # noqa: B023
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def limited_open(file: object, mode: str = "r", *rest: object, **more: object) -> object:
            if "w" in mode:
                spend()
            return real_open(file, mode, *rest, **more)  # type: ignore[call-overload]

        def limited_fsync(handle: int) -> None:
            spend()
            real_fsync(handle)

        def limited_rename(a: Path, b: Path) -> None:
            spend()
            real_rename(a, b)

        with monkeypatch.context() as patch:
            patch.setattr(module, "open", limited_open, raising=False)
            patch.setattr(module.os, "fsync", limited_fsync)
            patch.setattr(module.os, "rename", limited_rename)
            try:
                writer.add(Record(10, Verdict.CRASH, "new"), FILES)
            except StoreError as error:
                assert "the disk is full" in str(error)
                failed = True
            else:
                failed = False
        writer.close()
        writer = RunWriter.resume(path)
        assert writer.next == 10
        assert not list((path / "findings").glob(".new-*"))
        writer.add(Record(10, Verdict.CRASH, "new"), FILES)
        writer.commit()
        writer.close()
        assert Run.open(path).findings[-1].index == 10
        if not failed:
            assert step >= 5
            return
    raise AssertionError("it never succeeded")


@pytest.fixture
def file_limit() -> Iterator[None]:
    """Files may grow to 64 KiB: the next write fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 * 1024, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, ignored)


def test_a_store_that_cannot_grow(tmp_path: Path, file_limit: None) -> None:
    path = tmp_path / "run"
    writer = made(path, 100)
    with pytest.raises(StoreError, match=str(path)):
        for index in range(100, 20_000):
            writer.add(record(index) if index < 1000 else Record(index, Verdict.OK))
            if index % 500 == 0:
                writer.commit()
    done = writer.committed
    writer.close()
    assert 100 <= done < 20_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert Run.open(path).tests == done
    writer = RunWriter.resume(path)
    add(writer, map(record, range(done, done + 50)))
    writer.commit()
    writer.close()
    assert Run.open(path).tests == done + 50


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)],
        check=False,
        capture_output=True,
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "run"
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(80 * 1024))
    writer = made(path, 30)
    with pytest.raises(StoreError, match="the disk is full"):
        for index in range(30, 20_000):
            writer.add(Record(index, Verdict.CRASH, f"s{index}"), FILES)
            writer.commit()
    done = writer.committed
    writer.close()
    ballast.unlink()
    assert Run.open(path).tests == done
    writer = RunWriter.resume(path)
    writer.add(record(done))
    writer.commit()
    writer.close()
    assert Run.open(path).tests == done + 1


# --- clocks --------------------------------------------------------------------------------------


def test_a_wall_clock_that_jumps_changes_no_duration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RunWriter.create(tmp_path / "run", info())
    jumps = iter([10.0**9, -(10.0**9), 0.0, 5e8] * 50)
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    monkeypatch.setattr(module, "utc_now", lambda: "1970-01-01T00:00:00+00:00")
    add(writer, map(record, range(30)))
    writer.commit(End.DONE)
    writer.close()
    run = Run.open(tmp_path / "run")
    assert 0 <= run.seconds < 60
    assert all(0 <= f.at < 60 for f in run.findings)
    assert [f.at for f in run.findings] == sorted(f.at for f in run.findings)
    writer = RunWriter.resume(tmp_path / "run")
    assert run.seconds <= writer.seconds < run.seconds + 60
    writer.close()


def test_adding_tests_costs_next_to_nothing(tmp_path: Path) -> None:
    """20,000 tests, a commit for each thousand, in CPU time: far more than 100 a second."""
    writer = RunWriter.create(tmp_path / "run", info())
    start = time.process_time()
    for index in range(20_000):
        writer.add(record(index), None)
        if index % 1000 == 0:
            writer.commit()
    writer.commit()
    assert time.process_time() - start < 4
    writer.close()


def test_a_read_only_file_system(tmp_path: Path) -> None:
    """It can be read, and is not written to."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        made(disk / "run", 30).close()
        before = Run.open(disk / "run")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert Run.open(disk / "run") == before
        with pytest.raises(StoreError, match="Read-only file system"):
            RunWriter.resume(disk / "run")
        with pytest.raises(StoreError, match="Read-only file system"):
            RunWriter.create(disk / "other", info())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_any_text_can_be_recorded(tmp_path: Path) -> None:
    """Messages come from compilers: halves of characters, zero bytes, megabytes."""
    writer = RunWriter.create(tmp_path / "run", info())
    for index in range(2):
        writer.add(Record(index, Verdict.CRASH, "half \ud800 and \0", "t\udfff" + "x" * 10**6))
    writer.commit()
    writer.close()
    (signature,) = Run.open(tmp_path / "run").signatures
    assert (signature.signature, signature.count) == ("half \\ud800 and \0", 2)
    assert len(signature.title) == 1000
    writer = RunWriter.resume(tmp_path / "run")
    assert not writer.is_new(Record(2, Verdict.CRASH, "half \ud800 and \0"))
    writer.close()
