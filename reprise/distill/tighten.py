"""Hold a new rule against programs that it has not seen (first paper, §3.4).

A pattern that matches a program that passes is too general: the condition is added that tells most
false matches from the program that the rule was made from, and that costs the fewest of the other
triggers; then the rule is held against the programs again. After ten rounds, or when nothing tells
them apart, it is discarded. Two programs differ in many ways, so a condition is believed only if
programs that are made to violate it do not fail. Where all programs like a false match fail, only
what stands around the match hides the defect there (a common subexpression, say); such matches are
tolerated while they are few.

The programs are of three kinds. *Witnesses* are made from the rule's text: all of them match. A
*corpus* (``corpus.py``) is random programs, which match a new rule hardly ever: it shows that the
rule costs nothing elsewhere. The *neighbourhood* is programs made of the rule's own operators,
which come close to it all the time. Half of all is for finding false matches, the other half for
saying how good the rule is: precision (of the programs that match, those that fail) and recall (of
the programs that fail, those that match). The *other findings* of the defect in the run that the
rule was made in are for recall only.

A wrong result shows on some values only. So a program that matches and passes is tried on other
inputs before its match is called false.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Generic, TypeVar

from reprise.campaign.findings import read_detail
from reprise.campaign.metrics import Rate, rate
from reprise.campaign.records import StoreError
from reprise.campaign.source import SourceRequest, open_source
from reprise.distill.conditions import Among, Condition, Near, Place, Term
from reprise.distill.corpus import FIRST_SEED, Corpus
from reprise.distill.draft import ANYTHING, Draft, conditions_of
from reprise.distill.onnx_model import Model
from reprise.distill.sampling import Sampling, Wish
from reprise.distill.subject import input_values, read_subject
from reprise.distill.trials import Shown, Trials
from reprise.distill.witnesses import fresh_witnesses
from reprise.facts.errors import ModelError
from reprise.lang.display import counted
from reprise.oracle.verdict import Verdict
from reprise.patterns.check import UsageError
from reprise.solve.signatures import Signatures
from reprise.synth.options import Options, OptionsError
from reprise.uir.graph import Graph
from reprise.uir.program import Program

ROUNDS = 10
"""As in the paper."""
_OTHER_INPUTS = 4
_ALIKE = 0.25
"""Costs that differ by less are alike: a few programs do not tell a reason from an accident, and
the plainer condition is the likelier reason."""
_MOST_REFUTED = 24
_VIOLATING_TRIES = 30
_HIDDEN = 0.05
"""Of the triggers: so many false matches may be due to what stands around them."""
_LOOKED_AT, _KIN = 4, 10
"""False matches whose kin is tried in a round, and how many of each."""
_MOST_FINDINGS = 40
_NODES = 5
_COMPANIONS = ("identity", "add", "mul", "neg", "reshape", "transpose")
"""Operators of a neighbourhood besides the rule's own."""


@dataclass(frozen=True)
class Held:
    """A program that the rule has not seen. ``fails``: it shows the rule's defect. ``witness``: it
    was made to match, so it says nothing of what the rule misses."""

    program: Program
    fails: bool
    witness: bool = False
    finding: Path | None = None
    """The folder that it was read from."""

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


@dataclass(frozen=True, slots=True)
class Absent:
    """An optional operand of a line is left out: a condition that is said in the line."""

    node: str
    position: int

    def __str__(self) -> str:
        return f"operand {self.position + 1} of {self.node} is left out"

    def holds(self, place: Place) -> bool:
        inputs = place.nodes[self.node].inputs
        return self.position >= len(inputs) or inputs[self.position] is None


Change = Condition | Absent


_Draft = TypeVar("_Draft")
_Change = TypeVar("_Change")


@dataclass(frozen=True)
class Round(Generic[_Change]):
    """One round: how many matches were false, what was added against them, how many of them it
    excludes, and how many known triggers it gives up. ``refuted``: conditions that would have told
    them apart, but programs that violate them fail all the same."""

    false: int
    added: _Change | None
    excludes: int = 0
    loses: int = 0
    refuted: int = 0


