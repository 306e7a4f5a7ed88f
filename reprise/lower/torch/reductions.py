"""Reductions over lists of axes and along one axis; running totals, softmax and orders."""

from __future__ import annotations

from collections.abc import Callable

from reprise.lower.torch.call import (
    Call,
    Emitted,
    Form,
    Many,
    Refuse,
    dtype,
    form,
    is_float,
    literal,
)


def runtime(operand: int, what: str) -> Refuse:
    """Refuses an operand that torch wants as Python numbers: it would have to leave the graph."""

    def refuse(call: Call) -> str | None:
        return f"torch wants {what} as numbers, not as a tensor" if call.has(operand) else None

    return refuse


_AXES = runtime(1, "axes")


def _axes(call: Call) -> tuple[str, str]:
    """The tensor to reduce, and the arguments that say over which axes.

    torch takes an empty list for all axes; to reduce over none, we reduce over a new one.
    """
    axes, x = call.attributes["axes"], call.name()
    if not axes and call.rank():
        return f"{x}[None]", ", 0"
    keep = ", keepdim=True" if call.attributes["keepdims"] and axes else ""
    if len(axes) == call.rank() and not keep:
        return x, ""
    spelled = literal(axes[0]) if len(axes) == 1 else literal(tuple(axes))
    return x, f", {spelled}{keep}"


def _every_axis(call: Call) -> tuple[str, str]:
    """As :func:`_axes`, for functions that must be told the axes even if they are all."""
    x, where = _axes(call)
    return x, where or f", {literal(tuple(call.attributes['axes']))}"


def _result(call: Call) -> str:
    """``, dtype=...`` where torch would choose another type."""
    wanted = call.attributes.get("dtype", call.dtype())
    return "" if wanted == call.dtype() and is_float(wanted) else f", dtype={dtype(wanted)}"


def _over(template: str, axes: Callable[[Call], tuple[str, str]] = _axes) -> Form:
    """``{x}`` is the tensor, ``{axes}`` the further arguments, ``{dtype}`` the type's."""

    def emit(call: Call) -> str:
        x, where = axes(call)
        return template.format(x=x, axes=where, dtype=_result(call))

    return Form(emit, _AXES)


def _mean(call: Call) -> str:
    x, where = _axes(call)
    wanted = call.attributes.get("dtype", call.dtype())
    if is_float(wanted):
        return f"torch.mean({x}{where}{_result(call)})"
    count = 1
    for axis in call.attributes["axes"]:
        count *= call.shape()[axis]
    total = f"torch.sum({x}{where}, dtype=torch.int64)"
    return f'torch.div({total}, {count}, rounding_mode="trunc").to({dtype(wanted)})'


def _prod(call: Call) -> str:
    """torch multiplies along one axis, or all; the last axis goes first, so that numbers hold."""
    axes, x, keep = call.attributes["axes"], call.name(), call.attributes["keepdims"]
    if len(axes) == call.rank() and not keep:
        return f"torch.prod({x}{_result(call)})"
    if not axes:
        return (
            f"torch.prod({x}[None], 0{_result(call)})"
            if call.rank()
            else f"torch.prod({x}{_result(call)})"
        )
    for axis in sorted(axes, reverse=True):
        x = f"torch.prod({x}, {axis}{', keepdim=True' if keep else ''}{_result(call)})"
    return x


def _extremum(function: str) -> Form:
    def emit(call: Call) -> str:
        x, where = _axes(call)
        return f"torch.{function}({x}{where})"

    return Form(emit, _AXES)


def _norm(order: int) -> Form:
    def emit(call: Call) -> str:
        x, where = _axes(call)
        if is_float(call.dtype()):
            return (
                f"torch.linalg.vector_norm({x}, {order}{where.replace(', keepdim', ', keepdim')})"
            )
        back = f".to({dtype(call.dtype())})"
        if order == 1:
            return f"torch.sum(torch.abs({x}){where}, dtype={dtype(call.dtype())})"
        return f"torch.sqrt(torch.sum(torch.square({x}.double()){where})){back}"

    return Form(emit, _AXES)


