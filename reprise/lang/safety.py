"""Is one rule fit to run? Names, arities, types, and whether every variable gets a value.

In comes a core rule and the declared relations, out go diagnostics. A rule is *safe* when each
variable of its head, its negated atoms, its comparisons and its aggregates' groups is bound by a
positive atom, by an ``==`` whose other side is bound, by an ``in`` over a finite set, or by an
aggregate's result. Invariant that engines rely on: a rule without errors here has, for every
variable, exactly one type (``any`` only if it occurs in ``any`` columns alone), and can be
evaluated left to right after reordering without ever meeting an unbound variable.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reprise.lang.core import (
    SCALAR_TYPES,
    Aggregate,
    Arith,
    Atom,
    Compare,
    Const,
    Expr,
    Literal,
    Member,
    Relation,
    Rule,
    Value,
    Var,
    variables,
)
from reprise.lang.coretext import format_literal, format_value
from reprise.lang.diagnostics import Diagnostic, Severity, Span

NOWHERE = Span("<rules>", 1, 1, 1, 1)
"""The span of a part that was built in memory and comes from no file."""

_NUMERIC = frozenset({"int", "float", "any"})


def check_rule(rule: Rule, relations: Mapping[str, Relation]) -> list[Diagnostic]:
    """Everything that keeps ``rule`` from running, and order comparisons that can never hold.

    Errors have codes ``unknown-relation``, ``wrong-arity``, ``arithmetic-in-body``,
    ``type-conflict``, ``unsafe-variable``, ``only-negated``; the one warning is
    ``never-true``. Types and safety are judged only if all names and arities are right.
    """
    problems = _check_names(rule, relations)
    if problems:
        return problems
    typing = _Typing(rule, relations)
    return [_in_the_author_s_names(d) for d in (*typing.problems, *_check_bindings(rule))]


def variable_types(rule: Rule, relations: Mapping[str, Relation]) -> dict[str, str]:
    """The type of each variable of a well-named rule; conflicts resolve to the first type seen."""
    return _Typing(rule, relations).types


def expression_type(expr: Expr, types: Mapping[str, str]) -> str:
    """The column type that an expression's value has, ``any`` where only its evaluation tells."""
    match expr:
        case Var(name):
            return types.get(name, "any")
        case Const(value):
            return _value_type(value)
        case Arith("bits"):
            return "int"
        case Arith(_, args):
            kinds = {expression_type(arg, types) for arg in args}
            if "float" in kinds:
                return "float"
            return "int" if kinds == {"int"} else "any"


def _value_type(value: Value) -> str:
    return {int: "int", float: "float"}.get(type(value), "sym")


# --- names and arities -------------------------------------------------------------------------


def _atoms(literals: Iterable[Literal]) -> Iterator[Atom]:
    for literal in literals:
        if isinstance(literal, Atom):
            yield literal
        elif isinstance(literal, Aggregate):
            yield from _atoms(literal.body)


def _check_names(rule: Rule, relations: Mapping[str, Relation]) -> list[Diagnostic]:
    problems = []
    for atom in (rule.head, *_atoms(rule.body)):
        span = atom.span or rule.span or NOWHERE
        relation = relations.get(atom.relation)
        if relation is None:
            from reprise.lang.spelling import similar  # only errors need it: it is slow to load

            near = similar(atom.relation, tuple(relations), 0.6)
            hint = f"did you mean `{near}`?" if near else "declare it with `relation`"
            message = f"no relation is called `{atom.relation}`"
            problems.append(Diagnostic("unknown-relation", message, span, hint))
        elif len(atom.terms) != relation.arity:
            columns = ", ".join(column.name for column in relation.columns)
            message = (
                f"`{atom.relation}` has {relation.arity} column(s), but {len(atom.terms)} are given"
            )
            hint = f"its columns are ({columns})"
            problems.append(Diagnostic("wrong-arity", message, span, hint))
        elif atom is not rule.head and any(isinstance(term, Arith) for term in atom.terms):
            message = f"`{atom.relation}` has arithmetic among its arguments"
            hint = "give the value a name with `==` first"
            problems.append(Diagnostic("arithmetic-in-body", message, span, hint))
    return problems


