"""Plans that start at the same anchor, merged into one Python function.

The plans of all variants with one anchor form a trie of steps: what several variants do first is
done once, which keeps the cost of a new fact sub-linear in the number of rules. The function's
parameter is the anchor row; it returns nothing, or for ``CHECK`` variants whether one succeeded.
Invariant: the text depends on the plans alone, in any order, so equal rules give equal text and
compiled code can be cached by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby

from reprise.datalog.variants import ANCHOR, Step, StepKind

_IS_WORD = re.compile(r"(r\d+\[\d+\]) == '\w*'")
_MANY = 3
"""Constants that one value is compared with, from which on a set pays."""
_MAX_LOOPS = 16
"""Python allows 20 nested loops in a function; deeper ones go into a nested function."""


@dataclass
class _Trie:
    """Steps that follow a common prefix."""

    children: dict[Step, _Trie] = field(default_factory=dict)

    def insert(self, steps: Iterable[Step]) -> None:
        node = self
        for step in steps:
            node = node.children.setdefault(step, _Trie())

    def ordered(self) -> list[tuple[Step, _Trie]]:
        return sorted(self.children.items(), key=lambda item: (item[0].kind.value, item[0].text))


def function_source(
    name: str, plans: Iterable[tuple[Step, ...]], timed: bool, over_rows: bool = False
) -> str:
    """The source of a function that carries out ``plans``.

    It takes one anchor row, or with ``over_rows`` an iterable of them. ``timed`` puts a check of
    the clock into every loop.
    """
    trie = _Trie()
    for steps in plans:
        trie.insert(steps)
    writer = _Writer(timed)
    if over_rows:
        lines = [f"def {name}(rows):", *writer.loop(f"{ANCHOR} in rows", trie, 1, 0)]
    else:
        lines = [f"def {name}({ANCHOR}):", *writer.body(trie, 1, 0)]
    return "\n".join(lines) + "\n"


class _Writer:
    def __init__(self, timed: bool) -> None:
        self._timed = timed
        self._parts = 0

    def body(self, trie: _Trie, indent: int, loops: int) -> Iterator[str]:
        """The statements for all children of ``trie``."""
        pad = "    " * indent
        for subject, group in groupby(trie.ordered(), key=_subject):
            children = list(group)
            if subject is not None and len(children) >= _MANY:
                # Most values are none of the constants, and one look-up in a set says so.
                words = ", ".join(dict.fromkeys(_word(step) for step, _ in children))
                yield f"{pad}if {subject} in {{{words}}}:"
                yield from self.branches(children, indent + 1, loops, exclusive=True)
            else:
                yield from self.branches(children, indent, loops, exclusive=subject is not None)

    def branches(
        self, children: list[tuple[Step, _Trie]], indent: int, loops: int, exclusive: bool
    ) -> Iterator[str]:
        """The statements for some children; of ``exclusive`` ones, one at most applies."""
        pad = "    " * indent
        word = "if"
        for step, child in children:
            match step.kind:
                case StepKind.DO:
                    yield from (pad + line for line in step.text.split("\n"))
                case StepKind.TEST:
                    texts, child = _chain(step, child, alone=exclusive)
                    yield f"{pad}{word} {' and '.join(texts)}:"
                    yield from self.body(child, indent + 1, loops)
                    word = "elif" if exclusive else "if"
                case StepKind.EACH if loops >= _MAX_LOOPS:
                    self._parts += 1
                    name = self._parts
                    yield f"{pad}def part{name}():"
                    inner = _Trie({step: child})
                    yield from self.body(inner, indent + 1, 0)
                    yield f"{pad}if part{name}(): return True"
                case StepKind.EACH:
                    yield from self.loop(step.text, child, indent, loops)

    def loop(self, header: str, trie: _Trie, indent: int, loops: int) -> Iterator[str]:
        """A loop over everything that follows it."""
        pad = "    " * indent
        yield f"{pad}for {header}:"
        if self._timed:
            yield f"{pad}    if clock() > DEADLINE[0]: expired()"
        yield from self.body(trie, indent + 1, loops + 1)


def _subject(item: tuple[Step, _Trie]) -> str | None:
    """What a step compares with a word (``r1[1]`` of ``r1[1] == 'relu'``), if that is what it
    does. Of several such steps on one subject, one at most succeeds."""
    step, _ = item
    found = _IS_WORD.fullmatch(step.text) if step.kind is StepKind.TEST else None
    return found[1] if found else None


def _word(step: Step) -> str:
    return step.text.partition(" == ")[2]


def _chain(step: Step, trie: _Trie, alone: bool) -> tuple[list[str], _Trie]:
    """A run of tests without branches, to be joined by ``and``; and what follows it. ``alone``:
    the first test stands by itself, so that ``elif`` means that it failed."""
    texts = [step.text]
    while len(trie.children) == 1 and not alone:
        ((only, child),) = trie.children.items()
        if only.kind is not StepKind.TEST:
            break
        texts.append(only.text)
        trie = child
    return texts, trie
