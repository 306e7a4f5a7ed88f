"""Everything that ONNX itself ships as an example loads, with the types that it states."""

from __future__ import annotations

import onnx
import pytest

from reprise.facts.onnx_import import load_onnx
from reprise.facts.onnx_types import type_of
from reprise.facts.survey import node_tests, packaged_models
from reprise.lang.core import Relation
from reprise.uir.graph import Graph, TensorType
from tests.facts.onnx_text import check_well_formed, import_proto


@pytest.fixture(scope="module")
def suite() -> list[tuple[str, onnx.ModelProto, Graph]]:
    """Every node test with its graph, imported without the types that the test states."""
    imported = []
    for name, stated in node_tests():
        model = onnx.ModelProto()
        model.CopyFrom(stated)
        del model.graph.value_info[:]
        for output in model.graph.output:
            output.ClearField("type")
        imported.append((name, stated, import_proto(model)))
    return imported


@pytest.mark.slow
def test_every_node_test_loads_with_well_formed_facts(
    suite: list[tuple[str, onnx.ModelProto, Graph]], vocabulary: dict[str, Relation]
) -> None:
    assert len(suite) == 1884
    facts = sum(check_well_formed(graph, vocabulary) for _, _, graph in suite)
    assert facts > 200_000


@pytest.mark.slow
def test_inferred_types_agree_with_what_node_tests_state(
    suite: list[tuple[str, onnx.ModelProto, Graph]],
) -> None:
    dims = agreed = 0
    for name, model, graph in suite:
        for output, tensor in zip(model.graph.output, graph.outputs, strict=True):
            stated, kind = type_of(output.type)
            assert tensor.kind == kind, name
            assert tensor.type.dtype == stated.dtype, name
            assert _compatible(tensor.type, stated), (name, str(tensor.type), str(stated))
            dims += stated.rank or 0
            agreed += sum(isinstance(extent, int) for extent in tensor.type.shape or ())
    assert agreed / dims > 0.83  # the others depend on values that the tests feed as inputs


def _compatible(inferred: TensorType, stated: TensorType) -> bool:
    if inferred.shape is None or stated.shape is None:
        return True
    return len(inferred.shape) == len(stated.shape) and all(
        mine == theirs or not isinstance(mine, int) or not isinstance(theirs, int)
        for mine, theirs in zip(inferred.shape, stated.shape, strict=True)
    )


def test_inference_knows_at_least_what_onnx_finds_for_the_whole_model(
    suite: list[tuple[str, onnx.ModelProto, Graph]],
) -> None:
    for name, model, graph in suite[::7]:
        bare = onnx.ModelProto()
        bare.CopyFrom(model)
        for output in bare.graph.output:
            output.ClearField("type")
        whole = onnx.shape_inference.infer_shapes(bare, data_prop=True)
        mine = {tensor.name: tensor.type for tensor in graph.tensors}
        for info in (*whole.graph.value_info, *whole.graph.output):
            theirs, _ = type_of(info.type)
            assert theirs.dtype in (None, mine[info.name].dtype), (name, info.name)
            for i, extent in enumerate(theirs.shape or ()):
                if isinstance(extent, int):
                    shape = mine[info.name].shape
                    assert shape is not None and shape[i] == extent, (name, info.name)


def test_normalisation_leaves_only_these_operators_in_their_onnx_form(
    suite: list[tuple[str, onnx.ModelProto, Graph]],
) -> None:
    foreign = {node.op for _, _, graph in suite for node in graph.nodes if "." in node.op}
    assert {op for op in foreign if op.startswith("onnx.")} == ONNX_ONLY
    notes = [note for _, _, graph in suite for note in graph.notes]
    assert len(notes) == 3, notes  # two dead branches of AffineGrid, and the Scan of opset 8


ONNX_ONLY = {
    "onnx.AffineGrid",
    "onnx.BlackmanWindow",
    "onnx.CastLike",
    "onnx.CausalConvWithState",
    "onnx.CenterCropPad",
    "onnx.Col2Im",
    "onnx.DFT",
    "onnx.DeformConv",
    "onnx.HammingWindow",
    "onnx.HannWindow",
    "onnx.ImageDecoder",
    "onnx.LinearAttention",
    "onnx.MelWeightMatrix",
    "onnx.NegativeLogLikelihoodLoss",
    "onnx.Optional",
    "onnx.OptionalGetElement",
    "onnx.OptionalHasElement",
    "onnx.RegexFullMatch",
    "onnx.STFT",
    "onnx.Scan",
    "onnx.SequenceAt",
    "onnx.SequenceConstruct",
    "onnx.SequenceEmpty",
    "onnx.SequenceInsert",
    "onnx.SequenceLength",
    "onnx.SequenceMap",
    "onnx.SoftmaxCrossEntropyLoss",
    "onnx.Split",
    "onnx.SplitToSequence",
    "onnx.StringConcat",
    "onnx.StringNormalizer",
    "onnx.StringSplit",
    "onnx.SwiGLU",
    "onnx.TensorScatter",
    "onnx.TfIdfVectorizer",
}


@pytest.mark.slow
def test_every_model_file_in_the_onnx_package_loads(vocabulary: dict[str, Relation]) -> None:
    paths = packaged_models()
    assert len(paths) == 149
    for path in paths:
        check_well_formed(load_onnx(path), vocabulary)
