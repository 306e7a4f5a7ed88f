"""Changed sources in, a changed program out: everything that depends on them is derived again.

One mechanism for extents, ranks, element types and attributes. Steps are visited in the order of
data flow. One whose operands have changed keeps its attributes if its signature accepts them;
otherwise they are adapted (what was an extent of an operand becomes the new one, axes that are gone
go, a list that had the operand's elements or extent as product or sum has it again). Operands that
are sources which nothing has asked for yet may change too. What is left is drawn from the
signature. No proposal is taken that the signature refuses; whether the program still shows
anything is not asked here.

(Solving for attributes that leave the results as they were, with z3 behind, makes 2 of 323 more
changes of extents possible, for five times the time: measured, and left out.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, combinations, islice
from random import Random
from typing import Any

import numpy as np

from reprise.distill.flow import Flow, Source, Step
from reprise.distill.spelled import plain, plain_given
from reprise.solve.plan import Normalise
from reprise.solve.sampling import Sampler
from reprise.solve.signatures import Signature, Signatures
from reprise.uir.graph import Array, Attribute, TensorType
from reprise.uir.inference import SignatureError, Typing
from reprise.uir.text import MAX_ELEMENTS
from reprise.uir.types import numpy_dtype

Attributes = Mapping[str, Attribute]
Operands = Sequence[TensorType | None]

_TRIES = 30
"""Proposals for one draw from a signature."""
_DRAWS = 4
_SETS = 24
"""Sets of operands that are drawn anew."""


class Corner(Enum):
    """Which elements of an array stay when it shrinks: those around the first, the last, or the
    largest by size (which NaN is)."""

    FIRST = "first"
    LAST = "last"
    LARGEST = "largest"

    def element(self, value: Array) -> tuple[int, ...]:
        """The place of the element that stays, whatever goes."""
        if not value.size:
            return (0,) * value.ndim
        match self:
            case Corner.FIRST:
                return (0,) * value.ndim
            case Corner.LAST:
                return tuple(extent - 1 for extent in value.shape)
            case _ if value.dtype.kind in "OUS":
                return (0,) * value.ndim
        with np.errstate(all="ignore"):
            size = np.abs(value if value.dtype.kind == "c" else value.astype(np.float64))
        place = np.unravel_index(int(np.argmax(size)), value.shape)
        return tuple(int(index) for index in place)


@dataclass(frozen=True)
class Change:
    """How an operand's type changed. ``removed``: the axes that are gone."""

    old: TensorType
    new: TensorType
    removed: tuple[int, ...]

    @classmethod
    def of(cls, old: TensorType, new: TensorType) -> Change:
        return cls(old, new, _removed(_shape(old), _shape(new)))

    @property
    def extents(self) -> dict[int, int]:
        """Old extents to new ones, axis by axis; the first axis counts."""
        kept = [e for axis, e in enumerate(_shape(self.old)) if axis not in self.removed]
        found: dict[int, int] = {}
        if len(kept) == len(_shape(self.new)):
            for before, after in zip(kept, _shape(self.new), strict=True):
                if before != after:
                    found.setdefault(before, after)
        return found


class Rederiver:
    """Derives programs again, by ``signatures``. Same question, same answer."""

    def __init__(self, signatures: Signatures) -> None:
        self.signatures = signatures
        self._samplers: dict[str, Sampler] = {}

    def __call__(
        self,
        flow: Flow,
        types: Mapping[str, TensorType],
        *,
        sources: Iterable[Source] = (),
        steps: Mapping[int, Step] | None = None,
        aliases: Mapping[str, str] | None = None,
        corner: Corner = Corner.FIRST,
    ) -> Flow | None:
        """``flow``, whose tensors had ``types``, with other sources and steps put in place of
        those of the same name or number, and all that depends on them adapted. ``aliases``:
        results that are replaced by an older tensor each. ``corner``: which elements of arrays
        that shrink stay. None if that cannot be done."""
        work = _Work(self, flow, types, {s.name: s for s in sources}, aliases or {}, corner)
        return work.run(steps or {})

    def sampler(self, op: str) -> Sampler:
        """What draws applications of ``op``."""
        if op not in self._samplers:
            self._samplers[op] = Sampler(self.signatures[op])
        return self._samplers[op]


