"""The shape functions that operator signatures may call, each implemented once.

A *list* is a tuple of extents (or of attribute items); any extent may be symbolic or unknown, and
a list may be unknown altogether (``None``). A function answers as much as follows from what is
known and leaves the rest unknown; it raises :class:`ShapeError` only for what is certainly wrong.
On fully known arguments the result is fully known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reprise.lang.dtypes import DTYPES
from reprise.solve.arithmetic import Value, known, minus, plus, product, same, times
from reprise.solve.spelling import spell
from reprise.uir.graph import Extent
from reprise.uir.slices import slice_of

List = tuple[Extent, ...]

LONGEST = 1 << 16
"""No list that is made from a number gets longer, whatever a program claims."""


class ShapeError(Exception):
    """Arguments for which the function has no result, in words."""


@dataclass(frozen=True, slots=True)
class ShapeFunction:
    """A function of signatures: its name, how many arguments it takes (``most`` None: any
    number), and its meaning."""

    name: str
    least: int
    most: int | None
    evaluate: Callable[..., Any]
    doc: str


FUNCTIONS: dict[str, ShapeFunction] = {}
"""Every shape function, by name."""


def _function(
    least: int, most: int | None = -1, name: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(evaluate: Callable[..., Any]) -> Callable[..., Any]:
        spelled = name or evaluate.__name__.rstrip("_")
        limit = least if most == -1 else most
        FUNCTIONS[spelled] = ShapeFunction(
            spelled, least, limit, evaluate, (evaluate.__doc__ or "").strip()
        )
        return evaluate

    return register


# --- numbers -----------------------------------------------------------------------------------


@_function(1)
def rank(items: List | None) -> int | None:
    """``rank(D)``: how many extents the list has."""
    return None if items is None else len(items)


@_function(1)
def len_(items: tuple[Value, ...] | None) -> int | None:
    """``len(A)``: how many items the list has."""
    return None if items is None else len(items)


@_function(1)
def prod(items: List | None) -> Value:
    """``prod(D)``: the product of the extents; 1 for a scalar's empty list."""
    return None if items is None else product(items)


@_function(1)
def total(items: List | None) -> Value:
    """``total(S)``: the sum of the items."""
    if items is None:
        return None
    result: Value = 0
    for item in items:
        result = plus(result, item)
    return result


@_function(1)
def smallest(items: tuple[int | float, ...] | None) -> int | float | None:
    """``smallest(A)``: the least item; infinity for an empty list."""
    if items is None or any(not isinstance(item, int | float) for item in items):
        return None
    return min(items, default=math.inf)


