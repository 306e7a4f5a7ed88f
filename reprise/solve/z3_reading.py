"""The rule language over z3: the second reading of a signature's expressions and conditions.

Numbers are Python numbers or z3 integer terms, lists are tuples of them, so that the *structure* of
an instance (ranks, lengths of lists, axes, words) is always known and only its numbers are open.
What a shape function demands of its arguments, where the native reading raises ShapeError, becomes
a side condition. Where structure itself depends on an open number (how many pieces ``chunk`` makes)
:class:`NeedsValue` says which term must be known first.

z3's ``div`` and ``mod`` mean Python's for positive divisors only, and anything at all for 0: a
divisor is asserted not to be 0, and a negative one is turned around.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import z3

from reprise.lang.dtypes import DTYPES
from reprise.solve.reading import NATIVE
from reprise.solve.shapes import FUNCTIONS, ShapeError

Term = Any
"""A number or a truth that z3 is to find: a ``z3.ExprRef``."""
List = tuple[Any, ...]

_EXACT = 1 << 20
"""A float factor is read as the fraction it is if its denominator is at most this: the product with
an extent below 2 to the 31 is then exact in floating point too."""


class NeedsValue(Exception):
    """What is asked depends on the value of this term in a way that z3 is not told."""

    def __init__(self, term: Term) -> None:
        super().__init__(str(term))
        self.term = term


class Unread(Exception):
    """What has no reading over z3: arithmetic on floating-point numbers."""


class Symbolic:
    """A :class:`~reprise.solve.reading.Reading` over z3 terms. ``demands``: what must hold for
    what was evaluated since :meth:`taken` was last called to have a meaning at all."""

    def __init__(self, context: z3.Context) -> None:
        self.context = context
        self.demands: list[Any] = []
        self._words: dict[str, int] = {}

    def taken(self) -> list[Any]:
        """The demands so far, which are forgotten."""
        demands, self.demands = self.demands, []
        return demands

    def word(self, text: str) -> int:
        """The number that stands for a word (an element type) in terms."""
        return self._words.setdefault(text, len(self._words))

    def spelled(self, number: int) -> str:
        """The word that a number stands for."""
        return next(text for text, code in self._words.items() if code == number)

    def demand(self, truth: Any) -> None:
        """Add a demand. Raises ShapeError for one that is certainly not met."""
        if truth is False:
            raise ShapeError("something that a shape function demands does not hold")
        if truth is not True:
            self.demands.append(truth)

    # --- the protocol ----------------------------------------------------------------------------

    def number(self, value: int | float) -> int | float:
        return value

    def binary(self, op: str, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return None
        if not is_open(left) and not is_open(right):
            return NATIVE.binary(op, left, right)
        if isinstance(left, float) or isinstance(right, float):
            raise Unread(op)
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return self._divided(left, right)
            case _:
                return left - right * self._divided(left, right)

    def _divided(self, left: Any, right: Any) -> Any:
        if isinstance(right, int):
            if right == 0:
                raise ZeroDivisionError
            return left / right if right > 0 else (-left) / -right
        self.demand(right != 0)
        left = self._term(left)
        return z3.If(right > 0, left / right, (-left) / (-right))

    def _term(self, value: Any) -> Any:
        return z3.IntVal(value, self.context) if isinstance(value, int) else value

    def item(self, items: List | None, index: Any) -> Any:
        if is_open(index):
            raise NeedsValue(index)
        return NATIVE.item(items, index)

    def call(self, function: str, args: list[Any]) -> Any:
        if not any(map(is_open, args)):
            return FUNCTIONS[function].evaluate(*args)
        symbolic = _SYMBOLIC.get(function)
        if symbolic is not None:
            return symbolic(self, *args)
        for arg in _STRUCTURE.get(function, tuple)(args):
            if is_open(arg):
                raise NeedsValue(first_term(arg))
        return FUNCTIONS[function].evaluate(*args)

    def compare(self, op: str, left: Any, right: Any, symbols: bool) -> Any:
        if not is_open(left) and not is_open(right):
            return _told(NATIVE.compare(op, left, right, symbols))
        if isinstance(left, tuple) or isinstance(right, tuple):
            same = self._same_lists(left, right)
            return same if op == "==" else self.negation(same)
        if left is None or right is None:
            return True
        if isinstance(left, str):
            left = self.word(left)
        if isinstance(right, str):
            right = self.word(right)
        if isinstance(left, float) or isinstance(right, float):
            return self._bounded(op, left, right)
        match op:
            case "==":
                return left == right
            case "!=":
                return left != right
            case "<=":
                return left <= right
            case ">=":
                return left >= right
            case "<":
                return left < right
            case _:
                return left > right

    def _bounded(self, op: str, left: Any, right: Any) -> bool:
        """A term against infinity: any number will do for the term."""
        sides = [0 if is_open(side) else side for side in (left, right)]
        if not all(math.isinf(side) or side == 0 for side in sides):
            raise Unread(op)
        return _told(NATIVE.compare(op, sides[0], sides[1], False))

    def _same_lists(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return True
        if not (isinstance(left, tuple) and isinstance(right, tuple)) or len(left) != len(right):
            return False
        return self.every(
            [self.compare("==", a, b, False) for a, b in zip(left, right, strict=True)]
        )

    def negation(self, truth: Any) -> Any:
        return not truth if isinstance(truth, bool) else z3.Not(truth)

    def every(self, truths: Iterable[Any]) -> Any:
        return self._joined(truths, True)

    def some(self, truths: Iterable[Any]) -> Any:
        return self._joined(truths, False)

    def _joined(self, truths: Iterable[Any], neutral: bool) -> Any:
        """A conjunction, or a disjunction. What a part demands matters only if the parts before it
        leave the matter open."""
        join = z3.And if neutral else z3.Or
        parts: list[Any] = []
        before = len(self.demands)
        rest = iter(truths)
        while True:
            settled = [z3.Not(p) if neutral else p for p in parts]
            try:
                truth = next(rest, None)
            except (ShapeError, IndexError, ZeroDivisionError):
                if not parts:
                    raise
                self.demands[before:] = [z3.Or(*settled)]
                break
            if parts:
                late = [z3.Or(*settled, demand) for demand in self.demands[before:]]
                self.demands[before:] = late
            before = len(self.demands)
            if truth is None:
                break
            if truth is (not neutral):
                return not neutral
            if truth is not neutral:
                parts.append(truth)
        if not parts:
            return neutral
        return parts[0] if len(parts) == 1 else join(*parts)


def is_open(value: Any) -> bool:
    """Whether there is a term in a value."""
    if isinstance(value, tuple):
        return any(map(is_open, value))
    return isinstance(value, z3.ExprRef)


def first_term(value: Any) -> Any:
    """The first term in a value."""
    if isinstance(value, tuple):
        return next(first_term(item) for item in value if is_open(item))
    return value


def _told(truth: bool | None) -> bool:
    """Three-valued truth of what is written down: what a wildcard leaves open is granted."""
    return truth is not False


# --- shape functions over terms ----------------------------------------------------------------

_STRUCTURE: dict[str, Callable[[list[Any]], Sequence[Any]]] = {
    "rank": lambda args: (),
    "len": lambda args: (),
    "part": lambda args: args[1:],
    "drop": lambda args: args[1:],
    "keep": lambda args: args[1:],
    "reduced": lambda args: args[1:],
    "pick": lambda args: args[1:],
    "joined": lambda args: (),
    "transposed": lambda args: args[1:],
    "permute": lambda args: args[1:],
    "insert": lambda args: args[1:],
    "put": lambda args: args[1:2],
    "splice": lambda args: args[1:2],
    "fill": lambda args: args[:1],
    "sized_dims": lambda args: args[2:],
}
"""Functions that only move extents: the arguments that say where, which must be known. Of any other
function without a meaning below, all must."""

_SYMBOLIC: dict[str, Callable[..., Any]] = {}


def _symbolic(function: Callable[..., Any]) -> Callable[..., Any]:
    _SYMBOLIC[function.__name__.strip("_")] = function
    return function


def _structure(*values: Any) -> None:
    for value in values:
        if is_open(value):
            raise NeedsValue(first_term(value))


@_symbolic
def _prod(reading: Symbolic, items: List) -> Any:
    result = items[0]
    for item in items[1:]:
        result = result * item
    return result


@_symbolic
def _total(reading: Symbolic, items: List) -> Any:
    return sum(items[1:], items[0]) if items else 0


@_symbolic
def _smallest(reading: Symbolic, items: List) -> Any:
    least = items[0]
    for item in items[1:]:
        least = _choose(reading, reading.compare("<=", least, item, False), least, item)
    return least


@_symbolic
def _at_least(reading: Symbolic, a: Any, b: Any) -> Any:
    return _choose(reading, reading.compare(">=", a, b, False), a, b)


def _choose(reading: Symbolic, condition: Any, a: Any, b: Any) -> Any:
    if isinstance(condition, bool):
        return a if condition else b
    return z3.If(condition, reading._term(a), reading._term(b))


@_symbolic
def _floor(reading: Symbolic, a: Any) -> Any:
    return a


@_symbolic
def _bits(reading: Symbolic, dtype: Any) -> Any:
    result: Any = z3.IntVal(0, reading.context)
    for name, known in DTYPES.items():
        if known.bits is not None:
            result = z3.If(dtype == reading.word(name), known.bits, result)
    return result


@_symbolic
def _window(
    reading: Symbolic, extent: Any, kernel: Any, stride: Any, pads: Any, dilation: Any, ceil: Any
) -> Any:
    _structure(ceil)
    begin, end = pads if isinstance(pads, tuple) else (0, pads)
    padded = extent + begin + end
    span = dilation * (kernel - 1) + 1
    reading.demand(reading.compare("<=", span, padded, False))
    if not ceil:
        return reading.binary("/", padded - span, stride) + 1
    count = reading.binary("/", padded - span + stride - 1, stride) + 1
    over = reading.compare(">=", (count - 1) * stride, extent + begin, False)
    return _choose(reading, over, count - 1, count)


@_symbolic
def _windows(
    reading: Symbolic,
    items: List,
    kernel: List,
    strides: List,
    pads: List,
    dilations: List,
    ceil: Any,
) -> List:
    count = len(kernel)
    reading.demand(len(items) == len(strides) == len(dilations) == count == len(pads) / 2)
    return tuple(
        reading.call(
            "window", [e, kernel[i], strides[i], (pads[i], pads[i + count]), dilations[i], ceil]
        )
        for i, e in enumerate(items)
    )


@_symbolic
def _unwindows(reading: Symbolic, items: List, kernel: List, strides: List, pads: List) -> List:
    count = len(items)
    reading.demand(len(kernel) == len(strides) == count == len(pads) / 2)
    covered = []
    for i, extent in enumerate(items):
        reach = (extent - 1) * strides[i] + kernel[i] - pads[i] - pads[i + count]
        reading.demand(reading.compare(">=", reach, 0, False))
        covered.append(reach)
    return tuple(covered)


@_symbolic
def _broadcast(reading: Symbolic, *shapes: List) -> List:
    count = max(map(len, shapes))
    padded = [(1,) * (count - len(shape)) + shape for shape in shapes]
    return tuple(_stretch(reading, column) for column in zip(*padded, strict=True))


def _stretch(reading: Symbolic, column: List) -> Any:
    result = column[0]
    for extent in column[1:]:
        if result is extent:
            continue
        one = reading.compare("==", result, 1, False)
        fits = reading.some(
            [
                one,
                reading.compare("==", extent, 1, False),
                reading.compare("==", result, extent, False),
            ]
        )
        reading.demand(fits)
        result = _choose(reading, one, extent, result)
    return result


@_symbolic
def _broadcast_all(reading: Symbolic, shapes: Sequence[List]) -> Any:
    return _broadcast(reading, *shapes)


@_symbolic
def _common(reading: Symbolic, shapes: Sequence[List]) -> List:
    for shape in shapes[1:]:
        reading.demand(reading.compare("==", shape, shapes[0], False))
    return shapes[0]


@_symbolic
def _concat_dims(reading: Symbolic, shapes: Sequence[List], axis: Any) -> List:
    _structure(axis)
    count = len(shapes[0])
    (at,) = _places(axis, count)
    reading.demand(all(len(shape) == count for shape in shapes))
    joined = _common(reading, [(*s[:at], 0, *s[at + 1 :]) for s in shapes])
    return (*joined[:at], _total(reading, tuple(s[at] for s in shapes)), *joined[at + 1 :])


@_symbolic
def _split_dims(reading: Symbolic, items: List, axis: Any, sizes: List) -> List:
    _structure(axis)
    (at,) = _places(axis, len(items))
    reading.demand(reading.compare("==", _total(reading, sizes), items[at], False))
    return tuple((*items[:at], size, *items[at + 1 :]) for size in sizes)


@_symbolic
def _slice_dims(
    reading: Symbolic, items: List, starts: List, ends: List, axes: List, strides: List
) -> List:
    _structure(axes)
    reading.demand(len(starts) == len(ends) == len(axes) == len(strides))
    reading.demand(len(set(_places(axes, len(items)))) == len(axes))
    result = list(items)
    for start, end, axis, step in zip(starts, ends, axes, strides, strict=True):
        reading.demand(reading.compare("!=", step, 0, False))
        result[axis] = _sliced(reading, items[axis], start, end, step)
    return tuple(result)


def _sliced(reading: Symbolic, extent: Any, start: Any, end: Any, step: Any) -> Any:
    """How many elements ``[start:end:step]`` takes, as ``slice_of`` says."""

    def counted(forward: bool) -> Any:
        high = extent if forward else extent - 1

        def clamped(bound: Any, low: int) -> Any:
            below = reading.compare("<", bound, 0, False)
            bound = _choose(reading, below, bound + extent, bound)
            bound = _choose(reading, reading.compare("<", bound, low, False), low, bound)
            return _choose(reading, reading.compare(">", bound, high, False), high, bound)

        if forward:
            length = clamped(end, 0) - clamped(start, 0)
        else:
            length = clamped(start, 0) - clamped(end, -1)
        pace = step if forward else -step
        safe = _choose(reading, reading.compare(">", pace, 0, False), pace, 1)
        count = reading.binary("/", length + safe - 1, safe)
        return _choose(reading, reading.compare(">", length, 0, False), count, 0)

    ahead = reading.compare(">", step, 0, False)
    if isinstance(ahead, bool):
        return counted(ahead)
    return _choose(reading, ahead, counted(True), counted(False))


def _padding(reading: Symbolic, items: List, pads: List, axes: Any) -> None:
    _structure(axes)
    reading.demand(len(set(_places(axes, len(items)))) == len(axes))
    reading.demand(len(pads) == 2 * len(axes))


@_symbolic
def _pad_dims(reading: Symbolic, items: List, pads: List, axes: List) -> List:
    _padding(reading, items, pads, axes)
    result = list(items)
    for i, axis in enumerate(axes):
        padded = items[axis] + pads[i] + pads[i + len(axes)]
        reading.demand(reading.compare(">=", padded, 0, False))
        result[axis] = padded
    return tuple(result)


@_symbolic
def _cropped(reading: Symbolic, items: List, pads: List, axes: List) -> List:
    _padding(reading, items, pads, axes)

    def cut(pad: Any) -> Any:
        return _choose(reading, reading.compare("<", pad, 0, False), pad, 0)

    return tuple(
        items[axis] + cut(pads[i]) + cut(pads[i + len(axes)]) for i, axis in enumerate(axes)
    )


@_symbolic
def _reflect_room(reading: Symbolic, items: List, pads: List, axes: List) -> List:
    # an end that is not padded is left out natively; here it has infinite room, which is the same
    # for `smallest`, the one thing that is asked of this list
    left = _cropped(reading, items, pads, axes)
    rooms = []
    for i, pad in enumerate(pads):
        there = reading.compare(">", pad, 0, False)
        if there is not False:
            rooms.append(_choose(reading, there, left[i % len(left)] - 1 - pad, _AMPLE))
    return tuple(rooms)


_AMPLE = 1 << 62


@_symbolic
def _room(reading: Symbolic, items: List, other: List, axis: Any) -> List:
    _structure(axis)
    reading.demand(len(items) == len(other))
    (at,) = _places(axis, len(items))
    return tuple(a - b for i, (a, b) in enumerate(zip(items, other, strict=True)) if i != at)


@_symbolic
def _reshape_dims(reading: Symbolic, items: List, shape: List, allowzero: Any) -> List:
    _structure(allowzero)
    copied: list[Any] = []
    for axis, extent in enumerate(shape):
        zero = False if allowzero else reading.compare("==", extent, 0, False)
        if axis >= len(items):
            reading.demand(reading.negation(zero))
            copied.append(extent)
        else:
            copied.append(_choose(reading, zero, items[axis], extent))
    open_ = [reading.compare("==", extent, -1, False) for extent in shape]
    for i, a in enumerate(open_):
        for b in open_[:i]:
            reading.demand(reading.negation(reading.every([a, b])))
    taken = [_choose(reading, o, 1, e) for o, e in zip(open_, copied, strict=True)]
    have, used = reading.call("prod", [items]), reading.call("prod", [tuple(taken)])
    any_open = reading.some(open_)
    reading.demand(reading.some([any_open, reading.compare("==", have, used, False)]))
    if any_open is False:
        return tuple(copied)
    some_used = reading.compare("!=", used, 0, False)
    reading.demand(reading.some([reading.negation(any_open), some_used]))
    safe = _choose(reading, some_used, used, 1)
    left = reading.binary("/", have, safe)
    whole = reading.compare("==", left * safe, have, False)
    reading.demand(reading.some([reading.negation(any_open), whole]))
    return tuple(_choose(reading, o, left, e) for o, e in zip(open_, copied, strict=True))


@_symbolic
def _tile_dims(reading: Symbolic, items: List, repeats: List) -> List:
    reading.demand(len(items) == len(repeats))
    return tuple(e * r for e, r in zip(items, repeats, strict=True))


@_symbolic
def _scale_dims(reading: Symbolic, items: List, scales: Sequence[float]) -> List:
    reading.demand(len(items) == len(scales))
    result = []
    for extent, scale in zip(items, scales, strict=True):
        if not math.isfinite(scale):
            raise Unread(str(scale))
        above, below = scale.as_integer_ratio()
        if below > _EXACT or abs(above) > _EXACT:
            _structure(extent)
        result.append(reading.binary("/", extent * above, below))
    return tuple(result)


@_symbolic
def _matmul_dims(reading: Symbolic, left: List, right: List) -> List:
    reading.demand(bool(left) and bool(right))
    inner = right[-2 if len(right) > 1 else -1]
    reading.demand(reading.compare("==", left[-1], inner, False))
    batch: List = left[:-2] if len(left) > 1 else right[:-2]
    if len(left) > 1 and len(right) > 1:
        batch = reading.call("broadcast", [left[:-2], right[:-2]])
    return (*batch, *left[-2:-1], *(right[-1:] if len(right) > 1 else ()))


@_symbolic
def _gather_nd_dims(reading: Symbolic, items: List, indices: List, batch: Any) -> List:
    _structure(batch)
    reading.demand(bool(indices) and batch < min(len(items), len(indices)))
    _structure(indices[-1])
    for axis in range(batch):
        reading.demand(reading.compare("==", items[axis], indices[axis], False))
    depth = indices[-1]
    reading.demand(1 <= depth <= len(items) - batch)
    return (*indices[:-1], *items[batch + depth :])


@_symbolic
def _einsum_dims(reading: Symbolic, shapes: Sequence[List], equation: Any) -> List:
    _structure(equation)
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    reading.demand(len(terms) == len(shapes))
    extents: dict[str, Any] = {}
    ellipsis: List = ()
    for term, shape in zip(terms, shapes, strict=True):
        before, dots, after = term.partition("...")
        named = len(before + after)
        reading.demand(len(shape) >= named if dots else len(shape) == len(before))
        tail = len(shape) - len(after)
        pairs = [*zip(before, shape, strict=False), *zip(after, shape[tail:], strict=True)]
        for letter, extent in pairs:
            bound = extents.setdefault(letter, extent)
            reading.demand(reading.compare("==", bound, extent, False))
        ellipsis = reading.call("broadcast", [ellipsis, shape[len(before) : tail]])
    if not arrow:
        counted = Counter(left.replace(",", "").replace("...", ""))
        right = ("..." if "..." in left else "") + "".join(
            sorted(letter for letter, count in counted.items() if count == 1)
        )
    before, dots, after = right.partition("...")
    reading.demand(all(letter in extents for letter in before + after))
    middle = ellipsis if dots else ()
    return (*(extents[i] for i in before), *middle, *(extents[i] for i in after))


def _places(axes: Any, count: int) -> tuple[int, ...]:
    listed = axes if isinstance(axes, tuple) else (axes,)
    for axis in listed:
        if not -count <= axis < count:
            raise ShapeError(f"axis {axis} of a tensor of rank {count}")
    return tuple(axis % count for axis in listed)