# --- types -------------------------------------------------------------------------------------


@dataclass
class _Use:
    """Where a variable got its type: for the message of a conflict."""

    type: str
    place: str


@dataclass
class _Typing:
    """One pass over a rule's literals that gives each variable a type.

    Typed columns win over ``any``; two different types conflict. Values computed by ``==`` or an
    aggregate get their type from the expression once the columns have been seen; an aggregate's
    result is what is aggregated, whatever it is compared with.
    """

    rule: Rule
    relations: Mapping[str, Relation]
    types: dict[str, str] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._uses: dict[str, _Use] = {}
        for atom in _atoms(self.rule.body):
            self._atom(atom)
        self._computed(self.rule.body)
        self._atom(self.rule.head)
        for name in {*_names(self.rule.body), *variables(self.rule.head)}:
            self.types.setdefault(name, "any")
        self._expressions(self.rule.body)

    def _atom(self, atom: Atom) -> None:
        for term, column in zip(atom.terms, self.relations[atom.relation].columns, strict=True):
            place = f"`{atom.relation}` (column `{column.name}`)"
            if isinstance(term, Var):
                self._use(term.name, _Use(column.type, place), atom)
            elif isinstance(term, Const):
                self._constant(term.value, column.type, place, atom)
            else:
                self._head_expression(term, column.type, place, atom)

    def _use(self, name: str, use: _Use, literal: Literal) -> None:
        old = self._uses.get(name)
        if old is not None and old.type != use.type:
            types = {old.type, use.type}
            if "any" not in types or types.isdisjoint(SCALAR_TYPES - {"any"}):
                self._report(
                    f"{_shown(name)} is {_a(old.type)} in {old.place} but {_a(use.type)} in "
                    f"{use.place}",
                    literal,
                )
        if old is None or old.type == "any":
            self._uses[name] = use
            self.types[name] = use.type

    def _constant(self, value: Value, type_: str, place: str, literal: Literal) -> None:
        if not fits(value, type_):
            kind = "an identifier" if type_ not in SCALAR_TYPES else _a(type_)
            self._report(f"{format_value(value)} is not {kind}, which {place} holds", literal)

    def _head_expression(self, expr: Expr, type_: str, place: str, literal: Literal) -> None:
        got = expression_type(expr, self.types)
        if got not in (type_, "any") and not (type_ in ("float", "any") and got in _NUMERIC):
            self._report(f"this expression is {_a(got)}, but {place} holds {_a(type_)}", literal)
        self._arithmetic(expr, literal)

    def _computed(self, literals: Iterable[Literal]) -> None:
        """Types of variables that no atom binds, to a fixed point over chains of ``==``."""
        computed = [x for x in _flat(literals) if not isinstance(x, Atom)]
        results = {x.result.name for x in computed if isinstance(x, Aggregate)}
        changed = True
        while changed:
            changed = False
            for literal in computed:
                name, type_ = self._result(literal)
                if name in results and not isinstance(literal, Aggregate):
                    continue
                if name is not None and name not in self.types and type_ != "any":
                    self.types[name] = type_
                    self._uses[name] = _Use(type_, f"`{format_literal(literal)}`")
                    changed = True

    def _result(self, literal: Literal) -> tuple[str | None, str]:
        match literal:
            case Aggregate(Var(name), "count"):
                return name, "int"
            case Aggregate(Var(name), _, value) if value is not None:
                return name, expression_type(value, self.types)
            case Compare("==", Var(name), other) if name not in self.types:
                return name, expression_type(other, self.types)
            case Compare("==", other, Var(name)):
                return name, expression_type(other, self.types)
            case Member(Var(name), values, False):
                kinds = {_value_type(value) for value in values}
                return name, kinds.pop() if len(kinds) == 1 else "any"
        return None, "any"

    def _expressions(self, literals: Iterable[Literal]) -> None:
        for literal in _flat(literals):
            match literal:
                case Compare(op, left, right):
                    self._arithmetic(left, literal)
                    self._arithmetic(right, literal)
                    if op not in ("==", "!="):
                        self._ordered((left, right), literal)
                case Member():
                    self._arithmetic(literal.expr, literal)
                case Aggregate() if literal.value is not None:
                    self._arithmetic(literal.value, literal)

    def _ordered(self, sides: tuple[Expr, Expr], literal: Literal) -> None:
        for side in sides:
            if expression_type(side, self.types) in ("sym", "bool"):
                message = f"`{format_literal(literal)}` can never hold: symbols have no order"
                span = literal.span or self.rule.span or NOWHERE
                warning = Severity.WARNING
                self.problems.append(Diagnostic("never-true", message, span, None, warning))
                return

    def _arithmetic(self, expr: Expr, literal: Literal) -> None:
        if not isinstance(expr, Arith):
            return
        wanted = frozenset({"sym", "any"}) if expr.op == "bits" else _NUMERIC
        for arg in expr.args:
            got = expression_type(arg, self.types)
            if got not in wanted:
                self._report(
                    f"`{expr.op}` needs {'a dtype' if expr.op == 'bits' else 'numbers'}, "
                    f"but is given {_a(got)}",
                    literal,
                )
            self._arithmetic(arg, literal)

    def _report(self, message: str, literal: Literal) -> None:
        span = literal.span or self.rule.span or NOWHERE
        self.problems.append(Diagnostic("type-conflict", message, span))


