"""Reads the core subset of ``.rules`` text, so that tests can be written as text.

Independent of the real parser on purpose: it also checks what ``format_program`` prints.
"""

from __future__ import annotations

import ast
import re
from itertools import count

from reprise.lang.core import (
    Aggregate,
    Arith,
    Atom,
    Column,
    Compare,
    Const,
    Expr,
    Literal,
    Member,
    Program,
    Relation,
    Rule,
    Var,
)

_TOKEN = re.compile(
    r"""\s+|//[^\n]*
    |(?P<number>\d[\d_]*(?:\.\d+(?:[eE][+-]?\d+)?)?)
    |(?P<string>"(?:\\.|[^"\\])*")
    |(?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    |(?P<sign>:-|==|!=|<=|>=|[-+*/%<>(){},.:@])""",
    re.VERBOSE,
)


def read(text: str) -> Program:
    """The program that ``text`` declares."""
    return _Reader(text).program()


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = [
            (m.lastgroup, m.group()) for m in _TOKEN.finditer(text) if m.lastgroup is not None
        ]
        self._at = 0
        self._fresh = count(1)

    def _peek(self, ahead: int = 0) -> str:
        index = self._at + ahead
        return self._tokens[index][1] if index < len(self._tokens) else ""

    def _take(self, expected: str | None = None) -> str:
        token = self._peek()
        assert token and expected in (None, token), f"expected {expected}, found {token!r}"
        self._at += 1
        return token

    def _try(self, token: str) -> bool:
        if self._peek() == token:
            self._at += 1
            return True
        return False

    def program(self) -> Program:
        relations: dict[str, Relation] = {}
        rules = []
        while self._peek():
            if self._try("relation"):
                relation = self._relation()
                relations[relation.name] = relation
            else:
                rules.append(self._rule())
        return Program(relations, tuple(rules))

    def _relation(self) -> Relation:
        name = self._take()
        columns = []
        self._take("(")
        while not self._try(")"):
            column = self._take()
            self._take(":")
            columns.append(Column(column, self._take(), self._try("key")))
            self._try(",")
        flags: dict[str, tuple[str, ...]] = {}
        while self._try("@"):
            flag = self._take()
            names = []
            if self._try("("):
                while not self._try(")"):
                    names.append(self._take())
                    self._try(",")
            flags[flag] = tuple(names)
        return Relation(
            name, tuple(columns), "entity" in flags, flags.get("older", ()), flags.get("same", ())
        )

    def _rule(self) -> Rule:
        head = self._atom()
        body: list[Literal] = []
        if self._try(":-"):
            body.append(self._literal())
            while self._try(","):
                body.append(self._literal())
        self._take(".")
        return Rule(head, tuple(body))

    def _atom(self, negated: bool = False) -> Atom:
        name = self._take()
        self._take("(")
        terms = []
        while not self._try(")"):
            terms.append(self._expr())
            self._try(",")
        return Atom(name, tuple(terms), negated)

    def _literal(self) -> Literal:
        if self._try("not"):
            return self._atom(negated=True)
        is_atom = self._peek()[0].islower() and self._peek(1) == "("
        if is_atom and self._peek() not in ("abs", "min", "max", "bits"):
            return self._atom()
        left = self._expr()
        negated = self._try("not")
        if self._try("in"):
            self._take("{")
            values = []
            while not self._try("}"):
                value = self._expr()
                assert isinstance(value, Const)
                values.append(value.value)
                self._try(",")
            return Member(left, tuple(values), negated)
        op = self._take()
        if self._peek() in ("count", "sum", "prod", "min", "max") and self._peek(1) == "{":
            assert isinstance(left, Var)
            return self._aggregate(left)
        return Compare(op, left, self._expr())

    def _aggregate(self, result: Var) -> Aggregate:
        kind = self._take()
        self._take("{")
        start = self._at
        value: Expr | None = None
        if self._peek() != "not" and not (self._peek()[0].islower() and self._peek(1) == "("):
            value = self._expr()
            if not self._try(":"):
                value, self._at = None, start
        body = [self._literal()]
        while self._try(","):
            body.append(self._literal())
        self._take("}")
        return Aggregate(result, kind, value, tuple(body))

    def _expr(self) -> Expr:
        left = self._product()
        while self._peek() in ("+", "-"):
            left = Arith(self._take(), (left, self._product()))
        return left

    def _product(self) -> Expr:
        left = self._factor()
        while self._peek() in ("*", "/", "%"):
            left = Arith(self._take(), (left, self._factor()))
        return left

    def _factor(self) -> Expr:
        kind = self._tokens[self._at][0]
        token = self._take()
        if token == "-":
            inner = self._factor()
            if isinstance(inner, Const) and not isinstance(inner.value, str):
                return Const(-inner.value)
            return Arith("neg", (inner,))
        if token == "(":
            inner = self._expr()
            self._take(")")
            return inner
        if kind == "number":
            return Const(ast.literal_eval(token))
        if kind == "string":
            return Const(ast.literal_eval(token))
        if token == "_":
            return Var(f"_{next(self._fresh)}")
        if token[0].isupper():
            return Var(token)
        if self._try("("):
            args = [self._expr()]
            while self._try(","):
                args.append(self._expr())
            self._take(")")
            return Arith(token, tuple(args))
        if token == "inf":
            return Const(float("inf"))
        return Const(token)
