"""Models of a run, partitioned by what held of every condition."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from reprise.cli.main import run as reprise
from reprise.xcheck.behaviour import Seen
from reprise.xcheck.classes import By, Classes, classes_of, differences, read_monitors
from reprise.xcheck.store import Asked, Declared, ModelRow, Store, XRun
from reprise.xcheck.verdict import Verdict

S, V, U = Seen.SATISFIED, Seen.VIOLATED, Seen.UNKNOWN
EARLY, LATE = ("import",), ("import", "plan", "emit")


def row(number: int, verdict: Verdict, completed: tuple[str, ...], **seen: Seen) -> ModelRow:
    return ModelRow(
        number=number,
        constraint="fits",
        usage=0,
        valid=V not in seen.values(),
        kind="typed",
        digest=f"d{number}",
        program=f"abs(float32[{number}]) -> float32[{number}]",
        verdict=verdict,
        passes=len(completed),
        stage="at the end" if completed == LATE else "in plan",
        message="",
        signature="",
        warned=False,
        milliseconds=1,
        folder=None,
        completed=completed,
        seen=tuple(sorted(seen.items())),
    )


ROWS = (
    row(0, Verdict.COMPILED, LATE, fits=S),
    row(1, Verdict.COMPILED, LATE, fits=S, type=S),
    row(2, Verdict.ACCEPTED, LATE, fits=V, type=S),
    row(3, Verdict.REJECTED, EARLY, fits=V, type=S),
    row(4, Verdict.REJECTED, ("import", "plan"), fits=V),
    row(5, Verdict.COMPILED, LATE, fits=S, type=S),
    row(6, Verdict.UNASKED, (), fits=S),
)


def written(folder: Path, rows: Iterable[ModelRow] = ROWS) -> XRun:
    """A run of these models, each made for a constraint of its own."""
    folder.mkdir()
    asked = Asked("tvm", (), (), None, 0, 60.0, 4096)
    rows = [replace(found, constraint=f"c{found.number}") for found in rows]
    names = ["fits", *(found.constraint for found in rows)]
    declared = [Declared(name, "resource", "spec.py:3", "a.rules:1") for name in names]
    with Store.create(folder, asked, "hash", {"apache-tvm": "0.27"}, declared) as store:
        for found in rows:
            store.add(found, b"model", {})
    return XRun.open(folder)


def monitored(run: XRun, seen: Mapping[str, Mapping[str, str]]) -> None:
    """What monitors saw, as an instrumented compiler writes it."""
    lines = []
    for label, checks in seen.items():
        found = {key: {"verdict": verdict, "counts": {}} for key, verdict in checks.items()}
        lines.append(json.dumps({"kind": "run", "run": "1", "label": label, "checks": found}))
    run.monitors.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def run(tmp_path: Path) -> XRun:
    return written(tmp_path / "run")


def groups(found: Classes) -> set[frozenset[int]]:
    return {frozenset(members) for members in found.behaviour.classes}


def test_models_are_together_if_the_same_held(run: XRun) -> None:
    found = classes_of(run)
    assert [signal.name for signal in found.signals] == [
        "pass/fail",
        "pass coverage",
        "constraints",
    ]
    fate, coverage, constraints = found.signals
    assert {*fate.classes} == {(0, 1, 2, 5), (3, 4)}
    assert {*coverage.classes} == {(0, 1, 2, 5), (3,), (4,)}
    assert {*constraints.classes} == {(0,), (1, 5), (2, 3), (4,)}
    assert found.left_out == 1 and found.unmonitored == 0


def test_what_constraints_do_not_tell_apart_is_admitted(run: XRun) -> None:
    """Models 2 and 3 are alike to all constraints, and the compiler took only one of them."""
    by = {(c.first.name, c.second.name): c for c in classes_of(run).comparisons}
    assert by["pass coverage", "pass/fail"].refines
    against = by["constraints", "pass/fail"]
    assert not against.refines and against.missed > 0 and against.told > 0


def test_monitors_refine_what_constraints_tell(run: XRun) -> None:
    monitored(run, {"d1": {"pad": "satisfied"}, "d5": {"pad": "violated"}, "d2": {"pad": "error"}})
    found = classes_of(run)
    assert found.signals[-1].name == "constraints, monitors"
    assert groups(found) == {*map(frozenset, [{0}, {1}, {2}, {3}, {4}, {5}])}
    by = {(c.first.name, c.second.name): c for c in found.comparisons}
    assert by["constraints, monitors", "constraints"].refines
    assert by["constraints, monitors", "monitors"].refines
    assert found.unmonitored == 3


def test_classes_may_go_by_monitors_or_constraints_alone(run: XRun) -> None:
    with pytest.raises(ValueError, match="no monitors were seen"):
        classes_of(run, By.MONITORS)
    monitored(run, {"d1": {"pad": "satisfied"}, "d5": {"pad": "violated"}})
    assert groups(classes_of(run, By.MONITORS)) == {*map(frozenset, [{0, 2, 3, 4}, {1}, {5}])}
    assert groups(classes_of(run, By.CONSTRAINTS)) == {*map(frozenset, [{0}, {1, 5}, {2, 3}, {4}])}
    assert classes_of(run, By.MONITORS).conditions == ("pad",)
    assert len({classes_of(run, by).signals for by in By}) == 1


@pytest.mark.slow
def test_the_order_of_models_changes_no_class(tmp_path: Path) -> None:
    """The same models, found in another order, fall into the same classes."""
    expected = None
    for number, order in enumerate([*permutations(ROWS[:5])][::17]):
        renumbered = [
            ModelRow(**{**{n: getattr(r, n) for n in ModelRow.__slots__}, "number": i})
            for i, r in enumerate(order)
        ]
        found = classes_of(written(tmp_path / f"run{number}", renumbered))
        by_program = {
            frozenset(model.program for model in behaviour.models) for behaviour in found.classes
        }
        figures = [
            (c.refines, sorted(c.pieces), round(c.adjusted_rand, 9)) for c in found.comparisons
        ]
        assert expected in (None, (by_program, figures))
        expected = by_program, figures


def test_two_classes_are_told_apart_by_what_differs() -> None:
    first, second = (("a", S), ("b", V)), (("b", S), ("c", U))
    assert [(d.condition, d.here, d.there) for d in differences(first, second)] == [
        ("a", S, Seen.NOT_REACHED),
        ("b", V, S),
        ("c", Seen.NOT_REACHED, U),
    ]
    assert differences(first, first) == ()


def test_the_nearest_class_is_one_that_other_tests_do_not_tell_from_it(run: XRun) -> None:
    found = classes_of(run)
    place = {c.models[0].number: i for i, c in enumerate(found.classes)}
    # model 4 differs from model 0 in one condition, as from 2, but only from 0 in pass/fail too
    assert found.classes[place[0]].nearest == place[1]
    violated = found.classes[place[2]]
    assert violated.nearest == place[1]
    assert [(d.condition, d.here, d.there) for d in violated.differences] == [("fits", V, S)]
    assert found.conditions == ("fits", "type")


def test_a_run_of_one_class_has_nothing_to_tell_apart(tmp_path: Path) -> None:
    found = classes_of(written(tmp_path / "run", ROWS[:1]))
    assert len(found.classes) == 1 and found.classes[0].nearest is None
    assert found.conditions == ()
    assert all(c.refines and c.refined and c.adjusted_rand == 1 for c in found.comparisons)


# --- monitors' records ---------------------------------------------------------------------------


def first(label: str, run: str, check: str, verdict: str) -> str:
    return json.dumps(
        {"kind": "first", "run": run, "label": label, "check": check, "verdict": verdict}
    )


def test_a_process_that_died_leaves_what_was_seen_first(tmp_path: Path) -> None:
    file = tmp_path / "monitors.jsonl"
    lines = [
        first("x", "1", "pad", "satisfied"),
        first("x", "1", "pad", "violated"),
        first("x", "1", "tile", "unknown"),
        first("x", "1", "tile", "satisfied"),
    ]
    file.write_text("\n".join(lines))
    assert read_monitors(file) == {"x": (("pad", V), ("tile", U))}


def test_the_last_compilation_of_a_model_counts(tmp_path: Path) -> None:
    file = tmp_path / "monitors.jsonl"
    record = {"kind": "run", "run": "1", "label": "x", "checks": {"pad": {"verdict": "satisfied"}}}
    lines = [first("x", "1", "pad", "satisfied"), json.dumps(record)]
    file.write_text("\n".join(lines))
    assert read_monitors(file) == {"x": (("pad", S),)}
    file.write_text("\n".join([*lines, first("x", "2", "pad", "violated")]))
    assert read_monitors(file) == {"x": (("pad", V),)}


def test_what_is_no_record_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "monitors.jsonl"
    good = json.dumps({"kind": "run", "label": "x", "checks": {"a": {"verdict": "not_reached"}}})
    file.write_text(
        f'{good}\n{{"kind": "run", "label": "y"}}\n7\n{{"kind"\n{first("z", "1", "a", "?")}'
    )
    assert read_monitors(file) == {"x": (), "z": ()}
    assert read_monitors(tmp_path / "none") == {}


# --- as it is shown -------------------------------------------------------------------------------


def told(*arguments: object, code: int = 0) -> str:
    """What the command writes: its result, or its complaint."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        found = reprise(["xcheck", "classes", *map(str, arguments)])
    assert found == code, err.getvalue()
    return (err if code else out).getvalue()