@_function(2)
def at_least(a: Value, b: Value) -> Value:
    """``at_least(a, b)``: the greater of two numbers."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return max(a, b)
    return None


@_function(1)
def floor(a: Value) -> Value:
    """``floor(a)``: the greatest integer not above ``a``."""
    return math.floor(a) if isinstance(a, int | float) else a


@_function(6)
def window(
    extent: Value, kernel: Value, stride: Value, pads: Value, dilation: Value, ceil: Value
) -> Value:
    """``window(H, R, stride, pads, dilation, ceil)``: how many windows of ``R`` elements fit into
    ``H`` padded by ``pads`` in all; with ``ceil``, a last one that hangs over the end counts if it
    starts inside the (left-padded) input. ``pads`` may be a pair ``[begin, end]``."""
    begin, end = pads if isinstance(pads, tuple) else (0, pads)
    padded = plus(plus(extent, begin), end)
    span = plus(times(dilation, minus(kernel, 1)), 1)
    if isinstance(padded, int) and isinstance(span, int) and isinstance(stride, int):
        if span > padded:
            raise ShapeError(f"the window spans {span} but the padded extent is {padded}")
        if not ceil:
            return (padded - span) // stride + 1
        count = -(-(padded - span) // stride) + 1
        if (count - 1) * stride >= extent + begin:  # type: ignore[operator]
            count -= 1
        return count
    if stride == 1:
        return plus(minus(padded, span), 1) if span != 1 else padded
    return None


@_function(3)
def steps(start: Value, end: Value, step: Value) -> int | None:
    """``steps(a, b, step)``: how many of ``a, a + step, …`` lie before b."""
    if not all(isinstance(v, int | float) for v in (start, end, step)):
        return None
    if step == 0:
        raise ShapeError("the step is 0")
    return max(math.ceil((end - start) / step), 0)  # type: ignore[operator]


@_function(1)
def bits(dtype: str | None) -> int | None:
    """``bits(T)``: the storage width of one element."""
    return None if dtype is None else DTYPES[dtype].bits


# --- axes --------------------------------------------------------------------------------------


@_function(1)
def iota(count: Value) -> tuple[int, ...] | None:
    """``iota(n)``: the list ``[0, 1, …, n - 1]``: every axis of a tensor of rank n."""
    return tuple(range(_bounded(count))) if isinstance(count, int) else None


@_function(1)
def countdown(count: Value) -> tuple[int, ...] | None:
    """``countdown(n)``: the list ``[n - 1, …, 1, 0]``: the axes reversed."""
    return tuple(range(_bounded(count) - 1, -1, -1)) if isinstance(count, int) else None


@_function(2)
def fill(count: Value, item: Value) -> tuple[Value, ...] | None:
    """``fill(n, v)``: a list of n items ``v``."""
    return (item,) * _bounded(count) if isinstance(count, int) else None


@_function(2)
def tail(axis: Value, count: Value) -> tuple[int, ...] | None:
    """``tail(A, n)``: the list ``[A, A + 1, …, n - 1]``: the axes from A on."""
    if not isinstance(axis, int) or not isinstance(count, int):
        return None
    return tuple(range(axis, count))


@_function(1)
def unit_axes(items: List | None) -> tuple[int, ...] | None:
    """``unit_axes(D)``: the axes whose extent is 1."""
    if items is None or any(not isinstance(e, int) for e in items):
        return None
    return tuple(axis for axis, extent in enumerate(items) if extent == 1)


# --- lists to lists ----------------------------------------------------------------------------


@_function(3)
def part(items: List | None, start: Value, end: Value) -> List | None:
    """``part(D, i, j)``: the extents of axes i up to, not including, j; negative counts from the
    end, as in a slice."""
    if items is None or not isinstance(start, int) or not isinstance(end, int):
        return None
    return items[start:end]


@_function(2)
def drop(items: List | None, axes: Value) -> List | None:
    """``drop(D, A)``: without axis A, or without the axes in the list A."""
    if items is None or axes is None:
        return None
    gone = _axes(axes, len(items))
    return tuple(extent for axis, extent in enumerate(items) if axis not in gone)


@_function(2)
def keep(items: List | None, axes: Value) -> List | None:
    """``keep(D, A)``: with extent 1 along axis A, or along the axes in the list A."""
    if items is None:
        return None
    if axes is None:
        return (None,) * len(items)
    gone = _axes(axes, len(items))
    return tuple(1 if axis in gone else extent for axis, extent in enumerate(items))


@_function(3)
def reduced(items: List | None, axes: Value, keepdims: Value) -> List | None:
    """``reduced(D, A, K)``: ``keep(D, A)`` if K is true, else ``drop(D, A)``."""
    if keepdims is None:
        return None
    result: List | None = keep(items, axes) if keepdims else drop(items, axes)
    return result


@_function(2)
def pick(items: List | None, axes: Value) -> List | None:
    """``pick(D, A)``: the extents of the axes in the list A."""
    if items is None or axes is None:
        return None
    chosen = _axes(axes, len(items))
    return tuple(extent for axis, extent in enumerate(items) if axis in chosen)


@_function(2)
def joined(items: List | None, more: List | None) -> List | None:
    """``joined(D, E)``: the extents D, then the extents E."""
    return None if items is None or more is None else items + more


@_function(2)
def transposed(items: List | None, swap: Value) -> List | None:
    """``transposed(D, t)``: a matrix's two extents, swapped if t is true."""
    if items is None or swap is None:
        return None
    return items[::-1] if swap else items


