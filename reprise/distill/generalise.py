"""From a small program that shows a defect to a pattern: one dimension at a time.

It begins with the most specific draft of the program. A *dimension* is one thing that the draft
says: a line, an operator, an attribute, an extent… Each is taken up once, in an order that makes
later samples cheap (context that does not matter goes first). Samples are made that match the draft
without it *and differ from the program in it*; if the target shows that all of them trigger the
same defect, what the draft says of it is dropped. If some do, the plainest condition that tells
them from the others takes its place, once fresh samples have confirmed it; if none do, it stays.

*The rule for "still triggers"*: all of ``n`` samples do (:class:`Effort`); with eight of eight, at
least 69 % of such programs trigger, with 95 % confidence. Half of them differ from the program in
this dimension alone, the others also in what was dropped before. Where only the latter fail, two
dimensions depend on each other, which is for the *joint check* to find out: at the end, programs
are made that differ in everything at once, by the sampler and by the witness finder, which knows
nothing but the pattern's text. While some of them do not trigger, the condition that tells these
from all triggers known is added back, after a check that programs without it do not trigger.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from reprise.distill.asking import Answer, Asked, Asker, Spent
from reprise.distill.conditions import (
    Among,
    Condition,
    Distinct,
    Holds,
    Near,
    Place,
    Related,
    Term,
    Within,
    holds_all,
    is_number,
)
from reprise.distill.draft import ANYTHING, Draft, DraftNode, conditions_of, draft_of, maker
from reprise.distill.record import Case, Record
from reprise.distill.sampling import ROLES, Sample, Sampling, Wish
from reprise.distill.witnesses import fresh_witnesses
from reprise.lang.dtypes import DTYPES
from reprise.solve.sampling import DRAWN
from reprise.synth.vocabulary import LEFT_OUT
from reprise.synth.witness import OPSETS
from reprise.targets.discover import Target
from reprise.uir.graph import Attribute, Role, Scalar
from reprise.uir.program import Program

_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 16, 33)
_RANKS = (0, 1, 2, 3, 4, 5)
_FLOATS = (0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 7.0)
_CHUNK = 4
"""Samples are asked about in groups of so many, whatever the number of jobs."""
_MOST_RIGHT = 80
"""So many triggers, the latest, are compared with what does not trigger."""
_SEVERAL = 3
"""So many programs that do not trigger must have a neighbour in common for it to be blamed, and
must pass for want of a condition before the joint check adds it."""
_ROUNDS = 6
"""Of the joint check."""


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


Accept = Callable[[Place], bool]
Learn = Callable[[Condition], bool]


class Generaliser:
    """Generalises one program. :attr:`draft` always holds what is known so far: a run that is cut
    short leaves a pattern that is too narrow, never one that is too wide."""

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

    def run(self) -> None:
        """All dimensions, then the joint check. Raises Spent, TargetError; KeyboardInterrupt passes
        through. Whatever ends it, :attr:`draft` is the best pattern so far."""
        step = ""
        try:
            for step, work in self._steps():
                self.progress(step, self.asker.asked, self.draft)
                before = self.draft
                work()
                if not holds_all(self.draft.conditions, self.place):
                    self.draft = before
                    why = "gave a rule that the program itself does not match: taken back"
                    self.record.add(step, "", "", (), False, why)
            self.record.complete = True
        finally:
            self.record.interrupted = "" if self.record.complete else step
            self.record.asked = self.asker.asked
            self.record.runs = self.asker.runs
            self.record.seconds = self.asker.seconds

    def _steps(self) -> Iterator[tuple[str, Callable[[], None]]]:
        """The dimensions in order. Each is looked up when its turn comes."""
        yield "lines", self._lines
        yield "opset", self._opset
        yield "outputs and readers", self._context
        yield "further results", self._results
        yield "operands that are one tensor", self._splits
        yield "values", self._values
        yield "where values come from", self._roles
        yield "operands", self._operands
        yield "attributes", self._attributes
        yield "extents", self._extents
        yield "single elements", self._single_elements
        yield "ranks", self._ranks
        yield "scalar results", self._scalar_results
        yield "empty axes", self._empty_axes
        yield "attributes again", self._attributes
        yield "order of operands", self._orders
        yield "element types", self._dtypes
        yield "operators", self._operators
        yield "what follows from the rest", self._implied
        yield "all at once", self._joint
        yield "bounds again", self._bounds_again
        yield "what follows from the rest", self._implied

    # --- samples ---------------------------------------------------------------------------------

    def _draw(
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

    def _ask(self, samples: Sequence[Sample], *, stop: int | None = None) -> list[Asked]:
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

    # --- one dimension ---------------------------------------------------------------------------

    def _relax(
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
        few = self._draw(dimension, relaxed, wishes, accept)
        if not few:
            dropped = self._coupled(dimension, dropped, into, wishes) or dropped
            relaxed = self.draft.without(*dropped).with_(*into)
        before = ", ".join(map(str, dropped)) or "nothing"
        after = ", ".join(map(str, into)) or "anything"
        said = len(self.said_no)
        kept = self._attempt(dimension, relaxed, wishes, accept, before, after, learn)
        if not kept and len(self.said_no) > said:
            self.needed.update(dropped)
        return kept

    def _attempt(
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
        alone = self._ask(self._draw(dimension, relaxed, wishes, accept), stop=_CHUNK)
        yes = [a for a in alone if a.answer is Answer.YES]
        no = [a for a in alone if a.answer is Answer.NO]
        self._remember(dimension, yes, no)
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
        more = self._ask(self._draw(dimension, relaxed, wishes, accept, stray=0.3))
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
            c for c in self.draft.conditions if _is_about_types(c) and not _is_rank_of(c, results)
        ]
        loose = self.draft.without(*dropped, *typed).with_(*into)
        best: list[Condition] | None = None
        for number in range(6):
            for sample in self._draw(
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
            if self._draw(name, tighter, wishes[:4], lambda p: not holds_all(dropped, p)):
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
            fresh = self._ask(
                [
                    *self._draw(name, narrowed, wishes, accept, tries=15),
                    *self._draw(name, narrowed, wishes, accept, stray=0.2, tries=15),
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
            made = self._draw(
                f"{dimension}/edge", relaxed, [(Wish(term.kind, term.of, _wish_key(term), middle),)]
            )
            answers = self._ask(made)
            asked += answers
            if answers and answers[0].answer is Answer.YES:
                yes = middle
            elif answers and answers[0].answer is Answer.NO:
                no = middle
            else:
                break
        return yes

    def _choose(
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
            made = self._draw(f"{dimension}/{option}", relaxed, [wishes], accept)
            probes += [(option, wishes, sample) for sample in made]
        answers = self._ask([sample for *_, sample in probes])
        for (option, wishes, _), first in zip(probes, answers, strict=True):
            everything.append(first)
            asked = [first]
            if first.answer is Answer.YES:
                again = [wishes] * (self.effort.each - 1)
                name = f"{dimension}/{option}/again"
                asked += self._ask(self._draw(name, relaxed, again, accept, stray=0.2))
                everything += asked[1:]
            no = [a for a in asked if a.answer is Answer.NO]
            if first.answer is Answer.YES and 2 * len(no) < len(asked):
                taken.append(option)
                self._remember(f"{dimension}: {option}", [first], [])
            elif first.answer is Answer.NO or no:
                refused.append(option)
                self._remember(f"{dimension}: {option}", [], no)
        return taken, refused, everything

    def _remember(self, title: str, yes: Sequence[Asked], no: Sequence[Asked]) -> None:
        """Keep one sample of either side of a boundary, to test the rule with."""
        for kind, asked in (("match", yes), ("no_match", no)):
            if asked:
                small = min(asked, key=lambda a: _size(a.sample.program))
                self.cases.append(Case(kind, title, small.sample))

    # --- the dimensions --------------------------------------------------------------------------

    def _lines(self) -> None:
        """Is each line needed? Sinks first: what they read becomes an output."""
        for line in reversed(self.draft.nodes):
            if len(self.draft.nodes) == 1:
                return
            dimension = f"line {line.name} ({'|'.join(line.ops)})"
            smaller = self._smaller(line.name)
            asked = self._ask(
                [
                    *self._draw(dimension, smaller, [()]),
                    *self._draw(dimension, smaller, [()] * (self.effort.samples // 2), stray=0.2),
                ],
                stop=1,
            )
            yes = [a for a in asked if a.answer is Answer.YES]
            no = [a for a in asked if a.answer is Answer.NO]
            kept = bool(yes) and not no
            why = "all trigger without it" if kept else "without it, some do not trigger"
            if not yes and not no:
                why = "the target takes no program without it"
            self.record.add(dimension, "there", "not there", asked, kept, why)
            if kept:
                self.draft = smaller
            else:
                self._remember(f"without {'|'.join(line.ops)}", [], no)

    def _smaller(self, name: str) -> Draft:
        """The draft without a line. What the line made and others read is a source now, as it is in
        the program; of what it alone read nothing is said any more."""
        line = self.draft.node(name)
        smaller = self.draft.without_node(name)
        read = {t for n in smaller.nodes for t in n.reads}
        freed = [t for t in smaller.sources if maker(t) == name]
        gone = (
            {t for n in self.draft.nodes for t in n.reads} - read - {n.name for n in smaller.nodes}
        )
        smaller = smaller.without(*(c for t in gone for c in smaller.about(t)))
        smaller = smaller.without(
            *(c for c in smaller.conditions if _is_about_context(c, (*line.reads, *freed)))
        )
        return smaller.with_(*(c for t in freed for c in _source_conditions(t, self.place)))

    def _opset(self) -> None:
        said = [c for c in self.draft.conditions if getattr(c, "term", None) == Term("opset")]
        if said:
            now = self.place.graph.opsets.get("", OPSETS[0])
            wishes = [(Wish("opset", "", "", v),) for v in OPSETS if v != now]
            self._relax("opset", said, wishes, learn=_mentions(Term("opset")))

    def _context(self) -> None:
        """Outputs, and readers besides the lines."""
        n = max(2, self.effort.samples // 2)
        for tensor in self.draft.tensors:
            for condition in self.draft.about(tensor):
                if isinstance(condition, Holds) and condition.relation == "graph_output":
                    wish = Wish("output", tensor, "", True) if condition.negated else None
                    wish = wish or Wish("reader", tensor, "", True)
                    title = "also an output" if condition.negated else "not an output"
                    fan = Within(Term("fanout", tensor), 0, 0)
                    name = f"{tensor} {title}"
                    self._relax(name, [condition, fan], [(wish,)] * n, learn=_is_near(tensor))
                elif _terms(condition) == {Term("fanout", tensor)}:
                    title = f"{tensor} read once more"
                    wishes = [(Wish("reader", tensor, "", True),)] * n
                    kept = condition not in self.draft.conditions or self._relax(
                        title, [condition], wishes
                    )
                    if not kept and self.record.experiments[-1].count(Answer.YES):
                        self._readers(tensor, condition)

    def _results(self) -> None:
        """Results after the first: must they be asked for, or not?"""
        for line in self.draft.nodes:
            for condition in self.draft.about(line.name):
                if isinstance(condition, Holds) and condition.relation == "output":
                    wish = Wish("result", line.name, int(condition.key), condition.negated)
                    title = f"result {condition.key} of {line.name}"
                    title += " asked for" if condition.negated else " not asked for"
                    self._relax(title, [condition], [(wish,)] * max(2, self.effort.samples // 2))

    def _readers(self, tensor: str, condition: Condition) -> None:
        """Some readers besides the lines do no harm, others do: which? Those that do are mostly
        rewritten together with a line (two equal nodes become one)."""
        ops = list(self.sampling.unary(self.place.tensors[tensor].type))
        lines = {n.ops[0] for n in self.draft.nodes if n.ops and tensor in n.reads}
        few = max(4, self.effort.kin // 4)
        chosen = sorted({*ops[:: max(1, len(ops) // few)], *(lines & set(ops))})
        dimension = f"operators that read {tensor} besides"
        relaxed = self.draft.without(condition)
        options: list[tuple[Attribute, Sequence[Wish]]] = [
            (op, (Wish("reader", tensor, "", op),)) for op in chosen
        ]
        taken, refused, asked = self._choose(dimension, relaxed, options)
        kept = len(taken) >= 2 * len(refused)
        why = f"{len(taken)} of {len(taken) + len(refused)} do no harm"
        if refused:
            why += f", but {', '.join(map(str, refused))}"
        # a condition on users cannot tell a second node from the line's own
        harmful = tuple(sorted(str(op) for op in refused if op not in lines))
        after = Near("user", tensor, harmful, negated=True)
        said = str(after) if harmful else "anything"
        self.record.add(dimension, str(condition), said, asked, kept, why)
        if kept:
            self.draft = relaxed.with_(after) if harmful else relaxed
            self.record.reasons[after] = f"{dimension}: {why}"

    def _values(self) -> None:
        for tensor in self.draft.sources:
            said = [c for c in self.draft.about(tensor) if _is_about_values(c)]
            if not said:
                continue
            tries: list[Attribute] = ["drawn", "drawn", "special", "drawn"]
            tries += [0.0, 1.0, -1.0, 2.0, 0.5, "special"]
            now = Term("value", tensor).read(self.place)
            if is_number(now):
                tries += [float(now) + 1, float(now) / 2, -float(now)]
            self._relax(
                f"values of {tensor}",
                said,
                [
                    (Wish("values", tensor, "", v), Wish("role", tensor, "", "stored"))
                    for v in tries
                ],
                learn=_is_about_values_of(tensor),
            )

    def _roles(self) -> None:
        """Input, stored, or computed: one set for each source."""
        for tensor in self.draft.sources:
            said = [c for c in self.draft.about(tensor) if _is_about_role(c)]
            if not said or any(_is_about_values(c) for c in self.draft.about(tensor)):
                continue
            dimension = f"where {tensor} comes from"
            relaxed = self.draft.without(*said)
            now = "stored" if self.place.tensors[tensor].role is Role.INITIALIZER else "input"
            options: list[tuple[Attribute, Sequence[Wish]]] = [
                (role, (Wish("role", tensor, "", role),)) for role in ROLES if role != now
            ]
            taken, refused, asked = self._choose(dimension, relaxed, options)
            new = _role_conditions(tensor, {now, *map(str, taken)}, {str(r) for r in refused})
            after = ", ".join(map(str, new)) or "anything"
            before = ", ".join(map(str, said))
            kept = bool(taken) or set(new) != set(said)
            why = f"triggers if it is {', '.join([now, *map(str, taken)])}"
            if refused:
                why += f"; not if it is {', '.join(map(str, refused))}"
            self.record.add(dimension, before, after, asked, kept, why)
            self.draft = relaxed.with_(*new)
            for condition in new:
                self.record.reasons[condition] = why

    def _operands(self) -> None:
        """Operands that may be left out, or added."""
        for line in self.draft.nodes:
            if len(line.ops) == 1:
                self._optional_operands(line)

    def _orders(self) -> None:
        for line in self.draft.nodes:
            self._order(line)

    def _splits(self) -> None:
        for tensor in self.draft.sources:
            self._split(tensor)

    def _split(self, tensor: str) -> None:
        """Must a source that is read twice be the same tensor in both places?"""
        uses = [
            (line.name, position)
            for line in self.draft.nodes
            for position, name in enumerate(line.operands)
            if name == tensor
        ]
        for number, (name, position) in enumerate(uses[1:], 2):
            line = self.draft.node(name)
            other = f"{tensor}{chr(ord('a') + number - 1)}"
            operands = list(line.operands)
            operands[position] = other
            relaxed = self.draft.with_node(replace(line, operands=tuple(operands)))
            place, self.place = self.place, _with_tensor(self.place, other, tensor)
            relaxed = relaxed.with_(*_source_conditions(other, self.place))
            relaxed = relaxed.without(
                *(c for c in relaxed.conditions if _is_about_context(c, [tensor]))
            )
            title = f"{tensor} in line {name}: another tensor"
            wishes: list[Sequence[Wish]] = [()] * self.effort.samples
            distinct = Distinct(tensor, other)
            if not self._attempt(title, relaxed, wishes, distinct.holds, "the same", "any"):
                self.place = place

    def _optional_operands(self, line: DraftNode) -> None:
        ports = self.sampling.signatures[line.ops[0]].plan.decl.params
        many = self.sampling.signatures[line.ops[0]].variadic
        for position, port in enumerate(ports):
            now = line.operands[position] if position < len(line.operands) else None
            if not port.optional or many:
                continue
            if now is not None and sum(now in n.reads for n in self.draft.nodes) > 1:
                continue
            if now is not None and maker(now) in {n.name for n in self.draft.nodes}:
                continue
            dimension = f"operand `{port.name}` of {line.name} {'left out' if now else 'given'}"
            operands = list(line.operands)
            operands += [None] * (position + 1 - len(operands))
            operands[position] = ANYTHING
            relaxed = self.draft.with_node(replace(line, operands=tuple(operands)))
            if now is not None:
                relaxed = relaxed.without(*(c for c in relaxed.conditions if now in c.names))
            wish = Wish("operand", line.name, position, None if now else f"o{position}")
            wishes = [(wish,)] * self.effort.samples
            if self._attempt(dimension, relaxed, wishes, None, "as it is", "either", _is_plain):
                line = self.draft.node(line.name)

    def _order(self, line: DraftNode) -> None:
        reads = [t for t in line.operands if t is not None and t != ANYTHING]
        if len(line.operands) < 2 or len(reads) < 2 or reads[0] == reads[1]:
            return
        if line.operands[:2] != tuple(reads[:2]):
            return
        dimension = f"operands of {line.name} in the other order"
        relaxed = self.draft.with_node(replace(line, unordered=True))
        wishes = [(Wish("swap", line.name, 0),)] * max(2, self.effort.samples // 2)
        self._attempt(dimension, relaxed, wishes, None, "this order", "any order")

    def _attributes(self) -> None:
        for line in self.draft.nodes:
            plan = self.sampling.signatures[line.ops[0]].plan
            for attribute in plan.attributes:
                said = [
                    c
                    for c in self.draft.about(line.name)
                    if _attribute_of(c) == (line.name, attribute.name)
                ]
                if said and not self.needed.issuperset(said):
                    self._attribute(line, attribute.name, attribute.type, said)

    def _attribute(self, line: DraftNode, key: str, type: str, said: list[Condition]) -> None:
        dimension = f"{key} of {line.name} ({line.ops[0]})"
        now = self.place.nodes[line.name].attributes.get(key)

        def wish(value: Attribute | None) -> tuple[Wish, ...]:
            return (Wish("attr", line.name, key, value),)

        wishes: list[tuple[Wish, ...]] = [wish(DRAWN)] * self.effort.samples
        if type in ("dtype", "sym") and isinstance(now, str) and len(said) == 1:
            self._words(dimension, line, key, now, said[0])
            return
        match type:
            case "bool":
                wishes = [wish(not now)] * max(2, self.effort.samples // 2)
            case "float":
                near = [now * 2, now + 1.0, -now] if isinstance(now, float) else []
                wishes = [wish(v) for v in (*_FLOATS, *near) if v != now]
            case "int":
                around = [now - 1, now + 1] if isinstance(now, int) else []
                numbers = dict.fromkeys((*around, 0, 1, 2, 3, -1))
                wishes = [wish(v) for v in numbers if v != now] + wishes
            case _:
                pass
        optional = next(
            a.optional
            for a in self.sampling.signatures[line.ops[0]].plan.attributes
            if a.name == key
        )
        present = Holds("attr", line.name, key)

        def about(condition: Condition) -> bool:
            return (line.name, key) in _attributes_in(condition)

        if optional and now is not None:
            if self._relax(dimension, said, wishes, into=[present], learn=about):
                left = [
                    c for c in self.draft.about(line.name) if _attribute_of(c) == (line.name, key)
                ]
                n = max(2, self.effort.samples // 2)
                if left == [present]:
                    self._relax(f"{dimension} left out", left, [wish(None)] * n)
            return
        if self._relax(dimension, said, wishes, learn=about):
            return
        if isinstance(now, tuple) and any(c in self.draft.conditions for c in said):
            if len(now) >= 2 and now == tuple(range(len(now))):
                # the same at this rank, and what stays the same at another
                same = Holds("identity", line.name, key)
                self.draft = self.draft.exchanged(said[0], same)
                self.needed.add(same)
            else:
                self._list(line, key, now, said)

    def _words(self, dimension: str, line: DraftNode, key: str, now: str, said: Condition) -> None:
        """An attribute whose values are words: each that the operator has is tried."""
        prepared = self.sampling.sampler(line.ops[0]).attributes.values()
        members = next((a.members for a in prepared if a.plan.name == key), None)
        words = [str(m) for m in members or _DTYPES if m != now]
        options: list[tuple[Attribute, Sequence[Wish]]] = [
            (word, (Wish("attr", line.name, key, word),)) for word in words
        ]
        relaxed = self.draft.without(said)
        taken, refused, asked = self._choose(dimension, relaxed, options)
        new = Among(Term("attr", line.name, key), (now, *taken))
        why = f"triggers with {', '.join(map(str, new.values))}"
        why += f"; not with {', '.join(map(str, refused))}" if refused else ""
        kept = bool(taken)
        after = str(new) if refused else "anything"
        self.record.add(dimension, str(said), after if kept else str(said), asked, kept, why)
        if kept:
            self.draft = self.draft.exchanged(said, new) if refused else relaxed
            self.record.reasons[new] = why
        self.needed.add(new if kept else said)

    def _list(
        self, line: DraftNode, key: str, now: tuple[Scalar, ...], said: Sequence[Condition]
    ) -> None:
        """A list attribute that matters: item by item, or as an identity."""
        items: list[Condition] = [
            Within(term, item, item) if is_number(item) else Among(term, (item,))
            for i, item in enumerate(now)
            for term in [Term("item", line.name, key, i)]
        ]
        if any(_attribute_of(c) != (line.name, key) for c in items) or len(items) > 12:
            return
        length = Within(Term("len", line.name, key), len(now), len(now))
        whole = self.draft
        self.draft = whole.without(*said).with_(length, *items)
        dropped_some = False
        for i, item in enumerate(items):
            value = now[i]
            if not isinstance(value, int) or isinstance(value, bool):
                continue
            wishes = [
                (Wish("attr", line.name, key, (*now[:i], other, *now[i + 1 :])),)
                for other in (value + 1, value - 1, value + 2, 0, 1, value + 5)
                if other != value
            ]
            term = Term("item", line.name, key, i)
            dropped_some |= self._relax(
                f"{key}[{i}] of {line.name}", [item], wishes,
                learn=_mentions(term),
            )  # fmt: skip
        if not dropped_some:
            self.draft = whole

    def _extents(self) -> None:
        for tensor in self.draft.sources:
            rank = self.place.tensors[tensor].type.rank or 0
            for axis in range(rank):
                term = Term("dim", tensor, "", axis)
                said = [c for c in self.draft.conditions if _terms(c) == {term}]
                if said:
                    self._extent(term, said)
        self._empties()

    def _extent(self, term: Term, said: list[Condition]) -> None:
        now = term.read(self.place)
        assert isinstance(now, int)
        # on both sides, near and far: where a bound is, the first few show it
        near = (now + 1, now - 1, 2 * now, 1, 33, 2)
        values = [v for v in dict.fromkeys((*near, *_EXTENTS)) if v > 0]
        wishes = [(Wish("dim", term.of, term.index, v),) for v in values if v != now]
        if self.effort.samples < 8:
            wishes = wishes[: self.effort.samples]

        rank = self.place.tensors[term.of].type.rank or 0
        own = {term, replace(term, index=term.index - rank)}
        sources = set(self.draft.sources)
        results = self._downstream(term.of)

        def about(condition: Condition) -> bool:
            # what matters may be the extent of what is made: a window's, a sum's
            return any(
                (t.kind == "numel" and t.of in sources | results)
                or (t.kind == "dim" and (t in own or t.of in results))
                for t in _terms(condition)
            )

        if self._relax(str(term), said, wishes, learn=about):
            return
        linked = [
            c
            for c in self.draft.conditions
            if isinstance(c, Within) and c.term.kind == "dim" and c.low == c.high == now
        ]
        others = [c.term for c in linked if isinstance(c, Within) and c.term != term]
        if said[0] in linked and others:
            together = [
                (
                    Wish("dim", term.of, term.index, v),
                    *(Wish("dim", t.of, t.index, v) for t in others),
                )
                for v in values
                if v != now
            ]
            equal = [Related(term, "==", other) for other in others]
            self._relax(
                f"{term} and extents equal to it", linked, together, into=equal, learn=about
            )

    def _downstream(self, tensor: str) -> set[str]:
        """The results of lines, directly or not, that read a tensor."""
        reached: set[str] = set()
        for line in self.draft.nodes:
            if not reached.union((tensor,)).isdisjoint(line.reads):
                reached.add(line.name)
        return reached

    def _empties(self) -> None:
        """Tensors without elements, wherever an extent is free by now."""
        for tensor in self.draft.sources:
            rank = self.place.tensors[tensor].type.rank or 0
            free = [
                axis
                for axis in range(rank)
                if not any(
                    Term("dim", tensor, "", axis) in _terms(c) for c in self.draft.conditions
                )
            ]
            if not free or self.place.tensors[tensor].type.elements == 0:
                continue
            dimension = f"{tensor} without elements"
            wishes = [(Wish("dim", tensor, axis, 0),) for axis in free]
            asked = self._ask(self._draw(dimension, self.draft, wishes))
            no = [a for a in asked if a.answer is Answer.NO]
            kept = not no
            if no:
                condition = Within(Term("numel", tensor), 1, None)
                self.draft = self.draft.with_(condition)
                self.needed.add(condition)
                self.record.reasons[condition] = f"{len(no)} programs without elements pass"
                self._remember(dimension, [], no)
            why = "an empty tensor does not trigger" if no else "an empty tensor is no exception"
            self.record.add(dimension, "anything", "at least 1 element", asked, kept, why)

    def _empty_axes(self) -> None:
        """Where one axis is empty: must it be this one, or is it enough that some is?"""
        for tensor in self.draft.sources:
            rank = self.place.tensors[tensor].type.rank or 0
            for axis in range(rank):
                empty = Within(Term("dim", tensor, "", axis), 0, 0)
                if empty not in self.draft.conditions:
                    continue
                wishes = [
                    (
                        Wish("rank", tensor, "", size),
                        Wish("dim", tensor, axis, 2),
                        Wish("dim", tensor, other, 0),
                    )
                    for size in (rank + 1, rank)
                    for other in range(size)
                    if other != axis
                ]
                dims = [
                    c
                    for c in self.draft.about(tensor)
                    if {t.kind for t in _terms(c)} == {"dim"} and c != empty
                ]
                self._relax(
                    f"another empty axis of {tensor}",
                    [empty, *dims],
                    wishes * 2,
                    into=[Within(Term("numel", tensor), 0, 0)],
                    learn=_is_extent_of(tensor),
                )
                break

    def _single_elements(self) -> None:
        """Where each axis is 1: is it enough that there is one element?"""
        for tensor in self.draft.sources:
            rank = self.place.tensors[tensor].type.rank or 0
            dims = [Within(Term("dim", tensor, "", axis), 1, 1) for axis in range(rank)]
            if not dims or any(c not in self.draft.conditions for c in dims):
                continue
            said = [c for c in self.draft.about(tensor) if _terms(c) == {Term("rank", tensor)}]
            wishes = [
                (
                    Wish("rank", tensor, "", size),
                    *(Wish("dim", tensor, axis, 1) for axis in range(size)),
                )
                for size in (rank + 1, rank + 2, rank - 1)
                if size > 0
            ]
            title = f"one element of {tensor}, of whatever rank"
            one = Within(Term("numel", tensor), 1, 1)
            self._relax(title, [*dims, *said], wishes * 2, into=[one])

    def _ranks(self) -> None:
        for tensor in self.draft.sources:
            said = [c for c in self.draft.conditions if _terms(c) == {Term("rank", tensor)}]
            now = self.place.tensors[tensor].type.rank
            if not said or now is None:
                continue
            ranks = [r for r in dict.fromkeys((now + 1, now - 1, *_RANKS)) if r >= 0 and r != now]
            wishes = [(Wish("rank", tensor, "", r),) for _ in "ab" for r in ranks]
            learn = _mentions(Term("rank", tensor))
            if self._relax(f"rank of {tensor}", said, wishes, learn=learn):
                continue
            turned = self._from_the_back(tensor, now)
            if turned is not None:
                before, self.draft = self.draft, turned
                if not self._relax(
                    f"rank of {tensor}, axes from the back", said, wishes, learn=learn
                ):
                    self.draft = before

    def _scalar_results(self) -> None:
        """Must what is a scalar be one?"""
        for term in _scalars(self.draft, self.place):
            line = self.draft.node(term.of)
            read = line.reads[0]
            now = self.place.tensors[read].type.rank or 0
            plan = self.sampling.signatures[line.ops[0]].plan
            wishes: list[tuple[Wish, ...]] = [
                (Wish("rank", read, "", now + more),)
                for more in (1, 2)
                if read in self.draft.sources
            ]
            for attribute in plan.attributes:
                value = self.place.nodes[line.name].attributes.get(attribute.name)
                if isinstance(value, bool):
                    wishes.append((Wish("attr", line.name, attribute.name, not value),))
                elif isinstance(value, int | tuple):
                    wishes.append((Wish("attr", line.name, attribute.name, DRAWN),))
            self._relax(f"rank of {term.of}", [Within(term, 0, 0)], wishes)

    def _from_the_back(self, tensor: str, rank: int) -> Draft | None:
        """The draft with the tensor's axes counted from its end, if it names any."""
        draft = self.draft
        readers = {line.name for line in draft.nodes if tensor in line.reads[:1]}
        for condition in self.draft.conditions:
            match condition:
                case Within(Term("attr", of, key) as term, int(axis)) if (
                    key == "axis" and of in readers and condition.high == axis
                ):
                    back = Related(term, "==", Term("rank", tensor), axis - rank)
                    draft = draft.exchanged(condition, back)
            if isinstance(condition, Within | Among) and condition.term.kind == "dim":
                term = condition.term
                if term.of == tensor and term.index >= 0:
                    last = replace(term, index=term.index - rank)
                    draft = draft.exchanged(condition, replace(condition, term=last))
        return None if draft is self.draft else draft

    def _dtypes(self) -> None:
        done: set[str] = set()
        for tensor in self.draft.sources:
            now = self.place.tensors[tensor].type.dtype
            if tensor in done or now is None:
                continue
            alike = [
                t
                for t in self.draft.sources
                if self.place.tensors[t].type.dtype == now and t not in done
            ]
            said = [
                c for c in self.draft.conditions for t in alike if _terms(c) == {Term("dtype", t)}
            ]
            if not said:
                continue
            done |= set(alike)
            dimension = f"element type of {', '.join(alike)}"
            relaxed = self.draft.without(*said)
            options: list[tuple[Attribute, Sequence[Wish]]] = [
                (d, (Wish("dtype", tensor, "", d),)) for d in _DTYPES if d != now
            ]
            taken, refused, asked = self._choose(dimension, relaxed, options)
            members = sorted({now, *map(str, taken)}, key=list(DTYPES).index)
            label = self._named(members, [str(r) for r in refused])
            why = f"triggers in {', '.join(members)}"
            why += f"; not in {', '.join(map(str, refused))}" if refused else ""
            new: list[Condition] = []
            if refused:
                # an index keeps its own type: what only one operand has is said of that one
                new = [Among(Term("dtype", t), tuple(members), False, label) for t in alike]
            elif not taken:
                new = list(said)
            before = ", ".join(map(str, said))
            after = ", ".join(map(str, new)) or "anything"
            self.record.add(dimension, before, after, asked, set(new) != set(said), why)
            self.draft = relaxed.with_(*new)
            for condition in new:
                self.record.reasons[condition] = why

    def _named(self, members: Sequence[str], refused: Sequence[str]) -> str:
        """The smallest set of the library that has all members and none that were refused."""
        if len(members) < 2:
            return ""
        sets = self.sampling.signatures.symbols.sets
        fit = [
            (len(found.values), name)
            for name, found in sets.items()
            if set(members) <= set(found.values) and not set(refused) & set(found.values)
        ]
        least = min(fit, default=(0, ""))
        return least[1] if least[0] <= 2 * len(members) else ""

    def _operators(self) -> None:
        for line in self.draft.nodes:
            if len(line.ops) != 1:
                continue
            op = line.ops[0]
            asked_for = {
                name
                for c in self.draft.conditions
                for of, name in _attributes_in(c)
                if of == line.name
            }
            kin = self._kin(op, line, asked_for)
            if not kin:
                continue
            dimension = f"operator of {line.name}"
            relaxed = self.draft.with_node(replace(line, ops=()))
            options: list[tuple[Attribute, Sequence[Wish]]] = [
                (other, (Wish("op", line.name, "", other),)) for other in kin
            ]
            taken, refused, asked = self._choose(dimension, relaxed, options)
            apart = [o for o in taken if self._needs_no_more(line, str(o), asked)]
            taken = [o for o in taken if o not in apart]
            why = f"{op} only" if not taken else f"also {', '.join(map(str, taken))}"
            if apart:
                why += f"; {', '.join(map(str, apart))} triggers without the other lines"
            members = tuple(sorted({op, *map(str, taken)}))
            label = self._category(members, {str(r) for r in refused})
            after = label or "|".join(members)
            self.record.add(dimension, op, after, asked, bool(taken), why)
            if taken:
                self.draft = self.draft.with_node(replace(line, ops=members, label=label))

    def _needs_no_more(self, line: DraftNode, op: str, asked: list[Asked]) -> bool:
        """Whether another operator in a line's place triggers without some other line: then that is
        another pattern of the same defect."""
        for other in self.draft.nodes:
            if other.name == line.name:
                continue
            smaller = self._smaller(other.name).with_node(replace(line, ops=(op,)))
            dimension = f"operator of {line.name}/{op} without {other.name}"
            wish = Wish("op", line.name, "", op)
            answers = self._ask(self._draw(dimension, smaller, [(wish,)] * 2))
            asked += answers
            if any(a.answer is Answer.YES for a in answers):
                return True
        return False

    def _kin(self, op: str, line: DraftNode, attributes: set[str]) -> list[str]:
        """Operators that may do the same: of the same category first, then of the same form."""
        signatures = self.sampling.signatures
        mine = signatures[op]
        form = [(p.optional, p.variadic) for p in mine.plan.decl.params]
        found: list[tuple[int, str]] = []
        for name in signatures:
            other = signatures[name]
            if name == op or other.flags & LEFT_OUT or len(line.operands) > other.ports:
                continue
            if not attributes <= {a.name for a in other.plan.attributes}:
                continue
            if len(other.plan.decl.results) != len(mine.plan.decl.results):
                continue
            if other.category == mine.category:
                found.append((0, name))
            elif [(p.optional, p.variadic) for p in other.plan.decl.params] == form:
                found.append((1, name))
        return [name for _, name in sorted(found)][: self.effort.kin]

    def _category(self, members: Sequence[str], refused: set[str]) -> str:
        """The category that the members are all of, as far as could be tried."""
        signatures = self.sampling.signatures
        names = {signatures[m].category for m in members}
        if len(names) != 1 or len(members) < 3:
            return ""
        category = names.pop()
        everyone = {n for n in signatures if signatures[n].category == category}
        return category if category and not everyone & refused else ""

    def _implied(self) -> None:
        """Drop what no program that matches the rest can violate, and orders of operands of which
        nothing else is said."""
        for line in self.draft.nodes:
            others = [n for n in self.draft.nodes if n.name != line.name]
            told = {t for n in others for t in (n.name, *n.reads)}
            told |= {t for c in self.draft.conditions for t in c.names}
            if line.unordered and not told & set(line.reads[:2]):
                self.draft = self.draft.with_node(replace(line, unordered=False))
        for condition in self.draft.conditions:
            kinds = {term.kind for term in _terms(condition)}
            of_source = kinds == {"numel"} and condition.names <= set(self.draft.sources)
            needed = condition in self.needed and not of_source
            if needed or not _is_about_types(condition):
                continue
            rest = self.draft.without(condition)
            wishes = [_other(term) for term in sorted(_terms(condition), key=str)]
            name = f"implied/{condition}"
            every = [wish for choices in wishes for wish in choices] or [()]
            if not self._draw(name, rest, every, _violates(condition), stray=0.3):
                self.draft = rest
                why = "follows from the rest"
                self.record.add("implied", str(condition), "nothing", (), True, why)

    def _bounds_again(self) -> None:
        """A bound that was found before another condition was added may not be needed any more."""
        if not any("joint" in why for why in self.record.reasons.values()):
            return
        for condition in self.draft.conditions:
            terms = sorted(_terms(condition), key=str)
            if len(terms) != 1 or terms[0].kind not in ("dim", "rank"):
                continue
            if "joint" in self.record.reasons.get(condition, ""):
                continue
            term, wishes = terms[0], _other(terms[0])
            rank = self.place.tensors[term.of].type.rank or 0
            if term.kind == "dim":  # what is small in this way may be large in another
                others = [
                    Wish("dim", term.of, i, 33) for i in range(rank) if i != term.index % rank
                ]
                wishes = [*((*wish, *others) for wish in wishes), *wishes]
            self._relax(f"{condition} again", [condition], wishes)

    # --- all at once -----------------------------------------------------------------------------

    def _joint(self) -> None:
        """Fresh programs that differ in everything; add back what tells failures from triggers."""
        refuted: set[Condition] = set()
        for number in range(_ROUNDS):
            samples = self._fresh(number)
            asked = self._ask(samples)
            no = [a for a in asked if a.answer is Answer.NO]
            usable = sum(a.answer is not Answer.UNUSABLE for a in asked)
            self.record.fresh = (usable, usable - len(no))
            wrong = [p for s in self.passing for p in self.draft.places(s.place.around)]
            if not wrong:
                self.record.add(
                    f"joint check {number + 1}", "the rule", "the rule", asked, True,
                    f"all of {usable} fresh programs trigger",
                )  # fmt: skip
                return
            if not self._add_back(number, asked, wrong, refuted):
                return

    def _fresh(self, number: int) -> list[Sample]:
        """Two thirds vary the program, the others are made from the pattern's text alone."""
        half = 2 * self.effort.fresh // 3
        wishes: list[Sequence[Wish]] = [()] * half
        made = self._draw(f"joint/{number}", self.draft, wishes, stray=0.9)
        rng = Random(f"{self.seed}/witness/{number}")
        return [*made, *fresh_witnesses(self.draft, self.sampling, rng, self.effort.fresh - half)]

    def _add_back(
        self, number: int, asked: Sequence[Asked], wrong: Sequence[Place], refuted: set[Condition]
    ) -> bool:
        """Add the condition that excludes most of the ``wrong`` places, if programs that violate it
        do pass. Whether one was added."""
        dimension = f"joint check {number + 1}"
        for attempt in range(8):
            right = [p for s in self.triggers for p in [_trigger_place(self.draft, s)] if p]
            found = separators(self.draft, right, wrong, lambda c: c not in refuted, partial=True)
            if not found:
                self.record.add(
                    dimension, "the rule", "the rule", asked, False,
                    f"{len(wrong)} places do not trigger, and nothing tells them from the triggers",
                )  # fmt: skip
                return False
            condition = found[0]
            excluded = sum(not condition.holds(p) for p in wrong)
            wishes = self._violating(condition)
            name = f"{dimension}/{attempt}/{condition}"
            check = self._ask(self._draw(name, self.draft, wishes, _violates(condition), stray=0.6))
            yes = sum(a.answer is Answer.YES for a in check)
            no = sum(a.answer is Answer.NO for a in check)
            if no + excluded < _SEVERAL or not no or no < 3 * yes:
                refuted.add(condition)
                why = f"would exclude {excluded} that pass; of other programs that it excludes "
                why += f"{yes} trigger and {no} pass"
                self.record.add(dimension, "anything", str(condition), check, False, why)
                continue
            self.draft = self.draft.with_(condition)
            self.needed.add(condition)
            why = f"joint check: excludes {excluded} of {len(wrong)} places that do not trigger"
            self.record.reasons[condition] = why
            self.record.add(dimension, "anything", str(condition), [*asked, *check], True, why)
            return True
        return False

    def _violating(self, condition: Condition) -> list[Sequence[Wish]]:
        """Wishes that may make samples violate a condition, and as many that leave it to chance."""
        directed: list[Sequence[Wish]] = []
        for term in sorted(_terms(condition), key=str):
            directed += _other(term)
            if term.kind == "numel":
                axes = range(self.place.tensors[term.of].type.rank or 0)
                directed += [tuple(Wish("dim", term.of, i, e) for i in axes) for e in (1, 2, 5)]
        rng = Random(f"{self.seed}/violating/{condition}")
        rng.shuffle(directed)
        return [*directed[: self.effort.samples], *[()] * self.effort.samples]