def test_the_command_shows_signals_comparisons_and_classes(run: XRun) -> None:
    text = told(run.path)
    assert "6 models of tvm; 1 model that it was not asked about left out" in text
    assert re.search(r"^constraints +4 +2 +2 +1\.92$", text, re.M)
    assert re.search(r"^constraints +pass/fail +no +2 of 2 +3 ", text, re.M)
    assert re.search(r"^c2 +2 +1-3 +1 accepted, 1 rejected +from c\d: fits violated", text, re.M)


def test_the_document_has_every_model_and_table(run: XRun) -> None:
    document = json.loads(told(run.path, "--format", "json"))
    assert [s["classes"] for s in document["signals"]] == [2, 3, 4]
    assert sorted(n for c in document["classes"] for n in c["models"]) == [0, 1, 2, 3, 4, 5]
    for comparison in document["comparisons"]:
        assert sum(count for _, _, count in comparison["table"]) == 6
    seen = {tuple(c["models"]): c["seen"] for c in document["classes"]}
    assert seen[2, 3] == {"fits": "violated", "type": "satisfied"}


def test_two_classes_are_compared(run: XRun) -> None:
    text = told(run.path, "--between", "c1", "c2")
    assert re.search(r"^fits +satisfied +violated", text, re.M) and "type" not in text
    assert "abs(float32[5])" in text
    document = json.loads(told(run.path, "--between", "c1", "c2", "--format", "json"))
    assert document["differences"] == [
        {"condition": "fits", "here": "satisfied", "there": "violated"}
    ]


