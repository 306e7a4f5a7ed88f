"""Core programs and facts as text for clingo, the answer-set solver.

A stratified program has one stable model, so clingo's answer is the program's meaning: an
independent second opinion. Invariant: what clingo cannot express with the same meaning raises
:class:`~reprise.datalog.errors.UnsupportedError` and is never approximated. That concerns
arithmetic and order on floats and on ``any`` values, products, and nested aggregates.

Symbols become clingo strings, integers stay, and a float becomes the opaque term ``f("0.5")``.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from reprise.datalog.errors import UnsupportedError
from reprise.datalog.values import constant, is_entity
from reprise.lang.core import (
    Aggregate,
    Arith,
    Atom,
    Compare,
    Const,
    Expr,
    Literal,
    Member,
    Program,
    Relation,
    Row,
    Rule,
    Value,
    Var,
    variables,
)
from reprise.lang.coretext import format_rule
from reprise.lang.safety import expression_type, group_variables, variable_types

_PREDICATE = re.compile(r"[a-z][A-Za-z0-9_]*\Z")


def to_clingo(program: Program, facts: Mapping[str, Iterable[Row]] | None = None) -> str:
    """A clingo program whose only stable model holds what ``program`` derives from ``facts``.
    Raises UnsupportedError."""
    text, refused = to_clingo_in_part(program)
    if refused:
        raise refused[0]
    lines = []
    for name, rows in (facts or {}).items():
        relation = program.relations[name]
        lines += [f"{predicate(name)}{_row(row, relation)}." for row in rows]
    return text + "".join(f"{line}\n" for line in lines)


def to_clingo_in_part(program: Program) -> tuple[str, list[UnsupportedError]]:
    """As much of a program as clingo can express, and why each other rule is left out.

    A rule that is left out stands as a comment: what depends on it, by negation above all, means
    something else without it.
    """
    lines: list[str] = []
    refused: list[UnsupportedError] = []
    for rule in program.rules:
        try:
            lines.append(_Writer(rule, program.relations).rule())
        except UnsupportedError as error:
            refused.append(error)
            lines.append("".join(f"% left out: {line}\n" for line in str(error).splitlines())[:-1])
    return "".join(f"{line}\n" for line in lines), refused


def predicate(relation: str) -> str:
    """The clingo predicate of a relation; injective."""
    if _PREDICATE.match(relation) and relation != "not" and not relation.startswith("x_"):
        return relation
    return "x_" + "".join(c if c.isalnum() and c.isascii() else f"_{ord(c):x}_" for c in relation)


def term(value: Value) -> str:
    """A constant as a clingo term."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float):
        return f'f("{float(value)!r}")'
    return str(value)


def _row(row: Row, relation: Relation) -> str:
    values = (
        term(constant(value, column.type))
        for value, column in zip(row, relation.columns, strict=True)
    )
    return f"({','.join(values)})" if row else ""