def fits(value: Value, type_: str) -> bool:
    """Whether a constant may stand in a column of this type (an int may stand for a float)."""
    match type_:
        case "any":
            return True
        case "sym":
            return isinstance(value, str)
        case "bool":
            return value in ("true", "false")
        case "float":
            return type(value) in (int, float)
        case "int":
            return type(value) is int
        case _:
            return type(value) is int and value >= 0


def _flat(literals: Iterable[Literal]) -> Iterator[Literal]:
    """The literals, each aggregate preceded by those of its body."""
    for literal in literals:
        if isinstance(literal, Aggregate):
            yield from _flat(literal.body)
        yield literal


def _names(literals: Iterable[Literal]) -> Iterator[str]:
    for literal in literals:
        yield from variables(literal)


_INVENTED = re.compile(r"\b[NT]_(?:\d+_)?([a-z]\w*)\b|\b([A-Z]\w*?)x\d+_\d+\b")
"""Variables of a lowered pattern: those of a node or tensor ``x`` (``N_x``, ``T_x``), and those
within the braces of an aggregate (``Ax2_0``)."""


def _in_the_author_s_names(problem: Diagnostic) -> Diagnostic:
    def named(text: str) -> str:
        return _INVENTED.sub(lambda found: found[1] or found[2], text)

    hint = problem.hint and named(problem.hint)
    return dataclasses.replace(problem, message=named(problem.message), hint=hint)


def _shown(name: str) -> str:
    return "`_`" if name.startswith("_") else f"`{name}`"


def _a(type_: str) -> str:
    name = {"sym": "symbol", "any": "value"}.get(type_, type_)
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


# --- bindings ----------------------------------------------------------------------------------


def bound_by(literals: Iterable[Literal], bound: Iterable[str] = ()) -> set[str]:
    """The variables that have a value once ``literals`` hold, given those that had one before.

    Aggregates bind their result when their group is bound; the group is judged against all
    variables of ``literals`` and ``bound``.
    """
    literals = tuple(literals)
    known = set(bound)
    for literal in literals:
        if isinstance(literal, Atom) and not literal.negated:
            known.update(term.name for term in literal.terms if isinstance(term, Var))
    grown = True
    while grown:
        new = {
            name
            for literal in literals
            for name in _newly_bound(literal, known, literals, bound)
            if name not in known
        }
        known |= new
        grown = bool(new)
    return known


