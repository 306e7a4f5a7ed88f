"""Running lowered programs in torch, and comparing what comes out with the reference."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import torch

from reprise.lower.torch import LOWERING
from reprise.lower.torch.call import TORCH_NAMES
from reprise.solve.sampling import Instance
from reprise.uir.graph import Graph, TensorType
from reprise.uir.inference import Typing
from reprise.uir.types import numpy_dtype
from tests.uir.semantics import drawing

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]

EXTENDED = {
    name: getattr(torch, TORCH_NAMES.get(name, name))
    for name in ("bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")
}
"""Element types whose arrays go in and out by their bits."""


def to_torch(array: Array, dtype: str) -> torch.Tensor:
    data = np.array(array, order="C", copy=True)
    if dtype in EXTENDED:
        bits = data.view(np.uint16 if data.dtype.itemsize == 2 else np.uint8)
        return torch.from_numpy(bits).view(EXTENDED[dtype])
    return torch.from_numpy(data)


def to_numpy(tensor: torch.Tensor, dtype: str) -> Array:
    if dtype in EXTENDED:
        bits = tensor.contiguous().view(torch.uint16 if tensor.element_size() == 2 else torch.uint8)
        return bits.numpy().view(numpy_dtype(dtype))
    return tensor.numpy()


def type_of(tensor: torch.Tensor) -> TensorType:
    ours = {theirs: name for name, theirs in TORCH_NAMES.items()}
    name = str(tensor.dtype).removeprefix("torch.")
    return TensorType(ours.get(name, name), tuple(tensor.shape))


def model_of(graph: Graph) -> torch.nn.Module:
    """The lowered module; its source runs in a namespace of its own."""
    space: dict[str, Any] = {"__name__": "model"}
    source = LOWERING.lower(graph).decode()
    exec(compile(source, f"<{graph.name or 'model'}>", "exec"), space)
    return space["Model"]()  # type: ignore[no-any-return]


def arguments(model: Any, graph: Graph, inputs: Arrays) -> list[torch.Tensor]:
    dtypes = {t.name: t.type.dtype or "" for t in graph.tensors}
    return [to_torch(inputs[name], dtypes[name]) for name in model.inputs]


def run(graph: Graph, inputs: Arrays) -> tuple[torch.Tensor, ...]:
    model = model_of(graph)
    with torch.no_grad():
        results = model(*arguments(model, graph, inputs))
    assert isinstance(results, tuple)
    return results


def program(
    op: str, instance: Instance, typing: Typing, rng: Random, random: np.random.Generator
) -> tuple[Graph, Arrays, list[Any]]:
    """One application as a program: some operands are inputs, some initializers; sometimes only
    the first result is asked for. Also its inputs, and all operands' values."""
    values = drawing.operands(random, op, instance, dict(typing.attributes))
    if op == "bernoulli":  # probabilities
        values[0] = random.random(values[0].shape).astype(values[0].dtype)
    graph, inputs = Graph(op), {}
    operands = []
    for i, (type_, value) in enumerate(zip(instance.operands, values, strict=True)):
        if type_ is None:
            operands.append(None)
        elif rng.random() < 0.25:
            operands.append(graph.add_initializer(f"w{i}", type_, value))
        else:
            operands.append(graph.add_input(f"x{i}", type_))
            inputs[f"x{i}"] = value
    results = [(f"y{i}", type_) for i, type_ in enumerate(typing.outputs)]
    made = graph.add_node(op, operands, results, typing.attributes).outputs
    wanted = made[:1] if rng.random() < 0.5 else made
    graph.outputs = [tensor for tensor in wanted if tensor is not None]
    return graph, inputs, values


# --- agreement -----------------------------------------------------------------------------------

NEAR = {"float64": 1e-12, "float32": 2e-5, "float16": 0.03, "bfloat16": 0.2}
"""By how much results may differ, relative to the largest value: a chain of roundings in the type,
where the reference rounds once."""


def coarsest(types: list[TensorType | None], dtype: str) -> str:
    """The float type of fewest digits among ``types``; ``dtype`` if there is none."""
    names = [t.dtype for t in types if t is not None and t.dtype in NEAR]
    return max([*names, dtype], key=lambda name: NEAR.get(name or "", 0.0)) or dtype


def difference(got: Array, want: Array, precision: str, steps: int = 0) -> str | None:
    """How results differ, or None: NaN with NaN, infinities exactly, floats within some roundings
    in ``precision``, everything else within ``steps``."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{got.shape}, not {want.dtype}{want.shape}"
    if want.dtype.kind == "c":
        return None if np.allclose(got, want, equal_nan=True) else "complex values"
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    within = float(steps)
    if precision in NEAR and want.dtype.kind in "fV":
        within = NEAR[precision] * max(1.0, finite.max(initial=0.0))
    with np.errstate(invalid="ignore"):
        same = (np.abs(a - b) <= within) | (got == want) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return None
    place = tuple(int(i) for i in np.argwhere(~same)[0])
    return f"{got[place]}, not {want[place]}, at {place} ({(~same).sum()} of {same.size})"
