"""Declarations, lowered: each kind becomes core rules plus what people are told about a match.

A pattern is a relation over its named nodes; a constraint's relation holds its *violations* (guard
and not require); a deny rule's relation holds what it denies; a monitor's holds the number of each
assertion that failed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from reprise.lang import ast, core
from reprise.lang.declared import PLACEHOLDER, Alternative, Constraint, Deny, Monitor, Pattern
from reprise.lang.diagnostics import Severity, Span
from reprise.lang.lower import Auxiliary, Body, Choices
from reprise.lang.lower.variables import Variables, value_variables
from reprise.lang.normal import MAX_LITERALS, TooManyAlternatives, disjuncts
from reprise.lang.safety import bound_by
from reprise.lang.symbols import Report, Symbols, suggest


class DeclarationLowering:
    """Lowers declarations one after another into shared rules, relations and auxiliaries."""

    def __init__(self, symbols: Symbols, report: Report) -> None:
        self.symbols = symbols
        self.report = report
        declared = {name for _, name in symbols.spans} | set(symbols.column_types)
        self.auxiliary = Auxiliary(declared)
        self.rules: list[core.Rule] = []
        self.broken: set[str] = set()
        self._last: Body | None = None

    def body(self, owner: str, choices: Choices, variables: Variables) -> Body:
        """An empty conjunction for the declaration ``owner``."""
        self._last = Body(self.symbols, self.report, self.auxiliary, owner, choices, variables)
        return self._last

    # --- plain rules -----------------------------------------------------------------------

    def rule(self, decl: ast.RuleDecl | ast.DenyDecl) -> None:
        """``head :- body.`` Each way to satisfy the body becomes a core rule."""
        name = decl.head.relation.text
        if name not in self.symbols.column_types:
            return
        if name in ("match", "no_match"):
            self.report.error("shadowed", f"`{name}` is a keyword of tests", decl.head.span)
        variables = Variables.of((decl.head, *decl.body))

        def lower(body: Body, way: Sequence[ast.Condition]) -> None:
            body.conjunction(way)
            head = body.atom(decl.head, False)
            body.finish()
            self.rules.append(core.Rule(head, tuple(body.literals), name, decl.span))

        self._alternatives(name, decl.body, variables, decl.span, lower)

    def deny(self, decl: ast.DenyDecl) -> Deny:
        """A rule whose rows are reported, each with its message."""
        before = len(self.rules)
        self.rule(decl)
        self._message_has_values(decl, self.rules[before:])
        columns = tuple(a.name if isinstance(a, ast.Variable) else "_" for a in decl.head.args)
        doc = "\n".join(decl.doc)
        return Deny(decl.head.relation.text, decl.message, columns, decl.span, doc)

    def _message_has_values(self, decl: ast.DenyDecl, rules: Sequence[core.Rule]) -> None:
        """What stands in braces in a message is a variable that the body gives a value."""
        known = {name for rule in rules for name in bound_by(rule.body)}
        own = [name for name in value_variables((decl.head, *decl.body)) if name in known]
        for name in dict.fromkeys(PLACEHOLDER.findall(decl.message)) if rules else ():
            if name not in own:
                self.report.error(
                    "unknown-variable",
                    f"the message asks for `{{{name}}}`, which the rule gives no value",
                    decl.head.span,
                    suggest(name, own),
                )

    # --- patterns and constraints -----------------------------------------------------------

    def pattern(self, decl: ast.PatternDecl) -> Pattern:
        """A pattern's relation over its lines' first names."""
        conditions = (*decl.where, *decl.graph)
        nodes = _node_names(decl.lines)
        alternatives = self.graph_pattern(decl.name.text, decl.lines, conditions, decl.span)
        meta = _metadata(decl.meta)
        self._relation(decl.name.text, nodes, alternatives, decl.span)
        return Pattern(
            decl.name.text, decl.title, meta, nodes, alternatives, "\n".join(decl.doc), decl.span
        )

    def constraint(self, decl: ast.ConstraintDecl) -> Constraint:
        """Guard, and violations: guard ∧ ¬require (second paper, §3.1)."""
        name, nodes = decl.name.text, _node_names(decl.lines)
        guard = self.auxiliary.fresh(f"{name}__guard")
        guards = self.graph_pattern(guard, decl.lines, decl.where, decl.span)
        self._relation(guard, nodes, guards, decl.span)
        broken = ast.Not(ast.And(decl.require, decl.span), decl.span)
        alternatives = self.graph_pattern(name, decl.lines, (*decl.where, broken), decl.span)
        self._relation(name, nodes, alternatives, decl.span)
        doc = "\n".join(decl.doc)
        meta = _metadata(decl.meta)
        return Constraint(name, decl.klass.text, nodes, guard, alternatives, doc, decl.span, meta)

    def graph_pattern(
        self,
        name: str,
        lines: Sequence[ast.Bind],
        conditions: Sequence[ast.Condition],
        span: Span,
    ) -> tuple[Alternative, ...]:
        """Every alternative of lines and conditions."""
        variables = Variables.of((*lines, *conditions))
        self._reserved(variables, span)
        found: list[Alternative] = []

        def lower(body: Body, way: Sequence[ast.Condition]) -> None:
            body.lines(lines)
            body.conjunction(way)
            body.finish()
            pairs = list(zip(body.literals, body.structural, strict=True))
            found.append(
                Alternative(
                    tuple(literal for literal, structural in pairs if structural),
                    tuple(literal for literal, structural in pairs if not structural),
                    tuple(sorted(variables.shared)),
                )
            )

        self._alternatives(name, conditions, variables, span, lower)
        return tuple(dict.fromkeys(found))

    def monitor(self, decl: ast.MonitorDecl) -> Monitor:
        """``name(I)`` holds when the I-th assertion is false of the values observed."""
        name = decl.name.text
        self.auxiliary.relations[name] = core.Relation(
            name, (core.Column("assertion", "int"),), span=decl.span
        )
        for number, (condition, _) in enumerate(decl.asserts):
            observed = _observe(condition, decl.pass_name)
            broken = ast.Not(observed, decl.span)
            head = core.Atom(name, (core.Const(number),))

            def lower(body: Body, way: Sequence[ast.Condition], head: core.Atom = head) -> None:
                body.conjunction(way)
                body.finish()
                self.rules.append(core.Rule(head, tuple(body.literals), name, decl.span))

            variables = Variables.of((condition,))
            self._alternatives(name, (broken,), variables, decl.span, lower)
        doc = "\n".join(decl.doc)
        messages = tuple(message for _, message in decl.asserts)
        meta = _metadata(decl.meta)
        return Monitor(name, decl.klass.text, decl.pass_name, messages, doc, decl.span, meta)

    # --- shared ------------------------------------------------------------------------------

    def _reserved(self, variables: Variables, span: Span) -> None:
        """Refuse variables that look like a pattern's own nodes and tensors."""
        for name in sorted(variables.written):
            if name.startswith(("N_", "T_")):
                self.report.error(
                    "reserved-name",
                    f"`{name}`: variables that start with `N_` or `T_` stand for nodes and tensors",
                    span,
                    f"call it `{name.replace('_', '', 1)}`",
                )

    def _relation(
        self, name: str, nodes: Sequence[str], alternatives: Sequence[Alternative], span: Span
    ) -> None:
        columns = tuple(core.Column(n, "node") for n in nodes)
        self.auxiliary.relations[name] = core.Relation(name, columns, span=span)
        head = core.Atom(name, tuple(core.Var(f"N_{n}") for n in nodes))
        for alternative in alternatives:
            body = (*alternative.structure, *alternative.conditions)
            self.rules.append(core.Rule(head, body, name, span))

    def _refuse_long(self, owner: str, span: Span) -> None:
        """Report the body lowered last if it is longer than engines can be asked to run."""
        if self._last is not None and len(self._last.literals) > MAX_LITERALS:
            self.report.error(
                "too-long",
                f"`{owner}` asks for {len(self._last.literals)} things at once; "
                f"{MAX_LITERALS} are the most",
                span,
                "give parts of it a relation of their own",
            )

    def _alternatives(
        self,
        owner: str,
        conditions: Sequence[ast.Condition],
        variables: Variables,
        span: Span,
        lower: Callable[[Body, Sequence[ast.Condition]], None],
    ) -> None:
        """Run ``lower`` once per alternative, up to the first that has an error."""
        try:
            ways = disjuncts(conditions)
            for way in ways:
                choices = Choices()
                for _ in choices.runs():
                    known = len(self.report.diagnostics)
                    lower(self.body(owner, choices, variables), way)
                    self._refuse_long(owner, span)
                    said = self.report.diagnostics[known:]
                    if any(d.severity is Severity.ERROR for d in said):
                        self.broken.add(owner)
                        return
                    # A warning is the same in every reading: once is enough.
                    fresh = [d for d in said if d not in self.report.diagnostics[:known]]
                    self.report.diagnostics[known:] = fresh
        except TooManyAlternatives:
            self.report.error(
                "too-many-alternatives",
                f"`{owner}` can be read in too many ways",
                span,
                "split it, or name its alternatives by a set or a relation",
            )


