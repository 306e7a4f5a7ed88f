"""The loop, on a compiler with known passes and known bugs (``picky.py``)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from reprise.campaign.records import StoreError
from reprise.facts.hardware import DeviceError
from reprise.lang.diagnostics import RulesError
from reprise.patterns.check import UsageError
from reprise.targets.discover import TargetError
from reprise.xcheck.open import begin, go_on
from reprise.xcheck.progress import PlainWatch
from reprise.xcheck.run import Budget, End, Tally, Watch
from reprise.xcheck.store import Asked, ModelRow, SetAside, XRun
from reprise.xcheck.summary import as_json, summarise
from reprise.xcheck.verdict import Verdict
from tests.conftest import ROOT

HERE = Path(__file__).parent
PICKY, RULES = HERE / "picky.py", HERE / "picky.rules"


class Silent:
    """Watches, and says nothing."""

    def began(self, tally: Tally) -> None: ...

    def chose(self, tally: Tally, constraint: str) -> None: ...

    def compiled(self, tally: Tally, row: ModelRow) -> None: ...

    def set_aside(self, tally: Tally, aside: SetAside) -> None: ...

    def ended(self) -> None: ...


def asked(rules: Path = RULES, *, device: str | None = "board", **more: object) -> Asked:
    python = more.pop("python", None)
    values = {"hardware": (), "seed": 3, "timeout": 20.0, "memory": 2048, **more}
    target = str(PICKY) if python is None else f"{PICKY}@{python}"
    return Asked(target=target, rules=(str(rules),), device=device, **values)  # type: ignore[arg-type]


def run(
    path: Path,
    budget: Budget,
    what: Asked | None = None,
    jobs: int = 1,
    watch: Watch | None = None,
    said: list[str] | None = None,
) -> End:
    say = (lambda line: None) if said is None else said.append
    with begin(what or asked(), path, budget, watch or Silent(), jobs, say) as loop:
        return loop.run()


def resume(path: Path, budget: Budget, jobs: int = 1) -> End:
    with go_on(path, budget, Silent(), jobs, lambda line: None) as loop:
        return loop.run()


def story(path: Path) -> list[tuple[object, ...]]:
    """What a run found, without what depends on the clock."""
    return [
        (m.number, m.constraint, m.usage, m.valid, m.kind, m.digest, m.verdict, m.passes, m.stage)
        for m in XRun.open(path).models
    ]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 60 models."""
    path = tmp_path_factory.mktemp("xcheck") / "run"
    assert run(path, Budget(models=60)) is End.MODELS
    return path


def rows(path: Path, constraint: str, *, valid: bool = False) -> list[ModelRow]:
    return [m for m in XRun.open(path).models if m.constraint == constraint and m.valid is valid]


@pytest.mark.slow
def test_each_constraint_is_violated_and_the_stage_is_told(found: Path) -> None:
    arity = rows(found, "two_operands")
    assert {(m.verdict, m.stage, m.passes) for m in arity} == {(Verdict.REJECTED, "in import", 1)}
    assert "Add takes 2 operands" in arity[0].message


@pytest.mark.slow
def test_what_is_accepted_though_it_violates_something_is_a_finding(found: Path) -> None:
    verdicts = {m.verdict for m in rows(found, "same_type")}
    assert Verdict.ACCEPTED in verdicts  # only the first operand's type is looked at
    accepted = next(m for m in rows(found, "same_type") if m.verdict is Verdict.ACCEPTED)
    assert (accepted.stage, accepted.passes) == ("at the end", 4)


def test_a_size_that_is_computed_in_32_bits_is_found(found: Path) -> None:
    large = rows(found, "add_fits")
    assert {m.verdict for m in large} == {Verdict.ACCEPTED, Verdict.REJECTED}
    assert {m.stage for m in large if m.verdict is Verdict.REJECTED} == {"in memory"}


def test_a_crash_is_a_finding_of_the_pass_that_it_happened_in(found: Path) -> None:
    crashes = rows(found, "never_13")
    assert {(m.verdict, m.stage) for m in crashes} == {(Verdict.CRASHED, "in codegen")}


def test_valid_models_compile(found: Path) -> None:
    valid = [m for m in XRun.open(found).models if m.valid]
    assert len(valid) >= 4 and {m.verdict for m in valid} == {Verdict.COMPILED}


