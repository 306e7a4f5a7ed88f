"""What a condition of a monitor reads and how it computes, whatever the language of the sources.

``value("constr")``, ``after("constr")`` and ``before("constr")`` are an expression of the
compiler's own at the site; ``device(key)`` is a number that is known now. Everything else in a
condition is arithmetic, comparison and the connectives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from reprise.lang import ast
from reprise.lang.format import show
from reprise.mining.instrument.device import Scalar

MAY_CHANGE = "which may change what happens"
"""Ends the reason why an expression with a call is refused."""

OBSERVING = frozenset({"value", "after"})


class Untranslatable(Exception):
    """Why a condition cannot be checked in the sources; for people."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in the language of the sources. ``pairs``: the expressions read and the names
    that stand for them in ``text``, those that are read ``before`` the statement first."""

    text: str
    pairs: tuple[tuple[str, str], ...]
    before: frozenset[str] = frozenset()

    @property
    def values(self) -> tuple[str, ...]:
        return tuple(value for value, _ in self.pairs)


@dataclass
class Writer(ABC):
    """Writes a condition in one language. ``may_call``: functions and methods that only look.
    Collects the values that it reads in ``reads``: the expression with whether it is read before
    the statement, to the name that stands for it."""

    device: Mapping[str, Scalar]
    may_call: frozenset[str] = frozenset()
    reads: dict[tuple[str, bool], str] = field(default_factory=dict)

    # --- what languages differ in ---------------------------------------------------------------

    @abstractmethod
    def name_of(self, expression: str, before: bool) -> str:
        """What stands in the condition for an expression's value."""

    @abstractmethod
    def literal(self, value: Scalar | bool) -> str: ...

    @abstractmethod
    def binary(self, op: str, left: str, right: str) -> str: ...

    @abstractmethod
    def call(self, function: str, args: list[str]) -> str: ...

    @abstractmethod
    def join(self, word: str, parts: list[str]) -> str: ...

    @abstractmethod
    def negation(self, part: str) -> str: ...

    @abstractmethod
    def comparison(self, left: str, op: str, right: str) -> str: ...

    def listing(self, items: list[str]) -> str:
        raise Untranslatable("lists cannot be compared here")

    # --- what they share ------------------------------------------------------------------------

    def condition(self, condition: ast.Condition) -> Condition:
        """The condition, translated. Raises Untranslatable."""
        text = self.cond(condition)
        if not self.reads:
            raise Untranslatable(f"`{show(condition)}` reads no value of the compiler")
        reads = sorted(self.reads.items(), key=lambda read: not read[0][1])
        before = frozenset(name for (_, early), name in reads if early)
        return Condition(text, tuple((value, name) for (value, _), name in reads), before)

    def cond(self, condition: ast.Condition) -> str:
        match condition:
            case ast.Comparison(operands, ops):
                texts = [self.expr(operand) for operand in operands]
                pairs = zip(texts, ops, texts[1:], strict=False)
                parts = [self.comparison(left, op, right) for left, op, right in pairs]
                return self.join("and", parts) if len(parts) > 1 else parts[0]
            case ast.Membership(expr, domain, negated):
                inside = self.membership(self.expr(expr), domain)
                return self.negation(inside) if negated else inside
            case ast.Not(part):
                return self.negation(self.cond(part))
            case ast.And(parts):
                return self.join("and", [self.cond(part) for part in parts])
            case ast.Or(parts):
                return self.join("or", [self.cond(part) for part in parts])
        raise Untranslatable(f"`{show(condition)}` is about a graph, not about a compiler's values")

    def membership(self, text: str, domain: ast.Domain) -> str:
        match domain:
            case ast.SetDomain(items):
                parts = [self.comparison(text, "==", self.expr(item)) for item in items]
                return self.join("or", parts) if len(parts) > 1 else parts[0]
            case ast.RangeDomain(low, high):
                parts = [self.comparison(self.expr(low), "<=", text)]
                if not (isinstance(high, ast.Number) and high.value == float("inf")):
                    parts.append(self.comparison(text, "<=", self.expr(high)))
                return self.join("and", parts) if len(parts) > 1 else parts[0]
            case ast.NamedDomain(name):
                raise Untranslatable(f"the set `{name}` has to be written out here")

    def expr(self, expr: ast.Expr) -> str:
        match expr:
            case ast.Number(value) | ast.String(value) | ast.Boolean(value):
                return self.literal(value)
            case ast.Name(text):
                return self.literal(text)
            case ast.Negate(operand):
                return self.binary("-", self.literal(0), self.expr(operand))
            case ast.Binary(op, left, right):
                return self.binary(op, self.expr(left), self.expr(right))
            case ast.ListExpr(items):
                return self.listing([self.expr(item) for item in items])
            case ast.CallExpr(function, args):
                return self.function(function.text, args, expr)
        raise Untranslatable(f'`{show(expr)}` is no value of the compiler: write value("...")')

    def function(self, name: str, args: tuple[ast.Expr, ...], whole: ast.Expr) -> str:
        if name in OBSERVING or name == "before":
            return self.read(_one_name(args, whole), name == "before")
        if name in ("device", "param"):
            key = _one_name(args, whole).replace("-", "_")
            if key not in self.device:
                raise Untranslatable(
                    f"nothing says what `{show(whole)}` is: "
                    f"give --device-value {key}=VALUE or --hardware"
                )
            return self.literal(self.device[key])
        if name in ("abs", "min", "max"):
            return self.call(name, [self.expr(arg) for arg in args])
        raise Untranslatable(
            f'`{show(whole)}` is no value at a line of the sources: write value("...")'
        )

    def read(self, expression: str, before: bool) -> str:
        known = self.reads.get((expression, before))
        if known is None:
            known = self.reads[expression, before] = self.name_of(expression, before)
        return known


def _one_name(args: tuple[ast.Expr, ...], whole: ast.Expr) -> str:
    match args:
        case (ast.Name(text),) | (ast.String(text),):
            return text
    raise Untranslatable(f"`{show(whole)}` takes one name")