# --- what is told apart ---------------------------------------------------------------------------


def separators(
    draft: Draft,
    right: Sequence[Place],
    wrong: Sequence[Place],
    allowed: Callable[[Condition], bool],
    *,
    partial: bool = False,
) -> list[Condition]:
    """Conditions that hold at all ``right`` places and together at no ``wrong`` one: one, or two.
    With ``partial``, the best single one, which need not exclude every wrong place. Empty if there
    are none."""
    if not right:
        return []
    right = [right[0], *right[1:][-_MOST_RIGHT:]]
    usual = [c for c in conditions_of(right[0], draft) if not _is_odd_bound(c)]
    usual += _bounds(draft, right, int)
    usual += _without_neighbours(draft, right, wrong)
    # a bound on a float is some number between two that were seen: only if 0 or 1 are none
    for more in ((), tuple(_bounds(draft, right, float))):
        candidates = [
            c
            for c in dict.fromkeys((*usual, *more))
            if allowed(c) and all(c.holds(place) for place in right[1:])
        ]
        chosen = _cover(candidates, wrong, 1 if partial else 2, draft.sources)
        if chosen and (partial or not any(holds_all(chosen, place) for place in wrong)):
            return chosen
    return []


def _is_odd_bound(condition: Condition) -> bool:
    """Whether it bounds a float on one side, by a number that just happened to be there."""
    if not isinstance(condition, Within) or (condition.low is None) == (condition.high is None):
        return False
    bound = condition.high if condition.low is None else condition.low
    return isinstance(bound, float) and bound not in (-1.0, 0.0, 1.0)


