"""Hold a new rule against programs that it has not seen (first paper, §3.4).

A pattern that matches a program that passes is too general: the condition is added that tells the
false match from all known triggers and from most of the other false matches, and the rule is held
against the programs again. After ten rounds, or when nothing tells them apart, it is discarded.

The programs are of three kinds. A *corpus* (``corpus.py``) is random programs, which match a new
rule hardly ever: it shows that the rule costs nothing elsewhere. The *neighbourhood* is programs
made of the rule's own operators, which come close to it all the time. Half of both is for finding
false matches, the other half for saying how good the rule is: precision (of the programs that
match, those that fail) and recall (of the programs that fail, those that match).

A wrong result shows on some values only. So a program that matches and passes is tried on other
inputs before its match is called false.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from reprise.campaign.metrics import Rate, rate
from reprise.campaign.source import SourceRequest, open_source
from reprise.distill.conditions import Condition, Place, Surroundings
from reprise.distill.corpus import FIRST_SEED, Corpus
from reprise.distill.draft import Draft, conditions_of
from reprise.distill.subject import input_values
from reprise.distill.trials import Shown, Trials
from reprise.facts.errors import ModelError
from reprise.oracle.verdict import Verdict
from reprise.solve.signatures import Signatures
from reprise.synth.options import Options, OptionsError
from reprise.uir.graph import Graph
from reprise.uir.program import Program

ROUNDS = 10
"""As in the paper."""
_OTHER_INPUTS = 4
_NODES = 5
_COMPANIONS = ("identity", "add", "mul", "neg", "reshape", "transpose")
"""Operators of a neighbourhood besides the rule's own."""


@dataclass(frozen=True)
class Held:
    """A program that the rule has not seen. ``fails``: it shows the rule's defect."""

    program: Program
    fails: bool

    @property
    def graph(self) -> Graph:
        return self.program.graph


@dataclass(frozen=True)
class Score:
    """How good a rule is, on programs that nothing was learned from, with intervals of 95 %.

    ``precision``: of the programs that match, those that fail. ``recall``: of the programs that
    fail, those that match. ``false_alarms``: of the programs that pass, those that match.
    """

    precision: Rate
    recall: Rate
    false_alarms: Rate


@dataclass(frozen=True)
class Round:
    """One round: how many matches were false, what was added against them, and how many of them it
    excludes."""

    false: int
    added: Condition | None
    excludes: int = 0


@dataclass(frozen=True)
class Tightened:
    """``draft`` is None if the rule was discarded, for ``reason``. ``score`` is the rule's as it
    is in the end, ``before`` as it came."""

    draft: Draft | None
    rounds: tuple[Round, ...]
    before: Score
    score: Score
    reason: str = ""


@dataclass
class HeldOut:
    """Held-out programs, in two halves by turns: the first to learn from, the other to tell how
    good a rule is."""

    learn: list[Held] = field(default_factory=list)
    tell: list[Held] = field(default_factory=list)

    def extend(self, programs: Iterable[Held]) -> None:
        """Passing and failing programs take turns separately, so that both halves have both."""
        for held in programs:
            ours = sum(h.fails is held.fails for h in self.learn)
            theirs = sum(h.fails is held.fails for h in self.tell)
            (self.learn if ours <= theirs else self.tell).append(held)


def tighten(
    draft: Draft,
    triggers: Sequence[Program],
    held: HeldOut,
    trials: Trials,
    *,
    rounds: int = ROUNDS,
    tell: Callable[[Round], None] = lambda done: None,
) -> Tightened:
    """Add conditions until no passing program of the first half is matched.

    ``triggers``: programs that show the defect and that the draft matches; every condition that is
    added holds of all of them, and of all failing programs of the first half that it matches.
    Raises TargetError.
    """
    passing = [Surroundings(h.graph) for h in held.learn if not h.fails]
    failing = [h.program for h in held.learn if h.fails]
    before = score(draft, held.tell, trials)
    done: list[Round] = []
    proven: set[int] = set()  # matches that turned out to be right on other inputs
    programs = [h.program for h in held.learn if not h.fails]
    while True:
        false: list[Place] = []
        for number, around in enumerate(passing):
            if number in proven:
                continue
            places = list(draft.places(around))
            if places and _fails_elsewhere(programs[number], trials, number):
                proven.add(number)
                continue
            false += places
        if not false:
            return Tightened(draft, tuple(done), before, score(draft, held.tell, trials))
        if len(done) >= rounds:
            reason = f"{len(false)} matches are still false after {rounds} rounds"
            return Tightened(None, tuple(done), before, before, reason)
        shown = _trigger_places(draft, [*triggers, *failing])
        found = separating(draft, shown, false)
        if found is None:
            done.append(Round(len(false), None))
            tell(done[-1])
            reason = f"nothing tells {len(false)} false matches from the {len(shown)} triggers"
            return Tightened(None, tuple(done), before, before, reason)
        condition, excludes = found
        done.append(Round(len(false), condition, excludes))
        tell(done[-1])
        draft = draft.with_(condition)