def test_what_fails_late_is_violated_more_often(found: Path) -> None:
    assert len(rows(found, "add_fits")) > 2 * len(rows(found, "two_operands"))


def test_a_finding_has_what_a_triager_needs(found: Path) -> None:
    row = next(m for m in rows(found, "same_type") if m.folder)
    folder = found / "findings" / (row.folder or "")
    assert {p.name for p in folder.iterdir()} >= {
        "model.onnx", "repro.py", "README.md", "finding.json", "target",
    }  # fmt: skip
    text = (folder / "README.md").read_text()
    assert "same_type" in text and "picky.py:4" in text and "require a.dtype == b.dtype" in text
    assert len(onnx.load(folder / "model.onnx").graph.input) == 2
    done = subprocess.run([sys.executable, folder / "repro.py"], capture_output=True, timeout=60)
    assert done.returncode == 1 and b"accepted" in done.stdout


@pytest.mark.slow
def test_a_crash_is_shown_by_its_script(found: Path) -> None:
    row = next(m for m in rows(found, "never_13") if m.folder)
    script = found / "findings" / (row.folder or "") / "repro.py"
    done = subprocess.run([sys.executable, script], capture_output=True, timeout=60)
    assert done.returncode == 1 and b"ended" in done.stdout
    (script.parent / "target" / "target.py").write_text(
        PICKY.read_text().replace("ctypes.string_at(0)", "pass")
    )
    done = subprocess.run([sys.executable, script], capture_output=True, timeout=60)
    assert done.returncode == 0
    script.write_text(script.read_text().replace("    import ", "    import no_compiler, ", 1))
    done = subprocess.run([sys.executable, script], capture_output=True, timeout=60)
    assert done.returncode == 2 and b"no_compiler" in done.stdout and b"needs" in done.stderr


def test_findings_are_grouped_and_the_summary_is_for_tools_too(found: Path) -> None:
    summary = summarise(XRun.open(found))
    groups = {(g.constraint.name, g.verdict) for g in summary.groups}
    assert ("never_13", Verdict.CRASHED) in groups and ("same_type", Verdict.ACCEPTED) in groups
    told = as_json(summary)
    assert told["violated"] == told["constraints"] == 4
    by_name = {c["constraint"]: c for c in told["coverage"]}
    assert by_name["two_operands"]["passes"] == [1, 1]
    assert sum(f["count"] for f in told["findings"]) == sum(
        m.verdict.is_finding for m in XRun.open(found).models
    )


def test_a_refusal_for_lack_of_a_type_says_nothing_of_the_constraint(tmp_path: Path) -> None:
    target, rules = tmp_path / "picky.py", tmp_path / "own.rules"
    target.write_text(PICKY.read_text().replace("return False", "return 'type' in str(error)"))
    rules.write_text(
        "constraint abs_type : data_representation on { n = abs(x) } require x.dtype != uint4"
    )
    what = replace(asked(rules, device=None), target=str(target))
    assert run(tmp_path / "run", Budget(models=2), what) is End.MODELS
    assert [m.verdict for m in rows(tmp_path / "run", "abs_type")] == [Verdict.UNSUPPORTED]
    summary = summarise(XRun.open(tmp_path / "run"))
    assert not summary.groups and summary.coverage[0].is_untold
    assert as_json(summary)["coverage"][0]["told"] is False


@pytest.mark.slow
def test_the_number_of_jobs_changes_nothing(found: Path, tmp_path: Path) -> None:
    assert run(tmp_path / "run", Budget(models=60), jobs=3) is End.MODELS
    assert story(tmp_path / "run") == story(found)


@pytest.mark.slow
def test_another_seed_gives_other_models(found: Path, tmp_path: Path) -> None:
    run(tmp_path / "run", Budget(models=6), asked(seed=4))
    assert {row[5] for row in story(tmp_path / "run")} - {row[5] for row in story(found)}


@pytest.mark.slow
def test_a_run_without_a_budget_ends_when_everything_was_violated(tmp_path: Path) -> None:
    assert run(tmp_path / "run", Budget()) is End.EXPLORED
    assert {m.constraint for m in XRun.open(tmp_path / "run").models if not m.valid} == {
        "two_operands", "same_type", "add_fits", "never_13",
    }  # fmt: skip
    assert all(m.usage == 0 for m in XRun.open(tmp_path / "run").models)


