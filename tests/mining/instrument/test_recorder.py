"""What monitors record when an instrumented program runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.mining.instrument.conftest import Workshop, monitor


def record(workshop: Workshop, source: str, assertion: str, line: int, **options: object) -> dict:
    """The check's part of the run's record."""
    workshop.put({"a.py": source})
    made = workshop.make(monitor(assertion, f"a.py:{line}"), **options)
    assert made.refused == ()
    return workshop.run(sys.executable, "a.py")[1][-1]["checks"]["m"]


def test_counts_and_first_values_of_each_verdict(workshop: Workshop) -> None:
    source = "for x in [4, 8, 6, 12, 7]:\n    y = x\n"
    check = record(workshop, source, 'value("x") % 4 == 0', 2)
    assert check == {
        "verdict": "violated",
        "counts": {"satisfied": 3, "violated": 2},
        "first": {"satisfied": {"x": 4}, "violated": {"x": 6}},
    }


@pytest.mark.parametrize(
    ("value", "assertion", "verdict"),
    [
        ("None", 'value("x") == 3', "violated"),
        ("7", 'value("x") / 2 == 3', "satisfied"),
        ("-7", 'value("x") / 2 == -4', "satisfied"),
        ("7.0", 'value("x") / 2 == 3.5', "satisfied"),
        ("-7", 'value("x") % 4 == 1', "satisfied"),
        ("0", '4 % value("x") == 0', "error"),
        ("'a'", 'value("x") % 4 == 0', "error"),
        ("'linear'", 'value("x") == "linear"', "satisfied"),
        ("'float32'", 'value("x") in {float16, float32}', "satisfied"),
        ("'int8'", 'value("x") not in {float16, float32}', "satisfied"),
        ("8", 'value("x") in 1..8', "satisfied"),
        ("9", 'value("x") in 1..8', "violated"),
        ("5", '1 < value("x") < 5', "violated"),
        ("5", 'not value("x") == 4 and (value("x") == 4 or value("x") > 4)', "satisfied"),
        ("-6", 'abs(value("x")) == max(6, 2) and min(3, value("x")) == value("x")', "satisfied"),
        ("[1, 2]", 'value("len(x)") == 2', "satisfied"),
        ("[1, 2]", 'value("x[0] + x[1]") == 3', "satisfied"),
        ("object()", 'value("x") == 3', "unknown"),
        ("[object()]", 'value("len(x)") == 1', "satisfied"),
        ("[object()]", 'value("x[0]") == 1', "unknown"),
        ("object()", 'value("y") == 1 or value("x") == 3', "satisfied"),
        ("object()", 'value("y") == 2 or value("x") == 3', "unknown"),
        ("__import__('enum').Enum('E', 'RED')['RED']", 'value("x") == "RED"', "satisfied"),
        ("True", 'value("x") == true', "satisfied"),
        ("range(10**12)", 'value("len(x)") == 3', "unknown"),
    ],
)  # fmt: skip
def test_verdicts(workshop: Workshop, value: str, assertion: str, verdict: str) -> None:
    check = record(workshop, f"y = 1\nx = {value}; y\n", assertion, 2)
    assert check["verdict"] == verdict


def test_numpy_integers_do_not_wrap(workshop: Workshop) -> None:
    numpy = pytest.importorskip("numpy")
    with numpy.errstate(over="ignore"):
        n = numpy.int64(2**62)
        assert n * 4 == 0
    source = "import numpy\nx = numpy.int64(2**62)\n"
    check = record(workshop, source, 'value("x") * 4 == 0', 2)
    assert check["verdict"] == "violated"
    assert check["first"] == {"violated": {"x": str(2**62)}}


def test_a_name_that_is_not_bound_yet_is_an_error_and_nothing_is_raised(workshop: Workshop) -> None:
    source = "def f(n):\n    if n: y = 1\n    x = 2\n    return x\nprint(f(0), f(1))\n"
    check = record(workshop, source, 'value("y") < value("x")', 3)
    assert check["counts"] == {"error": 1, "satisfied": 1}
    assert "y" in check["first"]["error"][""]


def test_what_never_ran_is_not_reached(workshop: Workshop) -> None:
    check = record(workshop, "if 0:\n    x = 1\n", 'value("x") == 1', 2)
    assert check == {"verdict": "not_reached", "counts": {}}


def test_a_value_that_becomes_a_number_later_is_looked_at_again_at_the_end(
    workshop: Workshop,
) -> None:
    source = """\
class Late:
    number = None
    def __index__(self): return self.number
