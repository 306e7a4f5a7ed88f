"""Look for applications that ONNX accepts, knowing element types, attributes and counts only.

Two stages. *Scan*: every combination of ranks of the required operands, a few times with small
extents, since with extents of 1 to 3 two that must be equal often are. *Walk*: change what was
accepted in one to three ways (an extent wherever it occurs, one extent alone, an attribute, an
optional operand, a rank) and keep what is accepted still. A walk from one accepted application
soon shows which extents are free: a value that changes alone is free, one that only ever changes
together with another is tied to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import Any

from reprise.mining.signatures.examples import Example, as_trial
from reprise.mining.signatures.reading import PROBED, Raw, RawAttribute
from reprise.mining.signatures.trial import Oracle, Trial
from reprise.uir.graph import Attribute

RANKS = range(6)
_SMALL = (1, 1, 1, 2, 2, 3)
_EXTENTS = (1, 2, 3, 4, 5, 6, 7)
_INTEGERS = (0, 1, 2, 3, 4, -1, -2, 5, 6, 8)
_FLOATS = (1.0, 0.5, 2.0, 0.0, -1.0)


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to look: trials of a scan, combinations of ranks at most, trials of a second look
    at the ranks that inference accepts, steps of the walk, and how many accepted applications are
    enough."""

    trials: int = 5000
    combinations: int = 700
    second: int = 24000
    steps: int = 6000
    enough: int = 500


@dataclass(slots=True)
class Found:
    """What the search has come to: accepted applications, in the order in which they were found,
    and for each attribute the values that were refused in applications otherwise accepted.
    ``tied``: it began with examples, whose extents are tied to each other in ways that small ones
    are not."""

    accepted: list[Trial] = field(default_factory=list)
    refused: dict[str, set[Attribute]] = field(default_factory=dict)
    stored: tuple[str, ...] = ()
    tied: bool = False


@dataclass(frozen=True, slots=True)
class Starts:
    """Examples to walk from instead of scanning. ``plain``: without the optional attributes that
    are lists, and never giving any: windows with strides and pads have extents that no one
    equation describes."""

    examples: Sequence[Example]
    plain: bool = False


def search(
    raw: Raw, oracle: Oracle, rng: Random, effort: Effort, starts: Starts | None = None
) -> Found:
    """Accepted applications of one operator; none if ONNX accepted nothing that was tried."""
    made = _Search(raw, oracle, rng, effort, plain=starts is not None and starts.plain)
    return made.run() if starts is None else made.run_from(starts.examples)


