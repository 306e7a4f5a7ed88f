"""Tensors out of nothing or out of shapes, and changes of element type."""

from __future__ import annotations

from math import prod

import numpy as np

from reprise.lower.relax.application import Application, Form, dtype_name, number


def _full(n: Application) -> str:
    dtype = n.results[0].dtype or ""
    return f'R.full({n.result_shape()}, {n.const(n.attr("value"), dtype)}, "{dtype_name(dtype)}")'


def _arange(n: Application) -> str:
    """By Relax upwards, where it counts right and has code; else computed beforehand."""
    dtype, count = n.results[0].dtype or "", n.result_shape()[0]
    start, end, step = (n.attr(name) for name in ("start", "end", "step"))
    if step > 0 and count > 0:
        if dtype in ("float32", "float64"):
            return f'R.arange({number(start)}, {number(end)}, {number(step)}, "{dtype}")'
        if dtype in ("int32", "int64"):
            return f'R.arange({int(start)}, {int(end)}, {int(step)}, "{dtype}")'
    steps = start + step * np.arange(count)
    return n.array(steps if "float" in dtype else steps.astype(np.int64), "steps", dtype)


def _eye_like(n: Application) -> str:
    """Converted afterwards: TVM's code ignores the type that its ``eye_like`` is asked for."""
    eye = f"R.eye_like({n[0]}, {n.attr('k')})"
    dtype = n.results[0].dtype or ""
    return eye if dtype == n.dtype else n.cast(eye, dtype)


def _shape(n: Application) -> str:
    return n.array(n.shape[n.attr("start") : n.attr("end")], "shape")


def _dropout(n: Application) -> list[str]:
    """Not in training, which ``limits`` refuses: Relax's dropout has no code in TVM 0.25."""
    return [n[0], f'R.ones({n.shape}, "bool")']


FORMS: dict[str, Form] = {
    "full": _full,
    "arange": _arange,
    "eye_like": _eye_like,
    "shape": _shape,
    "size": lambda n: n.const(prod(n.shape), "int64"),
    "dropout": _dropout,
    "cast": lambda n: n.cast(n[0], n.attr("to")),
}
