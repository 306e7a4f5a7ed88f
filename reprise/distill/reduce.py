"""Reducing: from a program that shows a defect to a locally minimal one that shows the same.

How it works, and why it may. The reducer holds one program, the best so far, which shows the
defect. Passes propose edits of it in a fixed order; a proposal is tried if it is a valid program
and *simpler* by a total order (``cost``), and is the new best if it shows the same defect. Since
costs only go down and cannot go down forever, this ends. It ends when every pass, asked about the
same program, has nothing left that works: the program is then minimal as far as these edits go
(Hypothesis' shrinker and C-Vise are built like this).

Proposals are tried ahead by several workers, but taken in their order: the first that works wins,
so the result does not depend on how many workers there are. Answers are kept in a file, so that a
reduction that was interrupted comes back to where it was without running anything twice. What a
budget allows is counted in the same order.

A defect must not be swapped for another on the way (*slippage*). The trials see to that where a
pass is to blame: only what the same passes cure, with the same symptom, is the same
(:class:`~reprise.distill.trials.Trials`, ``exact``). Where none is known to be, symptoms are all
there is, and two defects may share one (any kernel may divide by zero). So the shortest failing
beginning of the program is looked for first: of several defects it holds the first, and its last
node is part of it. From then on, the program must end with that operator.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from reprise.distill.cost import Cost, model_cost, uir_cost
from reprise.distill.flow import Flow
from reprise.distill.forms import Form, UirForm
from reprise.distill.passes import (
    BEGINNING,
    MERGERS,
    SOURCES,
    STRUCTURE,
    TYPES,
    VALUES,
    Pass,
    Place,
    State,
)
from reprise.distill.rederive import Rederiver
from reprise.distill.trials import Shown, Trials
from reprise.oracle.crash import parse_key
from reprise.oracle.verdict import Verdict
from reprise.uir.program import Program


@dataclass(frozen=True, slots=True)
class Budget:
    """When to stop. ``runs`` of the target, ``seconds`` on the clock; None: no limit."""

    runs: int | None = None
    seconds: float | None = None

    def left(self, runs: int, seconds: float) -> Budget:
        """What is left of it after so much, but never nothing."""
        return Budget(
            None if self.runs is None else max(self.runs - runs, 1),
            None if self.seconds is None else max(self.seconds - seconds, 1.0),
        )

    def is_spent(self, runs: int, seconds: float) -> bool:
        """Whether so much is all of it, or more."""
        if self.runs is not None and runs >= self.runs:
            return True
        return self.seconds is not None and seconds >= self.seconds


class Stop(Enum):
    """Why a reduction ended."""

    MINIMAL = "minimal"  # no edit is left that works
    BUDGET = "budget"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Taken:
    """A proposal that was taken: by which pass, after how many trials, and what it left."""

    edit: str
    trials: int
    nodes: int
    elements: int


class Watch(Protocol):
    """Told how a reduction goes."""

    def tried(self, edit: str, trials: int, runs: int, flow: Flow) -> None: ...

    def took(self, taken: Taken, flow: Flow) -> None: ...


@dataclass
class Reduced:
    """A reduction as it stands. ``program`` always shows the defect. ``trials`` and ``runs`` count
    proposals in their order, not what workers did ahead; ``elements`` those of all tensors."""

    program: Program
    flow: Flow
    cost: Cost
    elements: int
    stop: Stop = Stop.INTERRUPTED
    taken: list[Taken] = field(default_factory=list)
    trials: int = 0
    runs: int = 0
    seconds: float = 0.0


class _Spent(Exception):
    """The budget is."""


class Reducer:
    """Reduces programs of one form with one set of trials.

    ``start``: a program that shows the defect. ``last``: the operator that it has to end with, once
    that is known. :attr:`reduced` is there at any time, so that it can
    be kept if :meth:`run` is interrupted.
    """

    def __init__(
        self,
        form: Form,
        trials: Trials,
        start: Program,
        budget: Budget | None = None,
        watch: Watch | None = None,
    ) -> None:
        self.form = form
        self.trials = trials
        self.budget = budget or Budget()
        self.watch = watch
        self.passes: Sequence[Pass] = (*STRUCTURE, *SOURCES, *VALUES, *MERGERS)
        self.rederive: Rederiver | None = None
        if isinstance(form, UirForm):
            self.passes = (*STRUCTURE, *TYPES, *VALUES, *MERGERS)
            self.rederive = Rederiver(form.signatures)
        flow = form.flow(start)
        cost = self._cost(flow)
        if cost is None:
            raise ValueError("the program to reduce is no program")
        self.last: str | None = None
        self.reduced = Reduced(start, flow, cost, self._elements(flow))
        self._begin = time.monotonic()

    def run(self, passes: Sequence[Pass] | None = None) -> Reduced:
        """Reduce until ``passes`` (all) have nothing left to do or the budget is spent. An
        exception, such as a KeyboardInterrupt, passes through and leaves :attr:`reduced` as it
        was."""
        self._begin = time.monotonic()
        self.reduced.stop = Stop.INTERRUPTED
        try:
            self._round(BEGINNING)
            aim = self.trials.aim
            simpler = True
            while simpler:
                if self.reduced.flow.steps and (aim is None or not aim.cures):
                    self.last = self.reduced.flow.steps[-1].op
                while self._round(self.passes if passes is None else passes):
                    pass
                # Smaller values may show it earlier: of 1e6 + 1, a tolerance hides the error.
                self.last = None
                simpler = self._round(BEGINNING)
            self.reduced.stop = Stop.MINIMAL
        except _Spent:
            self.reduced.stop = Stop.BUDGET
        finally:
            self.reduced.seconds += time.monotonic() - self._begin
        return self.reduced

    def _round(self, passes: Sequence[Pass]) -> bool:
        """Every pass, to its end; whether any found something."""
        before = self.reduced.cost
        for edit in passes:
            place: Place | None = ()
            while place is not None:
                place = self._first(edit, place)
        return self.reduced.cost < before

    def _first(self, edit: Pass, start: Place) -> Place | None:
        """Take the first proposal from a place on that works, and say where to go on."""
        proposed: list[tuple[Place, Flow, Cost, Program]] = []
        trials = self.trials.try_all(self._programs(edit, start, proposed))
        try:
            for number, trial in enumerate(trials):
                self._count(edit, trial.runs)
                if trial.shown is Shown.SAME:
                    self._take(edit, *proposed[number][1:])
                    return proposed[number][0]
        finally:
            with suppress(AttributeError):
                trials.close()  # type: ignore[attr-defined]
        return None

    def _programs(
        self, edit: Pass, start: Place, proposed: list[tuple[Place, Flow, Cost, Program]]
    ) -> Iterator[Program]:
        """The proposals that are programs and simpler, each noted in ``proposed``."""
        now = self.reduced
        state = State(now.flow, self.form, self.rederive, self._is_careful())
        for place, flow in edit(state, start):
            if flow is None or not flow.steps:
                continue
            if self.last is not None and flow.steps[-1].op != self.last:
                continue
            cost = self._cost(flow)
            if cost is None or cost >= now.cost:
                continue
            program = self.form.program(flow)
            if program is not None:
                proposed.append((place, flow, cost, program))
                yield program

    def _is_careful(self) -> bool:
        """Whether values may matter: not for what fails before anything is run."""
        aim = self.trials.aim
        if aim is None or aim.verdict is Verdict.WRONG_RESULT:
            return True
        crash = parse_key(aim.symptom)
        return crash is None or crash.stage not in ("load", "compile")

    def _count(self, edit: Pass, runs: int) -> None:
        now, budget = self.reduced, self.budget
        seconds = now.seconds + time.monotonic() - self._begin
        if budget.runs is not None and now.runs + runs > budget.runs:
            raise _Spent
        if budget.seconds is not None and seconds > budget.seconds:
            raise _Spent
        now.trials += 1
        now.runs += runs
        if self.watch is not None:
            self.watch.tried(edit.__name__, now.trials, now.runs, now.flow)

    def _take(self, edit: Pass, flow: Flow, cost: Cost, program: Program) -> None:
        now = self.reduced
        now.flow, now.cost, now.program = flow, cost, program
        name = edit.__name__.replace("_", " ")
        now.elements = self._elements(flow)
        taken = Taken(name, now.trials, len(flow.steps), now.elements)
        now.taken.append(taken)
        if self.watch is not None:
            self.watch.took(taken, flow)

    def _elements(self, flow: Flow) -> int:
        return sum(type.elements or 0 for type in self.form.types(flow).values())

    def _cost(self, flow: Flow) -> Cost | None:
        if isinstance(self.form, UirForm):
            return uir_cost(flow, self.form.signatures)
        return model_cost(flow)
