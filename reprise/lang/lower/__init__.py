"""From conditions and SSA lines to the literals of core Datalog.

A :class:`Body` is one conjunction under construction. Lines add nodes and flow, conditions add
look-ups and comparisons; every field that is read twice is looked up once. What a conjunction
cannot hold (``not exists``, reachability, bounded paths) becomes a relation of its own, made once
per program by :class:`Auxiliary` and shared by everything that needs it. What can be read in
several ways (operands in any order, optional steps) is lowered once per way, replayed by
:class:`Choices`.

``Body`` is layered, one concept a file: ``expressions`` < ``domains`` < ``lines`` < ``body``.

Invariant: a literal carries the span of the source text that it came from, so that a failed
literal can be shown as the line of the rule that failed.
"""

from reprise.lang.lower.auxiliary import Auxiliary
from reprise.lang.lower.body import Body
from reprise.lang.lower.choices import Choices

__all__ = ["Auxiliary", "Body", "Choices"]
