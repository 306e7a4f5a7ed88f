"""However a compilation ends, the report says how far it came and in which pass it stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reprise.targets.discover import TargetError
from reprise.targets.process import Limits
from reprise.xcheck.passes.compiler import (
    PassCounter,
    compiler_names,
    following,
    parse_compiler,
)
from reprise.xcheck.passes.interface import IMPORTER, Ending, StageReport

COUNTING = Path(__file__).with_name("counting.py")
Compile = Callable[[str], StageReport]


@pytest.fixture(scope="module")
def compile() -> Iterator[Compile]:
    """Have the compiler for tests do what a text says."""
    limits = Limits(seconds=2, memory_mib=400)
    with PassCounter(parse_compiler(str(COUNTING)), limits) as counter:
        yield lambda steps: counter.compile(f"do {steps}".encode())


def test_an_accepted_model_completes_all_that_it_starts(compile: Compile) -> None:
    report = compile("import fold fuse lower")
    assert report.ending is Ending.ACCEPTED and report.where == "at the end"
    assert report.started == report.completed == (IMPORTER, "fold", "fuse", "lower")
    assert report.passes == 4 and report.stopped_in is None and report.failure is None
    assert report.seconds > 0 and report.peak_mib > 0


def test_a_pass_counts_once_however_often_it_runs(compile: Compile) -> None:
    report = compile("import fold fuse fold fold fuse")
    assert report.started == report.completed == (IMPORTER, "fold", "fuse")


def test_a_rejection_names_its_pass_and_its_exception(compile: Compile) -> None:
    report = compile("import fold +fuse fail")
    assert report.ending is Ending.REJECTED and report.failure is not None
    assert (report.failure.type, report.failure.message) == ("ValueError", "what is this?")
    assert (report.stopped_in, report.where, report.passes) == ("fuse", "in fuse", 2)
    assert report.started == (IMPORTER, "fold", "fuse") and report.completed == (IMPORTER, "fold")


def test_the_innermost_of_nested_passes_is_named(compile: Compile) -> None:
    assert compile("import +lower +tile fail").stopped_in == "tile"
    assert compile("import +lower tile fail").stopped_in == "lower"
    assert compile("import +lower +tile -lower fail").where == "after lower"


def test_a_second_run_of_a_pass_can_fail(compile: Compile) -> None:
    report = compile("import fold +fold fail")
    assert report.stopped_in == "fold" and report.completed == (IMPORTER, "fold")


def test_what_fails_between_passes_is_after_the_last(compile: Compile) -> None:
    report = compile("import fold fail")
    assert report.stopped_in is None and report.where == "after fold"
    assert compile("import fold fuse fold fail").where == "after fold"


def test_a_refusal_of_the_importer_still_has_a_number_of_passes(compile: Compile) -> None:
    report = compile("+import fail")
    assert (report.ending, report.where, report.passes) == (Ending.REJECTED, "in import", 1)
    nothing = StageReport(Ending.REJECTED)
    assert (nothing.passes, nothing.where) == (1, "at the start")


def test_what_a_compiler_does_not_do_is_marked(compile: Compile) -> None:
    failure = compile("import +fuse decline").failure
    assert failure is not None and failure.unsupported


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "ending"),
    [("crash", Ending.CRASHED), ("hang", Ending.HANG), ("grow", Ending.MEMORY)],
)
def test_a_process_that_ends_leaves_its_passes(compile: Compile, step: str, ending: Ending) -> None:
    report = compile(f"import fold +fuse {step}")
    assert report.ending is ending
    assert report.started == (IMPORTER, "fold", "fuse") and report.stopped_in == "fuse"
    assert report.signal == ("SIGSEGV" if step == "crash" else None)
    assert (report.peak_mib > 400) == (step == "grow")
    assert compile("import").ending is Ending.ACCEPTED  # and the next model finds a worker


# --- passes that only a log names ----------------------------------------------------------------


def test_passes_of_the_log_are_within_the_pass_announced_last(compile: Compile) -> None:
    report = compile("import +session one? two! -session")
    assert report.started == (IMPORTER, "session", "one", "two")
    assert report.completed == (IMPORTER, "one", "two", "session")


@pytest.mark.parametrize("end", ["fail", "crash"])
def test_after_a_pass_that_changed_nothing_the_next_one_failed(compile: Compile, end: str) -> None:
    assert compile(f"import +session one? {end}").stopped_in == "two"
    assert compile(f"import +session one? two? three? {end}").stopped_in == "two"
    assert compile(f"import +session one! two! three? one? {end}").stopped_in == "two"


def test_after_a_pass_that_changed_something_nothing_is_guessed(compile: Compile) -> None:
    assert compile("import +session one! fail").stopped_in == "session"
    assert compile("import +session one? two? three? two? fail").stopped_in == "session"


def test_what_announces_itself_is_never_guessed() -> None:
    order = [("idle", "fold"), ("begin", "plan"), ("end", "plan")]
    assert following([("idle", "fold")], order) is None
    assert following([("begin", "plan")], order) is None


def test_nothing_is_guessed_after_an_unusual_pass() -> None:
    assert following([("idle", "new")], [("idle", "fold")]) is None


# --- which compilers there are -------------------------------------------------------------------


def test_shipped_compilers_count_passes() -> None:
    assert {"tvm", "inductor", "onnxruntime"} <= {*compiler_names()}
    for name in compiler_names():
        target = parse_compiler(name)
        assert target.name == name and target.modes == ("compiled",)


@pytest.mark.slow
def test_the_platform_is_any_text_and_reaches_the_compiler() -> None:
    target = parse_compiler(f"{COUNTING}:nvidia/nvidia-h100")
    assert target.device == "nvidia/nvidia-h100"
    with PassCounter(target) as counter:
        assert counter.start() == {"counting": "2.0", "platform": "nvidia/nvidia-h100"}
    with PassCounter(parse_compiler(f"{COUNTING}:moon")) as counter:
        with pytest.raises(TargetError, match="no such platform: moon"):
            counter.start()
        assert counter.compile(b"do import").ending is Ending.UNASKED


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is no compiler"),
        ("tmv", "did you mean `tvm`"),
        ("lean", "there is no compiler `lean` that counts passes"),
        ("tvm@/nowhere/python", "no interpreter /nowhere/python"),
    ],
)
def test_what_is_no_compiler_is_explained(text: str, says: str) -> None:
    with pytest.raises(TargetError, match=says):
        parse_compiler(text)


@pytest.mark.parametrize(
    "log", ["7", "(('end', '('),)", "(('end', 'no group'),)", "(('x', '(y)'),)"]
)
def test_a_log_that_cannot_be_read_is_explained(tmp_path: Path, log: str) -> None:
    file = tmp_path / "mine.py"
    old = COUNTING.read_text("utf-8")
    kept = "\n".join(line for line in old.split("\n") if not line.startswith("PASS_LOG"))
    file.write_text(f"{kept}\nPASS_LOG = {log}\n", "utf-8")
    with pytest.raises(TargetError, match="PASS_LOG"):
        PassCounter(parse_compiler(str(file)))
