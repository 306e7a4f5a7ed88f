"""The tour that `make demo` takes: what it promises is true on this machine."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import onnx
import pytest

from tests.conftest import ROOT, environment


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["demo"] = module
    spec.loader.exec_module(module)
    return module


def test_every_bug_shows_and_no_twin_does(demo: ModuleType, tmp_path: Path) -> None:
    bugs, twins = demo.write_models(tmp_path)
    for case in demo.CASES:
        for folder in (bugs, twins):
            onnx.checker.check_model(str(folder / f"{case.name}.onnx"), full_check=True)
        assert demo.outcome(bugs / f"{case.name}.onnx") != "right", case.name
        assert demo.outcome(twins / f"{case.name}.onnx") == "right", case.name


def test_what_to_type_next_works_in_a_new_shell(
    demo: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`make demo` finds the environment by itself; a person's shell does not."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    first, *rest = demo.what_next(Path("run"), Path("demo"))
    assert first.startswith(". env/bin/activate ")
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "env"))
    assert list(demo.what_next(Path("run"), Path("demo"))) == rest
    assert all(("reprise " in line) or ("open " in line) or ("docs/" in line) for line in rest)


@pytest.mark.slow
def test_the_tour_ends_well_twice(tmp_path: Path) -> None:
    """Away from a terminal, whatever the fuzzer finds; each time in a new folder."""
    for number in (1, 2):
        done = subprocess.run(
            [sys.executable, ROOT / "examples" / "demo.py", "--time", "15s"],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        for bug in ("ort_32228", "ort_24158", "ort_31980", "ort_24737"):
            assert f"check says {bug}" in done.stdout
        run = f"build/demo/run-{number}"
        assert f"--out {run}" in done.stdout
        assert f"page: {run}/report.html" in done.stdout
        assert (tmp_path / run / "report.html").is_file()
        assert "Traceback" not in done.stderr


def test_an_interrupt_during_a_command_is_the_commands_alone(
    demo: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends the fuzzer early, and the tour goes on with the report."""
    interrupt = "import os, signal; os.kill(os.getppid(), signal.SIGINT); print('went on')"
    before = signal.getsignal(signal.SIGINT)
    assert demo.call(sys.executable, "-c", interrupt, show="reprise fuzz") == 0
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr().out == "$ reprise fuzz\nwent on\n"
