"""A rule about kernels that is being worked on: variables, and conditions that can be dropped.

A :class:`Draft` is matched with a kernel natively; :meth:`Draft.text` writes it as a deny rule over
the facts of kernels. The two mean the same, which the tests see to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from reprise.einsum.distill.conditions import (
    INDEX_NAMES,
    Condition,
    Holds,
    conditions_of,
    operand,
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
    comment; ``doc`` what a person is told of a kernel that matches, ``symptom`` what happens."""

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
        """The rule file."""
        body = self._body()
        named = [*self.operands, *self.indices]
        if OUTPUT in {word for literal in body for word in re.findall(r"\w+", literal)}:
            body.append(f"output_tensor({OUTPUT})")
        head = f'deny {self.name}({", ".join(named)}) "{self._message()}"'
        lines = [f"// {note}" for note in self.notes]
        lines += [HEAD, *(f"/// {line}" for line in self.doc.splitlines())]
        lines.append(f"{head} :- {', '.join(body)}.")
        if self.symptom:
            lines.append(f'\nshows("{self.name}", "{self.symptom}").')
        return format_text("\n".join([*lines, "", tests]))

    def _message(self) -> str:
        parts = [f"operand {{{o}}}" for o in self.operands]
        parts += [f"index {{{i}}}" for i in self.indices]
        said = self.title.replace('"', "'").replace("{", "(").replace("}", ")")
        return f"{said} ({', '.join(parts)})" if parts else said

    def _body(self) -> list[str]:
        conditions = [c.text for c in _shortest(self.conditions)]
        words = {word for text in conditions for word in re.findall(r"\w+", text)}
        body = []
        for who in self.operands:
            named = [n if n in words else "_" for n in (term(who), tensor(who))]
            body.append(f"operand({who}, {', '.join(named)})")
        body += [
            f"{first} != {second}"
            for n, first in enumerate(self.operands)
            for second in self.operands[n + 1 :]
            if f"{first} < {second}" not in conditions
        ]
        bound = {v for c in self.conditions if c.positive for v in c.variables}
        body += [f"extent({index}, _)" for index in self.indices if index not in bound]
        if not body and not any(c.positive for c in self.conditions):
            body = ["output_tensor(_)"]  # nothing is said of what is no kernel yet
        return body + conditions


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
