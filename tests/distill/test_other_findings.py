"""A rule is held against the other findings of its defect in the run that it comes from."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from reprise.campaign.open import Request, begin
from reprise.campaign.run import Budget
from reprise.campaign.store import Run
from reprise.distill.distilling import sampling_for
from reprise.distill.draft import Draft, DraftNode
from reprise.distill.subject import open_trials, read_subject
from reprise.distill.tighten import Against, of_run, tighten
from reprise.solve.signatures import Signatures
from tests.campaign.toy import Silent

pytest.importorskip("onnxruntime", "1.27")


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Folders of findings of one defect."""
    generation = {"nodes": 4, "ops": ("sigmoid,mul",), "dtypes": ("float64",)}
    asked = Request("onnxruntime", seed=2, guided=False, generation=generation, budget=Budget(40))
    path = tmp_path_factory.mktemp("run") / "run"
    campaign = begin(asked, path, Silent(), 1)
    campaign.run()
    campaign.writer.close()
    run = Run.open(path)
    found = [f.folder for f in run.findings_of(run.defects[0]) if f.folder is not None]
    assert len(found) >= 3
    return found


@pytest.mark.slow
def test_those_that_the_rule_does_not_match_are_named(findings: list[Path]) -> None:
    signatures = Signatures.load()
    first, second, *others = findings
    shutil.copytree(second, second.with_name("00009999"))
    (second.with_name("00009999") / "program.uir").write_text("damaged")
    trials, _ = open_trials(read_subject(first, None, signatures))
    with trials:
        assert {h.finding for h in of_run(first, trials, signatures)} == {second, *others}
        draft = Draft((DraftNode("n1", ("erf",), ("x1",)),), ())
        against = Against(neighbours=0, witnesses=0, finding=first)
        sampling = sampling_for(trials.target, signatures)
        held = against.programs_for(draft, trials, "", sampling, Random(0))
        done = tighten(draft, [], held, trials)
    assert set(done.missed) == {second, *others}
    assert (done.score.recall.events, done.score.recall.trials) == (0, len(findings) - 1)