class _Search:
    def __init__(
        self, raw: Raw, oracle: Oracle, rng: Random, effort: Effort, *, plain: bool = False
    ) -> None:
        self.raw = raw
        self.oracle = oracle
        self.rng = rng
        self.effort = effort
        self.found = Found()
        self.stored: tuple[int, ...] = ()
        self.attributes = [
            a for a in raw.attributes if a.required or not (plain and a.type in ("ints", "floats"))
        ]

    def run_from(self, examples: Sequence[Example]) -> Found:
        """Walk from the examples that are accepted; operands that hold integers are stored only
        if none is accepted otherwise."""
        self.found.tied = True
        raw, allowed = self.raw, {a.name for a in self.attributes}
        integers = [i for i in range(len(raw.operands)) if self._may_be_stored(i)]
        for stored in _subsets(integers):
            self.stored = stored
            names = {raw.operands[i].name for i in stored}
            for case in examples:
                trial = as_trial(raw, case, names)
                for attribute in raw.attributes:
                    if attribute.name not in allowed:
                        trial = trial.with_attribute(attribute.name, None)
                self._try(trial)
            if self.found.accepted:
                break
        return self._finished()

    def run(self) -> Found:
        required = [i for i, o in enumerate(self.raw.operands) if not o.optional]
        integers = [i for i in required if self._may_be_stored(i)]
        for stored in _subsets(integers):
            self.stored = stored
            free = [i for i in required if i not in stored]
            self._scan(free, self._combinations(free))
            if self.found.accepted:
                break
        else:
            if self.effort.second:
                self._look_again(required, integers)
        return self._finished()

    def _finished(self) -> Found:
        self.found.stored = tuple(self.raw.operands[i].name for i in self.stored)
        if self.found.accepted:
            self._walk()
        return self.found

    def _may_be_stored(self, operand: int) -> bool:
        choices = self.raw.dtype_choices(self.raw.operands[operand])
        return choices[0] in ("int64", "int32")

    # --- scanning --------------------------------------------------------------------------------

    def _combinations(self, operands: Sequence[int]) -> list[tuple[int, ...]]:
        combinations = list(product(RANKS, repeat=len(operands)))
        if len(combinations) > self.effort.combinations:
            return self.rng.sample(combinations, self.effort.combinations)
        return combinations

    def _look_again(self, required: Sequence[int], integers: Sequence[int]) -> None:
        """Where the reference refused everything: longer, at the ranks that inference accepts."""
        for stored in _subsets(integers):
            self.stored = stored
            free = [i for i in required if i not in stored]
            taken = sorted(
                {
                    tuple(r for i in free if (r := ranks[i]) is not None)
                    for ranks in self.oracle.inferred
                    if all((ranks[i] is None) == (i in stored) for i in required)
                }
            )
            if taken:
                self._scan(free, taken, self.effort.second // 2)
            if not self.found.accepted:
                combinations = taken or self._combinations(free)
                self._scan(free, combinations, self.effort.second, optional=True)
            if self.found.accepted:
                return

    def _scan(
        self,
        operands: Sequence[int],
        combinations: Sequence[tuple[int, ...]],
        trials: int = 0,
        *,
        optional: bool = False,
    ) -> None:
        """Try combinations of ranks; with what is ``optional`` too, now and then."""
        rng = self.rng
        attempts = max(24, (trials or self.effort.trials) // max(1, len(combinations)))
        for ranks in combinations:
            hits = 0
            for attempt in range(attempts):
                pool = self._pool(attempt)
                shapes: list[tuple[int, ...] | None] = [None] * len(self.raw.operands)
                for i, rank in zip(operands, ranks, strict=True):
                    shapes[i] = tuple(rng.choice(pool) for _ in range(rank))
                trial = Trial(tuple(shapes), self._dtypes(), self._attributes())
                if optional:
                    trial = self._with_optional(trial)
                hits += self._try(trial)
                if hits >= 4:
                    break

    def _pool(self, attempt: int) -> Sequence[int]:
        """What the extents of one trial are drawn from: one number, two, or several. With two,
        any pair of extents is equal half of the time."""
        if attempt < 2 or attempt % 8 == 0:
            return (1 + attempt % 16 // 8,) if attempt >= 2 else (attempt + 1,)
        return _SMALL if attempt % 2 else self.rng.sample((1, 2, 3, 4), 2)

    def _dtypes(self) -> tuple[tuple[str, str], ...]:
        chosen = {}
        for name, choices in self.raw.dtypes.items():
            usual = [c for c in choices if c in PROBED]
            if usual and not any(a.type == "dtype" for a in self.raw.attributes if a.name == name):
                chosen[name] = usual[0]
        return tuple(sorted(chosen.items()))

    def _attributes(self) -> tuple[tuple[str, Attribute], ...]:
        """The attributes that must be there, and the operands that are stored."""
        chosen: dict[str, Attribute] = {}
        for attribute in self.attributes:
            if attribute.required:
                value = self._value(attribute, (1, 1, 1, 2, 2, 2))
                if value is not None:
                    chosen[attribute.name] = value
        for i in self.stored:
            chosen[self.raw.operands[i].name] = self._stored_value(())
        return tuple(sorted(chosen.items()))

    def _with_optional(self, trial: Trial) -> Trial:
        """Some of the optional operands and attributes besides."""
        rng = self.rng
        for _ in self.raw.operands:
            if rng.random() < 0.6:
                trial = self._optional(trial)
        for attribute in self.attributes:
            if not attribute.required and rng.random() < 0.4:
                value = self._value(attribute, self._numbers(trial))
                trial = trial.with_attribute(attribute.name, value)
        return trial

    def _stored_value(self, near: Sequence[int]) -> Attribute:
        rng = self.rng
        pool = [*_EXTENTS, *near, *near]
        if rng.random() < 0.3:
            return rng.choice(pool)
        return tuple(rng.choice(pool) for _ in range(rng.choice((1, 2, 2, 3, 4, 5))))

    def _value(self, attribute: RawAttribute, near: Sequence[int]) -> Attribute | None:
        """A value of the attribute's type; ``near``: numbers that occur in the application."""
        rng = self.rng
        match attribute.type:
            case "int":
                return rng.choice([*_INTEGERS[:6], *_INTEGERS, *near])
            case "float":
                return rng.choice(_FLOATS)
            case "sym" | "dtype":
                likely = attribute.sure if rng.random() < 0.7 else attribute.choices
                choices = likely or attribute.choices
                return rng.choice(choices) if choices else None
            case "ints":
                length = rng.choice([1, 1, 2, 2, 3, 4, *near[:2]])
                if rng.random() < 0.5:
                    return (rng.choice(_INTEGERS[:6]),) * length
                return tuple(rng.choice([*_INTEGERS[:6], *near]) for _ in range(length))
            case "floats":
                length = rng.choice([1, 1, 2, 2, 3, 4, 6, *near, *near])
                return tuple(rng.choice(_FLOATS) for _ in range(length))
            case _:
                return None

    # --- walking ---------------------------------------------------------------------------------

    def _walk(self) -> None:
        rng, accepted = self.rng, self.found.accepted
        for _ in range(self.effort.steps):
            if len(accepted) >= self.effort.enough:
                return
            recent = rng.random() < 0.5
            base = (
                accepted[-1 - int(rng.random() * min(40, len(accepted)))]
                if recent
                else (rng.choice(accepted))
            )
            trial, touched = base, None
            for _ in range(rng.choice((1, 1, 2, 2, 3))):
                trial, name = self._changed(trial)
                touched = name if touched is None else touched
            if trial == base:
                continue
            if not self._try(trial) and touched is not None:
                value = trial.attribute(touched)
                alone = value is not None and base.with_attribute(touched, value) == trial
                if alone:
                    assert value is not None
                    self.found.refused.setdefault(touched, set()).add(value)

    def _changed(self, trial: Trial) -> tuple[Trial, str | None]:
        """One change, and the attribute that it is about, if it is."""
        rng = self.rng
        if self.found.tied and rng.random() < 0.3:
            return self._extents_together(trial), None
        dice = rng.random()
        if dice < 0.35:
            return self._extent_everywhere(trial), None
        if dice < 0.5:
            return self._one_extent(trial), None
        if dice < 0.58:
            return self._rank(trial), None
        if dice < 0.68:
            return self._optional(trial), None
        return self._attribute(trial)

    def _numbers(self, trial: Trial) -> list[int]:
        numbers = [extent for shape in trial.shapes if shape is not None for extent in shape]
        for _, value in trial.attributes:
            items = value if isinstance(value, tuple) else (value,)
            numbers += [v for v in items if isinstance(v, int) and not isinstance(v, bool)]
        return numbers

    def _extent_everywhere(self, trial: Trial) -> Trial:
        """Change a number in all the places, or in some of the places, where it stands."""
        rng = self.rng
        numbers = self._numbers(trial)
        if not numbers:
            return trial
        old, new = rng.choice(numbers), rng.choice(_EXTENTS)
        share = 1.0 if rng.random() < 0.4 else 0.5

        def swap(value: Any) -> Any:
            if isinstance(value, tuple):
                return tuple(map(swap, value))
            if isinstance(value, bool) or value != old or not isinstance(value, int):
                return value
            return new if rng.random() < share else value

        return Trial(
            tuple(None if s is None else swap(s) for s in trial.shapes),
            trial.dtypes,
            tuple((name, swap(value)) for name, value in trial.attributes),
        )

    def _extents_together(self, trial: Trial) -> Trial:
        """Two or three extents larger or smaller by the same, or twice as large: of examples the
        extents are far apart, and tied to each other by sums and products."""
        rng = self.rng
        places = [(i, j) for i, s in enumerate(trial.shapes) if s for j in range(len(s))]
        step, twice = rng.choice((-1, 1, 1, 2)), rng.random() < 0.3
        for i, j in rng.sample(places, min(len(places), rng.choice((2, 2, 3)))):
            shape = list(trial.shapes[i] or ())
            shape[j] = 2 * shape[j] if twice else max(1, shape[j] + step)
            trial = trial.with_shape(i, tuple(shape))
        return trial

    def _one_extent(self, trial: Trial) -> Trial:
        rng = self.rng
        places = [(i, j) for i, s in enumerate(trial.shapes) if s for j in range(len(s))]
        if not places:
            return trial
        i, j = rng.choice(places)
        shape = list(trial.shapes[i] or ())
        shape[j] = rng.choice(_EXTENTS)
        return trial.with_shape(i, tuple(shape))

    def _rank(self, trial: Trial) -> Trial:
        """One axis more or less, at the same place from the left or the right, in one operand or
        in all; lists as long as the rank follow now and then."""
        rng = self.rng
        more, right, place = rng.random() < 0.6, rng.random() < 0.5, rng.randrange(3)
        every = rng.random() < 0.6
        extent: int | float = rng.choice(_SMALL)
        present = [i for i, shape in enumerate(trial.shapes) if shape is not None]
        if not present:
            return trial
        changed = trial
        for i in present if every else [rng.choice(present)]:
            shape = list(trial.shapes[i] or ())
            at = max(0, len(shape) - place - (not more)) if right else min(place, len(shape))
            if more and len(shape) < max(RANKS):
                shape.insert(at, int(extent))
            elif not more and at < len(shape):
                del shape[at]
            changed = changed.with_shape(i, tuple(shape))
        for name, value in trial.attributes:
            if isinstance(value, tuple) and value and rng.random() < 0.5:
                if isinstance(value[0], float):
                    extent = 1.0
                longer = (*value, extent) if more else value[:-1]
                changed = changed.with_attribute(name, longer or None)
        return changed

    def _optional(self, trial: Trial) -> Trial:
        """Add an optional operand, with extents that occur already, or take one away."""
        rng = self.rng
        optional = [i for i, o in enumerate(self.raw.operands) if o.optional]
        if not optional:
            return trial
        i = rng.choice(optional)
        operand = self.raw.operands[i]
        if trial.shapes[i] is not None:
            return trial.with_shape(i, None)
        numbers = [n for n in self._numbers(trial) if n > 0] or [1]
        if trial.attribute(operand.name) is not None:
            return trial.with_attribute(operand.name, None)
        if self._may_be_stored(i):
            value = self._stored_value(numbers)
            if rng.random() < 0.5:
                value = rng.choice((0, 1, 2, -1, -2, *numbers))
            return trial.with_attribute(operand.name, value)
        like = rng.choice([s for s in trial.shapes if s is not None] or [()])
        if rng.random() < 0.4:
            return trial.with_shape(i, like)
        if rng.random() < 0.4 and like:
            at = rng.randrange(len(like))
            return trial.with_shape(i, (*like[:at], *like[at + 1 :]))
        rank = rng.choice((1, 1, 0, 2, 3, 4))
        return trial.with_shape(i, tuple(rng.choice(numbers) for _ in range(rank)))

    def _attribute(self, trial: Trial) -> tuple[Trial, str | None]:
        rng = self.rng
        near = [n for n in self._numbers(trial) if 0 <= n <= 12]
        stored = [o.name for o in self.raw.operands if trial.attribute(o.name) is not None]
        names: list[RawAttribute | str] = [*self.attributes, *stored]
        if not names:
            return trial, None
        chosen = rng.choice(names)
        if isinstance(chosen, str):
            value = trial.attribute(chosen)
            if isinstance(value, tuple) and rng.random() < 0.7 and value:
                at = rng.randrange(len(value))
                item = rng.choice(_EXTENTS)
                return trial.with_attribute(chosen, (*value[:at], item, *value[at + 1 :])), chosen
            if isinstance(value, int) and rng.random() < 0.8:
                return trial.with_attribute(chosen, rng.choice((*_INTEGERS, *_EXTENTS))), chosen
            return trial.with_attribute(chosen, self._stored_value(near)), chosen
        if not chosen.required and trial.attribute(chosen.name) is not None and rng.random() < 0.3:
            return trial.with_attribute(chosen.name, None), None
        value = self._value(chosen, near)
        if value is None:
            return trial, None
        return trial.with_attribute(chosen.name, value), chosen.name

    def _try(self, trial: Trial) -> bool:
        if self.oracle.results(trial) is None:
            return False
        if trial not in self.found.accepted[-200:]:
            self.found.accepted.append(trial)
        return True


def _subsets(items: Sequence[int]) -> list[tuple[int, ...]]:
    """The subsets, small ones first."""
    made = [
        tuple(i for bit, i in enumerate(items) if mask >> bit & 1)
        for mask in range(1 << len(items))
    ]
    return sorted(made, key=lambda subset: (len(subset), subset))