@pytest.mark.slow
def test_a_hang_costs_its_time_and_is_told(tmp_path: Path) -> None:
    rules = tmp_path / "hang.rules"
    rules.write_text(RULES.read_text().replace("13", "17"))
    run(tmp_path / "run", Budget(models=8), asked(rules, timeout=1.5))
    hung = [m for m in XRun.open(tmp_path / "run").models if m.verdict is Verdict.HANG]
    assert hung and {m.stage for m in hung} == {"in codegen"}


@pytest.mark.slow
def test_the_time_budget_ends_a_run_in_the_middle_of_a_hang(tmp_path: Path) -> None:
    rules = tmp_path / "hang.rules"
    rules.write_text(RULES.read_text().replace("13", "17"))
    start = time.monotonic()
    assert run(tmp_path / "run", Budget(seconds=3), asked(rules, timeout=300)) is End.TIME
    assert time.monotonic() - start < 30


# --- what stops and goes on ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_goes_on_where_it_was_left(found: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    run(path, Budget(models=23))
    assert resume(path, Budget(models=60)) is End.MODELS
    assert story(path) == story(found)


SESSION = """
import sys
from pathlib import Path
from reprise.campaign.records import StoreError
from reprise.xcheck.run import Budget
from tests.xcheck.test_run import Silent, resume, run

if __name__ == "__main__":
    path = Path(sys.argv[1])
    try:
        resume(path, Budget(models=60))
    except StoreError:
        run(path, Budget(models=60))
"""


def models(path: Path) -> int:
    """How many models a run has, 0 where it has not begun."""
    with contextlib.suppress(StoreError):
        return len(XRun.open(path).models)
    return 0


@pytest.mark.slow
def test_a_run_that_is_killed_loses_nothing(found: Path, tmp_path: Path) -> None:
    script, path = tmp_path / "session.py", tmp_path / "run"
    script.write_text(SESSION)
    for kill in range(4):
        before = models(path)
        process = subprocess.Popen(
            [sys.executable, script, path], env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
        deadline = time.monotonic() + 120
        while models(path) <= before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.13 * kill)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert models(path) > before
    resume(path, Budget(models=60))
    assert story(path) == story(found)
    kept = {m.folder for m in XRun.open(path).models if m.folder}
    assert {p.name for p in (path / "findings").iterdir()} == kept


