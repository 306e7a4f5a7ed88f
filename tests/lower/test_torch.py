"""Every operator in torch: what runs eagerly has our types and the reference's values."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from reprise.lower.lowering import lowering
from reprise.lower.torch import LOWERING
from reprise.lower.torch.module_names import MODULE_ATTRIBUTES
from reprise.lower.torch.table import FORMS
from reprise.solve.sampling import Instance, Sampler
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Array, Graph, Role, TensorType
from reprise.uir.inference import Typing
from reprise.uir.semantics import causes, evaluate
from reprise.uir.text import parse_uir
from reprise.uir.types import numpy_dtype
from tests.solve.crosscheck import agree
from tests.uir.semantics.drawing import draw

torch = pytest.importorskip("torch")

from tests.lower import torch_programs as programs  # noqa: E402 (it needs torch)

SIGNATURES = Signatures.load()
CONTROL_FLOW = {"if", "loop", "scan"}
OPERATORS = sorted(set(SIGNATURES) - CONTROL_FLOW)

NEVER = {
    "constant_of_shape": "a shape that is computed would leave the graph",
    "range": "so would bounds",
}
"""Operators that torch has in no form that is one graph."""

STEPS = {"quantize_linear", "qlinear_matmul", "qlinear_conv", "dynamic_quantize_linear"}
"""Operators whose results may be one step apart: a quotient near a half rounds either way."""

RARE = {"quantize_linear", "qlinear_matmul", "qlinear_conv", "rotary_embedding"}
"""Operators whose signatures leave shapes open that must fit, so that few drawings do."""

RECURRENT = {"rnn", "gru", "lstm"}

DISAGREES = {
    "lp_pool": "the reference keeps a window that starts in the padding, the signature does not",
    "qlinear_matmul": "what judges its roundings takes scales of rows for a convolution's",
    "attention": "the reference does not take a mask without axes",
}
"""What the reference itself refuses, of what signatures allow."""


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def wild(op: str, instance: Instance) -> bool:
    """Applications whose values nobody should compare."""
    a, dtype = instance.attributes, instance.operands[0].dtype if instance.operands else ""
    match op:
        case "lrn":  # a denominator near 0
            return a.get("alpha", 1) < 0 or a.get("bias", 1) <= 0
        case "prod":  # overflows on the way, or not
            return dtype == "float16"
        case "grid_sample":  # the reference is as onnx.reference; torch and ONNX Runtime are not
            return (a.get("mode"), a.get("padding_mode")) == ("cubic", "border")
        case "conv1d" | "conv2d" | "conv3d":
            # torch 2.13.0: F.conv2d(x, w, stride=(1, 2)) in bfloat16 is wrong eagerly (oneDNN)
            return dtype == "bfloat16" and set(a.get("strides", (1,))) != {1}
    return False


def applications(op: str, seed: str, wanted: int):
    """Random applications that torch supports, until there are enough (or hardly any)."""
    rng, sampler, found = Random(f"{seed} {op}"), Sampler(SIGNATURES[op]), 0
    for _ in range((40 if op in RARE else 15) * wanted):
        instance = sampler.draw(rng)
        assert instance is not None, f"{op}: nothing fits"
        if wild(op, instance):
            continue
        typing = SIGNATURES.check(op, instance.operands, instance.attributes)
        if LOWERING.unsupported(op, instance.operands, typing.attributes) is None:
            yield instance, typing
            found += 1
            if found == wanted:
                return


def compare(op: str, instance: Instance, typing: Typing, rng: Random, random) -> bool:
    """Whether the values were compared: random ones have no reference."""
    graph, inputs, values = programs.program(op, instance, typing, rng, random)
    source = LOWERING.lower(graph).decode()
    results = programs.run(graph, inputs)
    for tensor, result in zip(graph.outputs, results, strict=True):
        assert agree(tensor.type, programs.type_of(result)), f"{instance}\n{source}"
    if "random" in SIGNATURES[op].flags:
        return False
    try:
        wanted = evaluate(graph, inputs)
        uncertain = causes(op, values, typing.attributes)
    except Exception:
        if op in DISAGREES:
            return False
        raise
    for i, (tensor, got, want) in enumerate(zip(graph.outputs, results, wanted, strict=True)):
        if i not in uncertain:
            dtype = tensor.type.dtype or ""
            precision = programs.coarsest([*instance.operands, *typing.outputs], dtype)
            if op in RECURRENT and precision in ("float16", "bfloat16"):
                continue  # roundings add up along the sequence
            steps = 1 if op in STEPS else 0
            apart = programs.difference(programs.to_numpy(got, dtype), want, precision, steps)
            assert apart is None, f"{op}, result {i}: {apart}\n{instance}\n{source}"
    return True


def compare_many(op: str, seed: str, wanted: int) -> None:
    rng, random = Random(f"values {seed} {op}"), np.random.default_rng(len(op))
    compared = sum(
        compare(op, instance, typing, rng, random) or "random" in SIGNATURES[op].flags
        for instance, typing in applications(op, seed, wanted)
    )
    assert compared >= (1 if op in RARE else wanted * 3 // 4), f"{op}: only {compared}"


@pytest.mark.slow
@pytest.mark.parametrize("op", [op for op in OPERATORS if op not in NEVER])
def test_torch_computes_what_the_reference_does(op):
    compare_many(op, "few", 20)


@pytest.mark.slow
@pytest.mark.parametrize("op", [op for op in OPERATORS if op not in NEVER])
def test_torch_computes_what_the_reference_does_on_many_more(op):
    compare_many(op, "many", 100)


@pytest.mark.slow
@pytest.mark.parametrize("op", [op for op in OPERATORS if op not in NEVER])
def test_a_module_is_one_graph(op):
    """Nothing in the source looks at data, so that dynamo traces it whole."""
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    rng, random = Random(f"graph {op}"), np.random.default_rng(7)
    for instance, typing in applications(op, "graph", 2):
        graph, inputs, _ = programs.program(op, instance, typing, rng, random)
        model = programs.model_of(graph)
        given = programs.arguments(model, graph, inputs)
        torch._dynamo.reset()
        traced = torch.compile(model, backend="eager", fullgraph=True, dynamic=False)
        with torch.no_grad():
            results = traced(*given)
        for tensor, result in zip(graph.outputs, results, strict=True):
            assert agree(tensor.type, programs.type_of(result))


# --- support -------------------------------------------------------------------------------------


def test_every_operator_has_a_form_or_a_reason():
    assert set(FORMS) == set(SIGNATURES)
    for op in CONTROL_FLOW:
        assert LOWERING.unsupported(op, [TensorType("bool", ())], {}) is not None


def test_what_torch_never_does_says_why():
    for op in NEVER:
        assert not list(applications(op, "never", 20)), op


@pytest.mark.parametrize("op", OPERATORS)
def test_support_is_a_reason_in_words_and_never_an_error(op):
    rng, sampler = Random(f"support {op}"), Sampler(SIGNATURES[op])
    for _ in range(40):
        instance = sampler.draw(rng)
        assert instance is not None
        typing = SIGNATURES.check(op, instance.operands, instance.attributes)
        why = LOWERING.unsupported(op, instance.operands, typing.attributes)
        assert why is None or (why and "\n" not in why)


def test_unknown_operators_and_types_are_unsupported():
    assert "onnx.Foo" in (LOWERING.unsupported("onnx.Foo", [], {}) or "")
    for shape in (None, (2, None), ("N",)):
        assert LOWERING.unsupported("relu", [TensorType("float32", shape)], {})
    assert LOWERING.unsupported("relu", [TensorType(None, (2,))], {})


def test_the_lowering_is_found_by_name():
    assert lowering("torch") is LOWERING and LOWERING.name == "torch"


# --- programs ------------------------------------------------------------------------------------


PROGRAMS = {
    "no inputs": "a = full(shape=[2, 3], value=0.5); b = exp(a)",
    "an input that nothing reads": "x: float32[2]; y: int64[3]; a = neg(x); output a",
    "one tensor twice": "x: float32[3, 3]; a = add(x, x); b = matmul(a, a); output b",
    "an input returned": "x: float32[2]; a = exp(x); output x, a",
    "a constant returned": "const c: float32[2] = [1.0, 2.0]; x: float32[2]; a = exp(x); output c",
    "scalars": "x: float64[]; y: float64[]; a = mul(x, y); b = cos(a); output b",
    "no elements": "x: bool[0, 3]; a = logical_not(x); b = reduce_all(a, axis=0); output b",
    "half precision": "x: float16[4, 4]; a = softmax(x, axis=1); b = sum(a, axis=0); output b",
    "bfloat16": "x: bfloat16[4]; a = tanh(x); b = cast(a, to=float32); output a, b",
    "small integers": "x: int8[5]; y: int8[5]; a = add(x, y); b = max(a, axis=0); output a, b",
    "results that nothing reads": "x: float32[2, 4]; v, i = topk(x, k=2); b = cast(i, to=int32)",
    "names that Python keeps": "lambda: float32[2]; torch = exp(lambda); self = neg(torch)",
    "names that modules keep": "const training: float32[2] = [1.0, 2.0]; f = exp(training)",
    "wide unsigned integers": "x: uint64[3]; a = cast(x, to=float32); b = exp(a)",
    "no channels": "x: float32[2, 0]; s: float32[0]; y = batch_norm(x, s, s, s, s); output y",
    "an index outside": "x: float32[1, 1, 2]; const i: int64[1, 1, 2] = [[[9, 0]]]; "
    "a = max_unpool(x, i, kernel=[2], pads=[1, 0], output_shape=[1, 1, 4])",
    "backwards": "x: int32[5, 4]; a = slice(x, starts=[4, -1], ends=[0, -9], steps=[-2, -1])",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_computes_what_the_reference_does(text):
    graph = parse_uir(text, "p.uir", SIGNATURES)
    random = np.random.default_rng(3)
    inputs = {t.name: draw(random, t.type) for t in graph.tensors if t.role is Role.INPUT}
    results, wanted = programs.run(graph, inputs), evaluate(graph, inputs)
    assert len(results) == len(wanted) == len(graph.outputs)
    for tensor, got, want in zip(graph.outputs, results, wanted, strict=True):
        dtype = tensor.type.dtype or ""
        assert programs.difference(programs.to_numpy(got, dtype), want, dtype) is None, tensor.name


def test_a_program_reads_as_a_person_would_write_it():
    text = """
        x: float32[2, 3]
        const w: float32[3] = [0.1, -0.0, 2.0]
        const k: float32[] = 2.5
        a = mul(x, w)
        b = div(a, k)
        c = sum(b, axis=1)
    """
    assert LOWERING.lower(parse_uir(text, "p.uir", SIGNATURES)).decode() == READABLE


READABLE = """\
import torch


