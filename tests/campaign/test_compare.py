"""Runs compared: the first paper's Table 3, counting by hand, and what is refused."""

from __future__ import annotations

import io
from itertools import product
from pathlib import Path
from random import Random

import pytest

from reprise.campaign.compare import Comparisons, Estimate, bootstrap
from reprise.campaign.records import End, Record
from reprise.campaign.report.comparison import document, show
from reprise.campaign.report.text import console
from reprise.campaign.store import Run
from reprise.oracle.verdict import Verdict
from reprise.patterns.check import UsageError
from tests.campaign.reported import counted, run

A, B, C = "rule:ort_32228", "rule:ort_24158", "third"


def made(path: Path, counts: dict[str, int], tests: int, guided: bool, **more: object) -> Run:
    rejected = more.pop("rejected", {})
    records = counted(counts, tests, **rejected)  # type: ignore[arg-type]
    more = {"rules": ("ort_32228",), **more}
    return Run.open(run(path, records, guided=guided, **more))


def test_table_3_of_the_paper(tmp_path: Path) -> None:
    """TVM: no patterns against A and B, 254 to 25 reports of 10,000 (tenths of the tests)."""
    rules = ("ort_32228", "ort_24158")
    none = made(tmp_path / "n", {A: 216, B: 36, C: 2}, 1000, False, rules=rules)
    both = made(tmp_path / "b", {B: 25}, 1000, True, rules=rules, rejected={"ort_32228": 15})
    found = Comparisons([both, none])
    (row,) = found.comparisons
    assert [c.name for c in found.configurations] == ["unguided", "guided"]
    assert [c.pooled.reports for c in found.configurations] == [254, 25]
    assert row.removed == Estimate(pytest.approx(0.902, abs=5e-4))
    assert row.repeats_removed == Estimate(pytest.approx(0.904, abs=5e-4))
    assert [(f.key, f.baseline, f.other) for f in row.both] == [(B, 36, 25)]
    assert [f.key for f in row.avoided] == [A]
    assert [f.key for f in row.lost] == [f"signature of {C}"]
    assert row.lost[0].by_chance == pytest.approx((1 - 2 / 1000) ** 1000)
    assert found.configurations[1].runs[0].rejected == 15


def test_the_text_shows_both_tables(tmp_path: Path) -> None:
    none = made(tmp_path / "n", {A: 216, B: 36, C: 2}, 1000, False)
    both = made(tmp_path / "b", {B: 25}, 900, True)
    out = io.StringIO()
    screen = console(out)
    screen.width = 60  # narrower than the tables: they are not cut
    show(Comparisons([none, both]), screen)
    said = out.getvalue()
    for part in ("188.8", "1.35", "74.2%", "254", "251", "10.0%", "LOST", "GAINED", "b1", "13."):
        assert part in said


def test_runs_are_compared_at_equal_tests(tmp_path: Path) -> None:
    """The unguided run did twice as many tests and met its second defect in the later half."""
    crash = Record(150, Verdict.CRASH, "late", "late")
    late = [Record(i, Verdict.OK) for i in range(150)] + [crash]
    late += [Record(i, Verdict.OK) for i in range(151, 200)]
    long = Run.open(run(tmp_path / "l", late, guided=False))
    short = made(tmp_path / "s", {}, 100, True)
    (row,) = Comparisons([long, short]).comparisons
    assert row.tests == 100
    assert row.fates == ()
    assert row.executed is not None
    assert row.executed.value == pytest.approx(0.5)


def test_only_shared_seeds_are_paired(tmp_path: Path) -> None:
    runs = [made(tmp_path / f"u{s}", {C: 4}, 50, False, seed=s) for s in (1, 2)]
    runs += [made(tmp_path / f"g{s}", {C: 1}, 50, True, seed=s) for s in (2, 3)]
    (row,) = Comparisons(runs).comparisons
    assert row.seeds == (2,)
    assert row.removed == Estimate(0.75)
    apart = Comparisons([runs[0], runs[3]]).comparisons[0]
    assert (apart.seeds, apart.removed) == ((), None)


def test_a_defect_is_the_same_with_and_without_the_rule_that_knows_it(tmp_path: Path) -> None:
    """Only one of the runs knows the rule; the other files the same signature bare."""
    knows = [Record(0, Verdict.CRASH, "sig", "crash", "ort_32228"), Record(1, Verdict.OK)]
    bare = [Record(0, Verdict.CRASH, "sig", "crash"), Record(1, Verdict.OK)]
    one = Run.open(run(tmp_path / "a", knows, guided=False, rules=("ort_32228",)))
    two = Run.open(run(tmp_path / "b", bare, guided=True, rules=(), rules_hash="other"))
    (row,) = Comparisons([one, two]).comparisons
    assert [(f.key, f.baseline, f.other) for f in row.fates] == [("rule:ort_32228", 1, 1)]
    # but where the rule was known and did not fit, it is another defect
    three = Run.open(run(tmp_path / "c", bare, guided=True, rules=("ort_32228",), rules_hash="x"))
    assert len(Comparisons([one, three]).comparisons[0].fates) == 2


