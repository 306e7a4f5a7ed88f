"""Values as the rule language writes them, for messages.

Comes in: what a signature computes with. Goes out: text; what is not known is ``?``.
"""

from __future__ import annotations

from reprise.solve.arithmetic import Shifted, Value


def spell(value: Value) -> str:
    """A value as text."""
    match value:
        case None:
            return "?"
        case bool():
            return "true" if value else "false"
        case Shifted(symbol, by):
            return f"{symbol} {'+' if by > 0 else '-'} {abs(by)}"
        case tuple():
            return "[" + ", ".join(map(spell, value)) + "]"
        case _:
            return str(value)