def separating(
    draft: Draft, triggers: Sequence[Sequence[Place]], false: Sequence[Place]
) -> tuple[Condition, int] | None:
    """The condition that holds in all ``triggers`` and at the fewest ``false`` places; of equals
    the plainest. With it, how many it excludes; None if none excludes any.

    A trigger is all places where the draft matches a failing program: one of them is to blame.
    """
    best: tuple[int, tuple[int, str], Condition] | None = None
    first, *others = triggers or ((),)
    candidates = {condition for place in first for condition in conditions_of(place, draft)}
    for condition in candidates:
        left = sum(condition.holds(place) for place in false)
        if left == len(false):
            continue
        rank = left, (plainness(condition), str(condition))
        if best is not None and rank > (best[0], best[1]):
            continue
        if all(any(condition.holds(place) for place in places) for places in others):
            best = left, rank[1], condition
    return None if best is None else (best[2], len(false) - best[0])


def plainness(condition: Condition) -> int:
    """How much a person would rather read another condition: element types and constness before
    bounds, bounds before exact numbers."""
    text = str(condition)
    for rank, part in enumerate((".dtype", "initializer(", "constant(", "varies(", ".rank")):
        if part in text:
            return rank
    exact = " == " in text and any(c.isdigit() for c in text.rpartition("==")[2])
    return 20 if exact else 10


def score(draft: Draft, held: Sequence[Held], trials: Trials) -> Score:
    """How good the draft is on held-out programs. A match that fails on other inputs is right."""
    right = wrong = missed = 0
    for number, each in enumerate(held):
        matches = draft.matches(each.graph)
        if each.fails:
            right += matches
            missed += not matches
        elif matches:
            if _fails_elsewhere(each.program, trials, number):
                right += 1
            else:
                wrong += 1
    passing = sum(not each.fails for each in held)
    return Score(
        precision=rate(right, right + wrong),
        recall=rate(right, right + missed),
        false_alarms=rate(wrong, passing),
    )


def _trigger_places(draft: Draft, programs: Iterable[Program]) -> list[list[Place]]:
    """The places in each program that the draft matches."""
    found = (list(draft.places(program.graph)) for program in programs)
    return [places for places in found if places]


def _fails_elsewhere(program: Program, trials: Trials, number: int) -> bool:
    """Whether a program that passed shows the defect on other inputs."""
    if not program.inputs or (trials.aim and trials.aim.verdict is not Verdict.WRONG_RESULT):
        return False
    return trials.first(_on_other_inputs(program, number)) is not None


def _on_other_inputs(program: Program, number: int) -> Iterator[Program]:
    for attempt in range(_OTHER_INPUTS):
        seed = number * _OTHER_INPUTS + attempt
        try:
            values = input_values(program.graph, {}, Path(program.name), seed)
        except ModelError:
            return
        yield Program(program.graph, values, f"{program.name}-{attempt}")


# --- where held-out programs come from ------------------------------------------------------------


def of_corpus(corpus: Corpus, signature: str, signatures: Signatures) -> Iterator[Held]:
    """A corpus' passing programs, and those that failed with this signature."""
    for entry in corpus.entries:
        fails = entry.verdict.is_finding and entry.signature == signature
        if entry.verdict is Verdict.OK or fails:
            graph = corpus.graph(entry, signatures)
            values = input_values(graph, {}, corpus.path, entry.index)
            yield Held(Program(graph, values, f"corpus-{entry.index}"), fails)


def neighbourhood(draft: Draft, trials: Trials, rng: Random, count: int) -> Iterator[Held]:
    """``count`` programs that are made of the rule's operators and a few others, unguided, tried
    for the defect; those about which the oracle cannot tell are left out."""
    ops = {op for node in draft.nodes for op in node.ops} | set(_COMPANIONS)
    dtypes = {value: 4 for condition in draft.conditions for value in _dtypes_of(condition)}
    usual = Options().dtypes
    options = Options(
        nodes=_NODES,
        include=frozenset(ops),
        dtypes={**usual, **{d: usual.get(d, 0) + n for d, n in dtypes.items()}},
        no_inputs=0.15,
        empty=0.1,
        expose=0.15,
    )
    target = trials.target
    request = SourceRequest(
        seed=FIRST_SEED + rng.randrange(2**31),
        options=options,
        target=target.name,
        guided=False,
        environment={"provider": target.device},
        lowerings=(target.lowering,),
    )
    try:
        source = open_source(request)
    except OptionsError:
        return
    programs = [source.program(index).program for index in range(count)]
    for program, trial in zip(programs, trials.try_all(programs), strict=True):
        if trial.shown in (Shown.SAME, Shown.NOTHING):
            yield Held(program, trial.shown is Shown.SAME)


def _dtypes_of(condition: Condition) -> Iterator[str]:
    term = getattr(condition, "term", None)
    if term is not None and term.kind == "dtype":
        yield from (str(value) for value in getattr(condition, "values", ()))
