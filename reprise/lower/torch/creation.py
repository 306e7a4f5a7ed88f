"""Tensors out of nothing, out of shapes, or at random; changes of element type; matrix products."""

from __future__ import annotations

from reprise.lower.torch.call import (
    Call,
    Emitted,
    Form,
    Many,
    dtype,
    either,
    form,
    is_float,
    is_integer,
    literal,
    number,
    shape,
)
from reprise.lower.torch.reductions import runtime


def _full(call: Call) -> str:
    a = call.attributes
    value = number(a["value"], a["dtype"])
    return f"torch.full({shape(a['shape'])}, {value}, dtype={dtype(a['dtype'])})"


def _arange(call: Call) -> str:
    a = call.attributes
    numbers = [literal(a[name]) for name in ("start", "end", "step")]
    if is_integer(a["dtype"]):
        numbers = [str(int(a[name])) for name in ("start", "end", "step")]
    return f"torch.arange({', '.join(numbers)}, dtype={dtype(a['dtype'])})"


def _eye_like(call: Call) -> str:
    wanted, k = dtype(call.attributes.get("dtype", call.dtype())), call.attributes["k"]
    rows, columns = call.shape()
    if k == 0:
        return f"torch.eye({rows}, {columns}, dtype={wanted})"
    return f"torch.ones({rows}, {columns}, dtype={wanted}).triu({k}).tril({k})"


def _shape(call: Call) -> str:
    extents = call.shape()[call.attributes["start"] : call.attributes["end"]]
    return f"torch.tensor({literal(tuple(extents))}, dtype=torch.int64)"


def _size(call: Call) -> str:
    return f"torch.tensor({call.name()}.numel(), dtype=torch.int64)"


def _random(function: str, *, like: bool) -> Form:
    def emit(call: Call) -> str:
        a = call.attributes
        extents = call.shape() if like else a["shape"]
        wanted = a.get("dtype", call.dtype() if like else None)
        drawn = f"torch.{function}({shape(extents)}, dtype={dtype(wanted)})"
        if function == "randn":
            return f"{literal(a['mean'])} + {literal(a['scale'])} * {drawn}"
        return f"{literal(a['low'])} + {literal(a['high'] - a['low'])} * {drawn}"

    return Form(emit)


def _bernoulli(call: Call) -> str:
    wanted = call.attributes.get("dtype", call.dtype())
    drawn = f"torch.bernoulli({call.name()})"
    return drawn if wanted == call.dtype() else f"{drawn}.to({dtype(wanted)})"


def _multinomial(call: Call) -> str:
    a = call.attributes
    drawn = f"torch.multinomial(torch.softmax({call.name()}, 1), {a['sample_size']}, True)"
    return drawn if a["dtype"] == "int64" else f"{drawn}.to({dtype(a['dtype'])})"


def _dropout(call: Call) -> Emitted:
    x, ratio = call.name(), literal(call.attributes["ratio"])
    if call.attributes["training"]:
        if call.wants(1):
            return Many(f"torch.ops.aten.native_dropout({x}, {ratio}, True)", 2)
        return f"F.dropout({x}, {ratio}, training=True)"
    kept = f"torch.ones_like({x}, dtype=torch.bool)"
    return f"F.dropout({x}, {ratio}, training=False)", kept


# --- conversion ----------------------------------------------------------------------------------

_GREATEST = {
    "float8e4m3fn": 448.0,
    "float8e4m3fnuz": 240.0,
    "float8e5m2": 57344.0,
    "float8e5m2fnuz": 57344.0,
}


def _cast(call: Call) -> str:
    x, to = call.name(), call.attributes["to"]
    if to in _GREATEST and call.attributes["saturate"] and is_float(call.dtype()):
        greatest = _GREATEST[to]
        return f"torch.clamp({x}.float(), {-greatest}, {greatest}).to({dtype(to)})"
    return f"{x}.to({dtype(to)})"


# --- matrix products -----------------------------------------------------------------------------


def _gemm(call: Call) -> str:
    a, b = call.name(0), call.name(1)
    a = f"{a}.T" if call.attributes["trans_a"] else a
    b = f"{b}.T" if call.attributes["trans_b"] else b
    alpha, beta = call.attributes["alpha"], call.attributes["beta"]
    whole = is_float(call.dtype()) or (alpha == int(alpha) and beta == int(beta))
    factors = [number(v, call.dtype()) if whole else literal(v) for v in (alpha, beta)]
    if call.has(2) and whole and len(call.shape(2)) <= 2:
        given = "" if alpha == beta == 1 else f", beta={factors[1]}, alpha={factors[0]}"
        return f"torch.addmm({call.name(2)}, {a}, {b}{given})"
    product = f"torch.mm({a}, {b})"
    text = product if alpha == 1 else f"{factors[0]} * {product}"
    if call.has(2):
        text += f" + {call.name(2)}" if beta == 1 else f" + {factors[1]} * {call.name(2)}"
    return text if whole else f"({text}).to({dtype(call.dtype())})"


def _einsum(call: Call) -> str:
    text = f"torch.einsum({literal(call.attributes['equation'])}, {', '.join(call.present)})"
    return text if is_float(call.dtype()) else f"{text}.to({dtype(call.dtype())})"


def _bitcast(call: Call) -> str:
    return f"{call.name()}.view({dtype(call.attributes['to'])})"


def _no_run_time_shape(call: Call) -> str | None:
    return "torch wants the shape as numbers, not as a tensor"


def _no_run_time_bounds(call: Call) -> str | None:
    return "torch wants the bounds as numbers, not as tensors"


FORMS: dict[str, Form] = {
    "full": Form(_full),
    "constant_of_shape": Form(_full, _no_run_time_shape),
    "arange": Form(_arange),
    "range": Form(_arange, _no_run_time_bounds),
    "eye_like": Form(_eye_like),
    "shape": Form(_shape),
    "size": Form(_size),
    "random_normal": _random("randn", like=False),
    "random_uniform": _random("rand", like=False),
    "random_normal_like": _random("randn", like=True),
    "random_uniform_like": _random("rand", like=True),
    "bernoulli": Form(_bernoulli),
    "multinomial": Form(_multinomial),
    "dropout": Form(_dropout, either(runtime(1, "the ratio"), runtime(2, "the mode"))),
    "cast": Form(_cast),
    "bitcast": Form(_bitcast),
    "matmul": form("torch.matmul({0}, {1})"),
    "bmm": form("torch.bmm({0}, {1})"),
    "gemm": Form(_gemm),
    "linear": form("F.linear({all})"),
    "einsum": Form(_einsum),
    "det": form("torch.linalg.det({0})"),
}
