"""Leaves out of a rule about one kernel what does not matter to the defect.

The first draft says everything about the kernel. Its conditions belong to dimensions (the levels of
an operand, extents, how many operands there are …). Dimensions of one sort (the levels of all
operands) are left out together, or else half of them, and so on; a dimension is left out as a
whole, or else one condition after the other, the most special first. Each time kernels are made
that match the rest *and not the draft as it is*, and if the target shows the same defect on all of
them, what was left out stays out. Where no kernel can be made, the rest implies what was left out.

Last, kernels are made that are far from the first one in everything at once. Where some of them
pass, a condition that holds of all known triggers and not of them is added back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from random import Random

from reprise.distill.asking import Answer
from reprise.distill.record import Record
from reprise.einsum.distill.conditions import Condition
from reprise.einsum.distill.draft import Draft, draft_of
from reprise.einsum.distill.trials import Asked, Asker, kernel_key
from reprise.einsum.distill.view import View
from reprise.einsum.distill.walk import Walker
from reprise.einsum.kernel import Kernel
from reprise.lang.display import shortened

Progress = Callable[[str, int, Draft], None]

FIRST = (
    *("entries of", "element type", "extent of", "order of operands", "order of indices"),
    *("storage of", "number of", "tensors", "terms", "order of", "rank of", "levels of"),
    *("indices", "index", "loops around", "order of loops", "loops"),
)
LOOPS_FIRST = (*FIRST[-3:], *FIRST[:-3])
"""The beginnings of dimensions, in the order in which they are left out. First what is likely to
matter least, so that the kernels that are asked about later vary in it too; and of what says much
the same, the special before the plain: it is the plain that shall stay. Loops come last: a path
through several tensors is then what holds the rest together. Where that is not what the defect is
about, they are better left out first."""

_CHECKS = 3
"""How often fresh kernels may add something after which all is gone through once more."""
_SEARCHES = 2
"""How often a kernel is looked for before there seems to be none."""
_TRIES, _STRAIGHT = 160, 80
"""Steps of one search, and how many of them are taken from where it began."""
_FAR = 40
"""Steps away from there, at most; most lead nowhere."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How many kernels decide a question, and how many the last check is made of."""

    samples: int = 8
    fresh: int = 24


def silent(step: str, asked: int, draft: Draft) -> None:
    """No progress is shown."""


