"""Shape functions backwards: arguments for which a function has a given result.

Where a signature says that a known value is ``f(…)``, :data:`INVERSES` says how to choose the
arguments that are not known yet, all of them together: ``reduced(D, A, K) == [2, 3]`` fixes how D,
A and K fit each other, though none of them alone. The table stands beside
:data:`reprise.solve.suggestions.SUGGESTIONS`, which works forwards. An answer is a good guess, made
from random choices: the signature has the last word.

A list may have *holes*, written None: extents that the result says nothing about. Arguments may
stay MISSING, which leaves them to whatever else is known of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from reprise.lang.dtypes import DTYPES
from reprise.solve.shapes import LONGEST
from reprise.solve.suggestions import EQUATIONS, MISSING, Shapes

Shape = tuple[Any, ...]

_LONG = 1 << 20
"""Above this, numbers are not factored; z3 is asked."""


@dataclass(slots=True)
class Wanted:
    """``function(*args) == result``, where some of ``args`` are MISSING. ``first`` is the shape of
    a variadic operand's first tensor and ``count`` the number of its tensors, where given;
    ``one_axis``: axes are a single number."""

    rng: Random
    result: Any
    args: list[Any]
    shapes: Shapes
    first: Shape | None = None
    count: int | None = None
    one_axis: bool = False


Inverse = Callable[[Wanted], Sequence[Any] | None]
"""All arguments, MISSING ones filled in as far as the result decides; None if nothing fits."""

INVERSES: dict[str, Inverse] = {}
"""By the name of a shape function, or of an arithmetic operator."""


def _inverse(name: str) -> Callable[[Inverse], Inverse]:
    def register(inverse: Inverse) -> Inverse:
        INVERSES[name] = inverse
        return inverse

    return register


# --- numbers -----------------------------------------------------------------------------------


@_inverse("+")
def _plus(ask: Wanted) -> Sequence[Any] | None:
    left, right = ask.args
    if left is MISSING and right is MISSING:
        return None
    return (ask.result - right, right) if left is MISSING else (left, ask.result - left)


@_inverse("-")
def _minus(ask: Wanted) -> Sequence[Any] | None:
    left, right = ask.args
    if left is MISSING and right is MISSING:
        return None
    return (ask.result + right, right) if left is MISSING else (left, left - ask.result)


@_inverse("*")
def _times(ask: Wanted) -> Sequence[Any] | None:
    left, right = ask.args
    result = ask.result
    if left is MISSING and right is MISSING:
        if not isinstance(result, int) or result < 1:
            return None
        right = ask.rng.choice(divisors(result))
        return result // right, right
    known = right if left is MISSING else left
    if known == 0:
        return (ask.shapes.extent(ask.rng),) * 2 if result == 0 else None
    if result % known:
        return None
    other = result // known
    return (other, right) if left is MISSING else (left, other)


@_inverse("/")
def _quotient(ask: Wanted) -> Sequence[Any] | None:
    left, right = ask.args
    result = ask.result
    if left is MISSING:
        if right is MISSING or right < 1:
            return None
        return result * right + _rest(ask.rng, right), right
    if result == 0:
        return left, left + 1
    fitting = [d for d in range(left // (result + 1) + 1, left // result + 1) if d]
    return (left, ask.rng.choice(fitting[:64])) if fitting else None


@_inverse("%")
def _remainder(ask: Wanted) -> Sequence[Any] | None:
    left, right = ask.args
    if left is MISSING:
        if right is MISSING or not 0 <= ask.result < right:
            return None
        return right * ask.rng.choice((1, 1, 2, 2, 3)) + ask.result, right
    fitting = [d for d in divisors(left - ask.result) if d > ask.result]
    return (left, ask.rng.choice(fitting[:16])) if fitting else None


@_inverse("rank")
def _rank(ask: Wanted) -> Sequence[Any] | None:
    return ((None,) * ask.result,) if 0 <= ask.result <= LONGEST else None


INVERSES["len"] = _rank


@_inverse("prod")
def _prod(ask: Wanted) -> Sequence[Any] | None:
    return (factored(ask.rng, ask.result),)


@_inverse("floor")
def _floor(ask: Wanted) -> Sequence[Any] | None:
    return (ask.result,)


@_inverse("bits")
def _bits(ask: Wanted) -> Sequence[Any] | None:
    fitting = [name for name, dtype in DTYPES.items() if dtype.bits == ask.result]
    usual = [name for name in fitting if name[:3] in ("flo", "int", "uin", "boo")]
    return (ask.rng.choice(usual or fitting),) if fitting else None


@_inverse("steps")
def _steps(ask: Wanted) -> Sequence[Any] | None:
    start, end, step = ask.args
    if end is not MISSING:
        return None
    start = float(ask.rng.randint(-2, 3)) if start is MISSING else start
    step = ask.rng.choice((1.0, 1.0, 2.0, -1.0)) if step is MISSING else step
    return start, start + ask.result * step, step


def _extent_behind(
    rng: Random, result: int, span: int, stride: int, pads: tuple[int, int], ceil: Any
) -> int | None:
    """An extent into which ``result`` windows fit."""
    exact = (result - 1) * stride + span - pads[0] - pads[1]
    slack = -_rest(rng, stride) if ceil else _rest(rng, stride)
    for extent in (exact + slack, exact):
        if extent > 0 and extent + pads[0] + pads[1] >= span:
            return extent
    return None


@_inverse("window")
def _window(ask: Wanted) -> Sequence[Any] | None:
    extent, kernel, stride, pads, dilation, ceil = ask.args
    if MISSING in (kernel, stride, pads, dilation, ceil) or ask.result < 1:
        return None
    if extent is MISSING:
        both = pads if isinstance(pads, tuple) else (0, pads)
        span = dilation * (kernel - 1) + 1
        extent = _extent_behind(ask.rng, ask.result, span, stride, both, ceil)
    return None if extent is None else (extent, *ask.args[1:])


@_inverse("windows")
def _windows(ask: Wanted) -> Sequence[Any] | None:
    rng, result = ask.rng, ask.result
    items, kernel, strides, pads, dilations, ceil = ask.args
    count = len(result)
    ceil = False if ceil is MISSING else ceil
    kernel = _drawn(rng, (1, 2, 2, 3), count) if kernel is MISSING else kernel
    strides = _drawn(rng, (1, 1, 1, 2, 3), count) if strides is MISSING else strides
    pads = _drawn(rng, (0, 0, 0, 1), 2 * count) if pads is MISSING else pads
    dilations = _drawn(rng, (1, 1, 1, 2), count) if dilations is MISSING else dilations
    if not len(kernel) == len(strides) == len(dilations) == count or len(pads) != 2 * count:
        return None
    if items is MISSING:
        extents: list[Any] = []
        for i, windows in enumerate(result):
            span = None if kernel[i] is None else dilations[i] * (kernel[i] - 1) + 1
            both = pads[i], pads[i + count]
            if span is None or windows is None:
                extents.append(None)
                continue
            extents.append(_extent_behind(rng, windows, span, strides[i], both, ceil))
        if None in extents and None not in result:
            return None
        items = tuple(extents)
    return items, kernel, strides, pads, dilations, ceil


@_inverse("unwindows")
def _unwindows(ask: Wanted) -> Sequence[Any] | None:
    rng, result = ask.rng, ask.result
    items, kernel, strides, pads = ask.args
    count = len(result)
    strides = _drawn(rng, (1, 1, 2), count) if strides is MISSING else strides
    pads = _drawn(rng, (0, 0, 0, 1), 2 * count) if pads is MISSING else pads
    if len(strides) != count or len(pads) != 2 * count:
        return None
    reach = [e + pads[i] + pads[i + count] for i, e in enumerate(result)]
    if items is MISSING and kernel is MISSING:
        items = tuple(
            rng.randint(1, max((r - 1) // s + 1, 1)) for r, s in zip(reach, strides, strict=True)
        )
    if items is MISSING:
        spans = [r - k for r, k in zip(reach, kernel, strict=True)]
        if any(span < 0 or span % s for span, s in zip(spans, strides, strict=True)):
            return None
        items = tuple(span // s + 1 for span, s in zip(spans, strides, strict=True))
    if kernel is MISSING:
        kernel = tuple(r - (e - 1) * s for r, e, s in zip(reach, items, strides, strict=True))
    return items, kernel, strides, pads


# --- axes --------------------------------------------------------------------------------------


@_inverse("iota")
def _iota(ask: Wanted) -> Sequence[Any] | None:
    return (len(ask.result),) if ask.result == tuple(range(len(ask.result))) else None


@_inverse("countdown")
def _countdown(ask: Wanted) -> Sequence[Any] | None:
    return (len(ask.result),) if ask.result[::-1] == tuple(range(len(ask.result))) else None


@_inverse("fill")
def _fill(ask: Wanted) -> Sequence[Any] | None:
    result = ask.result
    item = ask.args[1]
    if len(set(result)) > 1 or (item is not MISSING and any(item != r for r in result)):
        return None
    return len(result), (result[0] if result and item is MISSING else item)


@_inverse("tail")
def _tail(ask: Wanted) -> Sequence[Any] | None:
    axis, count = ask.args
    result = ask.result
    if not result:
        return (axis, count) if axis is MISSING else (axis, axis)
    if list(result) != list(range(result[0], result[-1] + 1)):
        return None
    return result[0], result[-1] + 1


@_inverse("unit_axes")
def _unit_axes(ask: Wanted) -> Sequence[Any] | None:
    return ask.args


# --- lists -------------------------------------------------------------------------------------


@_inverse("part")
def _part(ask: Wanted) -> Sequence[Any] | None:
    items, start, end = ask.args
    if items is not MISSING:
        count = len(items)
        spans = [
            (a, b)
            for a in range(count + 1)
            for b in range(a, count + 1)
            if items[a:b] == ask.result and start in (a, MISSING) and end in (b, MISSING)
        ]
        return (items, *ask.rng.choice(spans)) if spans else None
    start = 0 if start is MISSING else start
    return ask.result, start, start + len(ask.result)


@_inverse("joined")
def _joined(ask: Wanted) -> Sequence[Any] | None:
    left, right = ask.args
    result = ask.result
    if left is MISSING and right is MISSING:
        return None
    cut = len(result) - len(right) if left is MISSING else len(left)
    return (result[:cut], result[cut:]) if cut >= 0 else None


@_inverse("transposed")
def _transposed(ask: Wanted) -> Sequence[Any] | None:
    swap = ask.rng.random() < 0.5 if ask.args[1] is MISSING else ask.args[1]
    return ask.result[::-1] if swap else ask.result, swap


@_inverse("permute")
def _permute(ask: Wanted) -> Sequence[Any] | None:
    items, order = ask.args
    result = ask.result
    if order is MISSING:
        axes = list(range(len(result)))
        ask.rng.shuffle(axes)
        if items is not MISSING:
            axes = _matching(items, result, axes)
        order = tuple(axes)
    if len(order) != len(result) or set(order) != set(range(len(result))):
        return None
    if items is MISSING:
        items = tuple(result[order.index(axis)] for axis in range(len(result)))
    return items, order


def _matching(items: Shape, result: Shape, axes: list[int]) -> list[int]:
    """For each extent of ``result``, another axis of ``items`` that has it, if there is one."""
    free, chosen = list(axes), []
    for extent in result:
        axis = next((a for a in free if a < len(items) and items[a] == extent), None)
        if axis is None:
            return axes
        free.remove(axis)
        chosen.append(axis)
    return chosen


@_inverse("insert")
def _insert(ask: Wanted) -> Sequence[Any] | None:
    items, axes = ask.args
    result = ask.result
    count = len(result)
    if axes is MISSING:
        units = [axis for axis in range(count) if result[axis] in (1, None)]
        if items is not MISSING:
            return items, _gaps(ask.rng, result, items, units)
        if not units:
            return None
        axes = tuple(
            sorted(ask.rng.sample(units, ask.rng.choice((1, 1, 2, len(units))[: len(units)])))
        )
    gone = _resolved(axes, count)
    if gone is None:
        return None
    if items is MISSING:
        items = tuple(extent for axis, extent in enumerate(result) if axis not in gone)
    return items, axes


def _gaps(rng: Random, longer: Shape, shorter: Shape, allowed: Sequence[int]) -> Any:
    """Axes of ``longer`` without which it is ``shorter``; MISSING if there are none."""
    gone: list[int] = []
    left = len(longer) - len(shorter)
    place = 0
    for axis, extent in enumerate(longer):
        match = place < len(shorter) and shorter[place] in (extent, None)
        may_go = axis in allowed and len(gone) < left
        if match and not (
            may_go and rng.random() < 0.4 and _rest_fits(longer, shorter, axis, place)
        ):
            place += 1
        elif may_go:
            gone.append(axis)
        else:
            return MISSING
    return tuple(gone) if place == len(shorter) else MISSING


def _rest_fits(longer: Shape, shorter: Shape, axis: int, place: int) -> bool:
    """Whether what is left of ``shorter`` is still in ``longer`` after ``axis``."""
    rest = iter(longer[axis + 1 :])
    return all(any(e == extent for e in rest) for extent in shorter[place:])


@_inverse("drop")
def _drop(ask: Wanted) -> Sequence[Any] | None:
    items, axes = ask.args
    rng, result = ask.rng, ask.result
    if items is not MISSING:
        if axes is MISSING:
            axes = _gaps(rng, items, result, range(len(items)))
            if ask.one_axis and axes is not MISSING:
                axes = axes[0] if len(axes) == 1 else MISSING
        return items, axes
    if axes is MISSING and ask.one_axis:
        axes = rng.randint(0, len(result))
    elif axes is MISSING:
        more = rng.choice((1, 1, 1, 2))
        axes = tuple(sorted(rng.sample(range(len(result) + more), more)))
    count = len(result) + (len(axes) if isinstance(axes, tuple) else 1)
    gone = _resolved(axes, count)
    if gone is None:
        return None
    rest = iter(result)
    return tuple(None if axis in gone else next(rest) for axis in range(count)), axes


@_inverse("keep")
def _keep(ask: Wanted) -> Sequence[Any] | None:
    items, axes = ask.args
    rng, result = ask.rng, ask.result
    count = len(result)
    if axes is MISSING:
        units = [axis for axis in range(count) if result[axis] in (1, None)]
        needed = units
        if items is not MISSING:
            if len(items) != count:
                return None
            needed = [axis for axis in range(count) if items[axis] != result[axis]]
        if ask.one_axis:
            fitting = needed if items is not MISSING and needed else units
            if (len(needed) > 1 and items is not MISSING) or not fitting:
                return None
            axes = rng.choice(fitting)
        else:
            axes = tuple(
                a for a in units if (items is not MISSING and a in needed) or rng.random() < 0.5
            )
    gone = _resolved(axes, count)
    if gone is None:
        return None
    if items is MISSING:
        items = tuple(None if axis in gone else e for axis, e in enumerate(result))
    return items, axes


@_inverse("reduced")
def _reduced(ask: Wanted) -> Sequence[Any] | None:
    items, axes, keepdims = ask.args
    if keepdims is MISSING:
        if items is not MISSING:
            same = len(items) == len(ask.result)
            keepdims = same and (axes != () or ask.rng.random() < 0.5)
        else:
            keepdims = 1 in ask.result and ask.rng.random() < 0.5
    inner = Wanted(ask.rng, ask.result, [items, axes], ask.shapes, one_axis=ask.one_axis)
    found = (_keep if keepdims else _drop)(inner)
    return None if found is None else (*found, keepdims)


@_inverse("pick")
def _pick(ask: Wanted) -> Sequence[Any] | None:
    return ask.args


@_inverse("put")
def _put(ask: Wanted) -> Sequence[Any] | None:
    items, axis, extent = ask.args
    result = ask.result
    if axis is MISSING:
        axis = _axis_for(ask, items, extent)
    at = None if axis is None else _resolved(axis, len(result))
    if at is None:
        return None
    (place,) = at
    if items is MISSING:
        items = (*result[:place], None, *result[place + 1 :])
    return items, axis, result[place]


def _axis_for(ask: Wanted, items: Any, extent: Any) -> int | None:
    """An axis of the result that may be the one that was put there."""
    axes = range(len(ask.result))
    if extent is not MISSING:
        axes = [axis for axis in axes if ask.result[axis] == extent]  # type: ignore[assignment]
    if items is not MISSING:
        differing = [a for a in range(len(ask.result)) if items[a : a + 1] != ask.result[a : a + 1]]
        axes = [a for a in axes if differing in ([], [a])]  # type: ignore[assignment]
    return ask.rng.choice(list(axes)) if axes else None


@_inverse("splice")
def _splice(ask: Wanted) -> Sequence[Any] | None:
    items, axis, other = ask.args
    rng, result = ask.rng, ask.result
    count = len(result)
    if items is MISSING and other is MISSING:
        length = rng.choice([n for n in (0, 1, 1, 2) if n <= count])
    elif other is MISSING:
        length = count - len(items) + 1
    else:
        length = len(other)
    if length < 0:
        return None
    places = [
        at
        for at in range(count - length + 1)
        if (axis is MISSING or axis == at)
        and (other is MISSING or result[at : at + length] == other)
        and (
            items is MISSING
            or (*items[:at], *items[at + 1 :]) == (*result[:at], *result[at + length :])
        )
    ]
    if not places:
        return None
    at = rng.choice(places)
    rest = (*result[:at], None, *result[at + length :]) if items is MISSING else items
    return rest, at, result[at : at + length]


# --- broadcasting and joining ------------------------------------------------------------------


def _stretched(rng: Random, shapes: list[Any], result: Shape) -> list[Shape] | None:
    """Shapes that broadcast to ``result``; those that are not MISSING are kept."""
    count = len(result)
    free = [i for i, shape in enumerate(shapes) if shape is MISSING]
    made: list[list[Any]] = []
    for shape in shapes:
        if shape is MISSING:
            cut = rng.choice((0, 0, 0, 1, count))
            made.append(
                [1] * min(cut, count) + [1 if rng.random() < 0.2 else e for e in result[cut:]]
            )
        elif len(shape) > count:
            return None
        else:
            made.append([1] * (count - len(shape)) + list(shape))
    for axis, extent in enumerate(result):
        column = [shape[axis] for shape in made]
        if any(c not in (1, extent, None) for c in column):
            return None
        if extent != 1 and extent not in column and None not in column:
            if not free:
                return None
            made[rng.choice(free)][axis] = extent
    done = []
    for given, shape in zip(shapes, made, strict=True):
        lead = 0
        while given is MISSING and lead < count and shape[lead] == 1 and result[lead] != 1:
            lead += 1
        if given is MISSING and lead == 0 and rng.random() < 0.2:
            while lead < count and shape[lead] == 1:
                lead += 1
        done.append(given if given is not MISSING else tuple(shape[lead:]))
    if free and max(map(len, done)) < count:
        i = free[0]
        done[i] = tuple(made[i])
    return done


@_inverse("broadcast")
def _broadcast(ask: Wanted) -> Sequence[Any] | None:
    return _stretched(ask.rng, ask.args, ask.result)


@_inverse("broadcast_all")
def _broadcast_all(ask: Wanted) -> Sequence[Any] | None:
    first = MISSING if ask.first is None else ask.first
    count = ask.count or ask.rng.randint(1 if first in (MISSING, ask.result) else 2, 4)
    made = _stretched(ask.rng, [first] + [MISSING] * (count - 1), ask.result)
    return None if made is None else (tuple(made),)


@_inverse("common")
def _common(ask: Wanted) -> Sequence[Any] | None:
    return ((ask.result,) * (ask.count or ask.rng.randint(1, 4)),)


@_inverse("concat_dims")
def _concat_dims(ask: Wanted) -> Sequence[Any] | None:
    shapes, axis = ask.args
    rng, result = ask.rng, ask.result
    if shapes is not MISSING:
        return shapes, axis
    first = ask.first
    axes = [
        a
        for a in range(len(result))
        if axis in (MISSING, a, a - len(result))
        and (first is None or (*first[:a], *first[a + 1 :]) == (*result[:a], *result[a + 1 :]))
    ]
    if not axes or (first is not None and len(first) != len(result)):
        return None
    at = rng.choice(axes)
    extent = result[at]
    pieces = [] if first is None else [first[at]]
    rest = extent - sum(pieces)
    count = ask.count or rng.randint(1, 4)
    if rest < 0:
        return None
    while len(pieces) < count - 1:
        pieces.append(rng.randint(min(rest, 1), rest) if rest else 0)
        rest -= pieces[-1]
        if not rest and extent and ask.count is None:
            break
    if rest or not pieces or len(pieces) < (ask.count or 0):
        pieces.append(rest)
    return tuple((*result[:at], p, *result[at + 1 :]) for p in pieces), at


@_inverse("split_dims")
def _split_dims(ask: Wanted) -> Sequence[Any] | None:
    items, axis, _ = ask.args
    result = ask.result
    if not result:
        return None
    apart = [a for a in range(len(result[0])) if len({shape[a] for shape in result}) > 1]
    if axis is MISSING:
        if items is not MISSING:
            apart = [a for a in range(len(items)) if sum(s[a] for s in result) == items[a]]
        if not (apart or result[0]):
            return None
        axis = ask.rng.choice(apart or range(len(result[0])))
    sizes = tuple(shape[axis] for shape in result)
    if items is MISSING:
        items = (*result[0][:axis], sum(sizes), *result[0][axis + 1 :])
    return items, axis, sizes


@_inverse("chunk_sizes")
def _chunk_sizes(ask: Wanted) -> Sequence[Any] | None:
    extent = sum(ask.result)
    size = ask.result[0]
    fitting = [n for n in range(1, 2 * len(ask.result) + 2) if max(-(-extent // n), 1) == size]
    return (extent, ask.rng.choice(fitting)) if fitting else None


# --- elements moved ----------------------------------------------------------------------------


@_inverse("reshape_dims")
def _reshape_dims(ask: Wanted) -> Sequence[Any] | None:
    items, shape, zero_is_zero = ask.args
    rng, result = ask.rng, ask.result
    if items is MISSING:
        items = factored(rng, math.prod(result))
    elif math.prod(items) != math.prod(result):
        return None
    zero_is_zero = (0 in result and rng.random() < 0.5) if zero_is_zero is MISSING else zero_is_zero
    if shape is MISSING:
        spelled = list(result)
        for axis, extent in enumerate(result):
            copied = axis < len(items) and items[axis] == extent
            if not zero_is_zero and copied and (extent == 0 or rng.random() < 0.2):
                spelled[axis] = 0
            elif extent == 0 and not zero_is_zero:
                return None if ask.args[2] is not MISSING else (items, result, True)
        if spelled and 0 not in result and rng.random() < 0.3:
            spelled[rng.randrange(len(spelled))] = -1
        shape = tuple(spelled)
    return items, shape, zero_is_zero


@_inverse("tile_dims")
def _tile_dims(ask: Wanted) -> Sequence[Any] | None:
    items, repeats = ask.args
    rng, result = ask.rng, ask.result
    pairs = []
    for axis, extent in enumerate(result):
        known = [MISSING if a is MISSING else (*a, MISSING)[axis] for a in (items, repeats)]
        if known == [MISSING, MISSING]:
            times = rng.choice(divisors(extent)[:4]) if extent else 1
            pairs.append((extent // times, times))
            continue
        found = _times(Wanted(rng, extent, known, ask.shapes))
        if found is None:
            return None
        pairs.append((found[0], found[1]))
    return tuple(p[0] for p in pairs), tuple(p[1] for p in pairs)


@_inverse("scale_dims")
def _scale_dims(ask: Wanted) -> Sequence[Any] | None:
    items, scales = ask.args
    rng, result = ask.rng, ask.result
    made_items, made_scales = [], []
    for axis, extent in enumerate(result):
        factors: Sequence[float] = (1.0, 2.0, 0.5, 1.5) if scales is MISSING else (scales[axis],)
        fitting = [
            (n, s)
            for s in factors
            if s > 0
            for n in ((items[axis],) if items is not MISSING else _near(extent / s))
            if math.floor(n * s) == extent
        ]
        if not fitting and items is not MISSING and items[axis] and scales is MISSING:
            fitting = [(items[axis], (extent + 0.5) / items[axis])]
        if not fitting:
            return None
        n, s = rng.choice(fitting)
        made_items.append(n)
        made_scales.append(s)
    return tuple(made_items), tuple(made_scales)


def _near(value: float) -> tuple[int, ...]:
    return math.floor(value), math.floor(value) + 1


@_inverse("sized_dims")
def _sized_dims(ask: Wanted) -> Sequence[Any] | None:
    items, sizes, _ = ask.args
    if items is MISSING:
        items = (None,) * len(ask.result)
    if None in ask.result:
        return items, sizes, MISSING
    return items, ask.result if sizes is MISSING else sizes, "stretch"


@_inverse("slice_dims")
def _slice_dims(ask: Wanted) -> Sequence[Any] | None:
    items, starts, ends, axes, strides = ask.args
    rng, result = ask.rng, ask.result
    if starts is not MISSING or ends is not MISSING:
        return None  # rarely asked; other ways remain
    count = len(result)
    if items is not MISSING and len(items) != count:
        return None
    if axes is MISSING:
        must = [] if items is MISSING else [a for a in range(count) if items[a] != result[a]]
        axes = [a for a in range(count) if a in must or rng.random() < 0.5]
        if strides is not MISSING and len(strides) != len(axes):
            return None
    made = list(result) if items is MISSING else list(items)
    bounds = []
    for place, axis in enumerate(axes):
        step = rng.choice((1, 1, 1, 2, -1)) if strides is MISSING else strides[place]
        found = _slice(rng, None if items is MISSING else items[axis], result[axis], step)
        if found is None and strides is MISSING:
            found = _slice(rng, items[axis], result[axis], step := 1)
        if found is None:
            return None
        made[axis], start, end = found
        bounds.append((start, end, step))
    columns = [tuple(b[i] for b in bounds) for i in range(3)]
    return tuple(made), columns[0], columns[1], tuple(axes), columns[2]


def _slice(rng: Random, extent: int | None, length: int, step: int) -> tuple[int, int, int] | None:
    """Extent, start and end such that a slice has ``length`` elements."""
    if step == 0:
        return None
    reach = (length - 1) * abs(step) + 1 if length else 0
    if extent is None:
        extent = reach + rng.choice((0, 0, 1, 2)) if reach else rng.choice((1, 2, 3))
    if reach > extent:
        return None
    low = rng.randint(0, min(extent - reach, 3))
    if not length:
        return extent, low, low
    high = low + reach - 1
    if step > 0:
        return extent, low, high + 1
    return extent, high, low - 1 if low else -extent - 1


@_inverse("pad_dims")
def _pad_dims(ask: Wanted) -> Sequence[Any] | None:
    items, pads, axes = ask.args
    rng, result = ask.rng, ask.result
    count = len(result)
    if axes is MISSING:
        axes = tuple(range(count))
    if pads is not MISSING and len(pads) != 2 * len(axes):
        return None
    if items is not MISSING and len(items) != count:
        return None
    before, after = [], []
    for place, axis in enumerate(axes):
        if pads is not MISSING:
            before.append(pads[place])
            after.append(pads[place + len(axes)])
        elif items is MISSING:
            before.append(rng.randint(0, min(result[axis], 2)) if rng.random() < 0.5 else 0)
            left = result[axis] - before[-1]
            after.append(rng.randint(0, min(left, 2)) if rng.random() < 0.5 else 0)
        else:
            before.append(rng.choice((0, 0, 1)))
            after.append(result[axis] - items[axis] - before[-1])
    if items is MISSING:
        made = list(result)
        for place, axis in enumerate(axes):
            made[axis] = result[axis] - before[place] - after[place]
        if any(e is not None and e < 0 for e in made):
            return None
        items = tuple(made)
    return items, (*before, *after), axes


# --- products and gathering --------------------------------------------------------------------


@_inverse("matmul_dims")
def _matmul_dims(ask: Wanted) -> Sequence[Any] | None:
    left, right = ask.args
    rng, result = ask.rng, ask.result
    if left is MISSING and right is MISSING:
        left = _left_factor(ask)
    if left is not MISSING:
        inner = left[-1] if left else None
        if right is not MISSING or inner is None:
            return None if inner is None else (left, right)
        rows = left[-2:-1]
        if rows and not result:
            return None
        if len(left) == 1 or (result[-1:] == rows and rng.random() < 0.2 and left[:-1] == result):
            if len(left) == 1:
                return left, ((inner,) if not result else (*result[:-1], inner, result[-1]))
            return left, (inner,)
        if len(result) < 2 or result[-2] != left[-2]:
            return (left, (inner,)) if left[:-1] == result else None
        batch = _stretched(rng, [left[:-2], MISSING], result[:-2])
        return None if batch is None else (left, (*batch[1], inner, result[-1]))
    inner = right[-1] if len(right) == 1 else right[-2]
    if len(right) == 1:
        return (*result, inner), right
    if not result or result[-1] != right[-1]:
        return None
    if result[:-1] == right[:-2] and (len(result) < 2 or rng.random() < 0.2):
        return (inner,), right
    if len(result) < 2:
        return None
    batch = _stretched(rng, [MISSING, right[:-2]], result[:-2])
    return None if batch is None else ((*batch[0], result[-2], inner), right)


def _left_factor(ask: Wanted) -> Shape:
    rng, result = ask.rng, ask.result
    inner = ask.shapes.extent(rng)
    if not result or (len(result) == 1 and rng.random() < 0.5) or rng.random() < 0.1:
        return (inner,)
    if len(result) == 1:
        return (*result, inner)
    batch = _stretched(rng, [MISSING, MISSING], result[:-2])
    assert batch is not None
    return (*batch[0], result[-2], inner)


@_inverse("gather_nd_dims")
def _gather_nd_dims(ask: Wanted) -> Sequence[Any] | None:
    items, indices, batch = ask.args
    rng, result = ask.rng, ask.result
    if batch is MISSING:
        batch = rng.choice((0, 0, 1)) if result else 0
    if batch > len(result) or (indices is not MISSING and items is not MISSING):
        return None
    if indices is not MISSING:
        lead, depth = indices[:-1], indices[-1] if indices else None
        if depth is None or result[: len(lead)] != lead:
            return None
        return (*lead[:batch], *(None,) * depth, *result[len(lead) :]), indices, batch
    kept = rng.randint(0, len(result) - batch)
    if items is not MISSING:
        fitting = [
            k
            for k in range(len(result) - batch + 1)
            if len(items) - batch - k >= 1 and items[len(items) - k :] == result[len(result) - k :]
        ]
        if not fitting or items[:batch] != result[:batch]:
            return None
        kept = rng.choice(fitting)
        depth = len(items) - batch - kept
    else:
        depth = rng.choice((1, 1, 2))
        items = (*result[:batch], *(None,) * depth, *result[len(result) - kept :])
    return items, (*result[: len(result) - kept], depth), batch


@_inverse("einsum_dims")
def _einsum_dims(ask: Wanted) -> Sequence[Any] | None:
    shapes, equation = ask.args
    rng, result = ask.rng, ask.result
    if shapes is not MISSING:
        return shapes, equation
    choices = list(EQUATIONS) if equation is MISSING else [equation]
    rng.shuffle(choices)
    for choice in choices:
        made = _terms(ask, choice, result)
        if made is not None:
            return made, choice
    return None


def _terms(ask: Wanted, equation: str, result: Shape) -> tuple[Shape, ...] | None:
    """Operand shapes with which the equation has this result."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    if not arrow:
        letters = left.replace(",", "").replace("...", "")
        right = ("..." if "..." in left else "") + "".join(
            sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        )
    before, dots, after = right.partition("...")
    tail = len(result) - len(after)
    if tail < len(before) or (not dots and len(result) != len(before)):
        return None
    extents: dict[str, Any] = {}
    if not _agree(extents, before + after, (*result[: len(before)], *result[tail:])):
        return None
    batch = result[len(before) : tail]
    terms = left.split(",")
    if ask.count is not None and ask.count != len(terms):
        return None
    if ask.first is not None:
        head, dots, back = terms[0].partition("...")
        named = len(ask.first) - len(back)
        if named < len(head) or (not dots and len(ask.first) != len(head)):
            return None
        known = (*ask.first[: len(head)], *ask.first[named:])
        if not _agree(extents, head + back, known):
            return None
    made = []
    for number, term in enumerate(terms):
        if number == 0 and ask.first is not None:
            made.append(ask.first)
            continue
        shape: list[Any] = []
        head, dots, back = term.partition("...")
        for letter in head:
            shape.append(extents.setdefault(letter, ask.shapes.extent(ask.rng)))
        shape += batch if dots else ()
        for letter in back:
            shape.append(extents.setdefault(letter, ask.shapes.extent(ask.rng)))
        made.append(tuple(shape))
    return tuple(made)


