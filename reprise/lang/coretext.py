"""Core Datalog as text, in the syntax of ``.rules`` files.

In go the values of :mod:`reprise.lang.core`, out comes text that the rule parser reads back to the
same program: relation declarations in their order, then the rules in theirs. Invariant: printing
never changes meaning, so every variable keeps its identity within a rule even where its name has
to change (``_`` for a variable that occurs once, an uppercase identifier otherwise).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterator
from dataclasses import dataclass

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
    Rule,
    Value,
    Var,
    variables,
)

_PLAIN_SYMBOL = re.compile(r"[a-z][a-z0-9_]*\Z")
_VARIABLE = re.compile(r"[A-Z][A-Za-z0-9_]*\Z")
_KEYWORDS = frozenset({"not", "in"})
_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_NEGATION_PRECEDENCE = 3


@dataclass(frozen=True, slots=True)
class _Style:
    """How to write. ``words``: the symbols that need no quotes (None: every lowercase identifier).
    ``bare``: a variable that occurs once is ``_``, whatever its name."""

    words: Container[str] | None = None
    bare: bool = False


_PLAIN = _Style()


def format_value(value: Value, style: _Style = _PLAIN) -> str:
    """One constant. A symbol that is not a plain lowercase identifier becomes a quoted string."""
    if isinstance(value, str):
        known = style.words is None or value in style.words
        if known and _PLAIN_SYMBOL.match(value) and value not in _KEYWORDS:
            return value
        return _quoted(value)
    if isinstance(value, float):
        return _format_float(value)
    return str(value)


def _quoted(text: str) -> str:
    """A string literal; escapes as in JSON."""
    from json import dumps  # Most symbols are plain: most processes never need it.

    return dumps(text, ensure_ascii=False)


def _format_float(value: float) -> str:
    """A float as the grammar reads it: always with a decimal point."""
    if math.isnan(value):
        return '"nan"'
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    mantissa, e, exponent = repr(value).partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return mantissa + e + exponent


def format_relation(relation: Relation) -> str:
    """A relation's declaration: ``relation edge(src: node, dst: node key) @entity @older(src)``."""
    columns = ", ".join(
        f"{column.name}: {column.type}{' key' if column.key else ''}" for column in relation.columns
    )
    flags = " @entity" if relation.entity else ""
    for word, names in (("older", relation.older), ("same", relation.same)):
        if names:
            flags += f" @{word}({', '.join(names)})"
    return f"relation {relation.name}({columns}){flags}"


def format_rule(rule: Rule, style: _Style = _PLAIN) -> str:
    """A rule or fact on one line, with its final dot."""
    names = _Names(rule, style)
    head = names.literal(rule.head)
    if not rule.body:
        return f"{head}."
    return f"{head} :- {', '.join(names.literal(literal) for literal in rule.body)}."


def format_literal(literal: Literal) -> str:
    """One literal by itself, with the variable names that it has."""
    return _Names(Rule(Atom("", ()), (literal,)), _PLAIN).literal(literal)


def format_program(program: Program) -> str:
    """The whole program: declarations, a blank line, rules. A comment names each rule's origin."""
    return _text(program, _PLAIN)


def format_beside(program: Program, library: Program, words: Container[str]) -> str:
    """The program as a rule file of its own, to be read beside the library.

    What ``library`` holds of it comes first, as comments: it is there anyway. ``words`` are the
    symbols that mean something to the library; others stand in quotes.
    """
    style = _Style(words, bare=True)
    known = set(library.rules)
    rest = Program(
        {n: r for n, r in program.relations.items() if n not in library.relations},
        tuple(rule for rule in program.rules if rule not in known),
    )
    lines = _text(library, style).splitlines()
    given = "".join(f"// {line}".rstrip() + "\n" for line in lines)
    parts = [f"// Of the library:\n{given}" if given else "", _text(rest, style)]
    return "\n".join(filter(None, parts))


def _text(program: Program, style: _Style) -> str:
    lines = [format_relation(relation) for relation in program.relations.values()]
    if lines and program.rules:
        lines.append("")
    origin = ""
    for rule in program.rules:
        if rule.name and rule.name != origin:
            lines.append(f"// {rule.name}")
        origin = rule.name
        lines.append(format_rule(rule, style))
    return "".join(f"{line}\n" for line in lines)


class _Names:
    """Printable names for one rule's variables, and the printing that uses them."""

    def __init__(self, rule: Rule, style: _Style) -> None:
        self._style = style
        uses = Counter(_rule_variables(rule))
        taken = {name for name in uses if _VARIABLE.match(name)}
        self._names: dict[str, str] = {}
        for name, count in uses.items():
            if count == 1 and (style.bare or name.startswith("_")):
                self._names[name] = "_"
            elif _VARIABLE.match(name):
                self._names[name] = name
            else:
                self._names[name] = self._fresh(name, taken)

    @staticmethod
    def _fresh(name: str, taken: set[str]) -> str:
        stem = re.sub(r"[^A-Za-z0-9_]", "_", name).strip("_")
        stem = stem[:1].upper() + stem[1:]
        if not _VARIABLE.match(stem):
            stem = f"V{stem}"
        candidate, number = stem, 1
        while candidate in taken:
            number += 1
            candidate = f"{stem}_{number}"
        taken.add(candidate)
        return candidate

    def expr(self, expr: Expr, above: int = 0) -> str:
        """``expr``, in parentheses if it binds less tightly than its surroundings (``above``)."""
        match expr:
            case Var(name):
                return self._names.get(name, name)
            case Const(value):
                return format_value(value, self._style)
            case Arith("neg", (arg,)):
                return f"-{self.expr(arg, _NEGATION_PRECEDENCE)}"
            case Arith(op, (left, right)) if op in _PRECEDENCE:
                level = _PRECEDENCE[op]
                text = f"{self.expr(left, level)} {op} {self.expr(right, level + 1)}"
                return f"({text})" if level < above else text
            case Arith(op, args):
                return f"{op}({', '.join(self.expr(arg) for arg in args)})"

    def literal(self, literal: Literal) -> str:
        match literal:
            case Atom():
                terms = ", ".join(self.expr(term) for term in literal.terms)
                return f"{'not ' if literal.negated else ''}{literal.relation}({terms})"
            case Compare(op, left, right):
                return f"{self.expr(left)} {op} {self.expr(right)}"
            case Member():
                values = ", ".join(format_value(value, self._style) for value in literal.values)
                word = "not in" if literal.negated else "in"
                return f"{self.expr(literal.expr)} {word} {{{values}}}"
            case Aggregate():
                value = "" if literal.value is None else f"{self.expr(literal.value)} : "
                body = ", ".join(self.literal(inner) for inner in literal.body)
                return f"{self.expr(literal.result)} == {literal.kind}{{ {value}{body} }}"


def _rule_variables(rule: Rule) -> Iterator[str]:
    yield from variables(rule.head)
    for literal in rule.body:
        yield from variables(literal)