@pytest.mark.slow
def test_what_a_killed_run_left_behind_is_removed(found: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(found, path)
    (path / "findings" / ".new-00000099").mkdir()
    (path / "findings" / "00000098").mkdir()
    (path / "models" / "00000099.onnx").write_bytes(b"half")
    resume(path, Budget(models=61))
    assert not (path / "findings" / "00000098").exists()
    assert not (path / "models" / "00000099.onnx").exists()
    assert len(XRun.open(path).models) == 61


@pytest.mark.slow
def test_two_processes_cannot_write_one_run(found: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(found, path)
    number = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another process"):
            resume(path, Budget(models=61))
    finally:
        os.close(number)


@pytest.mark.slow
def test_a_folder_that_holds_a_run_or_other_things_is_refused(found: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="--resume"):
        run(found, Budget(models=1))
    (tmp_path / "notes.txt").touch()
    with pytest.raises(StoreError, match=r"notes\.txt"):
        run(tmp_path, Budget(models=1))


@pytest.mark.slow
def test_changed_rules_are_not_gone_on_with(tmp_path: Path) -> None:
    rules = tmp_path / "own.rules"
    rules.write_text(RULES.read_text())
    run(tmp_path / "run", Budget(models=2), asked(rules))
    rules.write_text(RULES.read_text().replace("!= 13", "!= 14"))
    with pytest.raises(UsageError, match="rules have changed"):
        resume(tmp_path / "run", Budget(models=4))


def test_a_store_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no run"):
        XRun.open(tmp_path)
    sqlite3.connect(tmp_path / "store.sqlite").execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(StoreError, match="not the store"):
        XRun.open(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_read_only_folder_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="Permission denied"):
        run(tmp_path / "run", Budget(models=1))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 200 kB, where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("cannot mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk_ends_a_run_that_can_go_on(small_disk: Path) -> None:
    path = small_disk / "run"
    with pytest.raises(StoreError, match=r"disk|full|space"):
        run(path, Budget(models=500))
    before = XRun.open(path).models
    assert before
    for model in before:  # make room
        (path / "models" / f"{model.number:08d}.onnx").unlink()
    resume(path, Budget(models=len(before) + 1))
    assert len(XRun.open(path).models) == len(before) + 1


# --- what cannot be done -------------------------------------------------------------------------


def test_no_constraints_at_all_is_told(tmp_path: Path) -> None:
    rules = tmp_path / "none.rules"
    rules.write_text("set few = {relu, abs}\n")
    with pytest.raises(UsageError, match="no constraint"):
        run(tmp_path / "run", Budget(models=1), asked(rules, device=None))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_constraints_about_other_compilers_are_left_out(tmp_path: Path) -> None:
    rules = tmp_path / "other.rules"
    rules.write_text(RULES.read_text().replace('from: "picky.py:3"', "target: tvm"))
    said: list[str] = []
    run(tmp_path / "run", Budget(), asked(rules), said=said)
    assert "two_operands" not in {m.constraint for m in XRun.open(tmp_path / "run").models}
    assert any("other compilers" in line for line in said)


@pytest.mark.slow
def test_what_nothing_says_of_the_device_is_told(tmp_path: Path) -> None:
    rules = tmp_path / "unknown.rules"
    rules.write_text(RULES.read_text().replace("hw(board, dram_bytes, 1_048_576).", ""))
    said: list[str] = []
    run(tmp_path / "run", Budget(), asked(rules, device=None), said=said)
    assert any("device(dram_bytes)" in line and "add_fits" in line for line in said)
    with pytest.raises(DeviceError, match="no device is called `bord`: none is"):
        run(tmp_path / "run2", Budget(), asked(rules, device="bord"))


@pytest.mark.slow
def test_a_constraint_that_nothing_violates_is_set_aside_once(tmp_path: Path) -> None:
    rules = tmp_path / "implied.rules"
    more = (
        "constraint always : parameter_bound on { n = relu(x) where x.rank == 1 }"
        " require x.dim[0] <= 9_223_372_036_854_775_807\n"
    )
    rules.write_text(RULES.read_text() + more)
    run(tmp_path / "run", Budget(models=30), asked(rules))
    (aside,) = XRun.open(tmp_path / "run").set_aside
    assert aside.constraint == "always" and not aside.valid
    assert "always holds" in aside.reason


def test_a_compiler_that_does_not_start_is_told_before_there_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(TargetError):
        run(tmp_path / "run", Budget(models=1), asked(python="/bin/false"))
    assert not (tmp_path / "run").exists()


def test_rules_that_do_not_load_are_told(tmp_path: Path) -> None:
    rules = tmp_path / "bad.rules"
    rules.write_text("constraint c : resource on { n = nosuch(x) } require x.rank == 1\n")
    with pytest.raises(RulesError):
        run(tmp_path / "run", Budget(models=1), asked(rules))


def test_a_device_that_is_misspelled_is_told_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match=r"did you mean `board`\? there are board"):
        run(tmp_path / "run", Budget(), asked(device="bord"))


def test_descriptions_that_disagree_about_the_device_are_told(tmp_path: Path) -> None:
    other = tmp_path / "other.rules"
    other.write_text("hw(board, dram_bytes, 1_048_577).\n")
    with pytest.raises(DeviceError, match=r"1048576 \(.*picky.rules:28\).*1048577 .*other.rules:1"):
        run(tmp_path / "run", Budget(models=1), asked(hardware=(str(other),)))
    assert not (tmp_path / "run").exists()


def test_too_little_memory_to_start_is_told_before_there_is_a_folder(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="1 MiB"):
        run(tmp_path / "run", Budget(models=1), asked(memory=1))
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_constraints_that_lack_one_fact_are_told_in_one_line(tmp_path: Path) -> None:
    rules = tmp_path / "many.rules"
    text = RULES.read_text().replace("hw(board, dram_bytes, 1_048_576).", "")
    more = "".join(
        f"constraint r{i} : resource on {{ n = neg(x) }} require x.bytes <= device(dram_bytes)\n"
        for i in range(50)
    )
    rules.write_text(text + more)
    said: list[str] = []
    run(tmp_path / "run", Budget(models=1), asked(rules, device=None), said=said)
    assert len([line for line in said if "dram_bytes" in line]) == 1


@pytest.mark.slow
def test_another_version_of_the_compiler_does_not_go_on_with_a_run(tmp_path: Path) -> None:
    target = tmp_path / "picky.py"
    target.write_text(PICKY.read_text())
    what = replace(asked(), target=str(target))
    run(tmp_path / "run", Budget(models=2), what)
    written = target.stat()
    target.write_text(PICKY.read_text().replace('"1.0"', '"1.1"'))
    os.utime(target, ns=(written.st_atime_ns, written.st_mtime_ns))  # and of the same size
    with pytest.raises(UsageError, match=r"picky 1\.0.*picky 1\.1"):
        resume(tmp_path / "run", Budget(models=4))


@pytest.mark.slow
def test_an_attribute_that_is_violated_is_shown(tmp_path: Path) -> None:
    rules = tmp_path / "pads.rules"
    rules.write_text(
        "constraint pads : parameter_bound on { n = conv2d(_, _, ...) } require n.pads[0] >= 0\n"
    )
    run(tmp_path / "run", Budget(), asked(rules, device=None))
    (row,) = rows(tmp_path / "run", "pads")
    assert re.search(r"pads=\(-\d+", row.program)


@pytest.mark.slow
def test_what_no_model_was_found_for_says_of_which_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = tmp_path / "both.rules"
    rules.write_text(
        "constraint le : parameter_bound on { n = relu(x) where x.rank == 1 }"
        " require x.dim[0] <= 4\n"
        "constraint ge : parameter_bound on { n = relu(x) where x.rank == 1 }"
        " require x.dim[0] >= 5\n"
    )
    run(tmp_path / "run", Budget(), asked(rules, device=None), watch=PlainWatch(tmp_path))
    said = capsys.readouterr().err
    assert said.count("le: no valid model: ") == said.count("ge: no valid model: ") == 1
    assert "no model violates it" not in said


DAMAGE = {
    "a row is gone": "DELETE FROM models WHERE number = 3",
    "a constraint is unknown": "UPDATE models SET constraint_name = 'zzz' WHERE number = 3",
    "what held is a list": "UPDATE models SET seen = '[1]' WHERE number = 3",
    "passes are a word": "UPDATE models SET passes = 'many' WHERE number = 3",
    "a verdict is unknown": "UPDATE models SET verdict = 'maybe' WHERE number = 3",
    "a usage is wrong": "UPDATE models SET usage = usage + 900 WHERE number = 3",
    "what was asked is no JSON": "UPDATE run SET asked = '{'",
    "versions are a number": "UPDATE run SET versions = '3'",
    "a table is gone": "DROP TABLE models",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_store_is_told(found: Path, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "run"
    shutil.copytree(found, path)
    with contextlib.closing(sqlite3.connect(path / "store.sqlite")) as db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.execute(DAMAGE[damage])
        db.commit()
    with pytest.raises(StoreError, match=r"store\.sqlite"):
        XRun.open(path)


@pytest.mark.slow
def test_folders_that_are_gone_are_made_again_and_others_files_stay(
    found: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    shutil.copytree(found, path)
    shutil.rmtree(path / "models")
    (path / "findings" / "notes.txt").write_text("mine")
    (path / "findings" / "kept").mkdir()
    resume(path, Budget(models=61))
    assert (path / "findings" / "notes.txt").read_text() == "mine"
    assert (path / "findings" / "kept").is_dir()
    shutil.rmtree(path / "findings")
    resume(path, Budget(models=62))
    assert len(XRun.open(path).models) == 62


@pytest.mark.slow
def test_a_run_that_goes_on_stops_where_it_was_asked_to(tmp_path: Path) -> None:
    run(tmp_path / "r", Budget(models=4), asked(models=9))
    assert resume(tmp_path / "r", Budget()) is End.MODELS
    assert len(XRun.open(tmp_path / "r").models) == 9
    assert resume(tmp_path / "r", Budget(models=11)) is End.MODELS
    assert len(XRun.open(tmp_path / "r").models) == 11