def test_the_picture_is_well_formed_and_shows_every_class(run: XRun, tmp_path: Path) -> None:
    svg, html = tmp_path / "classes.svg", tmp_path / "classes.html"
    told(run.path, "--picture", svg)
    told(run.path, "--picture", html)
    space = {"s": "http://www.w3.org/2000/svg"}
    root = ElementTree.fromstring(svg.read_text("utf-8"))
    blocks = root.findall(".//s:rect[@class]", space)
    assert len(blocks) == 2 + 3 + 4
    heights = [float(b.get("height", 0)) for b in blocks if b.get("x") == "10"]
    assert heights[0] == pytest.approx(2 * heights[1], rel=0.01)  # four models and two
    assert "mixed" in svg.read_text("utf-8")  # the class that compiled once and once did not
    page = html.read_text("utf-8")
    assert "default-src 'none'" in page and "http" not in re.sub(
        r'http-equiv|xmlns="[^"]*"', "", page
    )
    assert all(f">c{n} (" in page for n in (1, 2, 3, 4))


@pytest.mark.slow
def test_many_classes_are_drawn_as_one_block(tmp_path: Path) -> None:
    rows = [row(i, Verdict.COMPILED, LATE, **{f"c{i}": S}) for i in range(100)]
    written(tmp_path / "run", rows)
    told(tmp_path / "run", "--picture", tmp_path / "p.svg")
    assert "60 classes more (60)" in (tmp_path / "p.svg").read_text("utf-8")
    assert "and 75 classes of 75 models" in told(tmp_path / "run")
    assert re.search(r"^c100 ", told(tmp_path / "run", "--all"), re.M)


def test_hostile_names_are_shown_and_not_interpreted(tmp_path: Path) -> None:
    bad = row(0, Verdict.COMPILED, ("<script>", "\x1b[31m"), **{"<img src=x>": V})
    written(tmp_path / "run", [bad, ROWS[1]])
    told(tmp_path / "run", "--picture", tmp_path / "p.html")
    page = (tmp_path / "p.html").read_text("utf-8")
    assert "<script" not in page and "<img" not in page and "&lt;img src=x&gt;" in page
    assert "\x1b" not in told(tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "there is no run in this folder"),
        (["{run}", "--between", "c1", "c9"], "there is no class `c9`: there are c1 to c4"),
        (["{run}", "--between", "c1", "all"], "there is no class `all`"),
        (["{run}", "--by", "monitors"], "no monitors were seen: was the compiler instrumented?"),
        (["{empty}"], "the compiler was asked about no model yet"),
    ],
)
def test_bad_input_is_explained(run: XRun, tmp_path: Path, arguments: list[str], says: str) -> None:
    written(tmp_path / "empty", [])
    places = {"run": run.path, "empty": tmp_path / "empty"}
    assert says in " ".join(told(*(a.format(**places) for a in arguments), code=2).split())