@dataclass(frozen=True)
class Tightened(Generic[_Draft, _Change]):
    """``draft`` is None if the rule was discarded, for ``reason``. ``score`` is the rule's as it
    is in the end, ``before`` as it came. ``hidden``: false matches that were tolerated. ``missed``:
    the folders of findings of the same defect that the rule does not match."""

    draft: _Draft | None
    rounds: tuple[Round[_Change], ...]
    before: Score
    score: Score
    reason: str = ""
    hidden: int = 0
    missed: tuple[Path, ...] = ()


@dataclass
class HeldOut:
    """Held-out programs, in two halves by turns: the first to learn from, the other to tell how
    good a rule is."""

    learn: list[Held] = field(default_factory=list)
    tell: list[Held] = field(default_factory=list)

    def extend(self, programs: Iterable[Held]) -> None:
        """Passing and failing programs take turns separately, so that both halves have both."""
        ours = Counter(h.fails for h in self.learn)
        theirs = Counter(h.fails for h in self.tell)
        for held in programs:
            half, count = self.learn, ours
            if ours[held.fails] > theirs[held.fails]:
                half, count = self.tell, theirs
            half.append(held)
            count[held.fails] += 1


@dataclass(frozen=True, slots=True)
class Against:
    """What to hold a rule against: a corpus, if there is one, so many programs of the rule's
    neighbourhood and so many witnesses; if the rule was made from a ``finding`` of a run, the run's
    other findings of the same defect."""

    corpus: Path | None = None
    neighbours: int = 200
    witnesses: int = 40
    finding: Path | None = None

    def programs_for(
        self, draft: Draft, trials: Trials, signature: str, sampling: Sampling, rng: Random
    ) -> HeldOut:
        """The programs. Raises StoreError for a corpus that cannot be read, TargetError."""
        held = HeldOut()
        if self.corpus is not None:
            held.extend(of_corpus(Corpus.open(self.corpus), signature, sampling.signatures))
        near = neighbourhood(draft, trials, sampling.signatures, rng, self.neighbours)
        held.extend(near)
        made = [s.program for s in fresh_witnesses(draft, sampling, rng, self.witnesses)]
        held.extend(replace(each, witness=True) for each in tried(made, trials))
        if self.finding is not None:  # programs that fail narrow no rule: they tell what it misses
            held.tell += of_run(self.finding, trials, sampling.signatures)
        return held


def tighten(
    draft: Draft,
    triggers: Sequence[Program],
    held: HeldOut,
    trials: Trials,
    sampling: Sampling | None = None,
    *,
    rng: Random | None = None,
    rounds: int = ROUNDS,
    tell: Callable[[Round[Change]], None] = lambda done: None,
) -> Tightened[Draft, Change]:
    """Add conditions until no passing program of the first half is matched.

    ``triggers``: programs that show the defect and that the draft matches, first the one that it
    was made from: whatever is added holds of that one. ``sampling``: makes kin of false matches, so
    that what they happen to have in common is not taken for the reason. Raises TargetError.
    """
    work = _Work(draft, list(triggers), list(held.learn), trials, sampling, rng or Random(0))
    before = score(draft, held.tell, trials)
    done: list[Round[Change]] = []

    def ended(kept: Draft | None, reason: str = "", hidden: int = 0) -> Tightened[Draft, Change]:
        after = before if kept is None else score(kept, held.tell, trials)
        missed = [h.finding for h in held.tell if kept and not kept.matches(h.graph)]
        missed_folders = tuple(folder for folder in missed if folder is not None)
        return Tightened(kept, tuple(done), before, after, reason, hidden, missed_folders)

    while True:
        false = work.false_matches()
        if not false:
            return ended(work.draft)
        if len(done) >= rounds:
            still = counted(len(false), "false match")
            return ended(None, f"{still} left after {counted(rounds, 'round')}")
        hidden = work.look_around(false)
        false = work.false_matches()
        failing = work.trigger_places()
        found = work.separating(false, failing)
        few = len(false) <= max(1, _HIDDEN * len(failing))
        too_dear = found.added is not None and few and found.loses > found.excludes
        if too_dear:
            found = Round(len(false), None, refuted=found.refuted + 1)
        done.append(found)
        tell(found)
        if found.added is not None:
            work.draft = _with(work.draft, found.added)
        elif few and (hidden or too_dear):
            return ended(work.draft, hidden=len(false))
        else:
            told = counted(len(false), "false match")
            return ended(None, f"nothing tells {told} from the triggers")


