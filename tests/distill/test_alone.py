"""Two processes do not work in one folder."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reprise.distill.alone import alone_in, made_for
from reprise.patterns.check import UsageError
from tests.conftest import ROOT

HOLD = """
import sys, time
from pathlib import Path
from reprise.distill.alone import alone_in
with alone_in(Path(sys.argv[1])):
    print("in", flush=True)
    time.sleep(60)
"""


def test_a_folder_is_free_once_its_process_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None and process.stdout.readline() == "in\n"
        with pytest.raises(UsageError, match="another process"), alone_in(tmp_path, 0.1):
            pass
        process.send_signal(signal.SIGKILL)
        with alone_in(tmp_path):
            assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), alone_in(tmp_path / "none"):
        pass


def test_a_folder_that_was_made_for_nothing_is_taken_away(tmp_path: Path) -> None:
    new, mine = tmp_path / "new", tmp_path / "mine"
    mine.mkdir()
    for folder in (new, mine):
        with pytest.raises(ZeroDivisionError), made_for(folder):
            raise ZeroDivisionError
    with made_for(tmp_path / "kept"):
        (tmp_path / "kept" / "answers").write_text("")
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "kept"}