def _spread(function: str) -> Form:
    def emit(call: Call) -> str:
        x, where = _axes(call)
        return f"torch.{function}({x}{where}, correction={call.attributes['correction']})"

    return Form(emit, _AXES)


def _arg(function: str) -> Form:
    def emit(call: Call) -> str:
        axis, x = call.attributes["axis"], call.name()
        if call.dtype() == "bool":
            x = f"{x}.to(torch.uint8)"
        keep = ", keepdim=True" if call.attributes["keepdims"] else ""
        if call.attributes["select_last_index"]:
            last = call.shape()[axis] - 1
            return f"{last} - torch.{function}(torch.flip({x}, ({axis},)), {axis}{keep})"
        return f"torch.{function}({x}, {axis}{keep})"

    return Form(emit)


def _hardmax(call: Call) -> str:
    axis, x = call.attributes["axis"], call.name()
    at = f"torch.argmax({x}, {axis}, keepdim=True)" if call.shape()[axis] else ""
    return f"torch.zeros_like({x}).scatter({axis}, {at}, 1.0)" if at else f"torch.zeros_like({x})"


def _cumulative(function: str, first: int) -> Form:
    def emit(call: Call) -> str:
        axis, x, a = call.attributes["axis"], call.name(), call.attributes
        if a["reverse"]:
            x = f"torch.flip({x}, ({axis},))"
        if a["exclusive"]:
            x = (
                f"shifted({x}, {axis}, {first})"
                if call.rank()
                else f"torch.full_like({x}, {first})"
            )
        done = f"torch.{function}({x}, {axis}{_result(call)})"
        return f"torch.flip({done}, ({axis},))" if a["reverse"] else done

    def scalar_aware(call: Call) -> str:
        if call.rank():
            return emit(call)
        plain = Call(call.op, call.operands, {**call.attributes, "reverse": False}, call.names)
        return emit(plain)

    return Form(scalar_aware, runtime(1, "the axis"))


def _topk(call: Call) -> Emitted:
    a = call.attributes
    options = f"largest={a['largest']}, sorted={a['sorted']}"
    return Many(f"torch.topk({call.name()}, {a['k']}, {a['axis']}, {options})", 2)


def _sort(call: Call) -> Emitted:
    a = call.attributes
    stable = ", stable=True" if a["stable"] else ""
    return Many(
        f"torch.sort({call.name()}, dim={a['axis']}, descending={a['descending']}{stable})", 2
    )


def _argsort(call: Call) -> str:
    a = call.attributes
    stable = ", stable=True" if a["stable"] else ""
    return f"torch.argsort({call.name()}, dim={a['axis']}, descending={a['descending']}{stable})"


FORMS: dict[str, Form] = {
    "sum": _over("torch.sum({x}{axes}{dtype})"),
    "mean": Form(_mean, _AXES),
    "prod": Form(_prod, _AXES),
    "max": _extremum("amax"),
    "min": _extremum("amin"),
    "l1_norm": _norm(1),
    "l2_norm": _norm(2),
    "log_sum": _over("torch.log(torch.sum({x}{axes}))"),
    "log_sum_exp": _over("torch.logsumexp({x}{axes})", _every_axis),
    "sum_square": _over("torch.sum(torch.square({x}){axes}{dtype})"),
    "var": _spread("var"),
    "std": _spread("std"),
    "reduce_any": _over("torch.any({x}{axes})"),
    "reduce_all": _over("torch.all({x}{axes})"),
    "argmax": _arg("argmax"),
    "argmin": _arg("argmin"),
    "softmax": form("torch.softmax({0}, {axis})"),
    "log_softmax": form("torch.log_softmax({0}, {axis})"),
    "hardmax": Form(_hardmax),
    "cumsum": _cumulative("cumsum", 0),
    "cumprod": _cumulative("cumprod", 1),
    "topk": Form(_topk, runtime(1, "the count")),
    "sort": Form(_sort),
    "argsort": Form(_argsort),
}