class _Writer:
    """One rule's translation; clingo's variables are numbered to be valid and distinct."""

    def __init__(self, rule: Rule, relations: Mapping[str, Relation]) -> None:
        self._rule = rule
        self._relations = relations
        self._types = variable_types(rule, relations)
        self._uses = Counter(_rule_variables(rule))
        self._names = {name: f"V{i}" for i, name in enumerate(self._uses)}
        self._filters: list[str] = []

    def rule(self) -> str:
        head = self._atom(self._rule.head)
        body = [self._literal(literal, self._outside(literal)) for literal in self._rule.body]
        body += self._filters
        return f"{head} :- {', '.join(body)}." if body else f"{head}."

    def _outside(self, literal: Literal) -> set[str]:
        names = set(variables(self._rule.head))
        for other in self._rule.body:
            if other is not literal:
                names.update(variables(other))
        return names

    def _unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"clingo has no {what}: {format_rule(self._rule)}")

    def _variable(self, name: str) -> str:
        return "_" if self._uses[name] == 1 else self._names[name]

    def _atom(self, atom: Atom) -> str:
        columns = self._relations[atom.relation].columns
        terms = []
        for part, column in zip(atom.terms, columns, strict=True):
            if isinstance(part, Const):
                terms.append(term(constant(part.value, column.type)))
            elif isinstance(part, Var):
                terms.append(self._variable(part.name))
                self._narrow(part, column.type)
            else:
                if expression_type(part, self._types) != column.type:
                    raise self._unsupported("conversion of numbers")
                terms.append(self._expr(part))
        arguments = f"({','.join(terms)})" if terms else ""
        return f"{'not ' if atom.negated else ''}{predicate(atom.relation)}{arguments}"

    def _narrow(self, var: Var, column_type: str) -> None:
        """A typed variable in an ``any`` column takes values of its type only."""
        type_ = self._types[var.name]
        if column_type != "any" or type_ == "any":
            return
        name = self._names[var.name]
        if type_ == "int" or is_entity(type_):
            self._filters.append(f"{name} - {name} = 0")
        elif type_ == "sym":
            self._filters.append(f'{name} >= "", {name} < f("")')
        elif type_ == "bool":
            self._filters.append(f'{name} = ("true";"false")')
        else:
            self._filters.append(f"{name} = f(_)")

    def _expr(self, expr: Expr) -> str:
        match expr:
            case Var(name):
                return self._names[name]
            case Const(value):
                return term(value)
            case Arith(op, args):
                if expression_type(expr, self._types) != "int" or op == "bits":
                    raise self._unsupported("arithmetic on floats, on any values, or `bits`")
                return _arithmetic(op, [self._expr(arg) for arg in args])

    def _literal(self, literal: Literal, outside: set[str]) -> str:
        match literal:
            case Atom():
                return self._atom(literal)
            case Compare():
                return self._comparison(literal)
            case Member():
                expr = self._expr(literal.expr)
                type_ = expression_type(literal.expr, self._types)
                values = [term(constant(value, type_)) for value in literal.values]
                if literal.negated:
                    return ", ".join(f"{expr} != {value}" for value in values) or "1 = 1"
                return f"{expr} = ({';'.join(values)})" if values else "1 = 2"
            case Aggregate():
                return self._aggregate(literal, outside)

    def _comparison(self, literal: Compare) -> str:
        kinds = [expression_type(side, self._types) for side in (literal.left, literal.right)]
        if "float" in kinds or ("any" in kinds and literal.op not in ("==", "!=")):
            raise self._unsupported("comparison of floats")
        if literal.op not in ("==", "!=") and not {"sym", "bool"}.isdisjoint(kinds):
            return "1 = 2"
        op = "=" if literal.op == "==" else literal.op
        return f"{self._expr(literal.left)} {op} {self._expr(literal.right)}"

    def _aggregate(self, literal: Aggregate, outside: set[str]) -> str:
        if literal.kind == "prod" or any(isinstance(part, Aggregate) for part in literal.body):
            raise self._unsupported("product and no aggregate inside another")
        if literal.kind != "count" and (
            literal.value is None or expression_type(literal.value, self._types) != "int"
        ):
            raise self._unsupported(f"{literal.kind} of anything but integers")
        group = {*group_variables(literal, outside)}
        weights = [] if literal.value is None else [self._expr(literal.value)]
        if literal.value is None or literal.kind != "count":
            names = dict.fromkeys(
                name
                for part in literal.body
                if not (isinstance(part, Atom) and part.negated)
                for name in variables(part)
            )
            for name in names:
                self._uses[name] += 1  # Wildcards count towards a solution, so they need names.
                if name not in group:
                    weights.append(self._names[name])
        outer, self._filters = self._filters, []
        body = [self._literal(part, outside) for part in literal.body]
        body += self._filters
        self._filters = outer
        result = self._names[literal.result.name]
        text = f"{result} = #{literal.kind}{{ {','.join(weights) or '0'} : {', '.join(body)} }}"
        return f"{text}, #inf < {result}, {result} < #sup" if literal.kind in _EXTREMES else text


_EXTREMES = ("min", "max")


def _arithmetic(op: str, args: list[str]) -> str:
    match op, args:
        case (("+" | "-" | "*"), [left, right]):
            return f"({left} {op} {right})"
        case "%", [left, right]:
            return f"((({left} \\ {right}) + {right}) \\ {right})"
        case "/", [left, right]:
            return f"(({left} - {_arithmetic('%', args)}) / {right})"
        case "neg", [arg]:
            return f"(-{arg})"
        case "abs", [arg]:
            return f"|{arg}|"
    if len(args) == 1:
        return args[0]
    first, rest = args[0], _arithmetic(op, args[1:])
    sign = "-" if op == "min" else "+"
    return f"(({first} + {rest} {sign} |{first} - {rest}|) / 2)"


def _rule_variables(rule: Rule) -> Iterator[str]:
    yield from variables(rule.head)
    for literal in rule.body:
        yield from variables(literal)
