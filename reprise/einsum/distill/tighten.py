"""Hold a rule about kernels against kernels that it has not seen, as
:mod:`reprise.distill.tighten` does for graphs: up to ten rounds, each of which adds a condition
that tells kernels that match and pass from those that trigger, or the rule is discarded.

The kernels are neighbours of the one that the rule was made from, reached without regard to the
rule, and kernels that the campaign's generator grows for the target. By turns they go into two
halves: one to learn from, one to tell how good the rule is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from reprise.campaign.metrics import rate
from reprise.distill.asking import Answer, Spent
from reprise.distill.tighten import ROUNDS, Round, Score, Tightened
from reprise.einsum.distill.conditions import Condition
from reprise.einsum.distill.draft import Draft
from reprise.einsum.distill.generalise import Generaliser
from reprise.einsum.distill.trials import kernel_key
from reprise.einsum.distill.view import View
from reprise.einsum.extents import Stuck
from reprise.einsum.grow import Grower
from reprise.einsum.kernel import Kernel
from reprise.lang.display import counted

_FAR, _TRIES = 8, 8
"""Steps to a neighbour, at most, and how often each is tried."""
_HIDDEN = 0.05
"""So many false matches for a trigger may be left, if nothing tells them from triggers."""
_REFUTING = 4
"""Kernels that a condition must tell apart before it is believed."""


@dataclass
class Held:
    """Kernels that the rule has not seen, with what they did, in two halves."""

    learn: list[tuple[View, bool]] = field(default_factory=list)
    tell: list[tuple[View, bool, bool]] = field(default_factory=list)
    """With whether it was made to match: then it says nothing of what the rule misses."""


def tightened(work: Generaliser, count: int) -> Tightened[Draft, Condition]:
    """The rule that generalising came to, held against ``count`` kernels. Raises TargetError."""
    held = _held(work, count)
    draft = work.draft
    before = _score(draft, held)
    rounds: list[Round[Condition]] = []
    triggers = [View(kernel) for kernel in work.triggers]
    triggers += [view for view, fails in held.learn if fails]
    while True:
        false = [view for view, fails in held.learn if not fails and draft.matches(view)]
        if not false:
            if rounds:
                draft = _relaxed(work, draft, held)
            return Tightened(draft, tuple(rounds), before, _score(draft, held))
        told = counted(len(false), "false match")
        if len(rounds) == ROUNDS:
            reason = f"{told} left after {counted(ROUNDS, 'round')}"
            return Tightened(None, tuple(rounds), before, before, reason)
        matched = [view for view in triggers if draft.matches(view)]
        found, refuted = _separating(work, draft, false, matched)
        rounds.append(found or Round(len(false), None, refuted=refuted))
        if found is not None and found.added is not None:
            draft = draft.with_(found.added)
            work.record.reasons[found.added] = f"excludes {counted(found.excludes, 'false match')}"
        elif len(false) <= max(1, _HIDDEN * len(matched)):
            score = _score(draft, held)
            return Tightened(draft, tuple(rounds), before, score, hidden=len(false))
        else:
            reason = f"nothing tells {told} from the triggers"
            return Tightened(None, tuple(rounds), before, before, reason)


def _relaxed(work: Generaliser, draft: Draft, held: Held) -> Draft:
    """A tightened draft without what only stood in for what has been added, as long as none of the
    kernels that pass is matched."""
    passing = [view for view, fails in held.learn if not fails]
    earlier, work.draft = work.draft, draft
    try:
        work.once_more(lambda one: not any(one.matches(view) for view in passing))
        return work.draft
    except Spent:
        return draft
    finally:
        work.draft = earlier


def _separating(
    work: Generaliser, draft: Draft, false: Sequence[View], triggers: Sequence[View]
) -> tuple[Round[Condition] | None, int]:
    """The best condition against false matches, and how many were refuted before it: kernels that
    violate those trigger all the same."""
    named = {*draft.operands, *draft.indices}
    ranked: list[tuple[float, int, str, Round[Condition]]] = []
    for condition in work.all:
        if condition in draft.conditions or not set(condition.variables) <= named:
            continue
        changed = draft.with_(condition)
        left = sum(changed.matches(view) for view in false)
        loses = sum(not changed.matches(view) for view in triggers)
        cost = left / len(false) + loses / max(len(triggers), 1)
        if left < len(false) and cost < 1 and changed.matches(work.seed):
            found = Round(len(false), condition, len(false) - left, loses)
            ranked.append((round(cost, 1), condition.weight, condition.text, found))
    refuted = 0
    for *_, found in sorted(ranked, key=lambda one: one[:3])[:ROUNDS]:
        assert found.added is not None
        against = work.samples(draft, draft.with_(found.added), _REFUTING, [found.added.dimension])
        asked = work.asker.ask(against)
        yes = sum(one.answer is Answer.YES for one in asked)
        no = sum(one.answer is Answer.NO for one in asked)
        if not yes or 2 * yes < yes + no:
            return Round(found.false, found.added, found.excludes, found.loses, refuted), refuted
        refuted += 1
    return None, refuted


# --- kernels -------------------------------------------------------------------------------------


def _held(work: Generaliser, count: int) -> Held:
    """Neighbours, grown kernels, and some that match."""
    rng = Random(work.rng.randrange(2**63))
    held = Held()
    near = [_neighbour(work, rng) for _ in range(count // 2)]
    grown = _grown(work, rng, count - len(near))
    seen = {kernel_key(kernel) for kernel in (*work.triggers, *work.passing)}
    turn = {True: 0, False: 0}
    for made, witness in ((*near, *grown), False), (work.fresh(work.draft, count // 5), True):
        kernels = [kernel for kernel in made if kernel_key(kernel) not in seen]
        seen |= {kernel_key(kernel) for kernel in kernels}
        for one in work.asker.ask(list({kernel_key(k): k for k in kernels}.values())):
            if one.answer is Answer.UNUSABLE:
                continue
            fails = one.answer is Answer.YES
            turn[fails] += 1
            if turn[fails] % 2:
                held.learn.append((View(one.kernel), fails))
            else:
                held.tell.append((View(one.kernel), fails, witness))
    return held


def _neighbour(work: Generaliser, rng: Random) -> Kernel:
    kernel = work.triggers[0]
    for _ in range(rng.randint(1, _FAR)):
        made = (work.walker.step(kernel, rng) for _ in range(_TRIES))
        valid = (one for one in made if one is not None and work.walker.is_valid(one))
        kernel = next(valid, kernel)
    return kernel


def _grown(work: Generaliser, rng: Random, count: int) -> Iterable[Kernel]:
    """What a campaign without guidance would test."""
    grower = Grower(work.walker.options, work.walker.validity)
    try:
        made = [grower.kernel(rng) for _ in range(count)]
    except Stuck:
        return []
    finally:
        work.walker.validity.restart()
    return islice((kernel for kernel in made if work.walker.is_valid(kernel)), count)


def _score(draft: Draft, held: Held) -> Score:
    right = wrong = found = missed = false = passing = 0
    for view, fails, witness in held.tell:
        matches = draft.matches(view)
        right += matches and fails
        wrong += matches and not fails
        if not witness:
            found += matches and fails
            missed += fails and not matches
            false += matches and not fails
            passing += not fails
    return Score(rate(right, right + wrong), rate(found, found + missed), rate(false, passing))