def _newly_bound(
    literal: Literal, known: set[str], literals: tuple[Literal, ...], bound: Iterable[str]
) -> Iterator[str]:
    match literal:
        case Compare("==", left, right):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Var) and all(name in known for name in variables(other)):
                    yield one.name
        case Member(Var(name), _, False):
            yield name
        case Aggregate():
            others = [*(other for other in literals if other is not literal)]
            if known.issuperset(group_variables(literal, {*_names(others), *bound})):
                yield literal.result.name


def group_variables(aggregate: Aggregate, elsewhere: Iterable[str]) -> list[str]:
    """The variables of an aggregate's body that also occur ``elsewhere``, in order of occurrence.

    ``elsewhere`` holds the variables of the rule's head and of its other literals.
    """
    outside = {*elsewhere, aggregate.result.name}
    inside = list(_names(aggregate.body))
    if aggregate.value is not None:
        inside.extend(variables(aggregate.value))
    return [name for name in dict.fromkeys(inside) if name in outside]


def _check_bindings(rule: Rule) -> list[Diagnostic]:
    head = set(variables(rule.head))
    known = bound_by(rule.body, ())
    problems = list(_check_literals(rule, rule.body, known, head))
    for name in dict.fromkeys(variables(rule.head)):
        if name not in known:
            problems.append(_unsafe(rule, rule.head, name, "the head", known))
    return problems


def _check_literals(
    rule: Rule, literals: tuple[Literal, ...], known: set[str], outside: set[str]
) -> Iterator[Diagnostic]:
    """Unbound variables of a body, where ``outside`` are the variables used around it."""
    for literal in literals:
        match literal:
            case Atom(negated=True):
                yield from _check_negated(rule, literal, known)
            case Compare() | Member():
                for name in dict.fromkeys(variables(literal)):
                    if name not in known:
                        yield _unsafe(rule, literal, name, f"`{format_literal(literal)}`", known)
            case Aggregate():
                others = {*_names(o for o in literals if o is not literal), *outside}
                group = group_variables(literal, others)
                for name in group:
                    if name not in known and name != literal.result.name:
                        yield _unsafe(rule, literal, name, "the aggregate's group", known)
                inner = bound_by(literal.body, known & set(group))
                value = () if literal.value is None else tuple(variables(literal.value))
                for name in dict.fromkeys(value):
                    if name not in inner:
                        yield _unsafe(rule, literal, name, "the aggregated value", inner)
                yield from _check_literals(rule, literal.body, inner, {*others, *value})


def _check_negated(rule: Rule, atom: Atom, known: set[str]) -> Iterator[Diagnostic]:
    for name in dict.fromkeys(variables(atom)):
        if name in known or name.startswith("_"):
            continue
        span = atom.span or rule.span or NOWHERE
        message = f"`{name}` occurs only under `not` in `{format_literal(atom)}`"
        hint = "write `_` for “no value at all”, or bind it with a positive literal"
        yield Diagnostic("only-negated", message, span, hint)


def _unsafe(rule: Rule, literal: Literal, name: str, place: str, known: set[str]) -> Diagnostic:
    span = literal.span or rule.span or NOWHERE
    message = f"{_shown(name)} has no value in {place}"
    return Diagnostic("unsafe-variable", message, span, _binding_hint(rule, name))


def _binding_hint(rule: Rule, name: str) -> str:
    """What would bind ``name``: a literal that mentions it without binding it, if there is one."""
    for literal in _flat(rule.body):
        if name not in variables(literal):
            continue
        match literal:
            case Atom(negated=True):
                positive = format_literal(literal).removeprefix("not ")
                return f"a positive literal such as `{positive}` would bind it"
            case Compare("==", _, _):
                return f"bind the other variables of `{format_literal(literal)}` first"
            case Aggregate():
                return "an aggregate's inner variables are not visible outside its braces"
    return f"add a positive literal that mentions `{name}`"
