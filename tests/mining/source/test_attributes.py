"""Attributes that a frontend's converter never reads, and those that no valid model has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from reprise.lang.format import format_text
from reprise.mining.source.extractor import load_extractor
from reprise.mining.source.mine import mine
from tests.mining.source.conftest import Mine, rules

FRONTEND = """\
class Converter:
    pass

class IsInf(Converter):
    @classmethod
    def _impl_v10(cls, bb, inputs, attr, params):
        return isinf(inputs[0])

class SpaceToDepth(Converter):
    @classmethod
    def _impl_v1(cls, bb, inputs, attr, params):
        size = attr["blocksize"]
        return space_to_depth(inputs[0], size)

def _reduction(attr, valid):
    reduction = attr.get("reduction", None)
    return reduction

class ScatterElements(Converter):
    @classmethod
    def _impl_v16(cls, bb, inputs, attr, params):
        axis = attr.get("axis", 0)
        return scatter(inputs, axis, _reduction(attr, ["add"]))

class Reduce(Converter):
    @classmethod
    def base(cls, bb, inputs, attr, params):
        return attr.get("keepdims", 1), attr.get("noop_with_empty_axes", 0)

class ReduceSum(Reduce):
    pass

class Attention(Converter):
    @classmethod
    def _impl_v1(cls, bb, inputs, attr, params):
        heads = attr["num_heads"]
        assert "scale" not in attr
        for name in ["softcap", "is_causal"]:
            if attr[name]: raise ValueError
        return heads

class Split(Converter):
    @classmethod
    def _impl_v1(cls, bb, inputs, attr, params):
        return attr["own"]["num_outputs"], attr.get("axis"), attr.get("num_outputs")

class Graph:
    def run(self, attr):
        attr["own"] = {}

def _get_convert_map():
    return {
        # predicates
        "IsInf": IsInf,
        "SpaceToDepth": SpaceToDepth,
        "ScatterElements": ScatterElements,
        "ReduceSum": ReduceSum,
        "Attention": Attention,
        "Split": Split,
        "Elsewhere": imported.Converter,
    }
"""

CONFIRMED = {
    ("IsInf", "detect_negative"),
    ("IsInf", "detect_positive"),
    ("SpaceToDepth", "mode"),
    ("ConvTranspose", "output_shape"),
    ("Resize", "antialias"),
}
"""That TVM computes something else with: facts that were measured with ONNX Runtime beside it."""


@pytest.fixture
def bounds(mined: Mine) -> dict[tuple[str, str], tuple[str, str]]:
    found = mined({"python/tvm/frontend.py": FRONTEND}, "tvm")
    return {(b.op, b.attribute): (b.template, b.must) for b in found.derived.beyond.attributes}


Bounds = dict[tuple[str, str], tuple[str, str]]


@pytest.mark.slow
def test_an_attribute_that_nobody_reads_must_have_its_default(bounds: Bounds) -> None:
    assert bounds["IsInf", "detect_negative"] == ("unread_attribute", "1")
    assert bounds["SpaceToDepth", "mode"][0] == "unread_attribute"
    assert ("SpaceToDepth", "blocksize") not in bounds


@pytest.mark.slow
def test_what_a_helper_reads_is_read(bounds: Bounds) -> None:
    assert not [op for op, _ in bounds if op == "ScatterElements"]


def test_what_a_base_class_reads_is_read(bounds: Bounds) -> None:
    assert not [op for op, _ in bounds if op == "ReduceSum"]


def test_what_a_loop_over_names_reads_is_read(bounds: Bounds) -> None:
    assert ("Attention", "softcap") not in bounds
    assert ("Attention", "scale") not in bounds
    assert ("Attention", "q_num_heads") in bounds


def test_an_attribute_that_no_valid_model_has(bounds: Bounds) -> None:
    absent = {key for key, (template, _) in bounds.items() if template == "absent_attribute"}
    assert absent == {("Attention", "num_heads")}


@pytest.mark.slow
def test_what_the_frontend_itself_puts_there_is_no_matter(bounds: Bounds) -> None:
    assert not [op for op, _ in bounds if op == "Split"]


def test_a_converter_whose_code_is_elsewhere_says_nothing(bounds: Bounds) -> None:
    assert not [op for op, _ in bounds if op == "Elsewhere"]


@pytest.mark.slow
def test_they_are_written_as_constraints_on_models(mined: Mine) -> None:
    found = mined({"python/tvm/frontend.py": FRONTEND}, "tvm", commit="abc")
    constraint = rules(found).constraints["tvm_is_inf_detect_negative"]
    assert constraint.meta["template"] == ("unread_attribute",)
    assert constraint.meta["from"] == ("python/tvm/frontend.py:4",)
    assert "n = is_inf(detect_negative=A, ...)\n} require A == true" in found.text
    assert format_text(found.text) == found.text
    needs = rules(found).constraints["tvm_attention_num_heads"]
    assert needs.meta["agrees"] == ("python/tvm/frontend.py:36",)


@pytest.mark.slow
def test_documentation_may_take_the_place_of_the_installed_onnx(
    mined: Mine, tmp_path: Path
) -> None:
    documents = tmp_path / "docs.rules"
    documents.write_text("op onnx.IsInf(x: T[*D]) -> bool[*D] { attr odd: int = 3 }\n")
    found = mined({"python/tvm/frontend.py": FRONTEND}, "tvm", docs=[documents])
    unread = {
        (b.op, b.attribute, b.must)
        for b in found.derived.beyond.attributes
        if b.template == "unread_attribute"
    }
    assert unread == {("IsInf", "odd", "3")}


@pytest.mark.slow
def test_tvms_own_frontend_has_the_confirmed_ones() -> None:
    python = os.environ.get("REPRISE_TVM_PYTHON")
    if python is None:
        pytest.skip("REPRISE_TVM_PYTHON is not set")
    program = "import os, tvm; print(os.path.dirname(tvm.__file__))"
    run = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    folder = Path(run.stdout.splitlines()[-1], "relax", "frontend")
    found = mine(folder.parent.parent, load_extractor("tvm")).derived.beyond.attributes
    unread = {(b.op, b.attribute) for b in found if b.template == "unread_attribute"}
    assert unread >= CONFIRMED
    assert not [op for op, _ in unread if op.startswith("Scatter")]


def test_what_the_frontend_counts_itself_is_read(mined: Mine) -> None:
    """TVM's Split takes `attr["tvm_custom"]["num_outputs"]`, how many outputs the node has."""
    source = (
        "class Split:\n    def convert(self, inputs, attr):\n"
        '        return attr["axis"], attr["given"]["num_outputs"]\n'
        'def _get_convert_map():\n    return {"Split": Split}\n'
    )
    found = mined({"python/tvm/a.py": source}, "tvm")
    assert not found.derived.beyond.attributes
