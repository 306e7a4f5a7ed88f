"""Asking the target whether a draft that says less still holds only of what triggers.

*The rule for "still triggers"*: all of ``n`` samples do (:class:`Effort`); with eight of eight, at
least 69 % of such programs trigger, with 95 % confidence. Half of them differ from the program in
this dimension alone, the others also in what was dropped before. Where only the latter fail, two
dimensions depend on each other, which is for the joint check to find out (:mod:`.joint`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Protocol

from reprise.distill.asking import Answer, Asked, Asker
from reprise.distill.conditions import Condition, Place, Term, Within, holds_all
from reprise.distill.draft import Draft, draft_of
from reprise.distill.generalise.questions import Accept, Learn, is_about_types, is_rank_of
from reprise.distill.generalise.separate import separators
from reprise.distill.generalise.specific import specific
from reprise.distill.record import Case, Record
from reprise.distill.sampling import Sample, Sampling, Wish
from reprise.targets.discover import Target
from reprise.uir.graph import Attribute
from reprise.uir.program import Program

_CHUNK = 4
"""Samples are asked about in groups of so many, whatever the number of jobs."""


@dataclass(frozen=True, slots=True)
class Effort:
    """``samples``: for one relaxation; ``each``: for one member of a set; ``kin``: operators tried
    in an operator's place; ``fresh``: programs of a joint check."""

    samples: int = 8
    each: int = 3
    kin: int = 60
    fresh: int = 40

    @classmethod
    def for_target(cls, target: Target) -> Effort:
        """What a target can afford: a program costs ONNX Runtime some milliseconds, TVM a tenth of
        a second, torch.compile one or two seconds."""
        match target.lowering:
            case "torch":
                return cls(4, 2, 6, 12)
            case "relax":
                return cls(6, 2, 16, 24)
            case _:
                return cls()


class Progress(Protocol):
    """Told how far it is: the step, and how many programs were asked about so far."""

    def __call__(self, step: str, asked: int, draft: Draft) -> None: ...


def silent(step: str, asked: int, draft: Draft) -> None:
    """No progress shown."""