x = Late()
y = 1
x.number = 12
"""
    check = record(workshop, source, 'value("x") % 4 == 0 and value("y") == 1', 5)
    assert check["counts"] == {"satisfied": 1}
    assert check["late"] == 1


def test_an_attribute_says_the_number_once_it_is_known(workshop: Workshop) -> None:
    source = "class Lazy: known = None\nx = Lazy()\nx.known = 6\n"
    lazy = [{"class": "__main__.Lazy", "attribute": "known"}]
    check = record(workshop, source, 'value("x") % 4 == 0', 2, lazy=lazy)
    assert check["counts"] == {"violated": 1}


def test_of_very_many_lazy_values_some_stay_unknown_and_that_is_told(workshop: Workshop) -> None:
    source = "for i in range(300):\n    x = object()\n"
    workshop.put({"a.py": source})
    workshop.make(monitor('value("x") == 1', "a.py:2"))
    run = workshop.run(sys.executable, "a.py")[1][-1]
    assert run["checks"]["m"]["counts"] == {"unknown": 300}
    assert run["not_reevaluated"] == 44


def test_raise_only_when_asked(workshop: Workshop) -> None:
    workshop.put({"a.py": "x = 6\nprint('on')\n"})
    workshop.make(monitor('value("x") % 4 == 0', "a.py:1"))
    assert workshop.run(sys.executable, "a.py")[0] == "on\n"
    printed, records = workshop.run(sys.executable, "a.py", mode="raise", fails=True)
    assert 'MonitorViolation: m: value("x") % 4 == 0 is false (x = 6)' in printed
    assert records[-1]["checks"]["m"]["verdict"] == "violated"


def test_off_records_nothing(workshop: Workshop) -> None:
    workshop.put({"a.py": "x = 6\n"})
    workshop.make(monitor('value("x") % 4 == 0', "a.py:1"))
    assert workshop.run(sys.executable, "a.py", mode="off")[1] == []


@pytest.mark.slow
def test_a_process_that_dies_leaves_what_it_saw(workshop: Workshop) -> None:
    workshop.put({"a.py": "import os\nx = 6\nos._exit(3)\n"})
    workshop.make(monitor('value("x") % 4 == 0', "a.py:2"))
    _, records = workshop.run(sys.executable, "a.py", fails=True)
    (first,) = records
    assert (first["kind"], first["check"], first["verdict"]) == ("first", "m", "violated")


def test_one_process_may_make_several_runs(workshop: Workshop) -> None:
    source = """\
import sys
monitors = sys.modules["_reprise_monitor"]
for n in 4, 6:
    monitors.begin(f"model {n}")
    x = n
    print(monitors.record()["checks"]["m"]["verdict"])
    monitors.end()
"""
    workshop.put({"a.py": source})
    workshop.make(monitor('value("x") % 4 == 0', "a.py:5"))
    printed, records = workshop.run(sys.executable, "a.py")
    runs = [(r["label"], r["checks"]["m"]["verdict"]) for r in records if r["kind"] == "run"]
    assert runs == [("model 4", "satisfied"), ("model 6", "violated")]
    assert printed.split() == ["satisfied", "violated"]


def test_modules_of_one_copy_share_a_run(workshop: Workshop) -> None:
    workshop.put(
        {
            "main.py": "import p.a, p.q.b\nx = 1\n",
            "p/__init__.py": "",
            "p/a.py": "x = 2\n",
            "p/q/b.py": "x = 3\n",  # a namespace package
        }
    )
    rules = "".join(
        monitor('value("x") == 1', f"{name}.py:{line}", name=name.replace("/", "_"))
        for name, line in (("main", 2), ("p/a", 1), ("p/q/b", 1))
    )
    workshop.make(rules)
    (run,) = [r for r in workshop.run(sys.executable, "main.py")[1] if r["kind"] == "run"]
    found = {key: check["verdict"] for key, check in run["checks"].items()}
    assert found == {"main": "satisfied", "p_a": "violated", "p_q_b": "violated"}


def test_threads_and_forks_count_apart_or_together(workshop: Workshop) -> None:
    source = """\
import os, threading
def f():
    for i in range(500):
        x = i
threads = [threading.Thread(target=f) for _ in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
if os.fork() == 0:
    f()
    raise SystemExit
os.wait()
"""
    workshop.put({"a.py": source})
    workshop.make(monitor('value("x") >= 0', "a.py:4"))
    runs = [r for r in workshop.run(sys.executable, "a.py")[1] if r["kind"] == "run"]
    counts = sorted(run["checks"]["m"]["counts"]["satisfied"] for run in runs)
    assert counts == [500, 2000]


def test_two_processes_append_whole_lines(workshop: Workshop) -> None:
    workshop.put({"a.py": "for i in range(2000):\n    x = i % 7\n"})
    workshop.make(monitor('value("x") != 5', "a.py:2"))
    out = workshop.folder / "shared.jsonl"
    surroundings = {**os.environ, "REPRISE_MONITOR_OUT": str(out)}
    command = [sys.executable, "a.py"]
    running = [subprocess.Popen(command, cwd=workshop.copy, env=surroundings) for _ in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert sum(line["kind"] == "run" for line in lines) == 4


def test_an_unwritable_record_file_changes_nothing(workshop: Workshop) -> None:
    workshop.put({"a.py": "x = 1\nprint(x)\n"})
    workshop.make(monitor('value("x") == 1', "a.py:1"))
    surroundings = {**os.environ, "REPRISE_MONITOR_OUT": "/no/such/folder/out"}
    done = subprocess.run(
        [sys.executable, "a.py"], cwd=workshop.copy, env=surroundings, capture_output=True
    )
    assert (done.stdout, done.stderr) == (b"1\n", b"")
