"""Kernels against ONNX Runtime without optimisations, through the ONNX lowering: the two agree on
what a program means."""

from __future__ import annotations

import onnxruntime as ort
import pytest

from reprise.lower.lowering import lowering
from reprise.uir.graph import Graph
from reprise.uir.semantics import KERNELS
from tests.uir.semantics.crosscheck import compare
from tests.uir.semantics.differences import ORT

TYPES = {"float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"}

UNSUPPORTED = {"bitcast", "cumprod"}
"""Operators that the runtime has no kernel for, in any type."""


@pytest.fixture(scope="module")
def runtime():
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    to_onnx = lowering("onnx")

    def run(op, operands, instance, typing):
        types = [t for t in (*instance.operands, *typing.outputs) if t is not None]
        if not {t.dtype for t in types} <= TYPES:
            return None
        if to_onnx.unsupported(op, instance.operands, typing.attributes):
            return None
        graph = Graph()
        inputs = [t and graph.add_input(f"x{i}", t) for i, t in enumerate(instance.operands)]
        outputs = [(f"y{i}", t) for i, t in enumerate(typing.outputs)]
        graph.outputs = list(graph.add_node(op, inputs, outputs, typing.attributes).outputs)
        try:
            model = to_onnx.lower(graph)
            session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            wanted = {value.name for value in session.get_inputs()}
            feeds = {f"x{i}": x for i, x in enumerate(operands) if f"x{i}" in wanted}
            return session.run(None, feeds)
        except Exception:  # missing kernels, mostly
            return None

    return run


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(KERNELS))
def test_values_are_onnx_runtimes(signatures, runtime, op):
    tally = compare(signatures, op, runtime, ORT, wanted=5, tries=100)
    assert tally["agree"] or tally["known difference"] or op in UNSUPPORTED, tally