def _cover(
    candidates: Sequence[Condition], wrong: Sequence[Place], most: int, sources: Collection[str]
) -> list[Condition]:
    """Greedily, the conditions that leave the fewest places, the plainest of equals."""
    chosen: list[Condition] = []
    left = list(wrong)
    while left and candidates and len(chosen) < most:
        best = min(
            candidates,
            key=lambda c: (sum(c.holds(p) for p in left), *_plainest_first(c, sources)),
        )
        remaining = [p for p in left if best.holds(p)]
        if len(remaining) == len(left):
            break
        chosen.append(best)
        left = remaining
    return chosen


def _bounds(draft: Draft, right: Sequence[Place], kind: type) -> Iterator[Condition]:
    """The least and the greatest value of each number of a kind, over all places."""
    terms = {c.term for c in conditions_of(right[0], draft) if isinstance(c, Within)}
    for term in sorted(terms, key=str):
        found = [term.read(place) for place in right]
        numbers = [v for v in found if is_number(v) and isinstance(v, kind)]
        if len(numbers) == len(found):
            yield Within(term, min(numbers), None)
            yield Within(term, None, max(numbers))


def _without_neighbours(
    draft: Draft, right: Sequence[Place], wrong: Sequence[Place]
) -> Iterator[Condition]:
    """For each tensor: none of the operators reads it, or makes it, that do so at ``wrong`` places
    only, if there are several such places."""
    for tensor in draft.tensors:
        for where in ("user", "producer"):
            seen = [
                {op for p in places for op in p.around.near(where, p.tensors[tensor])}
                for places in (right, wrong)
                if all(tensor in p.tensors for p in places)
            ]
            if len(seen) < 2:
                continue
            only = seen[1] - seen[0]
            places = sum(bool(p.around.near(where, p.tensors[tensor]) & only) for p in wrong)
            if places >= _SEVERAL:
                yield Near(where, tensor, tuple(sorted(only)), negated=True)


