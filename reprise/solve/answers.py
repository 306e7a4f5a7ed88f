"""What comes of asking an operator backwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reprise.lang.diagnostics import Span
from reprise.solve.sampling import Instance
from reprise.uir.inference import Typing


@dataclass(frozen=True, slots=True)
class Clash:
    """One of the conditions that cannot hold together: its text, and where it is written."""

    text: str
    span: Span | None

    def __str__(self) -> str:
        return self.text if self.span is None else f"{self.text} ({self.span})"


@dataclass(slots=True)
class Verdict:
    """What z3 says of a structure: an instance, or the conditions in the way, or neither.

    ``proof``: there is no instance, whatever its numbers. ``decided``: without asking for numbers.
    """

    instance: Instance | None = None
    clashes: tuple[Clash, ...] = ()
    proof: bool = False
    decided: bool = False


@dataclass(frozen=True, slots=True)
class Unsatisfiable:
    """No instance has the required results. ``clashes``: conditions that cannot hold together, in
    the structure that comes closest. ``rank``: operands of greater rank were not looked at."""

    op: str
    clashes: tuple[Clash, ...]
    rank: int | None = None

    def __str__(self) -> str:
        shown = ", ".join(clash.text for clash in self.clashes)
        limit = "" if self.rank is None else f" (with operands of rank {self.rank} at most)"
        return f"{self.op}: nothing has this result: {shown}{limit}"


@dataclass(frozen=True, slots=True)
class Unknown:
    """No instance was found, though there may be one. ``clashes``: what was in the way."""

    op: str
    clashes: tuple[Clash, ...] = ()

    def __str__(self) -> str:
        return f"{self.op}: found nothing that has this result, but there may be something"


Answer = tuple[Instance, Typing] | Unsatisfiable | Unknown


@dataclass(frozen=True, slots=True)
class Production:
    """A node that makes a tensor of the required type as its result number ``output``. ``bound``:
    operand -> which of the available types it is."""

    instance: Instance
    typing: Typing
    output: int
    bound: Mapping[int, int]