@dataclass
class _Work:
    """A rule as it is tightened, and the programs that it is tightened on."""

    draft: Draft
    triggers: list[Program]
    learn: list[Held]
    trials: Trials
    sampling: Sampling | None
    rng: Random
    proven: set[int] = field(default_factory=set)
    """Passing programs whose match turned out to be right on other inputs."""

    def false_matches(self) -> list[Place]:
        """The places that the draft matches in programs that pass."""
        false: list[Place] = []
        for number, each in enumerate(self.learn):
            if each.fails or number in self.proven:
                continue
            places = list(self.draft.places(each.graph))
            if places and _fails_elsewhere(each.program, self.trials, number):
                self.proven.add(number)
            else:
                false += places
        return false

    def trigger_places(self) -> list[list[Place]]:
        """The places in each failing program that the draft matches."""
        failing = [*self.triggers, *(h.program for h in self.learn if h.fails)]
        found = (list(self.draft.places(program.graph)) for program in failing)
        return [places for places in found if places]

    def look_around(self, false: Sequence[Place]) -> bool:
        """Try programs that are like the false matches, and keep them. Whether all of them fail:
        then it is not the match itself that is harmless."""
        if self.sampling is None:
            return False
        drawn = (
            self.sampling.sample(self.draft, place, self.rng, self._wishes(place), stray=0.5)
            for place in false[:_LOOKED_AT]
            for _ in range(_KIN)
        )
        kin = list(tried([made.program for made in drawn if made is not None], self.trials))
        self.learn += kin
        return len(kin) > 1 and all(held.fails for held in kin)

    def separating(
        self, false: Sequence[Place], triggers: Sequence[Sequence[Place]]
    ) -> Round[Change]:
        """The best change against false matches that programs which violate it do not refute."""
        refuted = 0
        seeds = [*false[:_LOOKED_AT], *(places[0] for places in triggers[:_LOOKED_AT])]
        for found in islice(separating(self.draft, triggers, false), _MOST_REFUTED):
            assert found.added is not None
            if not self._is_refuted(found.added, seeds):
                return replace(found, refuted=refuted)
            refuted += 1
        return Round(len(false), None, refuted=refuted)

    def _is_refuted(self, change: Change, seeds: Sequence[Place]) -> bool:
        """Whether programs that match, but violate the change, fail as a rule; also if there seem
        to be none, unless it is about what stands around a match. They are made from ``seeds``."""
        if self.sampling is None:
            return False
        drawn = (
            self.sampling.sample(
                self.draft,
                place,
                self.rng,
                stray=0.6,
                accept=lambda made: not change.holds(made),
                tries=_VIOLATING_TRIES,
            )
            for place in seeds
        )
        against = list(tried([made.program for made in drawn if made is not None], self.trials))
        if len(against) < 2:
            return not (isinstance(change, Near) or "graph_output(" in str(change))
        return 2 * sum(held.fails for held in against) >= len(against)

    def _wishes(self, place: Place) -> list[Wish]:
        """Another rank for a source, half of the time: extents alone vary anyway."""
        sources = [name for name in self.draft.sources if place.tensors[name].type.rank]
        if not sources or self.rng.random() < 0.5:
            return []
        return [Wish("rank", self.rng.choice(sources), "", self.rng.choice((1, 2, 3)))]


