"""Diagnostics of mined documents, few of each kind: one mistake of a generator is in hundreds of
lines, and what is shown of them must leave what is said of other lines in sight.

Comes in: every diagnostic, in order. Goes out: those to show whole, each with what is to be said
after it of the others of its kind. Nothing is dropped where tools read them (JSON has all).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from reprise.lang.diagnostics import Diagnostic

ALIKE = 3
"""How many that say the same (one code and one message) are shown whole."""
KIND = 8
"""How many of one code: they differ in a name."""
_PLACES = 8
"""How many of the other lines are named."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A diagnostic to show, and lines about those like it, if there are any."""

    diagnostic: Diagnostic
    after: tuple[str, ...] = ()


def few(diagnostics: Sequence[Diagnostic]) -> list[Shown]:
    """What to show, in order: every code is among it, and every diagnostic counted in a line."""
    said = Counter((d.code, d.message) for d in diagnostics)
    same: Counter[tuple[str, str]] = Counter()
    kind: Counter[str] = Counter()
    whole: list[Diagnostic] = []
    last_that_says: dict[tuple[str, str], int] = {}
    last_of: dict[str, int] = {}
    rest: dict[tuple[int, str], list[Diagnostic]] = {}
    for d in diagnostics:
        text = d.code, d.message
        same[text] += 1
        # A line about a single one more would save nothing.
        again = same[text] > (ALIKE if said[text] > ALIKE + 1 else ALIKE + 1)
        if not again and kind[d.code] < KIND:
            kind[d.code] += 1
            last_that_says[text] = last_of[d.code] = len(whole)
            whole.append(d)
        elif again and text in last_that_says:
            rest.setdefault((last_that_says[text], "like it"), []).append(d)
        else:
            rest.setdefault((last_of[d.code], f"of the kind {d.code}"), []).append(d)
    lines: dict[int, list[str]] = {}
    for (index, how), others in rest.items():
        line = f"… and {len(others)} more {how} ({_places(whole[index], others)})"
        lines.setdefault(index, []).append(line)
    return [Shown(d, tuple(lines.get(index, ()))) for index, d in enumerate(whole)]


def _places(last: Diagnostic, rest: Sequence[Diagnostic]) -> str:
    """Where ``rest`` is: lines, and the files of those that are not in the file of ``last``."""
    here = last.span.file
    if all(d.span.file == here for d in rest):
        places = [str(line) for line in dict.fromkeys(d.span.line for d in rest)]
        word = "lines " if len(places) > 1 else "line "
    else:
        places = [f"{d.span.file}:{d.span.line}" for d in rest]
        word = ""
    return word + ", ".join(places[:_PLACES]) + (", …" if len(places) > _PLACES else "")
