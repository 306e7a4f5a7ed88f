"""Reductions, running totals, softmax and orders along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from reprise.facts.onnx_values import CODE_OF_DTYPE
from reprise.lower.onnx.call import Call, Form, Ref
from reprise.lower.onnx.forms import reduce, same, widened, with_dtype


def _reduction(op: str, of_one: Callable[[Call], Ref] | None = None) -> Form:
    """``of_one``: what the reduction does to a single element, where that is not nothing. Without
    axes nothing is reduced; for such operators ONNX's versions differ in what ``noop`` means."""

    def form(c: Call) -> Ref:
        axes, keepdims = c["axes"], c["keepdims"]
        if c.get(1) is not None:  # axes known only at run time
            noop = c["noop_with_empty_axes"]
            return c.add(op, c.x, c.get(1), keepdims=keepdims, noop_with_empty_axes=noop)
        if axes:
            return reduce(c, op, c.x, axes, keepdims)
        if of_one is not None:
            return of_one(c)
        if c.has(op, "axes"):
            return c.add("Identity", c.x)
        return reduce(c, op, c.x, axes, keepdims, noop=True)

    return form


def _reduce_bool(op: str, found: Callable[[Call, Ref], Ref]) -> Form:
    """From opset 20 on ReduceMax and ReduceMin take truth values; before, count."""

    def form(c: Call) -> Ref:
        axes, keepdims = c["axes"], c["keepdims"]
        runtime = c.get(1)
        if runtime is None and not axes:
            return c.add("Identity", c.x)
        if c.takes(op):
            if runtime is not None:
                return c.add(op, c.x, runtime, keepdims=keepdims)
            return reduce(c, op, c.x, axes, keepdims)
        return found(c, c.x)

    return form


def _count(c: Call, x: Ref) -> Ref:
    axes = c.get(1) or c.ints("axes", c["axes"])
    return c.add("ReduceSum", c.add("Cast", x, to=_INT64), axes, keepdims=c["keepdims"])


def _any(c: Call, x: Ref) -> Ref:
    return c.add("Greater", _count(c, x), c.int("none", 0))


def _all(c: Call, x: Ref) -> Ref:
    return c.add("Equal", _count(c, c.add("Not", x)), c.int("none", 0))


_INT64 = CODE_OF_DTYPE["int64"]


def _variance(c: Call) -> Ref:
    """The mean of squared distances from the mean, over n - correction (at least 0)."""
    axes: Sequence[int] = c["axes"]
    runtime = c.get(1)
    count = 1
    for axis in axes:
        count *= c.shape()[axis]
    rest = c.number(max(count - c["correction"], 0), label="count")
    if runtime is not None:
        mean = c.add("ReduceMean", c.x, runtime, keepdims=1)
        distance = c.add("Sub", c.x, mean)
        squares = c.add("Mul", distance, distance)
        return c.add("Div", c.add("ReduceSum", squares, runtime, keepdims=c["keepdims"]), rest)
    mean = reduce(c, "ReduceMean", c.x, axes, True) if axes else c.x
    distance = c.add("Sub", c.x, mean)
    squares = c.add("Mul", distance, distance)
    total = reduce(c, "ReduceSum", squares, axes, c["keepdims"]) if axes else squares
    return c.add("Div", total, rest)


def _std(c: Call) -> Ref:
    return c.add("Sqrt", _variance(c))


def _cumulative(op: str) -> Form:
    def form(c: Call) -> Ref:
        axis = c.get(1)
        if axis is not None and c.rank(1):
            axis = c.add("Squeeze", axis)
        attributes = {name: c[name] for name in ("exclusive", "reverse")}
        if not c.rank():  # ONNX wants an axis
            row = c.add("Reshape", c.x, c.ints("row", (1,)))
            row = c.add(op, row, c.int("axis", 0), **attributes)
            return c.add("Reshape", row, c.ints("scalar", ()))
        return c.add(op, c.x, axis or c.int("axis", c["axis"]), **attributes)

    return with_dtype(widened(op, form))