def _agree(extents: dict[str, Any], letters: str, shape: Shape) -> bool:
    """Bind letters to extents, as far as they agree with what is bound already."""
    return all(
        extents.setdefault(letter, extent) == extent
        for letter, extent in zip(letters, shape, strict=True)
    )


# --- what they share ---------------------------------------------------------------------------


def _rest(rng: Random, divisor: int) -> int:
    return int(rng.random() * divisor) if divisor > 1 else 0


def _drawn(rng: Random, choices: Sequence[int], count: int) -> tuple[int, ...]:
    if rng.random() < 0.4:
        return (rng.choice(choices),) * count
    return tuple([rng.choice(choices) for _ in range(count)])


def _resolved(axes: Any, count: int) -> frozenset[int] | None:
    """Axes as a set of places; None if one is out of range or named twice."""
    listed = axes if isinstance(axes, tuple | list) else (axes,)
    if any(not -count <= axis < count for axis in listed):
        return None
    places = frozenset(axis % count for axis in listed)
    return places if len(places) == len(listed) else None


def divisors(number: int) -> list[int]:
    """The positive divisors, of a large number only the small ones; 1 for 0."""
    number = abs(number)
    if number == 0:
        return [1, 2, 3]
    limit = min(number, 64) if number > _LONG else math.isqrt(number)
    small = [d for d in range(1, limit + 1) if number % d == 0]
    if number > _LONG:
        return small
    return sorted({*small, *(number // d for d in small)})


def factored(rng: Random, number: int | None) -> Shape:
    """A random shape with that many elements."""
    if number is None:
        return (None,)
    if number == 0:
        shape = [rng.choice((1, 2, 3)) for _ in range(rng.choice((0, 1, 2)))]
        shape.insert(rng.randint(0, len(shape)), 0)
        return tuple(shape)
    factors = []
    rest = number
    for prime in (2, 3, 5, 7):
        while rest % prime == 0:
            factors.append(prime)
            rest //= prime
    if rest != 1:
        factors.append(rest)
    count = rng.choice((1, 1, 2, 2, 3, 4))
    if not factors and rng.random() < 0.3:
        count = 0
    made = [1] * count
    for factor in factors:
        made[rng.randrange(count)] *= factor
    return tuple(made)
