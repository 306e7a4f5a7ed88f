"""What TACO's worker needs, it asks for before it says that it is ready."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from reprise.targets.discover import parse_target

FILE = parse_target("taco").file


def test_programs_that_are_not_there_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(FILE.parent / "shared"))
    runner = runpy.run_path(str(FILE))["Runner"]("cpu", print)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="no program taco on the PATH"):
        runner.versions()
    program = tmp_path / "taco"
    program.write_text("#!/bin/sh\necho TACO version: 0.1\n")
    program.chmod(0o755)
    monkeypatch.delenv("TACO_CC", raising=False)
    assert runner.versions()["taco"].startswith("0.1")
    monkeypatch.setenv("TACO_CC", "no-such-cc -w")
    with pytest.raises(RuntimeError, match="no C compiler no-such-cc, which TACO_CC names"):
        runner.versions()