def _metadata(entries: Sequence[ast.MetaEntry]) -> dict[str, tuple[str, ...]]:
    """Values by key, each key's in the order in which they are written."""
    meta: dict[str, tuple[str, ...]] = {}
    for entry in entries:
        key = entry.key.text
        meta[key] = (*meta.get(key, ()), entry.value)
    return meta


def _node_names(lines: Sequence[ast.Bind]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(line.names[0].text for line in lines))


def _observe(condition: ast.Condition, pass_name: str) -> ast.Condition:
    """Read ``before(x)``, ``tensor(x)``, … in a monitor as values observed around its pass."""

    def walk(part: object) -> object:
        match part:
            case ast.CallExpr(function, (argument,)) if function.text not in _PLAIN:
                text = argument.text if isinstance(argument, ast.Name) else None
                text = argument.value if isinstance(argument, ast.String) else text
                if text is None:
                    return part
                args = tuple(ast.String(t, part.span) for t in (pass_name, function.text, text))
                return ast.CallExpr(ast.Ident("observed", function.span), args, part.span)
            case tuple():
                return tuple(walk(p) for p in part)
            case _ if dataclasses.is_dataclass(part) and not isinstance(part, type | Span):
                changed = {
                    f.name: walk(getattr(part, f.name))
                    for f in dataclasses.fields(part)
                    if f.name != "span"
                }
                return dataclasses.replace(part, **changed)
            case _:
                return part

    result = walk(condition)
    assert isinstance(result, ast.Condition)
    return result


_PLAIN = frozenset({"device", "env", "param", "bits", "abs", "min", "max", "len"})
"""Functions that mean in a monitor what they mean elsewhere."""
