"""The passes of a reduction: each proposes simpler programs, in a fixed order.

A pass is a function of a :class:`State` and of a place to start from, and yields places and flows.
It need not know what a defect is, nor care whether a flow is valid or simpler: whoever runs it
(``reduce``) tries only what is both. Once one of its proposals has been taken, it is called again
with the new state and the place that came with the proposal, to go on from there. A pass ends when
nothing more comes to its mind; the reduction ends when all passes have nothing to add to one
program.
"""

from reprise.distill.passes.sources import SOURCES
from reprise.distill.passes.state import Pass, Place, Proposals, State
from reprise.distill.passes.structure import BEGINNING, STRUCTURE, mergers
from reprise.distill.passes.types import TYPES
from reprise.distill.passes.values import VALUES

MERGERS: tuple[Pass, ...] = (mergers,)
"""Last of all: a source that is read twice ties together what could have shrunk apart."""

__all__ = [
    "BEGINNING",
    "MERGERS",
    "SOURCES",
    "STRUCTURE",
    "TYPES",
    "VALUES",
    "Pass",
    "Place",
    "Proposals",
    "State",
]