def _plainest_first(
    condition: Condition, sources: Collection[str]
) -> tuple[int, bool, bool, int, str]:
    text = str(condition)
    computed = not condition.names <= set(sources)
    return plainness(condition), computed, "[-" in text, len(text), text


def plainness(condition: Condition) -> int:
    """How much a person would rather read another condition: element types and constness before
    bounds, bounds before exact numbers and what relates two things."""
    match condition:
        case Among(Term("dtype"), negated=False) | Holds("constant" | "initializer" | "identity"):
            return 0
        case Holds():
            return 1
        case Within(Term("rank" | "fanout")):
            return 2
        case Within(_, low, high) if low is None or high is None:
            return 3
        case Related(_, "==") | Distinct():
            return 4
        case Among(label=label) if label:  # a known set rather than the members that were met
            return 4
        case Among(_, _, True):
            return 5
        case Within():
            return 6
        case Near():
            return 9
        case _:
            return 7


# --- the most specific draft ----------------------------------------------------------------------


def specific(
    draft: Draft, place: Place, results_of: Callable[[str], int] = lambda op: 1
) -> list[Condition]:
    """What a draft of a program says of it to begin with: each thing once, as exactly as it can.
    ``results_of``: how many results an operator has."""
    found: list[Condition] = []
    for line in draft.nodes:
        for key, value in _declared(place, line):
            term = Term("attr", line.name, key)
            exact = Within(term, value, value) if is_number(value) else Among(term, (value,))
            found.append(exact)
        node = place.nodes[line.name]
        for number in range(1, results_of(line.ops[0])):
            there = number < len(node.outputs) and node.outputs[number] is not None
            found.append(Holds("output", line.name, str(number), negated=not there))
    for tensor in draft.sources:
        found += _source_conditions(tensor, place)
    for tensor in draft.tensors:
        at = place.tensors[tensor]
        count = len(place.around.readers[at.id])
        found.append(Within(Term("fanout", tensor), count, count))
        if at.role is Role.COMPUTED:
            found.append(Holds("graph_output", tensor, negated=at.id not in place.around.outputs))
    found += (Within(rank, 0, 0) for rank in _scalars(draft, place))
    opset = Term("opset").read(place)
    if isinstance(opset, int):
        found.append(Within(Term("opset"), opset, opset))
    return found