class Generaliser:
    """``kernel`` shows the defect that ``asker`` asks for. The draft, the record and what is known
    to trigger or to pass are there at any time."""

    def __init__(
        self,
        kernel: Kernel,
        asker: Asker,
        walker: Walker,
        rng: Random,
        *,
        effort: Effort | None = None,
        progress: Progress = silent,
        order: Sequence[str] = FIRST,
    ) -> None:
        self.asker = asker
        self.order = order
        self.walker = walker
        self.rng = rng
        self.effort = effort or Effort()
        self.progress = progress
        self.seed = View(kernel)
        self.draft = draft_of(self.seed)
        self.all = self.draft.conditions
        self.record = Record()
        self.triggers: list[Kernel] = [kernel]
        self.passing: list[Kernel] = []

    def run(self) -> None:
        """Raises Spent, TargetError; what has been reached stays."""
        try:
            for alike in self._dimensions():
                self._leave_out_together(alike)
            self._leave_out_variables()
            for _ in range(_CHECKS):
                self.once_more()
                if not self._check_fresh():
                    break
            self.record.complete = True
        finally:
            self.record.asked = self.asker.asked
            self.record.runs = self.asker.runs
            self.record.seconds = self.asker.seconds

    def once_more(self, is_fine: Callable[[Draft], bool] = lambda draft: True) -> None:
        """Leave out what stayed in only for what has been left out, or been added, since; of what
        is left then, only what ``is_fine``."""
        for condition in sorted(self.draft.conditions, key=lambda c: -c.weight):
            if is_fine(self.draft.without(condition)):
                self._try("once more", [condition])
        for name in (*reversed(self.draft.indices), *reversed(self.draft.operands)):
            if is_fine(self.draft.without_variable(name)):
                self._leave_out_variable(name)

    def _dimensions(self) -> list[list[str]]:
        """Dimensions of one sort together, in the order in which they are left out."""
        found = dict.fromkeys(c.dimension for c in self.draft.conditions)

        def place(dimension: str) -> int:
            found = [n for n, begin in enumerate(self.order) if dimension.startswith(begin)]
            return max(found, key=lambda n: len(self.order[n]))

        return [list(alike) for _, alike in groupby(sorted(found, key=place), place)]

    def _leave_out_together(self, dimensions: list[str]) -> None:
        if len(dimensions) == 1:
            return self._leave_out(dimensions[0])
        group = [c for c in self.draft.conditions if c.dimension in dimensions]
        if not self._try(shortened(", ".join(dimensions), 60), group, is_last=False):
            middle = len(dimensions) // 2
            self._leave_out_together(dimensions[:middle])
            self._leave_out_together(dimensions[middle:])

    def _leave_out(self, dimension: str) -> None:
        group = [c for c in self.draft.conditions if c.dimension == dimension]
        if self._try(dimension, group) or len(group) == 1:
            return
        for condition in sorted(group, key=lambda c: -c.weight):
            self._try(dimension, [condition])

    def _leave_out_variables(self) -> None:
        """Indices and operands of which nothing needs to be said, or nothing but that they are
        there."""
        for name in (*reversed(self.draft.indices), *reversed(self.draft.operands)):
            self._leave_out_variable(name)

    def _leave_out_variable(self, name: str) -> None:
        said = [c for c in self.draft.conditions if name in c.variables]
        smaller = self.draft.without_variable(name)
        if smaller.operands or smaller.conditions:
            self._try(f"variable {name}", said, smaller)

    def _try(
        self,
        dimension: str,
        group: Sequence[Condition],
        smaller: Draft | None = None,
        *,
        is_last: bool = True,
    ) -> bool:
        """Leave conditions out, if the defect is still there without them. ``is_last``: if it is
        not, nothing less will be tried, so that something plainer may take their place."""
        group = [c for c in group if c in self.draft.conditions]
        if smaller is None:
            rest = self.draft.without(*group)
            implied = {text for c in rest.conditions for text in c.implied}
            unsaid = [c for c in group if c.text in implied]
            if unsaid:  # the rest says them
                self.draft = self.draft.without(*unsaid)
                group = [c for c in group if c not in unsaid]
            if not group:
                return True
            smaller = rest
        self._tell(dimension)
        said = ", ".join(c.text for c in group) or dimension
        if self._is_refuted(smaller):
            why = "without it, kernels match that are known to pass"
            self.record.add(dimension, said, "left out", [], False, why)
            self.record.reasons.update(dict.fromkeys(group, why))
            return False
        about = list(dict.fromkeys(c.dimension for c in group)) or [dimension]
        samples = self.samples(smaller, self.draft, self.effort.samples, about)
        asked = self.asker.ask(samples, _Hopeless())
        kept, why = self._judged(asked, bool(samples))
        self._learn(asked)
        self.record.add(dimension, said, "left out", asked, kept, why)
        if not kept:
            plainer = self._plainer(dimension, about, group, smaller, asked) if is_last else None
            if plainer is None:
                self.record.reasons.update(dict.fromkeys(group, why))
                return False
            smaller = plainer
        self.draft = smaller
        return True

    def _is_refuted(self, smaller: Draft) -> bool:
        """Whether a kernel that is known to pass matches a draft, and not the one that there is."""
        passing = map(View, self.passing)
        return any(smaller.matches(view) and not self.draft.matches(view) for view in passing)

    def _plainer(
        self,
        dimension: str,
        about: Sequence[str],
        group: Sequence[Condition],
        smaller: Draft,
        asked: Sequence[Asked],
    ) -> Draft | None:
        """The draft with another condition in the place of some, where those kernels trigger of
        which that holds; None if there is none."""
        passing = [View(one.kernel) for one in asked if one.answer is Answer.NO]
        if not any(one.answer is Answer.YES for one in asked) or not passing:
            return None
        found = self._separating(smaller, passing, [c for c in self.all if c not in group])
        if found is None:
            return None
        changed = smaller.with_(found)
        samples = self.samples(changed, self.draft, self.effort.samples, about)
        again = self.asker.ask(samples, lambda one: one.answer is Answer.NO)
        self._learn(again)
        kept = sum(one.answer is Answer.YES for one in again) >= self._few and not any(
            one.answer is Answer.NO for one in again
        )
        why = "all trigger with it" if kept else "it does not tell them apart"
        said = ", ".join(c.text for c in group) or dimension
        self.record.add(dimension, said, found.text, again, kept, why)
        if kept:
            self.record.reasons[found] = f"takes the place of {said}, which says more than it must"
        return changed if kept else None

    @property
    def _few(self) -> int:
        """So many triggers that a question is decided, where the target takes no more kernels."""
        return min(self.effort.samples // 2, 3)

    def _judged(self, asked: Sequence[Asked], made: bool) -> tuple[bool, str]:
        yes = sum(one.answer is Answer.YES for one in asked)
        no = sum(one.answer is Answer.NO for one in asked)
        if no:
            return (
                False,
                f"without it {no} of {yes + no} passes" if yes else "without it, it passes",
            )
        if yes >= self._few:
            return True, "all trigger without it"
        if any(one.otherwise for one in asked):
            return False, "without it, kernels fail in another way"
        if not made:
            return True, "the rest implies it"
        if not yes:
            return True, "without it, no kernel says anything"
        return True, "the few that say anything trigger without it"

    # --- kernels ---------------------------------------------------------------------------------

    def samples(self, rest: Draft, full: Draft, count: int, about: Sequence[str]) -> list[Kernel]:
        """Up to ``count`` kernels that match ``rest``, and not ``full``: half of them near the
        first kernel, half of them near any that triggers, and further away. They differ in the
        dimensions that it is ``about`` by turns."""
        found: dict[str, Kernel] = {}
        for number in range(count):
            for _ in range(_SEARCHES):
                what = about[number % len(about)]
                kernel = self._sample(rest, full, number < count // 2, what)
                if kernel is not None and kernel_key(kernel) not in found:
                    found[kernel_key(kernel)] = kernel
                    break
            if not found:  # the rest implies what is left out
                return []
        return list(found.values())

    def _sample(
        self, rest: Draft, full: Draft | None, near: bool, about: str = ""
    ) -> Kernel | None:
        rng = self.rng
        kernel = self.triggers[0] if near else rng.choice(self.triggers)
        if full is not None:
            found = self._leaving(kernel, rest, full, about)
            if found is None or near:
                return found
            kernel = found
        for _ in range(rng.randint(1, _FAR)):
            made = self.walker.step(kernel, rng)
            if made is not None and self._is_between(made, rest, full):
                kernel = made
        return kernel

    def _leaving(self, kernel: Kernel, rest: Draft, full: Draft, about: str) -> Kernel | None:
        """A kernel that matches the rest only, in few steps from one that matches the whole."""
        for number in range(_TRIES):
            made = self.walker.step(kernel, self.rng, about)
            if made is None or made == kernel or not rest.matches(view := View(made)):
                continue
            left = not full.matches(view)
            if left or number > _STRAIGHT:
                if not self.walker.is_valid(made):
                    continue
                if left:
                    return made
                kernel = made
        return None

    def _is_between(self, made: Kernel, rest: Draft, full: Draft | None) -> bool:
        view = View(made)
        return (
            rest.matches(view)
            and (full is None or not full.matches(view))
            and self.walker.is_valid(made)
        )

    def fresh(self, draft: Draft, count: int) -> list[Kernel]:
        """Kernels that match, far away from those that are known."""
        found: dict[str, Kernel] = {}
        for _ in range(2 * count):
            kernel = self._sample(draft, None, near=False)
            if kernel is not None and len(found) < count:
                found[kernel_key(kernel)] = kernel
        return list(found.values())

    def _learn(self, asked: Iterable[Asked]) -> None:
        self.triggers += [one.kernel for one in asked if one.answer is Answer.YES]
        self.passing += [one.kernel for one in asked if one.answer is Answer.NO]

    # --- the last check --------------------------------------------------------------------------

    def _check_fresh(self) -> bool:
        """Add back what tells fresh kernels that pass from all that trigger, until none passes;
        whether anything was added."""
        changed = False
        for _ in range(len(self.all)):
            self._tell("fresh kernels")
            asked = self.asker.ask(self.fresh(self.draft, self.effort.fresh))
            self._learn(asked)
            yes = sum(one.answer is Answer.YES for one in asked)
            no = [View(one.kernel) for one in asked if one.answer is Answer.NO]
            self.record.fresh = (yes + len(no), yes)
            if not no:
                return changed
            added = self._separating(self.draft, no, self.all)
            text = "nothing" if added is None else added.text
            why = f"{len(no)} of {yes + len(no)} fresh kernels pass"
            self.record.add("fresh kernels", "", text, asked, added is not None, why)
            if added is None:
                return changed
            self.draft, changed = self.draft.with_(added), True
            self.record.reasons[added] = f"tells {len(no)} kernels that pass from all that trigger"
        return changed

    def _separating(
        self, draft: Draft, passing: Sequence[View], among: Sequence[Condition]
    ) -> Condition | None:
        """The plainest condition that holds of every trigger that a draft matches, and not of most
        that pass."""
        triggers = [View(kernel) for kernel in self.triggers]
        triggers = [view for view in triggers if draft.matches(view)]
        named = {*draft.operands, *draft.indices}
        ranked = []
        for condition in among:
            if condition in draft.conditions or not set(condition.variables) <= named:
                continue
            changed = draft.with_(condition)
            left = sum(changed.matches(view) for view in passing)
            if left < len(passing) and all(changed.matches(view) for view in triggers):
                ranked.append((left, condition.weight, condition.text, condition))
        return min(ranked)[-1] if ranked else None

    def _tell(self, step: str) -> None:
        self.record.interrupted = step
        self.progress(step, self.asker.asked, self.draft)


class _Hopeless:
    """Enough has been asked: two kernels pass and none has triggered."""

    def __init__(self) -> None:
        self._passed = 0
        self._triggered = False

    def __call__(self, one: Asked) -> bool:
        self._passed += one.answer is Answer.NO
        self._triggered |= one.answer is Answer.YES
        return self._passed > 1 and not self._triggered