@dataclass
class _Work:
    """One derivation. ``fixed``: sources that were asked for, or that a step has been checked
    with."""

    made_by: Rederiver
    flow: Flow
    old: Mapping[str, TensorType]
    changed: dict[str, Source]
    aliases: Mapping[str, str]
    corner: Corner

    def run(self, edited: Mapping[int, Step]) -> Flow | None:
        flow = self.flow
        self.sources = {s.name: self.changed.get(s.name, s) for s in flow.sources}
        self.fixed = set(self.changed)
        self.new = {n: TensorType(s.dtype, s.shape) for n, s in self.sources.items()}
        steps: list[Step] = []
        for number, step in enumerate(flow.steps):
            if step.makes and all(self._is_alias(name) for name in step.makes):
                self.new.update(
                    (n, self.new[self.aliases[n]]) for n in step.makes if n in self.aliases
                )
                continue
            step = edited.get(number, step)
            if any(name is not None and name not in self.new for name in step.inputs):
                return None
            touched = number in edited or any(self._differs(name) for name in step.inputs)
            done = self._step(step, number in edited) if touched else step
            if done is None:
                return None
            if not touched:
                self.new.update((name, self.old[name]) for name in step.makes)
            self.fixed.update(name for name in step.inputs if name is not None)
            steps.append(done)
        made = Flow(tuple(self.sources[s.name] for s in flow.sources), tuple(steps), flow.outputs)
        return self._without_aliases(made)

    def _is_alias(self, name: str) -> bool:
        return name in self.aliases or (bool(self.aliases) and name not in self.flow.read)

    def _without_aliases(self, flow: Flow) -> Flow | None:
        lost = {name for name in flow.outputs if name not in flow.producers}
        flow = replace(
            flow, outputs=tuple(n for n in flow.outputs if n not in lost - {*self.aliases})
        )
        for name, instead in self.aliases.items():
            renamed = flow.renamed(name, instead)
            if renamed is None:
                return None
            flow = renamed
        return flow.tidied() if flow.outputs else None

    def _differs(self, name: str | None) -> bool:
        return name is not None and self.new[name] != self.old.get(name)

    def _step(self, step: Step, edited: bool) -> Step | None:
        signature = self.made_by.signatures[step.op]
        attributes = plain(signature, step.attributes)
        for operands, proposal in self._proposals(step, signature, attributes):
            typing = _typing(signature, operands, proposal, len(step.outputs))
            if typing is None:
                continue
            for name, type in zip(step.inputs, operands, strict=False):
                if name is not None and type is not None and self.new[name] != type:
                    self._reshape(name, type)
            for name, type in zip(step.outputs, typing.outputs, strict=False):
                if name is not None:
                    self.new[name] = type
            given = plain_given(signature, step.given)
            given |= {n for n in proposal if n not in step.attributes}
            return replace(step, attributes=dict(typing.attributes), given=given)
        return None

    def _proposals(
        self, step: Step, signature: Signature, attributes: Attributes
    ) -> Iterator[tuple[Operands, Attributes]]:
        """Operand types and attributes that may fit, the closest to what was there first."""
        operands = [None if name is None else self.new[name] for name in step.inputs]
        changes = [
            Change.of(self.old[name], self.new[name])
            for name in step.inputs
            if name is not None and name in self.old and self._differs(name)
        ]
        seen: list[Attributes] = []
        free = self._free(step)
        for proposal in adapted(signature, attributes, step.given, changes):
            if proposal not in seen:
                seen.append(proposal)
                yield operands, proposal
        for follow in self._following(step, operands, free, changes):
            for proposal in seen:
                yield follow, proposal
        yield from self._drawn(step, operands, free, attributes)

    def _free(self, step: Step) -> list[int]:
        """The operands that may change: sources, each read once here, that nothing has asked for
        yet."""
        return [
            position
            for position, name in enumerate(step.inputs)
            if name in self.sources
            and name not in self.fixed
            and step.inputs.count(name) == 1
        ]  # fmt: skip

    def _following(
        self, step: Step, operands: Operands, free: Sequence[int], changes: Sequence[Change]
    ) -> Iterator[Operands]:
        """Free operands that change as the others did."""
        if not free or not changes:
            return
        extents = {old: new for change in changes for old, new in change.extents.items()}
        dtypes = {
            change.old.dtype: change.new.dtype
            for change in changes
            if change.old.dtype != change.new.dtype
        }
        for cut_axes in (False, True):
            followed = list(operands)
            for position in free:
                type = operands[position]
                assert type is not None
                shape = _shape(type)
                if cut_axes:
                    shape = _cut_alike(shape, changes)
                shape = tuple(extents.get(e, e) for e in shape)
                followed[position] = TensorType(dtypes.get(type.dtype, type.dtype), shape)
            yield followed

    def _drawn(
        self, step: Step, operands: Operands, free: Sequence[int], attributes: Attributes
    ) -> Iterator[tuple[Operands, Attributes]]:
        """Applications drawn from the signature: with as few free operands open as will do, then
        with the attributes open too. Of several draws, the one with the fewest elements."""
        sampler = self.made_by.sampler(step.op)
        rng = Random(f"{step.op} {[str(t) for t in operands]} {attributes}")
        sets = chain.from_iterable(combinations(free, n) for n in range(len(free) + 1))
        for given in (attributes, {}):
            for opened in islice(sets, _SETS) if given else [tuple(free)]:
                if given and not opened:
                    continue
                bound = {i: t for i, t in enumerate(operands) if t is not None and i not in opened}
                found = []
                for _ in range(_DRAWS):
                    drawn = sampler.typed(rng, bound, tries=_TRIES, given=given)
                    if drawn is None:
                        break
                    made = drawn[0].operands[: len(operands)]
                    if len(made) == len(operands) and all(
                        new == old or (i in opened and new is not None)
                        for i, (new, old) in enumerate(zip(made, operands, strict=True))
                    ):
                        found.append((made, drawn[0].attributes))
                if found:
                    yield min(found, key=lambda one: sum(t.elements or 0 for t in one[0] if t))

    def _reshape(self, name: str, type: TensorType) -> None:
        source = self.sources[name]
        assert type.dtype is not None
        self.sources[name] = Source(
            name, type.dtype, fitted(source, type, corner=self.corner), source.stored
        )
        self.new[name] = type