def separating(
    draft: Draft, triggers: Sequence[Sequence[Place]], false: Sequence[Place]
) -> list[Round[Change]]:
    """What could be added, the best first: what leaves the fewest ``false`` places and the most
    ``triggers``; of those that are about as good, the plainest. All hold in the first trigger, and
    none costs more than it gains.

    A trigger is all places where the draft matches a failing program: one of them is to blame.
    """
    ranked: list[tuple[tuple[float, int, float, str], Round[Change]]] = []
    first, *others = triggers or ((),)
    for change in {change for place in first for change in _changes(draft, place)}:
        left = sum(change.holds(place) for place in false)
        if left == len(false):
            continue
        loses = sum(not any(map(change.holds, places)) for places in others)
        cost = left / len(false) + loses / max(len(others), 1)
        if cost < 1:
            rank = cost // _ALIKE, plainness(change), cost, str(change)
            ranked.append((rank, Round(len(false), change, len(false) - left, loses)))
    return [found for _, found in sorted(ranked, key=lambda item: item[0])]


def _changes(draft: Draft, place: Place) -> Iterator[Change]:
    """What holds at a place and could be added."""
    yield from conditions_of(place, draft)
    for node in draft.nodes:
        for position, operand in enumerate(node.operands):
            absent = Absent(node.name, position)
            if operand == ANYTHING and absent.holds(place):
                yield absent


def _with(draft: Draft, change: Change) -> Draft:
    if not isinstance(change, Absent):
        return draft.with_(change)
    node = draft.node(change.node)
    operands = list(node.operands)
    operands[change.position] = None
    return draft.with_node(replace(node, operands=tuple(operands)))


def plainness(change: Change) -> int:
    """How much a person would rather read another condition: element types, constness and operands
    that are there or not before ranks and bounds, bounds before exact numbers."""
    if isinstance(change, Absent):
        return 1
    text = str(change)
    for rank, part in enumerate((".dtype", "initializer(", "constant(", "varies(", ".rank")):
        if part in text:
            return rank
    exact = " == " in text and any(c.isdigit() for c in text.rpartition("==")[2])
    return 20 if exact else 10


def score(draft: Draft, held: Sequence[Held], trials: Trials) -> Score:
    """How good the draft is on held-out programs. A match that fails on other inputs is right."""
    right = wrong = found = missed = false = 0
    for number, each in enumerate(held):
        matches = draft.matches(each.graph)
        fails = each.fails or (matches and _fails_elsewhere(each.program, trials, number))
        right += matches and fails
        wrong += matches and not fails
        if not each.witness:
            found += each.fails and matches
            missed += each.fails and not matches
            false += matches and not fails
    passing = sum(not each.fails for each in held if not each.witness)
    return Score(
        precision=rate(right, right + wrong),
        recall=rate(found, found + missed),
        false_alarms=rate(false, passing),
    )


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


def of_run(finding: Path, trials: Trials, signatures: Signatures) -> Iterator[Held]:
    """The findings beside one, with its signature, that still show the defect; at most a few dozen.
    Raises StoreError if that one cannot be read."""
    wanted = read_detail(finding).signature
    found: list[tuple[Path, Program]] = []
    for folder in sorted(path.parent for path in finding.parent.glob("[0-9]*/finding.json")):
        if folder.name == finding.name or len(found) == _MOST_FINDINGS:
            continue
        try:
            if read_detail(folder).signature != wanted:
                continue
            program = read_subject(folder, str(trials.target), signatures).forms[0]
        except (ModelError, StoreError, UsageError):  # damaged: of no use here
            continue
        if not isinstance(program, Model):
            found.append((folder, program))
    answers = trials.try_all([program for _, program in found])
    for (folder, program), trial in zip(found, answers, strict=True):
        if trial.shown is Shown.SAME:
            yield Held(program, fails=True, finding=folder)


def neighbourhood(
    draft: Draft, trials: Trials, signatures: Signatures, rng: Random, count: int
) -> Iterator[Held]:
    """``count`` programs that are made of the rule's operators, operators of the same categories
    and a few others, unguided, tried for the defect; those about which the oracle cannot tell are
    left out."""
    request = SourceRequest(
        seed=FIRST_SEED + rng.randrange(2**31),
        options=_nearby(draft, signatures),
        target=trials.target.name,
        guided=False,
        environment={"provider": trials.target.device},
        lowerings=(trials.target.lowering,),
    )
    try:
        source = open_source(request)
    except OptionsError:
        return
    yield from tried([source.program(index).program for index in range(count)], trials)


