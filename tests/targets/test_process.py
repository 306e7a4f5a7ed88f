"""Whatever a target does in its process is an outcome, and the next job finds a worker."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import reprise.targets.process
from reprise.oracle.crash import crash_of
from reprise.targets.discover import TargetError, parse_target
from reprise.targets.interface import Ended, Failure, Job, Outcome, Stage
from reprise.targets.process import Limits, TargetProcess, WorkerPool
from tests.targets.conftest import OBEDIENT, job

Run = Callable[..., Outcome]

CRASH = "import ctypes; ctypes.string_at(0)"
HOLD = "import ctypes; ctypes.PyDLL(None).sleep(100)"
"""Sleeps in C without letting any other Python thread run, as a compiler may."""
CONNECTION = "import os, sys; connection = int(sys.argv[3])\n"


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(condition: Callable[[], bool], seconds: float = 10) -> bool:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def answers(run: Run) -> bool:
    """Whether a job is answered as it should be."""
    outcome = run("", x=np.arange(3))
    (output,) = outcome.results["fast"].outputs or ()
    return outcome.ended is Ended.ANSWERED and output.tolist() == [0, 1, 2]


# --- answers -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_outputs_come_back_in_order_for_each_mode(run: Run) -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.array(True)
    outcome = run("outputs = [*inputs.values(), mode == 'slow']", "fast", "slow", x=x, y=y)
    assert outcome.ended is Ended.ANSWERED
    assert list(outcome.results) == ["fast", "slow"]
    for mode, result in outcome.results.items():
        first, second, third = result.outputs or ()
        np.testing.assert_array_equal(first, x)
        assert (second.dtype, second.shape, bool(third)) == (np.bool_, (), mode == "slow")
        assert result.seconds >= 0


@pytest.mark.slow
def test_a_million_elements_and_nan_payloads_survive(run: Run) -> None:
    bits = np.random.default_rng(1).integers(0, 1 << 32, 1_000_000, np.uint32)
    outcome = run("", x=bits.view(np.float32))
    (output,) = outcome.results["fast"].outputs or ()
    np.testing.assert_array_equal(output.view(np.uint32), bits)


@pytest.mark.slow
def test_cpu_time_is_what_the_mode_took(run: Run) -> None:
    program = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
    outcome = run(f"if mode == 'slow':\n {program.replace(chr(10), chr(10) + ' ')}", "fast", "slow")
    assert 0.2 <= outcome.results["slow"].seconds < 0.5 > outcome.results["fast"].seconds


@pytest.mark.slow
def test_one_mode_cannot_spoil_the_inputs_of_the_next(run: Run) -> None:
    outcome = run("inputs['x'] += 1", "fast", "slow", x=np.zeros(2))
    for result in outcome.results.values():
        assert [output.tolist() for output in result.outputs or ()] == [[1, 1]]


@pytest.mark.slow
def test_only_the_first_mode_leaves_passes_out(process: TargetProcess) -> None:
    asked = job("outputs = [list(disabled)]", "slow", "fast")
    outcome = process.run(type(asked)(asked.model, {}, asked.modes, ("fuse", "fold")))
    outputs = {m: (r.outputs or ())[0].tolist() for m, r in outcome.results.items()}
    assert outputs == {"slow": [], "fast": ["fuse", "fold"]}


@pytest.mark.slow
def test_passes_are_asked_for(process: TargetProcess) -> None:
    assert process.passes(b"passes = ['b', 'a']") == ("b", "a")
    assert process.passes(b"1 / 0") == ()
    assert process.passes(CRASH.encode()) == ()
    assert process.passes(b"passes = ['c']") == ("c",)


@pytest.mark.slow
def test_a_failure_says_what_where_and_why(run: Run) -> None:
    program = "def lower():\n  raise ValueError('bad shape')\nstage('compile')\nlower()"
    failure = run(program).results["fast"].failure
    assert failure is not None
    assert (failure.stage, failure.type, failure.message) == (
        Stage.COMPILE,
        "ValueError",
        "bad shape",
    )
    assert [frame.rpartition(":")[2] for frame in failure.frames] == ["run", "<module>", "lower"]
    assert not failure.unsupported


@pytest.mark.slow
def test_a_target_may_say_that_it_does_not_do_this(run: Run) -> None:
    failure = run("raise NotImplementedError('erf of float64')").results["fast"].failure
    assert failure is not None and failure.unsupported and failure.stage is Stage.LOAD


@pytest.mark.slow
def test_a_failing_mode_does_not_end_the_others(run: Run) -> None:
    outcome = run("if mode == 'fast': 1 / 0", "fast", "slow", x=np.ones(1))
    assert outcome.results["fast"].failure and outcome.results["slow"].outputs
    assert outcome.ended is Ended.ANSWERED


def passed(outcome: Outcome) -> list[str]:
    return [f"{'-' if event.ended else '+'}{event.name}" for event in outcome.trail]


@pytest.mark.slow
def test_passes_are_announced_and_outlive_the_process(run: Run) -> None:
    program = "stage.begin('fuse ops')\nstage.end('fuse ops')\nstage.begin('fold')\n"
    assert passed(run(program)) == ["+fuse ops", "-fuse ops", "+fold"]
    assert passed(run(program + "1 / 0")) == ["+fuse ops", "-fuse ops", "+fold"]
    assert passed(run(program + CRASH)) == ["+fuse ops", "-fuse ops", "+fold"]
    assert passed(run("stage.begin('a\\nb')")) == ["+a b"]
    assert passed(run("")) == []


@pytest.mark.slow
def test_monitors_of_an_instrumented_compiler_are_told_the_jobs_label(
    process: TargetProcess,
) -> None:
    """The monitors' module is the one that `reprise instrument` puts into a copy."""
    imported = """
import sys, types
calls = []
record = types.ModuleType("_reprise_monitor")
record.begin, record.end = lambda label: calls.append(label), lambda: calls.append("end")
record.calls = calls
sys.modules["_reprise_monitor"] = record
"""
    calls = b"import sys; outputs = [sys.modules['_reprise_monitor'].calls]"

    def told(model: bytes, label: str) -> list[str]:
        result = process.run(Job(model, {}, ("fast",), label=label)).results["fast"]
        return [] if not result.outputs else result.outputs[0].tolist()

    told(imported.encode(), "first")
    told(b"1 / 0", "second")
    expected = ["second", "end", "third", "end"]  # the answer is written after the end
    assert told(calls, "third") == expected
    assert told(calls, "") == expected