def _typing(
    signature: Signature, operands: Operands, attributes: Attributes, results: int
) -> Typing | None:
    try:
        typing = signature.check(operands, attributes)
    except SignatureError:
        return None
    if len(typing.outputs) < results:
        return None
    for type in typing.outputs:
        if type.elements is None or type.dtype is None or type.elements > MAX_ELEMENTS:
            return None
    return typing


# --- attributes -----------------------------------------------------------------------------------


def adapted(
    signature: Signature,
    attributes: Attributes,
    given: frozenset[str],
    changes: Sequence[Change],
) -> Iterator[Attributes]:
    """Attributes as they are, without those that are mere defaults, and adapted to the changes."""
    yield attributes
    required = {a.name for a in signature.plan.attributes if a.required}
    kept = {n: v for n, v in attributes.items() if n in given or n in required}
    yield kept
    if not changes:
        return
    axes = _axis_attributes(signature)
    for base in (kept, dict(attributes)):
        for how in (_mapped, _refilled, _summed, _clamped):
            changed = {
                name: _without_axes(value, changes) if name in axes else how(value, changes)
                for name, value in base.items()
            }
            yield {name: value for name, value in changed.items() if value is not None}


def _axis_attributes(signature: Signature) -> frozenset[str]:
    """The attributes that name axes."""
    variables = {s.variable for s in signature.plan.steps if isinstance(s, Normalise)}
    return frozenset(a.name for a in signature.plan.attributes if a.variable in variables)


def _without_axes(value: Attribute, changes: Sequence[Change]) -> Attribute | None:
    """Axes after some are gone; None for a single axis that is gone."""
    removed = max((c.removed for c in changes), key=len)

    def moved(axis: int) -> int:
        return axis - sum(1 for gone in removed if gone < axis)

    if isinstance(value, tuple):
        return tuple(moved(a) for a in value if isinstance(a, int) and a not in removed)
    if isinstance(value, int) and not isinstance(value, bool):
        return None if value in removed else moved(value)
    return value


def _mapped(value: Attribute, changes: Sequence[Change]) -> Attribute:
    """Old extents replaced by new ones, old element types too, and entries of axes that are gone
    taken out."""
    extents = {old: new for change in changes for old, new in change.extents.items()}
    dtypes = {c.old.dtype: c.new.dtype for c in changes if c.old.dtype != c.new.dtype}
    if isinstance(value, str):
        return dtypes.get(value) or value
    if isinstance(value, tuple):
        for change in changes:
            rank = len(_shape(change.old))
            if change.removed and len(value) in (rank, 2 * rank):
                value = tuple(v for i, v in enumerate(value) if i % rank not in change.removed)
        return tuple(
            extents.get(v, v) if isinstance(v, int) and not isinstance(v, bool) else v
            for v in value
        )
    if isinstance(value, int) and not isinstance(value, bool):
        return extents.get(value, value)
    return value


