"""``kill -9`` of a whole campaign at random points: resumed, it is the run that nothing disturbed.
What it had told of is in the end there, once."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reprise.campaign.records import End
from reprise.campaign.store import Run
from tests.campaign.toy import ToySource, contents, fuzz
from tests.conftest import ROOT

TESTS = 240
SECONDS = 0.02
"""That each program takes to make, so that a kill has something to hit."""

SESSION = f"""
import sys
from pathlib import Path
from reprise.campaign.records import StoreError
from reprise.campaign.run import Budget, Campaign
from reprise.campaign.writer import RunWriter
from tests.campaign.toy import Silent, ToySource, toy_info, toy_work

class Telling(Silent):
    def tested(self, tally):
        if tally.done == 1:
            print("working", flush=True)
    def found(self, record, confirmation):
        print(record.index, flush=True)

if __name__ == "__main__":
    path = Path(sys.argv[1])
    writer = RunWriter.resume(path) if path.exists() else RunWriter.create(path, toy_info())
    work = toy_work(ToySource(seconds={SECONDS}))
    Campaign(writer, work, Budget({TESTS}), Telling(), jobs=2).run()
"""


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_a_campaign_that_is_killed_loses_nothing(tmp_path: Path, kills: int) -> None:
    script = tmp_path / "session.py"
    script.write_text(SESSION)
    assert fuzz(tmp_path / "whole", TESTS, source=ToySource()) is End.DONE
    rng, told, hits = random.Random(kills), set[int](), 0
    for number in range(kills + 1):
        process = subprocess.Popen(
            [sys.executable, str(script), str(tmp_path / "run")],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        if number < kills:
            assert first in ("working\n", "")  # it is done already
            time.sleep(rng.random() * 4 / kills)
            process.kill()
        told |= {int(word) for word in process.stdout.read().split() if word.isdigit()}
        process.stdout.close()
        hits += process.wait() == -signal.SIGKILL
    assert process.returncode == 0
    assert hits >= kills / 2
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")
    run = Run.open(tmp_path / "run")
    assert told <= {f.index for f in run.findings}
    assert len(run.sessions) == kills + 1
    starts = [s.first for s in run.sessions]
    assert starts == sorted(starts)
    assert [s.next for s in run.sessions][:-1] == starts[1:]