def tried(programs: Sequence[Program], trials: Trials) -> Iterator[Held]:
    """Programs and whether they fail; without those about which that cannot be said."""
    for program, trial in zip(programs, trials.try_all(programs), strict=True):
        if trial.shown in (Shown.SAME, Shown.NOTHING):
            yield Held(program, trial.shown is Shown.SAME)


def _nearby(draft: Draft, signatures: Signatures) -> Options:
    """Options under which programs come close to what a rule matches."""
    ops = {op for node in draft.nodes for op in node.ops if op in signatures}
    categories = {signatures[op].category for op in ops} - {""}
    kin = {op for op in signatures if signatures[op].category in categories}
    usual = Options()
    dtypes = dict(usual.dtypes)
    for condition in draft.conditions:
        for dtype in _dtypes_of(condition):
            dtypes[dtype] = dtypes.get(dtype, 0) + 40
    return Options(
        nodes=_NODES,
        include=frozenset(ops | kin | set(_COMPANIONS)),
        weights={**dict.fromkeys(kin, 0.1), **dict.fromkeys(ops, 8.0)},
        join=0.8,
        dtypes=dtypes,
        no_inputs=0.15,
        empty=0.1,
        expose=0.15,
    )


def _dtypes_of(condition: Condition) -> Iterator[str]:
    match condition:
        case Among(Term("dtype"), values):
            yield from map(str, values)


# --- told -----------------------------------------------------------------------------------------


def tightened_data(tightened: Tightened[Any, Any]) -> dict[str, object]:
    """As JSON has it."""
    return {
        "discarded": tightened.reason if tightened.draft is None else None,
        "rounds": [
            {
                "false_matches": r.false,
                "added": None if r.added is None else str(r.added),
                "excludes": r.excludes,
                "gives_up": r.loses,
                "refuted": r.refuted,
            }
            for r in tightened.rounds
        ],
        "hidden": tightened.hidden,
        "missed_findings": [folder.name for folder in tightened.missed],
        "before": _score_data(tightened.before),
        "after": _score_data(tightened.score),
    }


def _score_data(score: Score) -> dict[str, object]:
    return {
        name: {"events": r.events, "of": r.trials, "low": r.low, "high": r.high}
        for name, r in _rates(score)
    }


def _rates(score: Score) -> list[tuple[str, Rate]]:
    return [
        ("precision", score.precision),
        ("recall", score.recall),
        ("false_alarms", score.false_alarms),
    ]


def tightened_text(
    tightened: Tightened[Any, Any], noun: str = "program", parts: str = "nodes"
) -> list[str]:
    """As lines that a person reads; ``noun``: what the rule is about, made of ``parts``."""
    lines = []
    for number, each in enumerate(tightened.rounds, 1):
        what = "nothing could be added" if each.added is None else f"added `{each.added}`"
        gives = f", gives up {counted(each.loses, 'trigger')}" if each.loses else ""
        refuted = f" ({counted(each.refuted, 'condition')} refuted)" if each.refuted else ""
        false = counted(each.false, "false match")
        lines.append(f"- round {number}: {false}; {what}{gives}{refuted}")
    if tightened.hidden:
        hidden = counted(tightened.hidden, "false match")
        lines.append(f"- tolerated: {hidden}, harmless only for what stands around the {parts}")
    if tightened.draft is None:
        lines.append(f"- **discarded**: {tightened.reason}")
    for folder in tightened.missed:
        lines.append(f"- does not match {folder}, a finding of the same defect: distill it as well")
    for name, found in _rates(tightened.score):
        if found.value is None:
            lines.append(f"- {name.replace('_', ' ')}: no {noun} to tell")
            continue
        share = f"{100 * found.value:.1f} % [{100 * found.low:.1f}, {100 * found.high:.1f}]"
        lines.append(f"- {name.replace('_', ' ')}: {share}, {found.events} of {found.trials}")
    return lines