@_function(2)
def permute(items: List | None, order: tuple[int, ...] | None) -> List | None:
    """``permute(D, P)``: axis i of the result is axis ``P[i]``; P must be a permutation."""
    if items is None or order is None:
        return None if order is None else (None,) * len(order)
    if len(order) != len(items) or set(order) != set(range(len(items))):
        raise ShapeError(f"{spell(order)} is not a permutation of {len(items)} axes")
    return tuple(items[axis] for axis in order)


@_function(2)
def insert(items: List | None, axes: Value) -> List | None:
    """``insert(D, A)``: new axes of extent 1 so that A names them in the *result*."""
    if items is None or axes is None:
        return None
    wanted = (axes,) if isinstance(axes, int) else axes
    count = len(items) + len(wanted)  # type: ignore[arg-type]
    at = _axes(axes, count)
    if len(at) != len(wanted):  # type: ignore[arg-type]
        raise ShapeError(f"axes {spell(axes)} name one axis twice")
    rest = iter(items)
    return tuple(1 if axis in at else next(rest) for axis in range(count))


@_function(3)
def put(items: List | None, axis: Value, extent: Extent) -> List | None:
    """``put(D, A, n)``: with extent n along axis A."""
    if items is None:
        return None
    if axis is None:
        return (None,) * len(items)
    (at,) = _axes(axis, len(items))
    return (*items[:at], extent, *items[at + 1 :])


@_function(3)
def splice(items: List | None, axis: Value, other: List | None) -> List | None:
    """``splice(D, A, E)``: with axis A replaced by the extents E (gather)."""
    if items is None or other is None or axis is None:
        return None
    (at,) = _axes(axis, len(items))
    return (*items[:at], *other, *items[at + 1 :])


@_function(1, None)
def broadcast(*shapes: List | None) -> List | None:
    """``broadcast(D, E, …)``: the common shape under numpy's rules (an extent 1 stretches)."""
    first = shapes[0]
    if len(shapes) == 2 and first == shapes[1]:
        return first
    if any(shape is None for shape in shapes):
        return None
    present = [shape for shape in shapes if shape is not None]
    count = max(map(len, present))
    padded = [(1,) * (count - len(shape)) + shape for shape in present]
    return tuple(_stretch(column, shapes) for column in zip(*padded, strict=True))


@_function(1)
def broadcast_all(shapes: Sequence[List | None] | None) -> List | None:
    """``broadcast_all(Ds)``: the common shape of a variadic operand's shapes."""
    if shapes is None:
        return None
    result: List | None = broadcast(*shapes)
    return result


@_function(1)
def common(shapes: Sequence[List | None] | None) -> List | None:
    """``common(Ds)``: the one shape that all operands of a variadic operand have."""
    if shapes is None:
        return None
    result: list[Extent] | None = None
    for shape in shapes:
        if shape is None:
            continue
        if result is None:
            result = list(shape)
            continue
        if len(shape) != len(result):
            raise ShapeError(f"shapes {spell(tuple(result))} and {spell(shape)} differ")
        for axis, extent in enumerate(shape):
            if same(result[axis], extent) is False:
                raise ShapeError(f"shapes {spell(tuple(result))} and {spell(shape)} differ")
            if not isinstance(result[axis], int):
                result[axis] = extent if extent is not None else result[axis]
    return None if result is None else tuple(result)


@_function(2)
def concat_dims(shapes: Sequence[List | None] | None, axis: Value) -> List | None:
    """``concat_dims(Ds, A)``: the shapes joined along axis A; the other axes must agree."""
    if shapes is None or axis is None or any(shape is None for shape in shapes):
        return None
    present: list[List] = [shape for shape in shapes if shape is not None]
    first = present[0]
    (at,) = _axes(axis, len(first))
    if all(shape == first for shape in present):
        return put(first, at, times(len(present), first[at]))  # type: ignore[no-any-return]
    for shape in present:
        if len(shape) != len(first):
            raise ShapeError(f"ranks {len(first)} and {len(shape)} differ")
    blank = [put(shape, at, 0) for shape in present]
    try:
        agreed = common(blank)
    except ShapeError:
        other = next(s for s, b in zip(present, blank, strict=True) if same(b, blank[0]) is False)
        raise ShapeError(
            f"shapes {spell(first)} and {spell(other)} differ along another axis than {at}"
        ) from None
    joined = total(tuple(shape[at] for shape in present))
    return put(agreed, at, joined)  # type: ignore[no-any-return]