@pytest.mark.slow
def test_passes_say_how_much_memory_the_process_held(run: Run) -> None:
    usual = run("stage.begin('a')").peak_mib
    assert usual > 0
    for end in ("", "1 / 0", CRASH):
        held = run(f"stage.begin('a'); bytearray(100 << 20); stage.end('a')\n{end}").peak_mib
        assert usual + 90 < held < usual + 200, end
    assert run("stage.begin('a'); bytearray(100 << 20)").peak_mib > usual + 90
    assert run("stage.begin('a')").peak_mib < usual + 50  # what jobs before it held is not counted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("raised", "says"),
    [
        ("type('Sly', (Exception,), {'__str__': lambda s: 1 / 0})()", "cannot be printed"),
        ("type('Sly', (Exception,), {'__str__': lambda s: 3})()", "cannot be printed"),
        ("ValueError('\\ud800 \\0 \\x1b[31m')", "\\ud800"),
        ("ValueError('y' * 50_000_000 + 'z')", "z"),
        ("OSError()", ""),
        ("RecursionError('r')", "r"),
    ],
)
def test_any_message_can_be_kept(run: Run, raised: str, says: str) -> None:
    failure = run(f"raise {raised}").results["fast"].failure
    assert isinstance(failure, Failure) and says in failure.message
    (failure.type + failure.message).encode()
    assert len(failure.message) < 100_000