class Trying:
    """A program, the draft of it so far, and what the target said. Dimensions change :attr:`draft`
    by way of :meth:`relax` and :meth:`attempt`, which write down each experiment."""

    def __init__(
        self,
        program: Program,
        asker: Asker,
        sampling: Sampling,
        seed: int,
        *,
        effort: Effort | None = None,
        progress: Progress = silent,
    ) -> None:
        self.program = program
        self.asker = asker
        self.sampling = sampling
        self.seed = seed
        self.effort = effort or Effort()
        self.progress = progress
        self.record = Record()
        self.cases: list[Case] = []
        draft, self.place = draft_of(program)
        self.draft = draft.with_(*specific(draft, self.place, self._count_of_results))
        self.triggers: list[Sample] = [Sample(program, self.place)]
        self.passing: list[Sample] = []
        self.said_no: set[str] = set()
        self.needed: set[Condition] = set()

    def _count_of_results(self, op: str) -> int:
        if op not in self.sampling.signatures:
            return 1
        return len(self.sampling.signatures[op].plan.decl.results)

    def draw(
        self,
        dimension: str,
        draft: Draft,
        wishes: Iterable[Sequence[Wish]],
        accept: Accept | None = None,
        stray: float = 0.0,
        tries: int = 40,
    ) -> list[Sample]:
        """A sample for each list of wishes for which there is one."""
        made: list[Sample] = []
        for number, wish in enumerate(wishes):
            rng = Random(f"{self.seed}/{dimension}/{number}/{stray}")
            sample = self.sampling.sample(
                draft, self.place, rng, wish,
                inputs=self.program.inputs, stray=stray, accept=accept, tries=tries,
            )  # fmt: skip
            if sample is not None:
                made.append(sample)
        return made

    def ask(self, samples: Sequence[Sample], *, stop: int | None = None) -> list[Asked]:
        """Answers, a few at a time; with ``stop``, no more once so many passed, none triggered."""
        asked: list[Asked] = []
        for start in range(0, len(samples), _CHUNK):
            asked += self.asker.ask(samples[start : start + _CHUNK])
            no = sum(a.answer is Answer.NO for a in asked)
            if stop is not None and no >= stop and not any(a.answer is Answer.YES for a in asked):
                break
        for one in asked:
            if one.answer is Answer.YES:
                self.triggers.append(one.sample)
            elif one.answer is Answer.NO and one.key not in self.said_no:
                self.said_no.add(one.key)
                self.passing.append(one.sample)
        return asked

    def relax(
        self,
        dimension: str,
        dropped: Sequence[Condition],
        wishes: Sequence[Sequence[Wish]],
        *,
        learn: Learn | None = None,
        into: Sequence[Condition] = (),
    ) -> bool:
        """Drop ``dropped`` (putting ``into`` in their place) if all samples trigger, all of which
        violate it. ``wishes`` and ``learn`` as for :meth:`_attempt`."""
        dropped = [c for c in dropped if c in self.draft.conditions]
        accept: Accept = lambda place: not holds_all(dropped, place)  # noqa: E731
        relaxed = self.draft.without(*dropped).with_(*into)
        few = self.draw(dimension, relaxed, wishes, accept)
        if not few:
            dropped = self._coupled(dimension, dropped, into, wishes) or dropped
            relaxed = self.draft.without(*dropped).with_(*into)
        before = ", ".join(map(str, dropped)) or "nothing"
        after = ", ".join(map(str, into)) or "anything"
        said = len(self.said_no)
        kept = self.attempt(dimension, relaxed, wishes, accept, before, after, learn)
        if not kept and len(self.said_no) > said:
            self.needed.update(dropped)
        return kept

    def attempt(
        self,
        dimension: str,
        relaxed: Draft,
        wishes: Sequence[Sequence[Wish]],
        accept: Accept | None,
        before: str,
        after: str,
        learn: Learn | None = None,
    ) -> bool:
        """Take ``relaxed`` for the draft if all samples of it trigger.

        ``wishes``: what each sample must have, so that it uses the relaxation, besides what
        ``accept`` says. ``learn``: which conditions may be added if only some trigger.
        """
        alone = self.ask(self.draw(dimension, relaxed, wishes, accept), stop=_CHUNK)
        yes = [a for a in alone if a.answer is Answer.YES]
        no = [a for a in alone if a.answer is Answer.NO]
        self.remember(dimension, yes, no)
        if not yes:
            why = "none triggers" if no else "the target takes none of them"
            why = why if alone else "no such program can be made"
            self.record.add(dimension, before, after, alone, False, why)
            return False
        if no:
            self.record.add(dimension, before, after, alone, False, "some do not trigger")
            return learn is not None and self._learn(
                dimension, relaxed, wishes, accept, before, yes, no, learn
            )
        more = self.ask(self.draw(dimension, relaxed, wishes, accept, stray=0.3))
        wrong = [a for a in more if a.answer is Answer.NO]
        right = [a for a in more if a.answer is Answer.YES]
        if wrong and len(wrong) > len(right):
            why = "all trigger, but few do together with what was dropped before"
            self.record.add(dimension, before, after, [*alone, *more], False, why)
            return False
        why = "all trigger"
        if wrong:
            why = "all trigger; together with what was dropped before not all: left to the end"
        self.draft = relaxed
        self.record.add(dimension, before, after, [*alone, *more], True, why)
        return True

    def _coupled(
        self,
        dimension: str,
        dropped: Sequence[Condition],
        into: Sequence[Condition],
        wishes: Sequence[Sequence[Wish]],
    ) -> list[Condition] | None:
        """What must go together with ``dropped``, since types or attributes follow from each other:
        what the sample violates that violates least, without what need not be violated."""
        results = {line.name for line in self.draft.nodes}
        typed = [
            c for c in self.draft.conditions if is_about_types(c) and not is_rank_of(c, results)
        ]
        loose = self.draft.without(*dropped, *typed).with_(*into)
        best: list[Condition] | None = None
        for number in range(6):
            for sample in self.draw(
                f"{dimension}/coupled/{number}", loose, wishes[:4],
                lambda p: not holds_all(dropped, p), tries=20,
            ):  # fmt: skip
                broken = [c for c in typed if not c.holds(sample.place)]
                if best is None or len(broken) < len(best):
                    best = broken
        if best is None:
            return None
        more = [c for c in best if c not in dropped]
        for condition in tuple(more):  # chance broke some of them: those that need not go stay
            fewer = [c for c in more if c != condition]
            tighter = self.draft.without(*dropped, *fewer).with_(*into)
            name = f"{dimension}/coupled/{condition}"
            if self.draw(name, tighter, wishes[:4], lambda p: not holds_all(dropped, p)):
                more = fewer
        return [*dropped, *more]

    def _learn(
        self,
        dimension: str,
        relaxed: Draft,
        wishes: Sequence[Sequence[Wish]],
        accept: Accept | None,
        before: str,
        yes: Sequence[Asked],
        no: Sequence[Asked],
        learn: Learn,
    ) -> bool:
        """Find what tells samples that trigger from those that don't, and confirm it."""
        right = [self.place, *(a.sample.place for a in yes)]
        wrong = [a.sample.place for a in no]
        for attempt in range(3):
            found = separators(relaxed, right, wrong, learn)
            if not found:
                return False
            narrowed, asked = self._narrowed(dimension, relaxed, found, right, wrong)
            name = f"{dimension}/{attempt}"
            fresh = self.ask(
                [
                    *self.draw(name, narrowed, wishes, accept, tries=15),
                    *self.draw(name, narrowed, wishes, accept, stray=0.2, tries=15),
                ]
            )
            bad = [a for a in fresh if a.answer is Answer.NO]
            good = [a for a in fresh if a.answer is Answer.YES]
            said = [c for c in narrowed.conditions if c not in relaxed.conditions]
            after = ", ".join(map(str, said))
            kept = bool(good) and not bad
            why = "tells those that trigger from the others" if kept else "not confirmed"
            self.record.add(dimension, before, after, [*asked, *fresh], kept, why)
            if kept:
                self.draft = narrowed
                self.needed.update(said)
                for condition in said:
                    self.record.reasons[condition] = (
                        f"{dimension}: {len(yes) + len(good)} programs that it holds of trigger, "
                        f"{len(wrong)} that it excludes do not"
                    )
                return True
            if not bad:
                return False
            right += [a.sample.place for a in good]
            wrong += [a.sample.place for a in bad]
        return False

    def _narrowed(
        self,
        dimension: str,
        relaxed: Draft,
        found: Sequence[Condition],
        right: Sequence[Place],
        wrong: Sequence[Place],
    ) -> tuple[Draft, list[Asked]]:
        """The relaxed draft with what was found, its bounds moved to where the answers change."""
        conditions: list[Condition] = []
        asked: list[Asked] = []
        for condition in found:
            if isinstance(condition, Within) and condition.term.kind in ("dim", "rank", "attr"):
                condition, more = self._bisected(dimension, relaxed, condition, right, wrong)
                asked += more
            conditions.append(condition)
        return relaxed.with_(*conditions), asked

    def _bisected(
        self,
        dimension: str,
        relaxed: Draft,
        bound: Within,
        right: Sequence[Place],
        wrong: Sequence[Place],
    ) -> tuple[Within, list[Asked]]:
        """A bound on a whole number, as wide as the answers allow."""
        term = bound.term
        yes = [v for p in right if isinstance(v := term.read(p), int)]
        no = [v for p in wrong if isinstance(v := term.read(p), int) and not bound.admits(v)]
        asked: list[Asked] = []
        low, high = bound.low, bound.high
        if not yes or isinstance(low, float) or isinstance(high, float):
            return bound, asked
        if low is not None and (below := [v for v in no if v < min(yes)]):
            low = self._edge(dimension, relaxed, term, max(below), min(yes), asked)
        if high is not None and (above := [v for v in no if v > max(yes)]):
            high = self._edge(dimension, relaxed, term, min(above), max(yes), asked)
        return Within(term, low, high), asked

    def _edge(
        self, dimension: str, relaxed: Draft, term: Term, no: int, yes: int, asked: list[Asked]
    ) -> int:
        """The value nearest to ``no`` that triggers, by bisection."""
        while abs(yes - no) > 1:
            middle = (yes + no) // 2
            made = self.draw(
                f"{dimension}/edge", relaxed, [(Wish(term.kind, term.of, _wish_key(term), middle),)]
            )
            answers = self.ask(made)
            asked += answers
            if answers and answers[0].answer is Answer.YES:
                yes = middle
            elif answers and answers[0].answer is Answer.NO:
                no = middle
            else:
                break
        return yes

    def choose(
        self,
        dimension: str,
        relaxed: Draft,
        options: Sequence[tuple[Attribute, Sequence[Wish]]],
        accept: Accept | None = None,
    ) -> tuple[list[Attribute], list[Attribute], list[Asked]]:
        """The options of which all samples trigger, those of which some do not, and the answers.
        What is in neither could not be tried."""
        taken: list[Attribute] = []
        refused: list[Attribute] = []
        everything: list[Asked] = []
        probes: list[tuple[Attribute, Sequence[Wish], Sample]] = []
        for option, wishes in options:
            made = self.draw(f"{dimension}/{option}", relaxed, [wishes], accept)
            probes += [(option, wishes, sample) for sample in made]
        answers = self.ask([sample for *_, sample in probes])
        for (option, wishes, _), first in zip(probes, answers, strict=True):
            everything.append(first)
            asked = [first]
            if first.answer is Answer.YES:
                again = [wishes] * (self.effort.each - 1)
                name = f"{dimension}/{option}/again"
                asked += self.ask(self.draw(name, relaxed, again, accept, stray=0.2))
                everything += asked[1:]
            no = [a for a in asked if a.answer is Answer.NO]
            if first.answer is Answer.YES and 2 * len(no) < len(asked):
                taken.append(option)
                self.remember(f"{dimension}: {option}", [first], [])
            elif first.answer is Answer.NO or no:
                refused.append(option)
                self.remember(f"{dimension}: {option}", [], no)
        return taken, refused, everything

    def remember(self, title: str, yes: Sequence[Asked], no: Sequence[Asked]) -> None:
        """Keep one sample of either side of a boundary, to test the rule with."""
        for kind, asked in (("match", yes), ("no_match", no)):
            if asked:
                small = min(asked, key=lambda a: _size(a.sample.program))
                self.cases.append(Case(kind, title, small.sample))


def _wish_key(term: Term) -> str | int:
    return term.index if term.kind == "dim" else term.key


def _size(program: Program) -> tuple[int, int]:
    elements = sum(t.type.elements or 0 for t in program.graph.tensors)
    return len(program.graph.nodes), elements
