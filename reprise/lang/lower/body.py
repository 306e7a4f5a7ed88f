"""Conditions, and the finished conjunction."""

from __future__ import annotations

from collections.abc import Sequence

from reprise.lang import ast, core
from reprise.lang.diagnostics import Span
from reprise.lang.lower.auxiliary import Ops
from reprise.lang.lower.choices import Choices
from reprise.lang.lower.lines import Lines
from reprise.lang.normal import TooManyAlternatives, disjuncts
from reprise.lang.symbols import suggest


class Body(Lines):
    """One conjunction under construction: conditions on top of lines."""

    def conjunction(self, conditions: Sequence[ast.Condition]) -> None:
        """Add conditions that are already literals (see ``reprise.lang.normal``)."""
        for condition in conditions:
            self.condition(condition)

    def condition(self, condition: ast.Condition) -> None:
        match condition:
            case ast.Comparison((left, right), (op,)):
                self._comparison(left, op, right, condition.span)
            case ast.Membership(expr, domain, negated):
                self._member_of(expr, domain, negated, condition.span)
            case ast.AtomCond():
                self.emit(self.atom(condition, False))
            case ast.Not(ast.AtomCond() as atom):
                self.emit(self.atom(atom, True))
            case ast.Context():
                self._context(condition, False)
            case ast.Not(ast.Context() as context):
                self._context(context, True)
            case ast.Exists():
                self._exists(condition)
            case ast.Not(ast.Exists() as exists):
                self._late.append((exists, condition.span))
            case _:
                raise AssertionError(condition)

    def finish(self) -> None:
        """Add what needs the whole conjunction first: ``not exists``."""
        for exists, span in self._late:
            self._not_exists(exists, span)
        self._late.clear()

    def _comparison(self, left: ast.Expr, op: str, right: ast.Expr, span: Span) -> None:
        if isinstance(left, ast.Wildcard) or isinstance(right, ast.Wildcard):
            self.report.error("wildcard-compared", "`_` cannot be compared", span)
            return
        a, a_type = self.expr(left)
        b, b_type = self.expr(right, a_type if a_type in ("dtype", "op") else "any")
        if isinstance(left, ast.Name) and b_type in ("dtype", "op") and a_type != b_type:
            a, a_type = self.expr(left, b_type)
        self._comparable(a_type, b_type, op, span, "the left side")
        self.emit(core.Compare(op, a, b, span))

    def _member_of(self, expr: ast.Expr, domain: ast.Domain, negated: bool, span: Span) -> None:
        expected = self._domain_kind(domain)
        if isinstance(expr, ast.Name) and expr.text in self.scope and expected == "op":
            node = self.node_of(expr.text)  # `s in reductions` reads the node's operator
            if node is not None:
                op = self.lookup("node", (node,), "Op", span)
                self.membership(op, "op", domain, negated, span)
                return
        lowered, kind = self.expr(expr, expected)
        self.membership(lowered, kind, domain, negated, span)

    def _domain_kind(self, domain: ast.Domain) -> str:
        """``op`` or ``dtype`` if that is what a domain holds, else ``any``."""
        match domain:
            case ast.NamedDomain(name):
                named = self.symbols.members(name.text)
                kind = named.kind if named else None
            case ast.SetDomain((ast.Name(text), *_)):
                named = self.symbols.members(text)
                kind = named.kind if named else self.symbols.kind_of_symbol(text)
            case _:
                kind = None
        return kind if kind in ("op", "dtype") else "any"

    def atom(self, atom: ast.AtomCond, negated: bool) -> core.Atom:
        name = atom.relation.text
        types = self.symbols.column_types.get(name)
        if types is None:
            known = [*self.symbols.column_types]
            self.report.error(
                "unknown-relation",
                f"no relation is called `{name}`",
                atom.relation.span,
                suggest(name, known),
            )
            return core.Atom(name, ())
        if len(types) != len(atom.args):
            self.report.error(
                "wrong-arity",
                f"`{name}` has {len(types)} column{'s' if len(types) != 1 else ''}, "
                f"not {len(atom.args)}",
                atom.span,
            )
        terms = tuple(self.term(a, t) for a, t in zip(atom.args, types, strict=False))
        return core.Atom(name, terms, negated, atom.span)

    def _context(self, context: ast.Context, negated: bool) -> None:
        subject = context.subject
        if subject.text not in self.scope:
            self._unknown_base(ast.Name(subject.text, subject.span))
            return
        ops = self.op_domain(context.domain)
        if context.path is not None and not 1 <= context.path[0] <= context.path[1] <= 64:
            self.report.error(
                "bad-path", "a path is low..high with 1 <= low <= high <= 64", context.span
            )
            return
        if context.word == "elsewhere":
            self._elsewhere(ops, negated, context.span)
            return
        tensor = self.tensor_of(subject.text, subject.span)
        relation = self.auxiliary.context(context.word, context.path, ops)
        self.emit(core.Atom(relation, (tensor,), negated, context.span))

    def _elsewhere(self, ops: Ops, negated: bool, span: Span) -> None:
        inside = [
            s for s in self.specs if s.ops.any or not set(s.ops.values).isdisjoint(ops.values)
        ]
        if not inside:
            self.emit(core.Atom(self.auxiliary.present(ops), (), negated, span))
            return
        node, op = self.fresh("N_"), self.fresh("Op")
        other: list[core.Literal] = [
            core.Atom("node", (node, op), span=span),
            core.Member(op, ops.values, span=span),
            *[core.Compare("!=", node, s.var, span) for s in inside],
        ]
        if not negated:
            for literal in other:
                self.emit(literal)
            return
        self._negated_relation("elsewhere", other, [s.var for s in inside], span)

    def _exists(self, exists: ast.Exists) -> None:
        outer = self.scope
        self.scope = outer.copy()
        self.lines(exists.lines)
        ways = disjuncts(exists.conditions)
        if len(ways) > 1:
            ways = [ways[self.choices.pick(len(ways))]]
        self.conjunction(ways[0])
        self.scope = outer

    def _not_exists(self, exists: ast.Exists, span: Span) -> None:
        """A sub-pattern that must not be there: a relation over the variables that it shares."""
        ways = disjuncts(exists.conditions)
        for way in ways:
            inner = self._inner()
            inner.choices = Choices()
            try:
                bodies = []
                for _ in inner.choices.runs():
                    attempt = self._inner()
                    attempt.choices = inner.choices
                    attempt.lines(exists.lines)
                    attempt.conjunction(way)
                    attempt.finish()
                    bodies.append(attempt.literals)
            except TooManyAlternatives:
                self.report.error("too-many-alternatives", "too many ways to match this", span)
                return
            mine = {v for literal in self.literals for v in core.variables(literal)}
            for literals in bodies:
                used = {v for literal in literals for v in core.variables(literal)}
                shared = [core.Var(v) for v in sorted(used & mine)]
                self._negated_relation("exists", literals, shared, span)

    def _negated_relation(
        self, stem: str, literals: list[core.Literal], shared: list[core.Var], span: Span
    ) -> None:
        """Add ``not aux(shared)`` with ``aux(shared) :- literals``, plus what binds ``shared``."""
        bound = {
            t.name
            for literal in literals
            if isinstance(literal, core.Atom) and not literal.negated
            for t in literal.terms
            if isinstance(t, core.Var)
        }
        prefix: list[core.Literal] = []
        if any(v.name not in bound for v in shared) or not _connected(literals, shared):
            prefix = [x for x in self.literals if not (isinstance(x, core.Atom) and x.negated)]
        body = (*prefix, *literals)
        name, new = self.auxiliary.get(("aux", body, tuple(shared)), f"{self.owner}__{stem}")
        if new:
            self.auxiliary.declare(name, [""] * len(shared))  # types are inferred later
            self.auxiliary.rules.append(
                core.Rule(core.Atom(name, tuple(shared)), body, self.owner, span)
            )
        self.emit(core.Atom(name, tuple(shared), True, span))


def _connected(literals: Sequence[core.Literal], shared: Sequence[core.Var]) -> bool:
    """Whether positive atoms tie the shared variables to each other: else every value of the one
    would be paired with every value of the other."""
    groups: list[set[str]] = []
    for literal in literals:
        if isinstance(literal, core.Atom) and not literal.negated:
            mine = set(core.variables(literal))
            apart = [group for group in groups if group.isdisjoint(mine)]
            groups = [*apart, mine.union(*(g for g in groups if not g.isdisjoint(mine)))]
    return sum(any(v.name in group for v in shared) for group in groups) <= 1
