"""Relations that lowering invents: reachability, passing-through, presence, sub-patterns."""

from __future__ import annotations

import itertools
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from reprise.lang import core
from reprise.lang.diagnostics import Span


@dataclass(frozen=True, slots=True)
class Ops:
    """A resolved set of operators (``any``: all). ``label`` names the relations made for it."""

    values: tuple[core.Value, ...]
    label: str
    any: bool = False


@dataclass(slots=True)
class Auxiliary:
    """Relations that lowering invents, each made once: reachability, sub-patterns, …

    ``span``: the declaration that is being lowered, which what is wrong with them is told of.
    ``taken``: the names that the rules themselves declare; no invented relation gets one of them.
    """

    taken: Container[str] = ()
    relations: dict[str, core.Relation] = field(default_factory=dict)
    rules: list[core.Rule] = field(default_factory=list)
    span: Span | None = None
    _names: dict[tuple[object, ...], str] = field(default_factory=dict)

    def get(self, key: tuple[object, ...], wish: str) -> tuple[str, bool]:
        """The name of the relation for ``key``, and whether it is new (its rules must be added)."""
        if key in self._names:
            return self._names[key], False
        name = self._names[key] = self.fresh(wish)
        return name, True

    def fresh(self, wish: str) -> str:
        """``wish``, or a name like it that nothing else has."""
        name = wish
        for number in itertools.count(2):
            if name not in self.relations and name not in self.taken:
                break
            name = f"{wish}_{number}"
        return name

    def declare(self, name: str, types: Sequence[str]) -> None:
        """Declare an invented relation with columns of ``types``."""
        columns = tuple(core.Column(f"c{i}", t) for i, t in enumerate(types))
        self.relations[name] = core.Relation(name, columns)

    def rule(self, head: core.Atom, *body: core.Literal) -> None:
        """Add a rule for an invented relation."""
        self.rules.append(core.Rule(head, body, head.relation, self.span))

    def context(self, word: str, path: tuple[int, int] | None, ops: Ops) -> str:
        """The unary predicate "an operator of ``ops`` stands ``word`` of this tensor".

        Pairs of nodes are never materialised: one predicate per direction and set (design §6).
        """
        if word in ("user", "producer"):
            word, path = ("downstream" if word == "user" else "upstream"), (1, 1)
        wish = f"{word}_{ops.label}" + (f"_{path[0]}_{path[1]}" if path else "")
        name, new = self.get((word, path, ops.values), wish)
        if not new:
            return name
        self.declare(name, ("tensor",))
        t, u, n, op = core.Var("T"), core.Var("U"), core.Var("N"), core.Var("Op")
        near, far = (t, u) if word == "downstream" else (u, t)
        reads = core.Atom("input", (n, core.Var("_I"), near))
        makes = core.Atom("output", (n, core.Var("_J"), far))
        touches = reads if word == "downstream" else makes
        is_op = (core.Atom("node", (n, op)), core.Member(op, ops.values))
        links = core.Atom("body_link", (near, far))
        if path is None:
            self.rule(core.Atom(name, (t,)), touches, *is_op)
            self.rule(core.Atom(name, (t,)), reads, makes, core.Atom(name, (u,)))
            self.rule(core.Atom(name, (t,)), links, core.Atom(name, (u,)))
            return name
        for distance in range(path[0], path[1] + 1):
            exact = self._at_distance(word, distance, ops, touches, is_op, reads, makes)
            self.rule(core.Atom(name, (t,)), core.Atom(exact, (t,)))
        return name

    def _at_distance(
        self,
        word: str,
        distance: int,
        ops: Ops,
        touches: core.Atom,
        is_op: tuple[core.Literal, ...],
        reads: core.Atom,
        makes: core.Atom,
    ) -> str:
        name, new = self.get(
            (word, "exactly", distance, ops.values), f"{word}_{ops.label}_at_{distance}"
        )
        if not new:
            return name
        self.declare(name, ("tensor",))
        head = core.Atom(name, (core.Var("T"),))
        if distance == 1:
            self.rule(head, touches, *is_op)
        else:
            nearer = self._at_distance(word, distance - 1, ops, touches, is_op, reads, makes)
            self.rule(head, reads, makes, core.Atom(nearer, (core.Var("U"),)))
        return name

    def present(self, ops: Ops) -> str:
        """The nullary predicate "some node of the graph is an operator of ``ops``"."""
        name, new = self.get(("present", ops.values), f"present_{ops.label}")
        if new:
            self.declare(name, ())
            n, op = core.Var("N"), core.Var("Op")
            self.rule(core.Atom(name, ()), core.Atom("node", (n, op)), core.Member(op, ops.values))
        return name

    def passed_on(self, ops: Ops) -> str:
        """``via_S(T, U)``: U is T after one or more operators of ``ops``, each passing on its
        first operand."""
        name, new = self.get(("via", ops.values), f"via_{ops.label}")
        if new:
            self.declare(name, ("tensor", "tensor"))
            t, u, v = core.Var("T"), core.Var("U"), core.Var("V")
            n, op = core.Var("N"), core.Var("Op")
            step = (
                core.Atom("node", (n, op)),
                core.Member(op, ops.values),
                core.Atom("output", (n, core.Const(0), u)),
            )
            first = core.Const(0)
            self.rule(core.Atom(name, (t, u)), *step, core.Atom("input", (n, first, t)))
            self.rule(
                core.Atom(name, (t, u)),
                *step,
                core.Atom("input", (n, first, v)),
                core.Atom(name, (t, v)),
            )
        return name


def label(names: Sequence[str]) -> str:
    """A short name for a set of operators, used in the names of invented relations."""
    plain = [n.replace(".", "_").lower() for n in names]
    return "_".join(plain) if len(plain) <= 3 else "_".join(plain[:3]) + "_etc"
