"""Foreign names of operators: compared with the ONNX importer's own table, and told in messages."""

import re
import time
import tomllib

import pytest

from reprise.data import data_path
from reprise.facts.onnx_table import TABLE
from reprise.lang.diagnostics import Diagnostic, RulesError
from reprise.lang.ruleset import load_text
from reprise.lang.spelling import operator_hint, operators_meant, similar

SPELLINGS = tomllib.loads(data_path("rules/ops/spellings.toml").read_text())


def test_onnx_s_operators_are_spelt_as_the_importer_has_them() -> None:
    operators = set(load_text("").symbols.operators)
    assert set(SPELLINGS["onnx"]) == set(TABLE)
    for word, names in SPELLINGS["onnx"].items():
        assert set(names) <= operators
        if TABLE[word].op in operators:
            assert TABLE[word].op in names
        else:  # one UIR operator for each rank
            assert {re.sub(r"[123]d$", "", name) for name in names} == {TABLE[word].op}


@pytest.mark.slow
def test_torch_s_operators_are_spelt_otherwise_than_ours() -> None:
    operators = set(load_text("").symbols.operators)
    for word, names in SPELLINGS["torch"].items():
        assert word not in operators
        assert set(names) <= operators


def test_foreign_names_are_known_with_their_qualifier() -> None:
    assert operators_meant("onnx.ReduceSum") == ["sum"]
    assert operators_meant("torch.addmm") == ["gemm"]
    assert operators_meant("com.microsoft.Relu") == []
    assert operator_hint("Conv") == "UIR calls this operator `conv1d`, `conv2d` or `conv3d`"
    assert operators_meant("HardTanh", {"hard_tanh"}) == ["hard_tanh"]
    assert operator_hint("Nothing") is None


def diagnostics(text: str) -> list[Diagnostic]:
    try:
        return list(load_text(text).warnings)
    except RulesError as error:
        return error.diagnostics


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("pattern p { r = Relu(x) }", "relu"),
        ("pattern p { r = ReduceSum(x, axes=[1]) }", "sum"),
        ("pattern p { r = tanh|Gemm(x, y, z) }", "gemm"),
        ("pattern p { r = addmm(x, y, z) }", "gemm"),
        ("pattern p { r = exp(Add{x, y}) }", "add"),
        ("pattern p { r = exp(x)  graph upstream(r) in {Relu} }", "relu"),
        ("set s = {relu, Tanh}", "tanh"),
        ("set s = {relu, clamp}", "clip"),
    ],
)
def test_a_foreign_name_is_answered_with_ours(text: str, name: str) -> None:
    (found,) = diagnostics(text)
    assert found.hint == f"UIR calls this operator `{name}`"


def test_what_uir_lacks_is_written_with_its_domain() -> None:
    (found,) = diagnostics("pattern p { r = HannWindow(x) }")
    assert "`onnx.HannWindow`" in (found.hint or "")


def test_an_onnx_name_that_an_import_turns_is_warned_of() -> None:
    (found,) = diagnostics("pattern p { r = onnx.Softmax(x) }")
    assert found.code == "foreign-operator"
    assert "`softmax|onnx.Softmax`" in (found.hint or "")
    assert diagnostics("pattern p { r = softmax|onnx.Softmax(x) }") == []
    assert diagnostics("pattern p { r = onnx.HannWindow(x) }") == []


def test_a_rule_with_a_warning_is_a_rule() -> None:
    rules = load_text('pattern p "p" {\n    y = onnx.Relu(x)\n    z = neg|abs(y) or exp(y)\n}\n')
    assert [d.code for d in rules.warnings] == ["foreign-operator"]
    assert sum(rule.head.relation == "p" for rule in rules.program.rules) == 2


def test_thousands_of_mistakes_among_thousands_of_names_take_seconds() -> None:
    names = tuple(f"relation_number_{i}" for i in range(5000))
    started = time.process_time()
    found = [similar(name.replace("number", "numbre"), names, 0.6) for name in names]
    assert found == list(names)
    assert similar("b" * 100_000, ("a" * 100_000,), 0.6) is None
    assert time.process_time() - started < 10
