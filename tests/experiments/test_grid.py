"""The grid: neighbours are valid programs that never depend on a rule, and scores add up."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from experiments.grid import Defect, Point, Scorer, markdown, read_points
from experiments.neighbourhood import Draft, Neighbourhood
from reprise.campaign.regress.probe import Effect, Observation
from reprise.data import data_path
from reprise.lang.ruleset import load_rules
from reprise.solve.signatures import Signatures
from reprise.synth.vocabulary import read_policies
from reprise.targets.discover import parse_target
from reprise.uir.text import parse_uir, print_uir

SIGNATURES = Signatures.load()
SEED = "x: float64[2, 3]\nr = relu(x)\nc = clip(r, min=-1.0, max=1.0)\n"
FAR = "x: float64[2, 3]\nc = neg(x)\n"
CLIP = data_path("rules/bugs") / "onnxruntime" / "relu_clip.rules"


@pytest.fixture(scope="module")
def neighbours() -> list[str]:
    around = Neighbourhood(SIGNATURES, read_policies(load_rules([CLIP])))
    graph = parse_uir(SEED, "seed", SIGNATURES)
    return [print_uir(g) for g in around.around([graph], Random(1), 60)]


def test_neighbours_are_different_valid_programs(neighbours: list[str]) -> None:
    assert len(neighbours) == len(set(neighbours)) == 60
    for text in neighbours:
        assert print_uir(parse_uir(text, "again", SIGNATURES)) == text


def test_they_differ_in_more_ways_than_one(neighbours: list[str]) -> None:
    assert sum("float64" not in text for text in neighbours) > 2
    assert sum("const" in text for text in neighbours) > 2
    assert sum("output" in text for text in neighbours) > 0
    assert sum("relu" not in text for text in neighbours) > 2


@pytest.mark.slow
def test_the_same_seed_gives_the_same_neighbours(neighbours: list[str]) -> None:
    around = Neighbourhood(SIGNATURES, read_policies(load_rules([CLIP])))
    graph = parse_uir(SEED, "seed", SIGNATURES)
    assert [print_uir(g) for g in around.around([graph], Random(1), 60)] == neighbours


def test_a_program_taken_apart_and_put_together_is_the_same() -> None:
    graph = parse_uir(SEED, "seed", SIGNATURES)
    around = Neighbourhood(SIGNATURES, {})
    built = around.build(Draft.of(graph), Random(0))
    assert built is not None
    assert [n.op for n in built.nodes] == ["relu", "clip"]
    assert built.nodes[1].attributes == graph.nodes[1].attributes


def point(text: str, effect: Effect, *, seed: bool = False, cures: tuple[str, ...] = ()) -> Point:
    program = print_uir(parse_uir(text, "p", SIGNATURES))
    symptoms = ("crash_at_load",) if effect is Effect.FIRES else ()
    return Point(program, seed, Observation(effect, symptoms, cures=cures))


def test_precision_and_recall_count_what_they_say(tmp_path: Path) -> None:
    rules = load_rules([CLIP])
    rule = rules.patterns["ort_24158"]
    scorer = Scorer(rules, parse_target("onnxruntime"), [rule])
    blamed = ("FuseReluClip",)
    points = [
        point(SEED, Effect.FIRES, seed=True, cures=blamed),
        point(SEED.replace("2, 3", "2, 4"), Effect.SILENT),  # matched, and silent
        point(FAR, Effect.FIRES, cures=blamed),  # fires, and not matched
        point(FAR.replace("2, 3", "2, 4"), Effect.FIRES, cures=("Another",)),  # another defect
        point(FAR.replace("2, 3", "2, 5"), Effect.UNDECIDED),
        point(FAR.replace("2, 3", "2, 6"), Effect.SILENT),
    ]
    (score,) = scorer.score(rule, points, [])
    assert (score.points, score.judged, score.shows) == (6, 4, 2)
    assert (score.precision.events, score.precision.trials) == (1, 2)
    assert (score.recall.events, score.recall.trials) == (1, 2)
    assert len(score.wrong) == len(score.missed) == 1
    assert "0.500" in markdown([score])


def test_a_defect_without_a_pass_is_known_by_how_it_fails() -> None:
    crash = Observation(Effect.FIRES, ("crash_at_run",), signature="crash | run | SIGFPE | x")
    defect = Defect.of([Point("", True, crash)])
    assert defect.shows(crash) is True
    other = Observation(Effect.FIRES, ("crash_at_run",), signature="crash | run | SIGSEGV | x")
    assert defect.shows(other) is None
    assert defect.shows(Observation(Effect.SILENT)) is False


def test_a_line_that_was_cut_off_is_no_point(tmp_path: Path) -> None:
    import json

    file = tmp_path / "r.jsonl"
    kept = point(SEED, Effect.SILENT)
    file.write_text(json.dumps(kept.data()) + "\n" + '{"program": "x')
    assert read_points(file) == [kept]