def _refilled(value: Attribute, changes: Sequence[Change]) -> Attribute:
    """A list whose product was the operand's number of elements: has the new one, by changing the
    entry where that takes least."""
    numbers = _ints(value)
    first = changes[0]
    if numbers is None or math.prod(numbers) != first.old.elements:
        return _mapped(value, changes)
    total = first.new.elements or 0
    mapped = _ints(_mapped(value, changes)) or numbers
    for start in (mapped, numbers):
        for position in range(len(start)):
            rest = math.prod(v for i, v in enumerate(start) if i != position)
            if rest and total % rest == 0:
                return (*start[:position], total // rest, *start[position + 1 :])
    return (total, *([1] * (len(numbers) - 1)))


def _summed(value: Attribute, changes: Sequence[Change]) -> Attribute:
    """A list whose sum was an extent: has the new one as its sum."""
    numbers = _ints(value)
    for old, new in (pair for change in changes for pair in change.extents.items()):
        if numbers and sum(numbers) == old:
            share = [new * number // old for number in numbers] if old else list(numbers)
            share[0] += new - sum(share)
            return tuple(share)
    return _mapped(value, changes)


def _clamped(value: Attribute, changes: Sequence[Change]) -> Attribute:
    """Numbers no greater than the smallest new extent."""
    most = min((min(_shape(c.new), default=1) for c in changes), default=1)
    if isinstance(value, tuple):
        return tuple(
            min(v, most) if isinstance(v, int) and not isinstance(v, bool) else v for v in value
        )
    if isinstance(value, int) and not isinstance(value, bool):
        return min(value, most)
    return value


def _ints(value: Attribute | None) -> tuple[int, ...] | None:
    """A non-empty list of integers, or None."""
    if not isinstance(value, tuple) or not value:
        return None
    numbers = tuple(v for v in value if isinstance(v, int) and not isinstance(v, bool))
    return numbers if len(numbers) == len(value) else None


# --- shapes and values ----------------------------------------------------------------------------


def _shape(type: TensorType) -> tuple[int, ...]:
    return tuple(e for e in type.shape or () if isinstance(e, int))


def _removed(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    """The axes that ``old`` has and ``new`` has not: the leftmost that leave the rest alike, else
    the first."""
    surplus = len(old) - len(new)
    if surplus <= 0:
        return ()
    gone: list[int] = []
    position = 0
    for axis, extent in enumerate(old):
        left = len(old) - axis
        if position < len(new) and (extent == new[position] or left == len(new) - position):
            position += 1
        elif len(gone) < surplus:
            gone.append(axis)
        else:
            position += 1
    return tuple(gone)


def _cut_alike(shape: tuple[int, ...], changes: Sequence[Change]) -> tuple[int, ...]:
    """A shape without the axes that another operand lost, counted from the end as broadcasting
    does."""
    for change in changes:
        rank = len(_shape(change.old))
        gone = {axis - rank for axis in change.removed}
        shape = tuple(e for i, e in enumerate(shape) if i - len(shape) not in gone)
    return shape


def fitted(source: Source, type: TensorType, *, corner: Corner = Corner.FIRST) -> Array:
    """A source's values for another type: a corner of them, repeated where there are too few, and
    cast."""
    value: Any = source.value
    shape = _shape(type)
    kept = corner.element(value)
    removed = _removed(value.shape, shape)
    for axis in sorted(removed, reverse=True):
        if value.shape[axis]:
            value = value.take(kept[axis], axis=axis)
        else:
            value = np.zeros(value.shape[:axis] + value.shape[axis + 1 :], value.dtype)
    kept = tuple(k for axis, k in enumerate(kept) if axis not in removed)
    kept = (*([0] * (len(shape) - value.ndim)), *kept)
    while value.ndim < len(shape):
        value = value[np.newaxis]
    for axis, extent in enumerate(shape):
        have = value.shape[axis]
        if have == 0 and extent:
            value = np.zeros(shape, value.dtype)
            break
        if extent != have:
            start = min(kept[axis], max(have - extent, 0))
            value = value.take((np.arange(extent) + start) % max(have, 1), axis=axis)
    wanted = numpy_dtype(type.dtype or "")
    return value if value.dtype == wanted else cast(value, wanted)


def cast(value: Array, dtype: np.dtype[np.generic]) -> Array:
    """Values of another type; what an integer cannot hold becomes 0."""
    if dtype.kind in "iu" and value.dtype.kind not in "iub":
        if value.dtype.kind in "OUS":
            return np.zeros(value.shape, dtype)
        with np.errstate(all="ignore"):
            wide = np.nan_to_num(value.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
            size = min(8 * dtype.itemsize, 53)
            low, high = (
                (0, 2**size - 1) if dtype.kind == "u" else (-(2 ** (size - 1)), 2 ** (size - 1) - 1)
            )
            return np.clip(np.trunc(wide), low, high).astype(dtype)
    if dtype.kind == "O":
        return np.full(value.shape, "a", dtype=object)
    if value.dtype.kind in "OUS":
        return np.zeros(value.shape, dtype)
    with np.errstate(all="ignore"):
        return value.astype(dtype)