@pytest.mark.slow
def test_endless_recursion_is_a_failure_of_bounded_size(run: Run) -> None:
    failure = run("def f(): f()\nf()").results["fast"].failure
    assert failure is not None and failure.type == "RecursionError"
    assert len(failure.frames) <= 100


# --- ends ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "signal_name"),
    [
        (CRASH, "SIGSEGV"),
        ("import os; os.abort()", "SIGABRT"),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGRTMIN + 3)", "signal 37"),
        ("import sys; sys.exit(3)", "exit 3"),
        ("import os; os._exit(0)", "exit 0"),
        ("import ctypes; ctypes.CDLL(None).exit(7)", "exit 7"),
        ("raise KeyboardInterrupt", "SIGINT"),
    ],
)
def test_a_death_is_an_outcome(run: Run, program: str, signal_name: str) -> None:
    program = f"stage('run')\nif mode == 'slow':\n  {program}"
    outcome = run(program, "fast", "slow", x=np.ones(1))
    assert (outcome.ended, outcome.signal) == (Ended.DIED, signal_name)
    assert (outcome.mode, outcome.stage) == ("slow", Stage.RUN)
    assert list(outcome.results) == ["fast"]
    assert answers(run)


def test_a_segfault_leaves_its_python_frames_in_the_log(run: Run) -> None:
    log = run(f"def fuse():\n  {CRASH}\nfuse()").log
    assert "Segmentation fault" in log and "in fuse" in log


@pytest.mark.slow
@pytest.mark.parametrize("program", ["while True: pass", HOLD, "import time; time.sleep(100)"])
def test_a_hang_is_an_outcome(program: str) -> None:
    limits = Limits(seconds=0.5)
    with TargetProcess(parse_target(str(OBEDIENT)), limits) as process:
        process.start()
        outcome = process.run(job(f"stage('compile')\n{program}"))
        assert outcome.ended is Ended.HANG
        assert (outcome.mode, outcome.stage, outcome.signal) == ("fast", Stage.COMPILE, None)
        assert 0.5 <= outcome.seconds < 5
        assert answers(lambda program, **inputs: process.run(job(program, **inputs)))


@pytest.mark.slow
def test_a_memory_blow_up_is_an_outcome() -> None:
    limits = Limits(seconds=60, memory_mib=300)
    with TargetProcess(parse_target(str(OBEDIENT)), limits) as process:
        outcome = process.run(job("a = []\nwhile True: a.append(bytearray(1 << 20))"))
        assert outcome.ended is Ended.MEMORY
        assert process.run(job("")).ended is Ended.ANSWERED


@pytest.mark.slow
def test_no_job_is_blamed_for_what_its_predecessors_leaked() -> None:
    limits = Limits(seconds=60, memory_mib=400)
    with TargetProcess(parse_target(str(OBEDIENT)), limits) as process:
        for _ in range(12):
            outcome = process.run(job("kept.append(bytearray(b'x') * (60 << 20))"))
            assert outcome.ended is Ended.ANSWERED
        assert process.starts > 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [
        CONNECTION + "os.write(connection, b'no frame at all, but long enough to be read as one')",
        CONNECTION + "os.write(connection, bytes(1000))",
        CONNECTION + "os.close(connection)\nimport time; time.sleep(1000)",
        "outputs = [object()]",
        "outputs = [[[1], [1, 2]]]",
    ],
)
def test_an_answer_that_is_none_is_an_outcome(run: Run, program: str) -> None:
    assert run(program).ended is Ended.GARBAGE
    assert answers(run)


