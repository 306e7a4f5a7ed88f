"""Applications of operators as graphs, and what ONNX and ONNX Runtime say of their models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from reprise.facts.onnx_import import Limits, import_model
from reprise.facts.onnx_values import DTYPE_OF_CODE
from reprise.lower.onnx import OnnxLowering, to_onnx
from reprise.solve.sampling import Instance, Sampler
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Graph, TensorType
from reprise.uir.inference import Typing

CPU = ["CPUExecutionProvider"]


@cache
def signatures() -> Signatures:
    return Signatures.load()


def graph_of(
    op: str,
    operands: tuple[TensorType | None, ...],
    typing: Typing,
    values: Mapping[int, np.ndarray] | None = None,
) -> Graph:
    """One node: operands ``x0``, ``x1``…, results ``y0``…; ``values`` makes initializers."""
    graph = Graph(name=op)
    sources = []
    for i, type in enumerate(operands):
        if type is None:
            sources.append(None)
        elif values is not None and i in values:
            sources.append(graph.add_initializer(f"x{i}", type, values[i]))
        else:
            sources.append(graph.add_input(f"x{i}", type))
    results = [(f"y{i}", type) for i, type in enumerate(typing.outputs)]
    node = graph.add_node(op, sources, results, typing.attributes)
    graph.outputs = [tensor for tensor in node.outputs if tensor is not None]
    return graph


def instances(op: str, count: int, seed: str = "") -> Iterator[tuple[Instance, Typing]]:
    """Random applications of ``op`` that its signature accepts."""
    rng = Random(f"{seed}{op}")
    sampler = Sampler(signatures()[op])
    for _ in range(count):
        instance = sampler.draw(rng)
        assert instance is not None, op
        yield instance, signatures().check(op, instance.operands, instance.attributes)


def lowered(
    op: str, count: int, opset: int, seed: str = ""
) -> Iterator[tuple[Instance, Typing, onnx.ModelProto]]:
    """The models of as many applications that the opset supports, of so many draws at most."""
    lowering = OnnxLowering(opset)
    for instance, typing in instances(op, 200 + 10 * count, seed):
        if lowering.unsupported(op, instance.operands, typing.attributes) is None:
            yield instance, typing, to_onnx(graph_of(op, instance.operands, typing), opset=opset)
            count -= 1
            if not count:
                return


def inferred(model: onnx.ModelProto) -> list[TensorType]:
    """What strict shape inference makes of the outputs when their types are not stated.

    Raises if it refuses the model."""
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    for output in bare.graph.output:
        output.ClearField("type")
    found = onnx.shape_inference.infer_shapes(
        bare, check_type=True, strict_mode=True, data_prop=True
    )
    return [_type_of(value) for value in found.graph.output]


def _type_of(value: onnx.ValueInfoProto) -> TensorType:
    tensor = value.type.tensor_type
    if not tensor.HasField("shape"):
        return TensorType(DTYPE_OF_CODE.get(tensor.elem_type), None)
    shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim)
    return TensorType(DTYPE_OF_CODE.get(tensor.elem_type), shape)


def check(model: onnx.ModelProto) -> None:
    """ONNX's own checks, in full. Raises if the model does not pass."""
    onnx.checker.check_model(model, full_check=True)


def imported(model: onnx.ModelProto) -> Graph:
    return import_model(model, Path("m.onnx"), Limits())


def session(model: onnx.ModelProto) -> ort.InferenceSession:
    """The model in ONNX Runtime, not optimised."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=CPU)


def run(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[Any]:
    outputs: list[Any] = session(model).run(None, inputs)
    return outputs
