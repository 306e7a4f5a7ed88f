"""A rule about kernels that is being worked on: variables, and conditions that can be dropped.

A :class:`Draft` is matched with a kernel natively; :meth:`Draft.text` writes it as a deny rule over
the facts of kernels. The two mean the same, which the tests see to.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import wrap

from reprise.einsum.distill.conditions import (
    INDEX_NAMES,
    Condition,
    Holds,
    conditions_of,
    operand,
    telling,
    tensor,
    term,
)
from reprise.einsum.distill.view import OUTPUT, Binding, View
from reprise.lang.display import counted
from reprise.lang.format import format_text

HEAD = 'import "einsum/roles.rules"\n'


@dataclass(frozen=True)
class Draft:
    """``operands`` stand for different operands, ``indices`` for indices. ``notes``: lines of
    comment; ``title`` whose defect it is and ``doc`` how it shows, for people; ``symptom`` the same
    in the words of rules."""

    operands: tuple[str, ...]
    indices: tuple[str, ...]
    conditions: tuple[Condition, ...]
    name: str = "draft"
    title: str = "a draft"
    doc: str = ""
    notes: tuple[str, ...] = ()
    symptom: str = ""

    def without(self, *dropped: Condition) -> Draft:
        """The draft without some conditions."""
        return replace(self, conditions=tuple(c for c in self.conditions if c not in dropped))

    def with_(self, *added: Condition) -> Draft:
        """The draft with some more conditions."""
        return replace(self, conditions=tuple(dict.fromkeys((*self.conditions, *added))))

    def without_variable(self, name: str) -> Draft:
        """The draft without an operand or an index, and without what is said of it."""
        kept = tuple(c for c in self.conditions if name not in c.variables)
        return replace(
            self,
            operands=tuple(o for o in self.operands if o != name),
            indices=tuple(i for i in self.indices if i != name),
            conditions=kept,
        )

    @property
    def noun(self) -> str:
        """What it is about."""
        return "kernel"

    @property
    def parts(self) -> str:
        """What that is made of."""
        return "operands"

    @property
    def left(self) -> str:
        """What there is still, for progress."""
        return counted(len(self.conditions), "condition")

    # --- matching --------------------------------------------------------------------------------

    def matches(self, view: View) -> bool:
        return next(self.places(view), None) is not None

    def places(self, view: View) -> Iterator[Binding]:
        """What the variables may stand for."""
        if all(holds(view, {}) for holds in self._due[0]):
            yield from self._places(view, {})

    @cached_property
    def _variables(self) -> tuple[str, ...]:
        return (*self.operands, *self.indices)

    @cached_property
    def _due(self) -> list[list[Holds]]:
        """The conditions that can be asked about once so many variables stand for something."""
        order = {name: number for number, name in enumerate(self._variables, 1)}
        due: list[list[Holds]] = [[] for _ in range(len(order) + 1)]
        for condition in self.conditions:
            due[max((order[v] for v in condition.variables), default=0)].append(condition.holds)
        return due

    def _places(self, view: View, found: dict[str, int | str]) -> Iterator[Binding]:
        depth = len(found)
        if depth == len(self._variables):
            yield dict(found)
            return
        is_operand = depth < len(self.operands)
        values: Iterable[int | str] = range(len(view.operands)) if is_operand else view.extents
        taken = set(found.values()) if is_operand else ()
        name = self._variables[depth]
        for value in values:
            if value in taken:
                continue
            found[name] = value
            if all(holds(view, found) for holds in self._due[depth + 1]):
                yield from self._places(view, found)
            del found[name]

    # --- as text ---------------------------------------------------------------------------------

    def text(self, tests: str = "") -> str:
        """The rule file. What is too much for one body is told by relations of its own."""
        conditions = _shortest(self.conditions)
        columns, message = self._message(conditions)
        parts = [conditions[n : n + _PART] for n in range(0, len(conditions), _PART)]
        lines = [f"// {note}" for note in self.notes] + [HEAD]
        if len(parts) <= 1:
            literals = [c.text for c in conditions]
            bound = {v for c in conditions if c.positive for v in c.variables}
        else:
            heads = [self._part_head(*part) for part in enumerate(parts, 1)]
            lines += [self._part(*part) for part in enumerate(parts, 1)]
            literals = [f"{name}({', '.join(variables)})" for name, variables in heads]
            bound = {v for _, variables in heads for v in variables}
        body = _body(literals, bound, self.operands, self.indices, columns)
        said = ": ".join(filter(None, [", ".join(_told(conditions, _DOC)), self.doc]))
        said = re.sub(r"[{}]", "", said)
        lines += [f"/// {line}" for line in wrap(f"{said[:1].upper()}{said[1:]}.", _WIDE)]
        head = f'deny {self.name}({", ".join(columns)}) "{message}"'
        lines.append(f"{head} :- {', '.join(body)}.")
        if self.symptom:
            lines.append(f'\nshows("{self.name}", "{self.symptom}").')
        return format_text("\n".join([*lines, "", tests]))

    def _message(self, conditions: Sequence[Condition]) -> tuple[list[str], str]:
        """The columns of the rule and its message, in which each is named."""
        told = _told(conditions, _MESSAGE)
        title = re.sub("[{}]", "", self.title)
        said = f"{title} where {', '.join(told)}" if told else title
        columns = list(dict.fromkeys(re.findall(r"\{(\w+)\}", said)))
        return columns or [OUTPUT], said.replace('"', "'")

    def _part(self, number: int, conditions: Sequence[Condition]) -> str:
        """A rule for a relation that tells some of the conditions."""
        name, variables = self._part_head(number, conditions)
        operands = [o for o in self.operands if o in variables]
        indices = [i for i in self.indices if i in variables]
        bound = {v for c in conditions if c.positive for v in c.variables}
        body = _body([c.text for c in conditions], bound, operands, indices, variables)
        return f"{name}({', '.join(variables)}) :- {', '.join(body)}."

    def _part_head(self, number: int, conditions: Sequence[Condition]) -> tuple[str, list[str]]:
        said = {v for c in conditions for v in c.variables}
        return f"{self.name}_part_{number}", [v for v in self._variables if v in said] or [OUTPUT]


_PART = 40
"""Conditions that one body asks for; each is up to two literals of
:data:`reprise.lang.normal.MAX_LITERALS`."""
_MESSAGE, _DOC, _WIDE = 180, 300, 94
"""About how many characters of conditions a message and the documentation tell; and of a line."""


def _body(
    literals: Sequence[str],
    bound: Container[str],
    operands: Sequence[str],
    indices: Sequence[str],
    columns: Sequence[str],
) -> list[str]:
    """Literals after what they need: the variables in them, and the columns of the rule, stand for
    something, and operands for different ones. ``bound``: variables that literals bind."""
    words = {word for text in (*literals, *columns) for word in re.findall(r"\w+", text)}
    body = []
    for who in operands:
        named = [n if n in words else "_" for n in (term(who), tensor(who))]
        body.append(f"operand({who}, {', '.join(named)})")
    body += [
        f"{first} != {second}"
        for n, first in enumerate(operands)
        for second in operands[n + 1 :]
        if f"{first} < {second}" not in literals
    ]
    body += [f"extent({index}, _)" for index in indices if index not in bound]
    if OUTPUT in words or not body:  # nothing is said of what is no kernel yet
        body.append(f"output_tensor({OUTPUT if OUTPUT in words else '_'})")
    return body + list(literals)


def _told(conditions: Sequence[Condition], most: int) -> list[str]:
    """Conditions in words, as many as there is room for, and how many more there are."""
    said = list(dict.fromkeys(c.words for c in sorted(conditions, key=telling) if c.words))
    told: list[str] = []
    for words in said:
        if told and len(", ".join([*told, words])) > most:
            break
        told.append(words)
    left = len(said) - len(told)
    return [*told, f"and {counted(left, 'more condition')}"] if left else told


def _shortest(conditions: Sequence[Condition]) -> list[Condition]:
    """Without those that others imply; what is positive first."""
    implied = {text for c in conditions for text in c.implied}
    kept = [c for c in conditions if c.text not in implied]
    return sorted(kept, key=lambda c: not c.positive)


def draft_of(view: View) -> Draft:
    """The most special draft about a kernel."""
    operands = tuple(operand(n) for n in range(len(view.operands)))
    indices = INDEX_NAMES[: len(view.extents)]
    return Draft(operands, indices, tuple(conditions_of(view)))