FORGE = CONNECTION + "wire = sys.modules['reprise_wire']\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        {"kind": "result", "id": 999, "index": 0, "seconds": 1},
        {"kind": "result", "id": 1, "index": 5, "seconds": 1},
        {"kind": "result", "id": 1, "index": 0, "seconds": "soon"},
        {"kind": "result", "id": 1, "index": 0, "seconds": 1, "failure": 3},
        {"kind": "result", "id": 1, "index": 0, "seconds": 1, "failure": {"stage": "lunch"}},
        {"kind": "ready"},
        {},
    ],
)
def test_a_well_formed_frame_that_is_no_answer_is_garbage(run: Run, message: dict) -> None:
    program = f"{FORGE}os.write(connection, b''.join(wire.pack({message!r}, [])))"
    assert run(program).ended is Ended.GARBAGE
    assert answers(run)


def test_output_on_standard_streams_is_the_log_and_no_more(run: Run) -> None:
    outcome = run("import os; print('hello'); os.write(1, bytes(range(256))); os.write(2, b'bye')")
    assert outcome.ended is Ended.ANSWERED
    assert outcome.log.startswith("hello") and outcome.log.endswith("bye")
    assert run("").log == ""


def test_huge_output_is_bounded(run: Run) -> None:
    program = "import os\nfor _ in range(3000): os.write(1, b'x' * 65536)\nos.write(2, b'end')"
    outcome = run(program)
    assert outcome.ended is Ended.ANSWERED
    assert len(outcome.log) < 100_000 and outcome.log.endswith("end")


def test_standard_input_is_empty(run: Run) -> None:
    assert (run("import sys; outputs = [sys.stdin.read()]").results["fast"].outputs or ())[0] == ""


@pytest.mark.slow
def test_no_job_is_blamed_for_a_death_before_it(process: TargetProcess) -> None:
    for _ in range(3):
        process.start()
        pid = process.pid
        assert pid is not None
        kill(pid)
        assert wait_until(lambda pid=pid: not alive(pid))
        assert process.run(job("", x=np.zeros(1_000_000))).ended is Ended.ANSWERED


