"""Models of a few hundred nodes, as exporters make them, with a place for something to go wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

BATCH, LENGTH, WIDTH, HEADS = 2, 6, 16, 4


class Builder:
    """A graph that grows."""

    def __init__(self) -> None:
        self.nodes: list[object] = []
        self.initializers: list[TensorProto] = []
        self.random = np.random.default_rng(0)

    def constant(self, value: object, dtype: str = "float32") -> str:
        name = f"c{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def weight(self, *shape: int) -> str:
        return self.constant(self.random.standard_normal(shape) * 0.1)

    def node(self, op: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op, inputs, [name], name=f"n{name}", domain=domain, **attributes)
        )
        return name

    def model(self, output: str, shape: list[object]) -> ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "large",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            self.initializers,
        )
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)


Bug = Callable[[Builder, str], str]
"""Puts a defect behind a tensor, and gives a tensor of the same type."""


def transformer(bug: Bug, *, blocks: int = 14, at: int = 8, gelu: bool = True) -> ModelProto:
    """Attention blocks, one of them with a bug in its feed-forward part; the batch is open.
    ``gelu``: with an operator of ONNX Runtime's own."""
    b = Builder()
    x = "x"
    for number in range(blocks):
        h = b.node("LayerNormalization", x, b.weight(WIDTH), b.weight(WIDTH), axis=-1)
        parts = []
        for _ in "qkv":
            p = b.node("MatMul", h, b.weight(WIDTH, WIDTH))
            p = b.node("Add", p, b.weight(WIDTH))
            p = b.node("Reshape", p, b.constant([0, 0, HEADS, WIDTH // HEADS], "int64"))
            parts.append(b.node("Transpose", p, perm=[0, 2, 1, 3]))
        scores = b.node("MatMul", parts[0], b.node("Transpose", parts[1], perm=[0, 1, 3, 2]))
        scores = b.node("Softmax", b.node("Mul", scores, b.constant(0.5)), axis=-1)
        o = b.node("Transpose", b.node("MatMul", scores, parts[2]), perm=[0, 2, 1, 3])
        o = b.node("Reshape", o, b.constant([0, 0, WIDTH], "int64"))
        x = b.node("Add", x, b.node("MatMul", o, b.weight(WIDTH, WIDTH)))
        h = b.node("MatMul", x, b.weight(WIDTH, 2 * WIDTH))
        h = b.node("Gelu", h, domain="com.microsoft") if gelu else b.node("Relu", h)
        if number == at:
            h = bug(b, h)
        x = b.node("Add", x, b.node("MatMul", h, b.weight(2 * WIDTH, WIDTH)))
    return b.model(b.node("Identity", x), ["batch", LENGTH, WIDTH])


def convolutional(bug: Bug, *, blocks: int = 40, at: int = 25) -> ModelProto:
    """Residual blocks of convolutions."""
    b = Builder()
    x = "x"
    for number in range(blocks):
        h = b.node("Conv", x, b.weight(4, 4, 3, 3), b.weight(4), pads=[1, 1, 1, 1])
        statistics = [b.weight(4) for _ in range(3)] + [b.constant(np.ones(4))]
        h = b.node("BatchNormalization", h, *statistics)
        h = b.node("LeakyRelu", h)
        if number == at:
            h = bug(b, h)
        h = b.node("Conv", h, b.weight(4, 4, 1, 1))
        x = b.node("Tanh", b.node("Add", x, h))
    pooled = b.node("GlobalAveragePool", x)
    return b.model(b.node("Flatten", pooled), [1, 4, 8, 8])


def relu_clip(b: Builder, x: str) -> str:
    """ORT #24158: Relu before Clip in float64 cannot be fused; loading fails."""
    x = b.node("Relu", b.node("Cast", x, to=TensorProto.DOUBLE))
    x = b.node("Clip", x, b.constant(0.0, "float64"), b.constant(6.0, "float64"))
    return b.node("Cast", x, to=TensorProto.FLOAT)


def pad_pool(b: Builder, x: str) -> str:
    """ORT: a Pad with zeros is fused into a MaxPool, which pads with minus infinity: a wrong result
    where everything is negative."""
    x = b.node("Neg", b.node("Exp", x))
    x = b.node("Pad", x, b.constant([0, 0, 1, 1, 0, 0, 1, 1], "int64"), b.constant(0.0))
    return b.node("MaxPool", x, kernel_shape=[3, 3], strides=[1, 1])


def transposed_gemm(b: Builder, x: str) -> str:
    """ORT #32228: an identity transpose before Gemm is taken for one that swaps the axes: a wrong
    result where the matrix is square."""
    flat = b.node("Reshape", x, b.constant([-1, 2 * WIDTH], "int64"))
    square = b.node("MatMul", b.node("Transpose", flat, perm=[1, 0]), flat)
    square = b.node("Add", square, b.weight(2 * WIDTH, 2 * WIDTH))
    y = b.node("Gemm", flat, b.node("Transpose", square, perm=[0, 1]))
    return b.node("Reshape", y, b.constant([BATCH, LENGTH, 2 * WIDTH], "int64"))