def _cumprod(c: Call) -> Ref:
    """Before opset 26: each result is the product of a row of a triangle, 1 elsewhere."""
    if not c.rank():
        one = c.number(1.0, label="one")
        return c.add("Identity", one if c["exclusive"] else c.x)
    axis, extent = c["axis"], c.shape()[c["axis"]]
    distance = np.arange(extent)[:, None] - np.arange(extent)[None, :]
    if c["reverse"]:
        distance = -distance
    kept = (distance > 0 if c["exclusive"] else distance >= 0).reshape(
        extent, extent, *(1,) * (c.rank() - axis - 1)
    )
    rows = c.add("Unsqueeze", c.x, c.ints("row", (axis,)))
    one = c.number(1.0, label="one")
    triangle = c.add("Where", c.constant("kept", kept, "bool"), rows, one)
    return reduce(c, "ReduceProd", triangle, (axis + 1,), False)


def _cumprod_form(c: Call) -> Sequence[Ref] | Ref:
    if c.get(1) is not None or c.has("CumProd", "exclusive"):
        return _CUMPROD(c)
    return _CUMPROD_APART(c)


_CUMPROD = _cumulative("CumProd")
_CUMPROD_APART = with_dtype(widened("ReduceProd", _cumprod))


def _topk(c: Call) -> list[Ref]:
    k = c.get(1)
    if k is not None and c.rank(1) != 1:
        k = c.add("Reshape", k, c.ints("row", (1,)))
    if k is None:
        k = c.ints("k", (c["k"],))
    names = ("axis", "largest", "sorted")
    return c.add_many("TopK", 2, c.x, k, **{name: c[name] for name in names})


def _sort(c: Call) -> list[Ref]:
    """All elements; of equal ones TopK puts the first first, so it is stable in both directions.
    Where it puts NaN, ONNX does not say."""
    axis = c["axis"]
    k = c.ints("k", (c.shape()[axis],))
    return c.add_many("TopK", 2, c.x, k, axis=axis, largest=c["descending"])


def _argsort(c: Call) -> Ref:
    return _sort(c)[1]


def _arg_extremum(op: str) -> Form:
    return widened(op, same(op, "axis", "keepdims", "select_last_index"), results=())


FORMS: dict[str, Form] = {
    "sum": with_dtype(widened("ReduceSum", _reduction("ReduceSum"))),
    "mean": with_dtype(_reduction("ReduceMean")),
    "prod": with_dtype(widened("ReduceProd", _reduction("ReduceProd"))),
    "max": widened("ReduceMax", _reduction("ReduceMax")),
    "min": widened("ReduceMin", _reduction("ReduceMin")),
    "l1_norm": _reduction("ReduceL1", lambda c: c.add("Abs", c.x)),
    "l2_norm": _reduction("ReduceL2", lambda c: c.add("Abs", c.x)),
    "log_sum": _reduction("ReduceLogSum", lambda c: c.add("Log", c.x)),
    "log_sum_exp": _reduction("ReduceLogSumExp", lambda c: c.add("Identity", c.x)),
    "sum_square": _reduction("ReduceSumSquare", lambda c: c.add("Mul", c.x, c.x)),
    "var": _variance,
    "std": _std,
    "reduce_any": _reduce_bool("ReduceMax", _any),
    "reduce_all": _reduce_bool("ReduceMin", _all),
    "argmax": _arg_extremum("ArgMax"),
    "argmin": _arg_extremum("ArgMin"),
    "softmax": same("Softmax", "axis"),
    "log_softmax": same("LogSoftmax", "axis"),
    "hardmax": same("Hardmax", "axis"),
    "cumsum": _cumulative("CumSum"),
    "cumprod": _cumprod_form,
    "topk": _topk,
    "sort": widened("TopK", _sort),
    "argsort": widened("TopK", _argsort, results=()),
}
"""The form of each of these operators."""