def _scalars(draft: Draft, place: Place) -> list[Term]:
    """The ranks of results that are scalars though what they are made from is not: said of a
    reduction, it stands for as many axes as its operand happens to have."""
    return [
        Term("rank", line.name)
        for line in draft.nodes
        if place.tensors[line.name].type.rank == 0
        and any(place.tensors[name].type.rank for name in line.reads)
    ]


def _declared(place: Place, line: DraftNode) -> Iterator[tuple[str, Attribute]]:
    """A node's attributes that are no other spelling of another one."""
    node = place.nodes[line.name]
    both = {"axis": "axes", "stride": "strides", "pad": "pads", "dilation": "dilations"}
    both |= {"kernel_size": "kernel"}
    for key, value in sorted(node.attributes.items()):
        if both.get(key) not in node.attributes:
            yield key, value


def _source_conditions(tensor: str, place: Place) -> list[Condition]:
    """Element type, rank, extents, where the value comes from, and the value if it is stored."""
    at = place.tensors[tensor]
    found: list[Condition] = []
    if at.type.dtype is not None:
        found.append(Among(Term("dtype", tensor), (at.type.dtype,)))
    if at.type.shape is not None:
        found.append(Within(Term("rank", tensor), len(at.type.shape), len(at.type.shape)))
        for axis, extent in enumerate(at.type.shape):
            if isinstance(extent, int):
                found.append(Within(Term("dim", tensor, "", axis), extent, extent))
    if at.role is Role.INITIALIZER:
        found.append(Holds("initializer", tensor))
        for kind in ("value", "min", "max"):
            value = Term(kind, tensor).read(place)
            if value is not None:
                term = Term(kind, tensor)
                found.append(
                    Within(term, value, value) if is_number(value) else Among(term, (value,))
                )
                if kind == "value":
                    break
    elif at.role is Role.INPUT:
        found.append(Holds("graph_input", tensor))
    return found