def test_crashes_can_be_counted_alone(tmp_path: Path) -> None:
    wrong = [Record(0, Verdict.WRONG_RESULT, "w", "wrong"), Record(1, Verdict.CRASH, "c", "crash")]
    one = Run.open(run(tmp_path / "a", wrong, guided=False))
    two = Run.open(run(tmp_path / "b", wrong, guided=True))
    assert Comparisons([one, two]).configurations[0].pooled.reports == 2
    only = Comparisons([one, two], [Verdict.CRASH])
    assert only.configurations[0].pooled.reports == 1


def test_options_and_rules_make_configurations(tmp_path: Path) -> None:
    runs = [
        made(tmp_path / "n", {}, 10, False, options={"generation": {"nodes": 5}}),
        made(tmp_path / "a", {}, 10, True, options={"generation": {"nodes": 5}}),
        made(tmp_path / "b", {}, 10, True, options={"generation": {"nodes": 9}}),
        made(tmp_path / "c", {}, 10, True, options={"generation": {"nodes": 9}}, rules_hash="zz"),
    ]
    names = [c.name for c in Comparisons(runs).configurations]
    assert names == [
        "unguided, nodes 5, 1 rule (abc)",
        "guided, nodes 5, 1 rule (abc)",
        "guided, nodes 9, 1 rule (abc)",
        "guided, nodes 9, 1 rule (zz)",
    ]


def test_an_option_that_is_on_or_off_is_named_in_words(tmp_path: Path) -> None:
    runs = [made(tmp_path / str(on), {}, 10, True, options={"learn": on}) for on in (True, False)]
    assert [c.name for c in Comparisons(runs).configurations] == [
        "guided, learn",
        "guided, no learn",
    ]


def test_the_same_seed_gives_the_same_intervals(tmp_path: Path) -> None:
    runs = [made(tmp_path / f"u{s}", {C: 3 * s + 1}, 50, False, seed=s) for s in range(4)]
    runs += [made(tmp_path / f"g{s}", {C: s}, 50, True, seed=s) for s in range(4)]
    first, second = (document(Comparisons(runs, seed=7)) for _ in range(2))
    assert first == second
    removed = first["comparisons"][0]["removed"]
    assert removed["low"] < removed["value"] < removed["high"]
    mean = first["configurations"][0]["mean"]["reports"]
    assert mean["value"] == pytest.approx((1 + 4 + 7 + 10) / 4)


def test_the_bootstrap_against_all_resamples() -> None:
    values = [3, 9, 4, 12]
    every = sorted(sum(drawn) / 4 for drawn in product(values, repeat=4))
    low, high = every[round(0.025 * 255)], every[round(0.975 * 255)]
    found = bootstrap(values, lambda drawn: sum(drawn) / 4, Random(0), 20_000)
    assert found.value == 7
    assert found.low == pytest.approx(low, abs=0.3)
    assert found.high == pytest.approx(high, abs=0.3)


def test_two_seeds_give_no_interval() -> None:
    assert bootstrap([1, 2], lambda d: sum(d) / 2, Random(0)) == Estimate(1.5)
    with pytest.raises(ValueError, match="nothing"):
        bootstrap([1, 2, 3], lambda d: None, Random(0))


# --- what is refused -------------------------------------------------------------------------


def refused(*runs: Run, partial: bool = False) -> str:
    with pytest.raises(UsageError) as error:
        _ = Comparisons(runs, partial=partial).configurations
    return str(error.value)


def test_what_cannot_be_compared_is_refused_in_words(tmp_path: Path) -> None:
    one = made(tmp_path / "a", {}, 5, False)
    assert "two runs or more" in refused(one)
    assert "given twice" in refused(one, one)
    assert "different targets (onnxruntime, tvm)" in refused(
        one, made(tmp_path / "t", {}, 5, True, target="tvm")
    )
    assert "one configuration and one seed (42)" in refused(one, made(tmp_path / "b", {}, 5, False))
    stopped = Run.open(
        run(tmp_path / "s", [Record(0, Verdict.OK)], guided=True, end=End.INTERRUPTED)
    )
    assert "not complete" in refused(one, stopped)
    assert Comparisons([one, stopped], partial=True).comparisons[0].tests == 1
    empty = Run.open(run(tmp_path / "e", [], guided=True))
    assert "no test has ended" in refused(one, empty)
