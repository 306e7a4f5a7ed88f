"""Running totals, softmax and orders along one axis."""

from __future__ import annotations

from reprise.lower.relax.application import Application, Form, widened

SORTED = ("float32", "float64", "int32", "int64")
"""Element types that TVM's sorting routine for the CPU takes; the others are widened."""


def _softmax(function: str) -> Form:
    return lambda n: f"R.nn.{function}({n[0]}, axis={n.attr('axis')})"


def _hardmax(n: Application) -> str:
    axis, extent = n.attr("axis"), n.shape[n.attr("axis")]
    steps = tuple(extent if i == axis else 1 for i in range(len(n.shape)))
    positions = f'R.reshape(R.arange(0, {extent}, 1, "int64"), {steps})'
    first = f"R.argmax({n[0]}, axis={axis}, keepdims=True)"
    return n.cast(f"R.equal({positions}, {first})", n.dtype)


def _cumulative(function: str, neutral: int) -> Form:
    def form(n: Application) -> str:
        dtype = n.results[0].dtype or ""
        axis, exclusive = n.attr("axis"), bool(n.attr("exclusive"))
        if not n.shape:
            return n.const(neutral, dtype) if exclusive else n.cast(n[0], dtype)
        x = n[0] if dtype == n.dtype else n.cast(n[0], dtype)
        options = f"axis={axis}, exclusive={exclusive}"
        if not n.attr("reverse"):
            return f"R.{function}({x}, {options})"
        return f"R.flip(R.{function}(R.flip({x}, axis={axis}), {options}), axis={axis})"

    return form


def _wide(n: Application) -> str:
    """The operand in a type that can be sorted."""
    if n.dtype in SORTED:
        return n[0]
    if n.dtype in ("uint32", "uint64"):
        return n.let(n.cast(n[0], "int64"), "wide")
    return n.let(n.cast(n[0], "float32" if "float" in n.dtype else "int32"), "wide")


def _topk(n: Application) -> list[str]:
    k, axis = n.attr("k"), n.attr("axis")
    if not n.shape:
        return [n[0], 'relax.const(0, "int64")']
    if k == 0:
        # Relax takes k = 0 for "all"
        nothing = n.let(f"R.strided_slice({n[0]}, [{axis}], [0], [0])", "nothing")
        return [nothing, n.cast(nothing, "int64")]
    wide = _wide(n)
    options = f'k={k}, axis={axis}, ret_type="both", largest={n.attr("largest")}, dtype="int64"'
    both = n.let(f"R.topk({wide}, {options})", "both")
    values = f"{both}[0]" if wide == n[0] else n.cast(f"{both}[0]", n.dtype)
    return [values, f"{both}[1]"]


def _order(n: Application) -> str:
    if not n.shape:
        return 'relax.const(0, "int64")'
    options = f'axis={n.attr("axis")}, descending={n.attr("descending")}, dtype="int64"'
    return f"R.argsort({_wide(n)}, {options})"


def _sort(n: Application) -> list[str]:
    if not n.shape:
        return [n[0], 'relax.const(0, "int64")']
    wide = _wide(n)
    options = f"axis={n.attr('axis')}, descending={n.attr('descending')}"
    values = f"R.sort({wide}, {options})"
    values = values if wide == n[0] else n.cast(values, n.dtype)
    return [values, f'R.argsort({wide}, {options}, dtype="int64")']


FORMS: dict[str, Form] = {
    "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"),
    "hardmax": widened(_hardmax, "bfloat16"),
    "cumsum": _cumulative("cumsum", 0),
    "cumprod": _cumulative("cumprod", 1),
    "topk": _topk,
    "sort": _sort,
    "argsort": _order,
}