def _with_tensor(place: Place, name: str, like: str) -> Place:
    """The place with another name for one of its tensors."""
    return Place(place.around, place.nodes, {**place.tensors, name: place.tensors[like]})


def _role_conditions(tensor: str, taken: set[str], refused: set[str]) -> list[Condition]:
    """What says that a tensor comes from one of ``taken`` and from none of ``refused``."""
    choices: list[tuple[Condition | None, set[str]]] = [
        (None, set(ROLES)),
        (Holds("constant", tensor, negated=True), {"input", "computed"}),
        (Holds("constant", tensor), {"stored", "folded"}),
        (Holds("initializer", tensor), {"stored"}),
        (Holds("initializer", tensor, negated=True), {"input", "computed", "folded"}),
        (Holds("graph_input", tensor), {"input"}),
        (Holds("graph_input", tensor, negated=True), {"stored", "computed", "folded"}),
        (Holds("derived_constant", tensor, negated=True), {"input", "computed", "stored"}),
    ]
    for condition, allows in choices:
        if taken <= allows and not refused & allows:
            return [] if condition is None else [condition]
    first = Holds("graph_input", tensor) if "input" in taken else Holds("initializer", tensor)
    return [first]


def _other(term: Term) -> list[tuple[Wish, ...]]:
    """Wishes that may make a term something else."""
    match term.kind:
        case "dtype":
            return [(Wish("dtype", term.of, "", dtype),) for dtype in _DTYPES]
        case "rank":
            return [(Wish("rank", term.of, "", rank),) for rank in _RANKS]
        case "dim":
            return [(Wish("dim", term.of, term.index, extent),) for extent in (0, *_EXTENTS)]
        case "numel":
            return [(Wish("dim", term.of, axis, extent),) for axis in range(4) for extent in (0, 1)]
        case "attr" | "item" | "len":
            return [(Wish("attr", term.of, term.key, DRAWN),)] * 6
        case _:
            return [()] * 6


