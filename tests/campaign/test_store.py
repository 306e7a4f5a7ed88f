"""What a run's store says when it is read, and that it is read whatever the folder allows."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from reprise.campaign.findings import read_detail
from reprise.campaign.metrics import redundancy
from reprise.campaign.records import Confirmation, End, Record, StoreError
from reprise.campaign.store import Run
from reprise.campaign.writer import RunWriter, keeps_folder
from reprise.oracle.verdict import Verdict
from tests.campaign.runs import FILES, add, info, made, record

TESTS = 100
EXPECTED = Counter(record(i).verdict for i in range(TESTS))


def test_what_was_asked_for_is_kept(tmp_path: Path) -> None:
    made(tmp_path / "run").close()
    assert Run.open(tmp_path / "run").info == info()


def test_verdicts_add_up(tmp_path: Path) -> None:
    made(tmp_path / "run").close()
    run = Run.open(tmp_path / "run")
    assert run.tests == TESTS
    assert run.verdicts == {v: EXPECTED[v] for v in Verdict}
    spent = sum(record(i).seconds for i in range(TESTS))
    assert run.target_seconds == pytest.approx(spent)


def test_defects_are_known_rules_or_else_signatures(tmp_path: Path) -> None:
    made(tmp_path / "run").close()
    run = Run.open(tmp_path / "run")
    wrong, unknown, known = run.defects
    assert (wrong.id, wrong.rule, wrong.key, wrong.first_index) == ("D1", None, "wrong", 0)
    assert (unknown.id, unknown.key, unknown.first_index) == ("D2", "crash 0", 2)
    assert (known.id, known.rule, known.key) == ("D3", "ort_32228", "rule:ort_32228")
    counts = Counter((record(i).signature, record(i).rule) for i in range(TESTS))
    assert unknown.count == counts["crash 0", None]
    assert known.count == counts["crash 1", "ort_32228"]
    assert run.redundancy == redundancy([wrong.count, unknown.count, known.count])
    assert run.redundancy_of(Verdict.CRASH) == redundancy([unknown.count, known.count])


def test_signatures_filed_under_one_rule_are_one_defect(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run", info())
    writer.add(Record(0, Verdict.CRASH, "a", "A", "rule"))
    writer.add(Record(1, Verdict.WRONG_RESULT, "b", "B", "rule"))
    writer.add(Record(2, Verdict.CRASH, "a", "A"))
    writer.commit()
    writer.close()
    run = Run.open(tmp_path / "run")
    assert [(d.rule, d.count) for d in run.defects] == [("rule", 2), (None, 1)]
    assert run.defects[0].verdicts == (Verdict.CRASH, Verdict.WRONG_RESULT)
    assert [f.index for f in run.findings_of(run.defects[0])] == [0, 1]
    assert [f.index for f in run.findings_of(run.defects[1])] == [2]


def test_findings_have_the_folders_that_were_kept(tmp_path: Path) -> None:
    made(tmp_path / "run").close()
    run = Run.open(tmp_path / "run")
    (unknown,) = (d for d in run.defects if d.key == "crash 0")
    folders = [f.folder for f in run.findings_of(unknown)]
    assert [i for i, folder in enumerate(folders, 1) if folder] == [1, 2, 3, 10]
    for folder in filter(None, folders):
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == FILES
    assert unknown.signatures[0].kept == 4


def test_a_flood_keeps_few_folders() -> None:
    kept = [n for n in range(1, 100_001) if keeps_folder(n, 3)]
    assert kept == [1, 2, 3, 10, 100, 1_000, 10_000, 100_000]
    assert [n for n in range(1, 101) if keeps_folder(n, 0)] == [10, 100]
    assert [n for n in range(1, 101) if keeps_folder(n, 12)] == [*range(1, 13), 100]


def test_what_is_not_the_targets_fault_is_no_defect(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run", info())
    writer.add(Record(0, Verdict.INVALID, "our fault", "Ours"), FILES)
    writer.add(Record(1, Verdict.UNDECIDED, "ties", "Ties"))
    writer.commit()
    writer.close()
    run = Run.open(tmp_path / "run")
    assert run.defects == ()
    assert [(f.index, f.verdict) for f in run.findings] == [(0, Verdict.INVALID)]
    assert [(s.signature, s.count) for s in run.signatures] == [("our fault", 1), ("ties", 1)]


def test_confirmations_tell_flaky_findings(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run", info())
    for index, agreed in enumerate([3, 1]):
        writer.add(Record(index, Verdict.CRASH, "a"), FILES, Confirmation(3, agreed))
    writer.commit()
    writer.close()
    confirmations = [f.confirmation for f in Run.open(tmp_path / "run").findings]
    assert confirmations == [Confirmation(3, 3), Confirmation(3, 1)]
    assert [c.flaky for c in confirmations if c] == [False, True]


def test_suppression_is_counted_by_rule(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run", info())
    writer.add(Record(0, Verdict.OK, rejected=Counter(b=2, a=1)))
    writer.commit()
    writer.add(Record(1, Verdict.OK, rejected=Counter(b=3), completed=("c", "b")))
    writer.commit()
    writer.close()
    found = Run.open(tmp_path / "run").suppressed
    assert {r: (s.rejected, s.completed) for r, s in found.items()} == {
        "a": (1, 0),
        "b": (5, 1),
        "c": (0, 1),
    }


def test_the_timeline_holds_every_test_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr("reprise.campaign.writer.time.monotonic", lambda: clock[0])
    writer = RunWriter.create(tmp_path / "run", info())
    for index in range(TESTS):
        clock[0] += 0.5
        add(writer, [record(index)])
    writer.commit(End.DONE)
    writer.close()
    run = Run.open(tmp_path / "run")
    slices = run.timeline(5)
    assert run.seconds == 50
    assert sum((Counter(s.verdicts) for s in slices), Counter()) == EXPECTED
    assert all(abs(sum(s.verdicts.values()) - 20) <= 1 for s in slices)
    assert [d for s in slices for d in s.new_defects] == ["D1", "D2", "D3"]
    assert (slices[0].start, slices[-1].end) == (0, pytest.approx(50, abs=0.1))


def test_a_store_stays_small(tmp_path: Path) -> None:
    writer = RunWriter.create(tmp_path / "run", info())
    for index in range(20_000):
        writer.add(Record(index, Verdict.OK, seconds=0.002))
    writer.commit()
    writer.close()
    assert (tmp_path / "run" / "store.sqlite").stat().st_size < 30 * 20_000


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no run in this folder"):
        Run.open(tmp_path)
    with pytest.raises(StoreError, match="there is no run in this folder"):
        RunWriter.resume(tmp_path)


def test_a_store_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("this is no database, it only has its name\n" * 99)
    with pytest.raises(StoreError, match="not a database"):
        Run.open(tmp_path)


def test_somebody_elses_database(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.sqlite") as db:
        db.execute("CREATE TABLE run (x)")
    db.close()
    with pytest.raises(StoreError, match="not the store of a run"):
        Run.open(tmp_path)


def test_a_later_version_of_the_tables(tmp_path: Path) -> None:
    made(tmp_path).close()
    with sqlite3.connect(tmp_path / "store.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    for open_it in (Run.open, RunWriter.resume):
        with pytest.raises(StoreError, match="another version of Reprise"):
            open_it(tmp_path)


def test_a_run_is_read_while_it_is_written(tmp_path: Path) -> None:
    writer = made(tmp_path / "run", 50)
    add(writer, map(record, range(50, 60)))
    assert Run.open(tmp_path / "run").tests == 50
    writer.commit()
    assert Run.open(tmp_path / "run").tests == 60
    writer.close()


# --- read-only folders ---------------------------------------------------------------------------

READ = """
import os, sys
from pathlib import Path
from reprise.campaign.store import Run
if os.getuid() == 0:                         # whom no mode stops
    os.seteuid(65534)