class Model(torch.nn.Module):
    inputs = {"x": "float32[2, 3]"}

    def forward(self, x):
        w = torch.tensor([0.1, -0.0, 2.0], dtype=torch.float32)
        a = x * w
        b = a / 2.5
        c = torch.sum(b, 1)
        return (c,)
"""


def test_the_source_is_the_same_every_time():
    text = "x: float32[2, 8]; a = glu(x); b = softplus(a)"
    sources = {LOWERING.lower(parse_uir(text, "p.uir", SIGNATURES)) for _ in range(3)}
    assert len(sources) == 1


def test_inputs_keep_their_names_whatever_python_makes_of_them():
    graph = Graph()
    first = graph.add_input("input.1", TensorType("float32", (2,)))
    second = graph.add_input("input_1", TensorType("float32", (2,)))
    node = graph.add_node("sub", [first, second], [("", TensorType("float32", (2,)))])
    graph.outputs = list(node.outputs)
    model = programs.model_of(graph)
    assert list(model.inputs) == ["input.1", "input_1"]
    inputs = {"input.1": np.float32([3, 3]), "input_1": np.float32([1, 1])}
    (result,) = programs.run(graph, inputs)
    assert result.tolist() == [2.0, 2.0]


def test_an_initializer_without_data_is_refused():
    graph = Graph()
    graph.outputs = [graph.add_initializer("w", TensorType("float32", (2,)))]
    with pytest.raises(ValueError, match="'w' has no data"):
        LOWERING.lower(graph)


def test_no_buffer_may_take_a_name_of_the_module():
    module = torch.nn.Module()
    own = {name for name in {*dir(module), *vars(module)} if not name.startswith("__")}
    assert own <= MODULE_ATTRIBUTES


# --- initializers --------------------------------------------------------------------------------


def arrays() -> Iterator[tuple[str, Array]]:
    random = np.random.default_rng(11)
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        width = numpy_dtype(dtype).itemsize
        for shape in ((), (3,), (2, 2), (7, 9), (0, 4)):
            raw = random.bytes(width * int(np.prod(shape)))  # any bits: NaNs with payloads too
            yield dtype, np.frombuffer(raw, numpy_dtype(dtype)).reshape(shape)
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, 6e-8, 0.1, 1 / 3, 65504.0]
        for values in ([v] for v in special):
            yield dtype, np.array(values).astype(numpy_dtype(dtype))
        yield dtype, np.array(special).astype(numpy_dtype(dtype))
        yield dtype, np.full((40, 5), -0.0).astype(numpy_dtype(dtype))
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        limits = np.iinfo(dtype)
        yield dtype, np.array([limits.min, limits.max, 0, 1], dtype)
        yield dtype, random.integers(limits.min, limits.max, (9, 9), dtype, endpoint=True)
    yield "bool", np.array([[True, False]])
    yield "bool", random.random(100) < 0.5
    yield "complex64", np.array([1 + 2j, complex("nan")], np.complex64)
    for dtype in ("float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz"):
        yield dtype, np.arange(256, dtype=np.uint8).view(numpy_dtype(dtype))


@pytest.mark.parametrize(("dtype", "array"), list(arrays()))
def test_initializers_are_exact(dtype, array):
    graph = Graph()
    kind = TensorType(dtype, array.shape)
    graph.outputs = [graph.add_initializer("w", kind, array)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (result,) = programs.run(graph, {})
    assert agree(kind, programs.type_of(result))
    assert programs.to_numpy(result, dtype).tobytes() == np.ascontiguousarray(array).tobytes()


def test_small_initializers_are_literals_and_large_ones_are_not():
    graph = Graph()
    small = np.arange(6, dtype=np.float32).reshape(2, 3)
    large = np.arange(600, dtype=np.float32).reshape(2, 300)
    graph.outputs = [
        graph.add_initializer(name, TensorType("float32", array.shape), array)
        for name, array in (("small", small), ("large", large))
    ]
    source = LOWERING.lower(graph).decode()
    assert "[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]" in source
    assert max(map(len, source.splitlines())) < 120
