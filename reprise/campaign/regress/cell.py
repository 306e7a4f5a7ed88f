"""A cell of the matrix rule x version: what a rule's programs showed, and what that comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from reprise.campaign.regress.affects import includes
from reprise.campaign.regress.probe import Effect, Observation
from reprise.lang.declared import Pattern


class State(Enum):
    """What a rule's witnesses come to on one version."""

    FIRES = "fires"  # at least one shows the rule's symptom
    DIFFERS = "fires differently"  # a defect shows, with another symptom
    FIXED = "fixed"  # the witnesses run as they should
    UNDECIDED = "undecided"  # the oracle cannot tell
    UNSUPPORTED = "unsupported"  # the target takes none of the witnesses
    NO_WITNESS = "no witness"  # there is none that could be run here


@dataclass(frozen=True, slots=True)
class Tried:
    """A specimen, run. ``program``: the fresh ones, as text; ``others``: further rules that it
    matches for certain, for near misses that fire."""

    kind: str
    label: str
    seen: Observation
    program: str = ""
    others: tuple[str, ...] = ()

    @property
    def is_witness(self) -> bool:
        return self.kind != "no_match"

    def data(self) -> dict[str, Any]:
        """As JSON."""
        shown = {"kind": self.kind, "label": self.label, **self.seen.data()}
        if self.program:
            shown["program"] = self.program
        if self.others:
            shown["others"] = list(self.others)
        return shown

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Tried:
        """From JSON."""
        rest = dict(data)
        kind, label = rest.pop("kind"), rest.pop("label")
        program, others = rest.pop("program", ""), tuple(rest.pop("others", ()))
        return cls(kind, label, Observation.of(rest), program, others)


@dataclass(frozen=True, slots=True)
class Cell:
    """A rule on a target. ``target`` as given; ``version`` of the compiler itself; ``stated``: the
    passes that the rule blames; ``affects``: its versions when it was measured."""

    rule: str
    target: str
    version: str
    affects: str | None
    stated: tuple[str, ...]
    tried: tuple[Tried, ...]
    left_out: tuple[str, ...] = ()
    key: str = field(default="", compare=False)

    @property
    def state(self) -> State:
        witnesses = [t for t in self.tried if t.is_witness]
        effects = [t.seen.effect for t in witnesses]
        if Effect.FIRES in effects:
            return State.FIRES
        # What the rule's author wrote says more than what was drawn, which may show something else.
        told = (Effect.OTHER, Effect.SILENT, Effect.UNDECIDED)
        written = [t.seen.effect for t in witnesses if t.kind != "fresh" and t.seen.effect in told]
        for some in (written, effects):
            for effect, state in _STATES.items():
                if effect in some:
                    return state
        return State.NO_WITNESS

    @property
    def fired(self) -> tuple[int, int]:
        """How many witnesses fire, of those that the target takes."""
        seen = [t.seen.effect for t in self.tried if t.is_witness]
        return seen.count(Effect.FIRES), len(seen) - seen.count(Effect.REFUSED)

    @property
    def expected(self) -> bool | None:
        """Whether ``affects`` includes the version; None if it says nothing."""
        return includes(self.affects, self.version)

    @property
    def contradicts(self) -> bool:
        """Whether the measurement differs from what the rule says."""
        match self.state:
            case State.FIRES:
                return self.expected is False
            case State.FIXED | State.DIFFERS:
                return self.expected is True
        return False

    @property
    def cures(self) -> tuple[str, ...]:
        """The passes that ablation blames for the first witness that fires."""
        return next((t.seen.cures for t in self.tried if t.seen.cures and t.is_witness), ())

    @property
    def other_pass(self) -> bool:
        """Whether ablation blames passes of which the rule names none."""
        return bool(self.cures and self.stated) and not any(
            names in cure for cure in self.cures for names in self.stated
        )

    @property
    def too_narrow(self) -> tuple[str, ...]:
        """Near misses that show the symptom, through the same pass where passes are known, and that
        no other rule explains: the rule may be too narrow."""
        wanted = set(self.cures)
        return tuple(
            t.label
            for t in self.tried
            if not t.is_witness
            and t.seen.effect is Effect.FIRES
            and not t.others
            and (not wanted or not t.seen.cures or wanted & set(t.seen.cures))
        )

    def data(self) -> dict[str, Any]:
        """As JSON: what was measured, then what it comes to."""
        return {
            "key": self.key,
            "rule": self.rule,
            "target": self.target,
            "version": self.version,
            "affects": self.affects,
            "stated": list(self.stated),
            "state": self.state.value,
            "expected": self.expected,
            "contradicts": self.contradicts,
            "cures": list(self.cures),
            "too_narrow": list(self.too_narrow),
            "left_out": list(self.left_out),
            "tried": [t.data() for t in self.tried],
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Cell:
        """From JSON; what follows from the measurement is found again."""
        return cls(
            data["rule"],
            data["target"],
            data["version"],
            data["affects"],
            tuple(data["stated"]),
            tuple(Tried.of(t) for t in data["tried"]),
            tuple(data["left_out"]),
            data["key"],
        )


_STATES = {
    Effect.FIRES: State.FIRES,
    Effect.OTHER: State.DIFFERS,
    Effect.UNDECIDED: State.UNDECIDED,
    Effect.SILENT: State.FIXED,
    Effect.REFUSED: State.UNSUPPORTED,
}
"""The first of these effects that a witness had decides. Refusals last: they say the least."""


def new_cell(
    pattern: Pattern,
    target: str,
    version: str,
    tried: Sequence[Tried],
    left_out: Sequence[str],
    key: str,
) -> Cell:
    """The cell of a rule that has been measured."""
    return Cell(
        pattern.name,
        target,
        version,
        pattern.get("affects"),
        tuple(pattern.meta.get("pass", ())),
        tuple(tried),
        tuple(left_out),
        key,
    )
