"""The whole draft at once: what follows from the rest, and the joint check.

In the joint check programs are made that differ in everything, by the sampler and by the witness
finder, which knows nothing but the pattern's text. While some of them do not trigger, the condition
that tells these from all triggers known is added back, after a check that programs without it do
not trigger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from reprise.distill.asking import Answer, Asked
from reprise.distill.conditions import Condition, Place
from reprise.distill.generalise.questions import is_about_types, other_wishes, terms_of, violates
from reprise.distill.generalise.separate import SEVERAL, separators
from reprise.distill.generalise.trying import Trying
from reprise.distill.sampling import Sample, Wish
from reprise.distill.witnesses import fresh_witnesses

_ROUNDS = 6
"""Of the joint check."""


def implied(work: Trying) -> None:
    """Drop what no program that matches the rest can violate, and orders of operands of which
    nothing else is said."""
    for line in work.draft.nodes:
        others = [n for n in work.draft.nodes if n.name != line.name]
        told = {t for n in others for t in (n.name, *n.reads)}
        told |= {t for c in work.draft.conditions for t in c.names}
        if line.unordered and not told & set(line.reads[:2]):
            work.draft = work.draft.with_node(replace(line, unordered=False))
    for condition in work.draft.conditions:
        kinds = {term.kind for term in terms_of(condition)}
        of_source = kinds == {"numel"} and condition.names <= set(work.draft.sources)
        needed = condition in work.needed and not of_source
        if needed or not is_about_types(condition):
            continue
        rest = work.draft.without(condition)
        wishes = [other_wishes(term) for term in sorted(terms_of(condition), key=str)]
        name = f"implied/{condition}"
        every = [wish for choices in wishes for wish in choices] or [()]
        if not work.draw(name, rest, every, violates(condition), stray=0.3):
            work.draft = rest
            why = "follows from the rest"
            work.record.add("implied", str(condition), "nothing", (), True, why)


def bounds_again(work: Trying) -> None:
    """A bound that was found before another condition was added may not be needed any more."""
    if not any("joint" in why for why in work.record.reasons.values()):
        return
    for condition in work.draft.conditions:
        terms = sorted(terms_of(condition), key=str)
        if len(terms) != 1 or terms[0].kind not in ("dim", "rank"):
            continue
        if "joint" in work.record.reasons.get(condition, ""):
            continue
        term, wishes = terms[0], other_wishes(terms[0])
        rank = work.place.tensors[term.of].type.rank or 0
        if term.kind == "dim":  # what is small in this way may be large in another
            others = [Wish("dim", term.of, i, 33) for i in range(rank) if i != term.index % rank]
            wishes = [*((*wish, *others) for wish in wishes), *wishes]
        work.relax(f"{condition} again", [condition], wishes)


def joint(work: Trying) -> None:
    """Fresh programs that differ in everything; add back what tells failures from triggers."""
    refuted: set[Condition] = set()
    for number in range(_ROUNDS):
        samples = _fresh(work, number)
        asked = work.ask(samples)
        no = [a for a in asked if a.answer is Answer.NO]
        usable = sum(a.answer is not Answer.UNUSABLE for a in asked)
        work.record.fresh = (usable, usable - len(no))
        wrong = [p for s in work.passing for p in work.draft.places(s.place.around)]
        if not wrong:
            work.record.add(
                f"joint check {number + 1}", "the rule", "the rule", asked, True,
                f"all of {usable} fresh programs trigger",
            )  # fmt: skip
            return
        if not _add_back(work, number, asked, wrong, refuted):
            return


def _fresh(work: Trying, number: int) -> list[Sample]:
    """Two thirds vary the program, the others are made from the pattern's text alone."""
    half = 2 * work.effort.fresh // 3
    wishes: list[Sequence[Wish]] = [()] * half
    made = work.draw(f"joint/{number}", work.draft, wishes, stray=0.9)
    rng = Random(f"{work.seed}/witness/{number}")
    return [*made, *fresh_witnesses(work.draft, work.sampling, rng, work.effort.fresh - half)]


def _add_back(
    work: Trying,
    number: int,
    asked: Sequence[Asked],
    wrong: Sequence[Place],
    refuted: set[Condition],
) -> bool:
    """Add the condition that excludes most of the ``wrong`` places, if programs that violate it
    do pass. Whether one was added."""
    dimension = f"joint check {number + 1}"
    for attempt in range(8):
        first = (next(iter(work.draft.places(s.place.around)), None) for s in work.triggers)
        right = [place for place in first if place is not None]
        found = separators(work.draft, right, wrong, lambda c: c not in refuted, partial=True)
        if not found:
            work.record.add(
                dimension, "the rule", "the rule", asked, False,
                f"{len(wrong)} places do not trigger, and nothing tells them from the triggers",
            )  # fmt: skip
            return False
        condition = found[0]
        excluded = sum(not condition.holds(p) for p in wrong)
        wishes = _violating(work, condition)
        name = f"{dimension}/{attempt}/{condition}"
        check = work.ask(work.draw(name, work.draft, wishes, violates(condition), stray=0.6))
        yes = sum(a.answer is Answer.YES for a in check)
        no = sum(a.answer is Answer.NO for a in check)
        if no + excluded < SEVERAL or not no or no < 3 * yes:
            refuted.add(condition)
            why = f"would exclude {excluded} that pass; of other programs that it excludes "
            why += f"{yes} trigger and {no} pass"
            work.record.add(dimension, "anything", str(condition), check, False, why)
            continue
        work.draft = work.draft.with_(condition)
        work.needed.add(condition)
        why = f"joint check: excludes {excluded} of {len(wrong)} places that do not trigger"
        work.record.reasons[condition] = why
        work.record.add(dimension, "anything", str(condition), [*asked, *check], True, why)
        return True
    return False


def _violating(work: Trying, condition: Condition) -> list[Sequence[Wish]]:
    """Wishes that may make samples violate a condition, and as many that leave it to chance."""
    directed: list[Sequence[Wish]] = []
    for term in sorted(terms_of(condition), key=str):
        directed += other_wishes(term)
        if term.kind == "numel":
            axes = range(work.place.tensors[term.of].type.rank or 0)
            directed += [tuple(Wish("dim", term.of, i, e) for i in axes) for e in (1, 2, 5)]
    rng = Random(f"{work.seed}/violating/{condition}")
    rng.shuffle(directed)
    return [*directed[: work.effort.samples], *[()] * work.effort.samples]