@_function(3)
def split_dims(
    items: List | None, axis: Value, sizes: tuple[int, ...] | None
) -> tuple[List | None, ...] | None:
    """``split_dims(D, A, S)``: a list of shapes, one for each size in S along axis A (for an
    operator with ``flag many_results``); the sizes must add up to the extent."""
    if sizes is None:
        return None
    if items is None or axis is None:
        return (None,) * len(sizes)
    (at,) = _axes(axis, len(items))
    if same(total(sizes), items[at]) is False:
        raise ShapeError(f"sizes {spell(sizes)} do not add up to the extent {items[at]}")
    return tuple(put(items, at, size) for size in sizes)


@_function(2)
def chunk_sizes(extent: Value, count: Value) -> tuple[int, ...] | None:
    """``chunk_sizes(n, k)``: n in k pieces, all of size ⌈n / k⌉ but the last, which is smaller
    (and absent, with others before it, where nothing is left)."""
    if not isinstance(extent, int) or not isinstance(count, int):
        return None
    size = max(-(-extent // count), 1)
    sizes = [size] * _bounded(extent // size)
    if extent % size or not sizes:
        sizes.append(extent % size)
    return tuple(sizes)


@_function(5)
def slice_dims(
    items: List | None,
    starts: tuple[int, ...] | None,
    ends: tuple[int, ...] | None,
    axes: tuple[int, ...] | None,
    strides: tuple[int, ...] | None,
) -> List | None:
    """``slice_dims(D, starts, ends, axes, steps)``: negative bounds count from the end, and
    those beyond the axis are clamped (``slice_of``)."""
    if items is None:
        return None
    if starts is None or ends is None or axes is None or strides is None:
        return (None,) * len(items)
    if not len(starts) == len(ends) == len(axes) == len(strides):
        raise ShapeError(
            f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(strides)} steps"
        )
    if len(_axes(axes, len(items))) != len(axes):
        raise ShapeError(f"axes {spell(axes)} name one axis twice")
    result = list(items)
    for start, end, axis, step in zip(starts, ends, axes, strides, strict=True):
        if step == 0:
            raise ShapeError("a step is 0")
        extent = items[axis]
        if isinstance(extent, int):
            result[axis] = len(range(*slice_of(extent, start, end, step).indices(extent)))
        elif not (start == 0 and step == 1 and end >= 2**31 - 1):
            result[axis] = None
    return tuple(result)


@_function(3)
def pad_dims(
    items: List | None, pads: tuple[int, ...] | None, axes: tuple[int, ...] | None
) -> List | None:
    """``pad_dims(D, P, A)``: P holds what is added before each axis in A, then after each;
    negative amounts cut."""
    if items is None:
        return None
    if pads is None or axes is None:
        return (None,) * len(items)
    _check_pads(items, pads, axes)
    result = list(items)
    for i, axis in enumerate(axes):
        amount = pads[i] + pads[i + len(axes)]
        padded = plus(items[axis], amount)
        if isinstance(padded, int) and padded < 0:
            raise ShapeError(f"pads cut {-amount} off an extent of {items[axis]}")
        result[axis] = padded  # type: ignore[assignment]
    return tuple(result)


def _check_pads(items: List, pads: tuple[int, ...], axes: tuple[int, ...]) -> None:
    if len(_axes(axes, len(items))) != len(axes):
        raise ShapeError(f"axes {spell(axes)} name one axis twice")
    if len(pads) != 2 * len(axes):
        raise ShapeError(f"{len(pads)} pads for {len(axes)} axes")


@_function(3)
def cropped(
    items: List | None, pads: tuple[int, ...] | None, axes: tuple[int, ...] | None
) -> tuple[Value, ...] | None:
    """``cropped(D, P, A)``: of each axis in A, what negative amounts leave of its extent."""
    if items is None or pads is None or axes is None:
        return None
    _check_pads(items, pads, axes)
    return tuple(
        plus(items[axis], min(pads[i], 0) + min(pads[i + len(axes)], 0))
        for i, axis in enumerate(axes)
    )


@_function(3)
def reflect_room(
    items: List | None, pads: tuple[int, ...] | None, axes: tuple[int, ...] | None
) -> tuple[Value, ...] | None:
    """``reflect_room(D, P, A)``: for each end of each axis that P pads, how much more could be
    mirrored there; cutting comes first."""
    left = cropped(items, pads, axes)
    if left is None or pads is None:
        return None
    return tuple(minus(minus(left[i % len(left)], 1), pad) for i, pad in enumerate(pads) if pad > 0)


@_function(3)
def room(items: List | None, other: List | None, axis: Value) -> tuple[Value, ...] | None:
    """``room(D, E, A)``: by how much D exceeds E along every axis but A; the ranks must agree."""
    if items is None or other is None or axis is None:
        return None
    if len(items) != len(other):
        raise ShapeError(f"ranks {len(items)} and {len(other)} differ")
    (at,) = _axes(axis, len(items))
    return tuple(minus(a, b) for i, (a, b) in enumerate(zip(items, other, strict=True)) if i != at)


@_function(6)
def windows(
    items: List | None,
    kernel: tuple[int, ...] | None,
    strides: tuple[int, ...] | None,
    pads: tuple[int, ...] | None,
    dilations: tuple[int, ...] | None,
    ceil: Value,
) -> List | None:
    """``windows(D, kernel, strides, pads, dilations, ceil)``: ``window`` along every axis."""
    if kernel is None or strides is None or pads is None or dilations is None:
        return None if items is None else (None,) * len(items)
    count = len(kernel)
    for what, given, wanted in (
        ("extents", items, count),
        ("strides", strides, count),
        ("pads", pads, 2 * count),
        ("dilations", dilations, count),
    ):
        if given is not None and len(given) != wanted:
            raise ShapeError(f"{len(given)} {what} for a window over {count} axes")
    extents = items if items is not None else (None,) * count
    return tuple(
        window(e, kernel[i], strides[i], (pads[i], pads[i + count]), dilations[i], ceil)
        for i, e in enumerate(extents)
    )


@_function(3)
def reshape_dims(items: List | None, shape: List | None, allowzero: Value) -> List | None:
    """``reshape_dims(D, S, allowzero)``: S with 0 replaced by the input's extent along that axis
    (unless ``allowzero``) and -1 by what is left over; the element counts must agree."""
    if shape is None:
        return None
    result = list(shape)
    for axis, extent in enumerate(shape):
        if extent == 0 and not allowzero:
            if items is not None and axis >= len(items):
                raise ShapeError(f"0 at axis {axis} copies an axis that the input lacks")
            result[axis] = None if items is None else items[axis]
    unknown = [axis for axis, extent in enumerate(shape) if extent == -1]
    if len(unknown) > 1:
        raise ShapeError(f"{spell(shape)} has more than one -1")
    if items is None:
        for axis in unknown:
            result[axis] = None
        return tuple(result)
    if unknown:
        result[unknown[0]] = 1
        result[unknown[0]] = _left_over(items, tuple(result), shape)
        return tuple(result)
    if same(product(items), product(result)) is False:
        raise ShapeError(f"{product(items)} elements do not fit the shape {spell(shape)}")
    return tuple(result)


@_function(2)
def tile_dims(items: List | None, repeats: tuple[int, ...] | None) -> List | None:
    """``tile_dims(D, R)``: each extent times its number of repeats."""
    if items is None or repeats is None:
        one = items if items is not None else repeats
        return None if one is None else (None,) * len(one)
    if len(items) != len(repeats):
        raise ShapeError(f"{len(repeats)} repeats for a tensor of rank {len(items)}")
    return tuple(times(e, r) for e, r in zip(items, repeats, strict=True))  # type: ignore[misc]


@_function(2)
def scale_dims(items: List | None, scales: tuple[float, ...] | None) -> List | None:
    """``scale_dims(D, S)``: each extent times its factor, rounded down."""
    if items is None or scales is None:
        one = items if items is not None else scales
        return None if one is None else (None,) * len(one)
    if len(items) != len(scales):
        raise ShapeError(f"{len(scales)} scales for a tensor of rank {len(items)}")
    return tuple(
        math.floor(e * s) if isinstance(e, int) else (e if s == 1 else None)
        for e, s in zip(items, scales, strict=True)
    )


@_function(3)
def sized_dims(items: List | None, sizes: List | None, policy: str | None) -> List | None:
    """``sized_dims(D, S, policy)``: the sizes S, as many as D has axes, if the policy is
    ``stretch``; where the aspect ratio is kept, the result depends on coordinates."""
    if sizes is None or policy != "stretch":
        return None if items is None else (None,) * len(items)
    return sizes


@_function(4)
def unwindows(
    items: List | None,
    kernel: tuple[int, ...] | None,
    strides: tuple[int, ...] | None,
    pads: tuple[int, ...] | None,
) -> List | None:
    """``unwindows(D, kernel, strides, pads)``: the extents that windows at D positions cover."""
    if items is None:
        return None
    if kernel is None or strides is None or pads is None:
        return (None,) * len(items)
    count = len(items)
    if not count == len(kernel) == len(strides) or len(pads) != 2 * count:
        raise ShapeError(f"a window over {len(kernel)} axes for {count} extents")
    covered = []
    for i, extent in enumerate(items):
        start = times(minus(extent, 1), strides[i])
        reach = minus(plus(start, kernel[i]), pads[i] + pads[i + count])
        if isinstance(reach, int) and reach < 0:
            raise ShapeError(f"pads cut {pads[i] + pads[i + count]} off an extent")
        covered.append(reach)
    return tuple(covered)  # type: ignore[arg-type]


@_function(2)
def matmul_dims(left: List | None, right: List | None) -> List | None:
    """``matmul_dims(D, E)``: numpy's matrix product: batch axes broadcast, a vector on either
    side is contracted."""
    for shape in (left, right):
        if shape == ():
            raise ShapeError("a scalar has no matrix product")
    if left is None or right is None:
        return None
    inner, other = left[-1], right[-2 if len(right) > 1 else -1]
    if same(inner, other) is False:
        raise ShapeError(f"extents {inner} and {other} differ (K)")
    batch = broadcast(left[:-2], right[:-2]) if len(left) > 1 and len(right) > 1 else None
    if batch is None:
        batch = left[:-2] if len(left) > 1 else right[:-2]
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


@_function(3)
def gather_nd_dims(items: List | None, indices: List | None, batch: Value) -> List | None:
    """``gather_nd_dims(D, I, b)``: the shape of ``gather_nd``: I without its last axis, then the
    axes of D that an index tuple leaves over, after b shared batch axes."""
    if items is None or indices is None or not isinstance(batch, int):
        return None
    if not indices:
        raise ShapeError("the indices are a scalar")
    if batch >= min(len(items), len(indices)):
        raise ShapeError(f"{batch} batch axes for ranks {len(items)} and {len(indices)}")
    for axis in range(batch):
        if same(items[axis], indices[axis]) is False:
            raise ShapeError(f"extents {items[axis]} and {indices[axis]} differ (batch {axis})")
    depth = indices[-1]
    if not isinstance(depth, int):
        return None
    if not 1 <= depth <= len(items) - batch:
        raise ShapeError(f"index tuples of {depth} for {len(items) - batch} axes")
    return (*indices[:-1], *items[batch + depth :])


@_function(2)
def einsum_dims(shapes: Sequence[List | None] | None, equation: str | None) -> List | None:
    """``einsum_dims(Ds, E)``: the result's shape under the equation E, such as ``"ij,jk->ik"``."""
    if shapes is None or equation is None:
        return None
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ShapeError(f"`{equation}` names {len(terms)} operands, not {len(shapes)}")
    extents: dict[str, Extent] = {}
    ellipsis: List | None = ()
    for term, shape in zip(terms, shapes, strict=True):
        rest = _bind_term(term, shape, extents, equation)
        ellipsis = None if rest is None or ellipsis is None else broadcast(ellipsis, rest)
    if not arrow:
        letters = Counter(left.replace(",", "").replace("...", ""))
        right = ("..." if "..." in left else "") + "".join(
            sorted(letter for letter, count in letters.items() if count == 1)
        )
    before, dots, after = right.partition("...")
    for letter in before + after:
        if letter not in extents:
            raise ShapeError(f"`{equation}`: index {letter} of the result is in no operand")
    if dots and ellipsis is None:
        return None
    middle = ellipsis if dots and ellipsis is not None else ()
    return (*(extents[i] for i in before), *middle, *(extents[i] for i in after))


# --- what they share ---------------------------------------------------------------------------


def _bounded(count: int) -> int:
    if count > LONGEST:
        raise ShapeError(f"a list of {count} items")
    return count


def _axes(axes: Value, count: int) -> frozenset[int]:
    """The named axes as a set of indices. Raises ShapeError for one that is out of range."""
    listed: Any = axes if isinstance(axes, tuple) else (axes,)
    for axis in listed:
        if not -count <= axis < count:
            raise ShapeError(f"axis {axis} of a tensor of rank {count}")
    return frozenset(axis % count for axis in listed)


def _stretch(column: tuple[Extent, ...], shapes: tuple[List | None, ...]) -> Extent:
    """The extent that ``column`` broadcasts to: whatever is not 1, if there is one answer."""
    fixed = {e for e in column if isinstance(e, int) and e != 1}
    if len(fixed) > 1:
        shown = " and ".join(spell(s) for s in shapes if s is not None)
        raise ShapeError(f"shapes {shown} do not broadcast")
    if fixed:
        return fixed.pop()
    open_ = {e for e in column if not isinstance(e, int)}
    if not open_:
        return 1
    return open_.pop() if len(open_) == 1 else None


def _left_over(items: List, taken: List, shape: List) -> Extent:
    """The extent that -1 stands for: the elements of ``items`` that ``taken`` does not use.

    Equal symbols on both sides cancel; what is then left must be numbers, or one symbol alone.
    """
    have = math.prod(e for e in items if isinstance(e, int))
    used = math.prod(e for e in taken if isinstance(e, int))
    if used == 0:
        raise ShapeError(f"-1 in {spell(shape)} could be anything, or nothing")
    if known(items) and known(taken):
        if have % used:
            raise ShapeError(f"{have} elements cannot be divided into the shape {spell(shape)}")
        return have // used
    above = Counter(e for e in items if not isinstance(e, int))
    below = Counter(e for e in taken if not isinstance(e, int))
    cancelled = above & below
    if None in cancelled:  # two unknown extents are not known to be equal
        del cancelled[None]
    above, below = above - cancelled, below - cancelled
    if not above and not below:  # a cancelled symbol may be 0: nothing is certainly wrong
        return have // used if have % used == 0 else None
    if not below and above.total() == 1 and have == used:
        return next(iter(above))
    return None


def _bind_term(
    term: str, shape: List | None, extents: dict[str, Extent], equation: str
) -> List | None:
    """Bind one einsum operand's letters; returns the extents that its ellipsis stands for."""
    before, dots, after = term.partition("...")
    if shape is None:
        for letter in before + after:
            extents.setdefault(letter, None)
        return None
    if len(shape) < len(before + after) or (not dots and len(shape) != len(before)):
        raise ShapeError(f"`{equation}`: `{term}` for a tensor of rank {len(shape)}")
    tail = len(shape) - len(after)
    named = [*zip(before, shape, strict=False), *zip(after, shape[tail:], strict=True)]
    for letter, extent in named:
        if letter not in extents or extents[letter] is None:
            extents[letter] = extent
        elif isinstance(extents[letter], str):
            extents[letter] = extents[letter] if extent is None else extent
        elif same(extents[letter], extent) is False:
            raise ShapeError(
                f"`{equation}`: index {letter} has extents {extents[letter]} and {extent}"
            )
    return shape[len(before) : tail]