path = Path(sys.argv[1])
try:
    (path / "probe").touch()
    sys.exit("the folder is not read-only")
except PermissionError:
    pass
run = Run.open(path)
print(run.tests, len(run.findings), sum(sum(s.verdicts.values()) for s in run.timeline(7)))
"""


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user may enter, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def read_without_rights(path: Path) -> str:
    """What a process that may not write to the folder reads in it."""
    for part in (path, *path.rglob("*")):
        part.chmod(0o555 if part.is_dir() else 0o444)
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ, str(path)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        for part in (path, *path.rglob("*")):
            part.chmod(0o755 if part.is_dir() else 0o644)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_run_in_a_read_only_folder(reachable: Path) -> None:
    made(reachable / "run").close()
    run = Run.open(reachable / "run")
    assert read_without_rights(reachable / "run") == f"{TESTS} {len(run.findings)} {TESTS}"


KILLED_IN_A_COMMIT = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 1")          # so that pages reach the file before the commit
db.execute("BEGIN IMMEDIATE")
db.execute("DELETE FROM tests WHERE test % 2")
db.executemany("INSERT INTO tests VALUES (?, 'ok', NULL, 0, 0)", [(i,) for i in range(1000, 9000)])
os._exit(9)
"""


def test_a_run_that_was_killed_in_a_commit(reachable: Path) -> None:
    made(reachable / "run").close()
    expected = f"{TESTS} {len(Run.open(reachable / 'run').findings)} {TESTS}"
    store = reachable / "run" / "store.sqlite"
    before = store.read_bytes()
    subprocess.run([sys.executable, "-c", KILLED_IN_A_COMMIT, str(store)], check=False, timeout=60)
    assert store.with_name("store.sqlite-journal").stat().st_size > 0
    assert store.read_bytes() != before  # there is something to play back
    assert read_without_rights(reachable / "run") == expected
    assert Run.open(reachable / "run").tests == TESTS


def test_a_run_of_xcheck_is_called_that(tmp_path: Path) -> None:
    from reprise.xcheck.store import APPLICATION_ID as XCHECK

    with sqlite3.connect(tmp_path / "store.sqlite") as db:
        db.execute(f"PRAGMA application_id = {XCHECK}")
    with pytest.raises(StoreError, match="a run of `reprise xcheck`"):
        Run.open(tmp_path)


def test_a_finding_of_xcheck_is_called_that(tmp_path: Path) -> None:
    (tmp_path / "finding.json").write_text('{"verdict": "accepted", "constraint": "fits"}')
    with pytest.raises(StoreError, match="a finding of `reprise xcheck`"):
        read_detail(tmp_path)
