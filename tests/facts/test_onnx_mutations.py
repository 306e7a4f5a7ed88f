"""Damaged models: whatever the bytes, an import ends in a graph or a ModelError."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reprise.facts.errors import ModelError
from reprise.facts.facts import facts_of
from reprise.facts.onnx_import import Limits, load_onnx
from reprise.lang.core import Relation
from tests.facts.onnx_text import check_well_formed, onnx_model
from tests.facts.test_onnx_control_flow import FUNCTIONS, IF, LOOP, SCAN

CONVOLUTION = """
g (float[N, 3, 8, 8] x, float[4] b) => (y) <float[4, 3, 1, 1] w = {1,2,3,4,5,6,7,8,9,10,11,12}> {
    c = Conv <strides = [2, 2], auto_pad = "SAME_UPPER", kernel_shape = [1, 1]> (x, w, b)
    s = Shape(c)
    zero = Constant <value_int = 0> ()
    n = Gather(s, zero)
    axes = Constant <value = int64[1] {0}> ()
    u = Unsqueeze(n, axes)
    rest = Constant <value_ints = [-1]> ()
    t = Concat <axis = 0> (u, rest)
    r = Reshape(c, t)
    low = Constant <value_float = -1.0> ()
    k = Clip(r, low)
    y = Softmax <axis = 1> (k)
}
"""

MODELS = [onnx_model(text).SerializeToString() for text in (CONVOLUTION, IF, LOOP, SCAN, FUNCTIONS)]

NUMBERS = st.sampled_from([0, 1, -1, 2, 3, 7, 2**31 - 1, 2**31, 2**62, 2**63 - 1, -(2**63)])


def attempt(path: Path, data: bytes, vocabulary: dict[str, Relation]) -> None:
    """Load ``data``; anything but a ModelError or well-formed facts is a failure."""
    path.write_bytes(data)
    try:
        graph = load_onnx(path, limits=Limits(nodes=1000))
    except ModelError as error:
        assert error.message
        assert "\n" not in str(error) + (error.hint or "")
        return
    if sum(1 for _ in facts_of(graph)) < 10_000:
        check_well_formed(graph, vocabulary)
    assert not any("\n" in note for note in graph.notes)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutations") / "m.onnx"


LENIENT = settings(
    max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@pytest.mark.slow
@LENIENT
@given(data=st.data())
def test_changed_bytes(path: Path, vocabulary: dict[str, Relation], data: st.DataObject) -> None:
    model = bytearray(data.draw(st.sampled_from(MODELS)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(model) - 1))
        match data.draw(st.sampled_from(["set", "flip", "insert", "delete", "cut"])):
            case "set":
                model[place] = data.draw(st.integers(0, 255))
            case "flip":
                model[place] ^= 1 << data.draw(st.integers(0, 7))
            case "insert":
                model[place:place] = data.draw(st.binary(min_size=1, max_size=4))
            case "delete" if len(model) > 1:
                del model[place]
            case "cut":
                del model[max(place, 1) :]
    attempt(path, bytes(model), vocabulary)


@pytest.mark.slow
@LENIENT
@given(data=st.data())
def test_changed_meaning(path: Path, vocabulary: dict[str, Relation], data: st.DataObject) -> None:
    """Files that protobuf accepts: other numbers, names, types and operators in their places."""
    model = onnx.ModelProto.FromString(data.draw(st.sampled_from(MODELS)))
    graphs = [model.graph, *model.functions]
    for _ in range(data.draw(st.integers(1, 4))):
        nodes = [node for graph in graphs for node in graph.node]
        node = data.draw(st.sampled_from(nodes))
        names = sorted({name for n in nodes for name in (*n.input, *n.output)})
        match data.draw(st.integers(0, 5)):
            case 0 if node.input:
                node.input[data.draw(st.integers(0, len(node.input) - 1))] = data.draw(
                    st.sampled_from(names)
                )
            case 1:
                node.op_type = data.draw(st.sampled_from([n.op_type for n in nodes]))
            case 2 if node.attribute:
                attribute = data.draw(st.sampled_from(list(node.attribute)))
                attribute.i = data.draw(NUMBERS)
                attribute.ints[:] = data.draw(st.lists(NUMBERS, max_size=5))
                attribute.type = data.draw(st.integers(0, 14))
            case 3 if model.graph.input:
                shape = data.draw(st.sampled_from(list(model.graph.input))).type.tensor_type.shape
                del shape.dim[:]
                for extent in data.draw(st.lists(NUMBERS, max_size=5)):
                    shape.dim.add().dim_value = extent
            case 4:
                model.opset_import[0].version = data.draw(st.integers(1, 28))
            case 5 if model.graph.initializer:
                tensor = data.draw(st.sampled_from(list(model.graph.initializer)))
                tensor.data_type = data.draw(st.integers(0, 30))
            case _:
                node.output.append(data.draw(st.sampled_from(names)))
    attempt(path, model.SerializeToString(), vocabulary)