@pytest.mark.slow
def test_what_an_interrupted_job_answers_is_not_the_next_ones(
    process: TargetProcess, run: Run
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    process.start()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            run("import time; time.sleep(0.4)")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert answers(run)


@pytest.mark.slow
def test_an_answer_counts_however_late_it_is_collected() -> None:
    with TargetProcess(parse_target(str(OBEDIENT)), Limits(seconds=0.3)) as process:
        process.start()
        process.submit(job("", x=np.ones(300_000)))  # more than the connection buffers
        time.sleep(0.6)
        assert process.wait().ended is Ended.ANSWERED
        process.submit(job("import time; time.sleep(100)"))
        time.sleep(0.6)
        assert process.wait().ended is Ended.HANG


@pytest.mark.slow
def test_killed_at_random_every_job_is_answered_or_died(process: TargetProcess) -> None:
    rng = random.Random(7)
    ends = []
    for _ in range(25):
        process.start()
        delay = rng.choice([rng.uniform(0, 0.02), 0.5])
        timer = threading.Timer(delay, kill, (process.pid,))
        timer.start()
        outcome = process.run(job("", "fast", "slow", x=np.arange(100_000)))
        timer.cancel() if delay == 0.5 else timer.join()
        ends.append(outcome.ended)
        if outcome.ended is Ended.DIED:
            assert outcome.signal == "SIGKILL"
            assert len(outcome.results) < 2
        else:
            assert outcome.ended is Ended.ANSWERED
            assert len(outcome.results) == 2
    assert set(ends) == {Ended.ANSWERED, Ended.DIED}
    assert process.run(job("")).ended is Ended.ANSWERED


# --- what is left behind -------------------------------------------------------------------------

SPAWN = "import subprocess; child = subprocess.Popen(['sleep', '1000'])\noutputs = [child.pid]\n"


@pytest.mark.slow
def test_children_of_the_target_end_with_it(process: TargetProcess) -> None:
    (child,) = process.run(job(SPAWN)).results["fast"].outputs or ()
    assert alive(int(child))
    process.run(job(CRASH))
    assert wait_until(lambda: not alive(int(child)))
    (child,) = process.run(job(SPAWN)).results["fast"].outputs or ()
    process.close()
    assert wait_until(lambda: not alive(int(child)))


def test_a_death_is_noticed_while_a_child_keeps_the_connection_open(run: Run) -> None:
    outcome = run("import os, time\nif os.fork() == 0: time.sleep(1000)\nos.abort()")
    assert (outcome.ended, outcome.signal) == (Ended.DIED, "SIGABRT")
    assert outcome.seconds < 5


@pytest.mark.slow
def test_nothing_is_left_open_and_nobody_is_left_unburied() -> None:
    target = parse_target(str(OBEDIENT))
    with TargetProcess(target) as process:
        process.run(job(""))
    before = sorted(os.listdir("/proc/self/fd"))
    for program in ("", CRASH, "import sys; sys.exit()", CONNECTION + "os.write(connection, b'x')"):
        with TargetProcess(target, Limits(seconds=1)) as process:
            process.run(job(program))
            process.run(job(program))
            folder = process._folder.name
        assert not os.path.exists(folder)
    assert sorted(os.listdir("/proc/self/fd")) == before
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    assert not [pid for pid in children if not alive(int(pid))]


HOST = """
import sys, threading
sys.path.insert(0, {root!r})
from reprise.oracle.crash import crash_of
from reprise.targets.discover import parse_target
from reprise.targets.process import TargetProcess
from reprise.targets.interface import Job
process = TargetProcess(parse_target({file!r}))
def work():
    child = process.run(Job({spawn!r}, {{}}, ("fast",))).results["fast"].outputs[0]
    print(process.pid, int(child), flush=True)
    process.submit(Job({program!r}, {{}}, ("fast",)))
thread = threading.Thread(target=work)  # the thread that starts a worker may end before it
thread.start()
thread.join()
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", ["while True: pass", HOLD, ""])
def test_no_worker_outlives_a_campaign_that_is_killed(program: str) -> None:
    root = str(Path(__file__).resolve().parents[2])
    source = HOST.format(
        root=root, file=str(OBEDIENT), spawn=SPAWN.encode(), program=program.encode()
    )
    host = subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    pids = [int(pid) for pid in host.stdout.readline().split()]
    time.sleep(0.2)
    assert len(pids) == 2 and all(map(alive, pids))
    host.kill()
    host.communicate()
    assert wait_until(lambda: not any(map(alive, pids)))


# --- starting ------------------------------------------------------------------------------------


def target_file(folder: Path, init: str, top: str = "") -> str:
    file = folder / "odd.py"
    file.write_text(
        f"NAME = 'odd'\nLOWERING = 'onnx'\nMODES = ('only',)\nDEVICES = ('cpu',)\n{top}\n"
        f"class Runner:\n  def __init__(self, device, announce):\n    {init}\n"
        "  def versions(self): return {}\n"
    )
    return str(file)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("init", "top", "says"),
    [
        ("import a_compiler_that_is_missing", "", "No module named 'a_compiler_that_is_missing'"),
        ("pass", "import a_compiler_that_is_missing", "No module named"),
        ("raise RuntimeError('no GPU')", "", "no GPU"),
        ("import os; os.abort()", "", "SIGABRT"),
        ("import sys; print('out of luck'); sys.exit(4)", "", "exit 4.*out of luck"),
        ("import time; time.sleep(100)", "", "not ready within 1 s"),
        ("x = bytearray(b'x') * (400 << 20); import time; time.sleep(9)", "", "more than 300 MiB"),
        ("import os, sys; os.write(int(sys.argv[3]), bytes(99))", "", "our protocol"),
    ],
)
def test_a_worker_that_does_not_start_is_explained_and_is_an_outcome(
    tmp_path: Path, init: str, top: str, says: str
) -> None:
    target = parse_target(target_file(tmp_path, init, top))
    with TargetProcess(target, Limits(startup_seconds=1, memory_mib=300)) as process:
        with pytest.raises(TargetError, match=f"(?s)odd.*{says}"):
            process.start()
        outcome = process.run(job(""))
        assert outcome.ended is Ended.UNSTARTED and "odd" in outcome.log
        assert process.passes(b"") == ()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("true", "exit 0"),
        ("echo what >&2; exit 1", "exit 1.*what"),
        ("exec sleep 100", "not ready"),
    ],
)
def test_what_is_no_python_is_explained(tmp_path: Path, script: str, says: str) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    process = TargetProcess(parse_target(f"{OBEDIENT}@{python}"), Limits(startup_seconds=1))
    with process, pytest.raises(TargetError, match=says):
        process.start()


def test_an_interpreter_may_be_a_script_that_starts_one(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n"{sys.executable}" "$@"\nexit $?\n')
    python.chmod(0o755)
    with TargetProcess(parse_target(f"{OBEDIENT}@{python}")) as process:
        assert process.run(job("outputs = [1]")).ended is Ended.ANSWERED
        outcome = process.run(job(CRASH))
        assert (outcome.ended, outcome.signal) == (Ended.DIED, "exit 139")


def test_an_interpreter_that_vanishes_is_an_outcome(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.symlink_to(sys.executable)
    target = parse_target(f"{OBEDIENT}@{python}")
    python.unlink()
    with TargetProcess(target) as process:
        outcome = process.run(job(""))
        assert outcome.ended is Ended.UNSTARTED and str(python) in outcome.log


def test_the_device_reaches_the_target() -> None:
    with TargetProcess(parse_target(f"{OBEDIENT}:toaster")) as process:
        assert process.start() == {"obedient": "1.5", "device": "toaster"}


def test_a_worker_starts_once(process: TargetProcess, run: Run) -> None:
    pids = {int((run("import os; outputs = [os.getpid()]").results["fast"].outputs or ())[0])}
    for _ in range(5):
        assert answers(run)
    assert process.starts == 1 and pids == {process.pid}


# --- several -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_pool_serves_threads(tmp_path: Path) -> None:
    programs = [f"outputs = [{n}]" if n % 5 else CRASH for n in range(30)]
    with WorkerPool(parse_target(str(OBEDIENT)), 2) as pool, ThreadPoolExecutor(6) as threads:
        assert pool.start()["obedient"] == "1.5"
        outcomes = list(threads.map(lambda program: pool.run(job(program)), programs))
        assert pool.passes(b"passes = 'ab'") == ("a", "b")
    for n, outcome in enumerate(outcomes):
        if n % 5 == 0:
            assert outcome.signal == "SIGSEGV"
        else:
            assert (outcome.results["fast"].outputs or ())[0] == n


def test_a_crash_reads_the_same_wherever_the_target_file_lies(tmp_path: Path) -> None:
    """A copy of Reprise, or an interpreter without it, must not make another defect of a crash."""
    here = Path(reprise.targets.process.__file__).parent
    elsewhere = tmp_path / "copy" / "reprise" / "targets"
    elsewhere.mkdir(parents=True)
    for name in ("worker.py", "wire.py"):
        (elsewhere / name).write_bytes((here / name).read_bytes())
    (elsewhere / OBEDIENT.name).write_bytes(OBEDIENT.read_bytes())
    program = (
        "import importlib.util as u, sys; "
        f"s = u.spec_from_file_location('worker', {str(elsewhere / 'worker.py')!r}); "
        "m = u.module_from_spec(s); s.loader.exec_module(m); "
        f"print(m._short({str(elsewhere / OBEDIENT.name)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"targets/{OBEDIENT.name}"
    key = crash_of(Failure(Stage.RUN, "Fail", "bad shape", (f"targets/{OBEDIENT.name}:run",))).key
    assert OBEDIENT.name not in key