def _violates(condition: Condition) -> Accept:
    return lambda place: not condition.holds(place)


def _mentions(term: Term) -> Callable[[Condition], bool]:
    return lambda condition: term in _terms(condition)


def _is_extent_of(tensor: str) -> Learn:
    return lambda condition: any(
        t.kind in ("dim", "axis") and t.of == tensor for t in _terms(condition)
    )


def _is_near(tensor: str) -> Learn:
    return lambda condition: isinstance(condition, Near) and condition.of == tensor


def _is_about_values_of(tensor: str) -> Callable[[Condition], bool]:
    return lambda condition: _is_about_values(condition) and tensor in condition.names


def _is_plain(condition: Condition) -> bool:
    """Whether it is about single tensors and attributes, not about what is around them."""
    return not isinstance(condition, Near | Distinct | Related)


# --- small questions ------------------------------------------------------------------------------

_DTYPES = (
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip


def _terms(condition: Condition) -> set[Term]:
    match condition:
        case Related(left, _, right):
            return {left, right}
        case Holds() | Near() | Distinct():
            return set()
        case _:
            return {condition.term}


def _is_about_types(condition: Condition) -> bool:
    """Whether it is about element types, shapes or attributes, which signatures relate."""
    if isinstance(condition, Holds) and condition.relation == "output":
        return False
    kinds = {t.kind for t in _terms(condition)}
    return bool(kinds & {"dtype", "rank", "dim", "axis", "numel", "attr", "item", "len"}) or (
        isinstance(condition, Holds) and bool(condition.key)
    )


def _is_rank_of(condition: Condition, tensors: Collection[str]) -> bool:
    """Whether it is about the rank of one of some tensors."""
    return any(t.kind == "rank" and t.of in tensors for t in _terms(condition))


def _is_about_values(condition: Condition) -> bool:
    if isinstance(condition, Holds):
        return condition.relation in ("has_nan", "has_inf", "has_negzero", "integral")
    return bool({t.kind for t in _terms(condition)} & {"value", "min", "max", "at"})


def _is_about_role(condition: Condition) -> bool:
    return isinstance(condition, Holds) and condition.relation in (
        "initializer", "constant", "derived_constant", "graph_input", "varies",
    )  # fmt: skip


def _is_about_context(condition: Condition, tensors: Iterable[str]) -> bool:
    """Whether it is about who reads one of some tensors."""
    if not condition.names & set(tensors):
        return False
    if isinstance(condition, Holds):
        return condition.relation == "graph_output"
    return any(t.kind == "fanout" for t in _terms(condition))


def _attribute_of(condition: Condition) -> tuple[str, str] | None:
    """The one attribute that a condition is about."""
    found = _attributes_in(condition)
    return next(iter(found)) if len(found) == 1 else None


def _attributes_in(condition: Condition) -> set[tuple[str, str]]:
    if isinstance(condition, Holds):
        is_one = condition.relation in ("attr", "identity")
        return {(condition.of, condition.key)} if is_one else set()
    found = {(t.of, t.key) for t in _terms(condition) if t.kind in ("attr", "item", "len")}
    named = (t.key.partition(".") for t in _terms(condition) if t.kind == "axis")
    return found | {(node, attribute) for node, _, attribute in named}


def _wish_key(term: Term) -> str | int:
    return term.index if term.kind == "dim" else term.key


def _wishes_of(dimension: str, yes: Sequence[Asked]) -> list[Sequence[Wish]]:
    """As many free wishes as there were triggers, a few at most."""
    return [()] * min(4, len(yes))


def _trigger_place(draft: Draft, sample: Sample) -> Place | None:
    """Where a draft matches a sample: at the sample's own place if it does."""
    for place in draft.places(sample.place.around):
        return place
    return None


def _size(program: Program) -> tuple[int, int]:
    elements = sum(t.type.elements or 0 for t in program.graph.tensors)
    return len(program.graph.nodes), elements


__all__ = ["Effort", "Generaliser", "Progress", "Spent", "separators", "silent", "specific"]
