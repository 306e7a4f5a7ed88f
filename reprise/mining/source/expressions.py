"""Expressions of Python and C++ as expressions of the rule language.

What a compiler's variable holds becomes ``value("…")``, with the source text of a variable, a
field, an element or a call. Numbers, arithmetic, comparisons and connectives become their own.
Whatever has no counterpart raises :class:`Untranslatable` with the reason, and never passes for
something else.

Two readings are deliberate. Integer division of C++ rounds towards zero and ours down; both agree
for what is not negative, as extents, factors and sizes are. And a number as a condition (``if (a
% b)``) means that it is not zero, but only where the expression is arithmetic: the truth of a
variable may be that of a pointer, a list or ``None``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from reprise.lang import ast
from reprise.lang.format import show

MOST_CHARACTERS = 160
"""Of a source text inside ``value("…")``."""

_GUARDED = re.compile(r"value|front|back|at|get[A-Z]\w*")
"""Methods that need something to be there: `getRank()` of what has a rank."""
_MAY_CHANGE = re.compile(r"&|--|\+\+|=")
"""Is in the text of every expression that sets something, and of few others."""
_CAST = re.compile(r"(?:\w+::)*cast<.*>", re.DOTALL)
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_ARITHMETIC = ("+", "-", "*", "%")
_SIZES = {"min", "max", "abs"}
_ZERO = ast.Number(0)
_MESSAGES = ("string_literal", "concatenated_string")
"""What stands for nothing but a message in ``assert(a % b == 0 && "no multiple")``."""


class Untranslatable(Exception):
    """An expression has no counterpart; the message says what is in the way."""


@dataclass
class Translation:
    """An expression or condition, and what it is made of.

    ``values``: the source text of each ``value("…")``; ``operators``: the operators, ``number``
    for a literal, ``path`` for what is more than a name. ``invoked``: functions of the compiler
    that are called again."""

    values: dict[str, str] = field(default_factory=dict)
    operators: set[str] = field(default_factory=set)
    invoked: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Reader:
    """Translates nodes of one language's syntax trees. ``bound``: names that are no variables of
    the statement, such as the parameters of a lambda in it."""

    language: str
    bound: frozenset[str] = frozenset()

    def expression(self, node: Node, notes: Translation) -> ast.Expr:
        """``node`` as an expression. Raises Untranslatable."""
        return _READERS[self.language](self, node, notes)

    def condition(self, node: Node, notes: Translation) -> ast.Condition:
        """``node`` as a condition. Raises Untranslatable."""
        kind = node.type
        if kind in ("parenthesized_expression", "condition_clause") and node.named_child_count == 1:
            return self.condition(_only(node), notes)
        if kind in ("comparison_operator", "binary_expression", "boolean_operator", "not_operator"):
            found = self._connective(node, notes)
            if found is not None:
                return found
        if kind == "unary_expression" and text(node).startswith("!"):
            return negated(self.condition(_last(node), notes))
        if kind in ("true", "false"):
            raise Untranslatable("a constant")
        return self._truth(node, notes)

    def _truth(self, node: Node, notes: Translation) -> ast.Condition:
        value = self.expression(node, notes)
        if isinstance(value, ast.Binary):
            notes.operators |= {"!=", "number"}
            return ast.Comparison((value, _ZERO), ("!=",))
        raise Untranslatable("the truth of a value")

    def _connective(self, node: Node, notes: Translation) -> ast.Condition | None:
        if node.type == "not_operator":
            return negated(self.condition(_last(node), notes))
        if node.type == "comparison_operator":
            return self._comparison(node, notes)
        operator = text(_field(node, "operator"))
        left, right = _field(node, "left"), _field(node, "right")
        if operator in ("and", "&&"):
            if right.type in _MESSAGES:
                return self.condition(left, notes)
            notes.operators.add("and")
            self.refuse_guarded(right)
            return _joined(ast.And, self.condition(left, notes), self.condition(right, notes))
        if operator in ("or", "||"):
            notes.operators.add("or")
            self.refuse_guarded(right)
            return _joined(ast.Or, self.condition(left, notes), self.condition(right, notes))
        if operator in _NEGATED:
            notes.operators.add(operator)
            sides = self.expression(left, notes), self.expression(right, notes)
            return ast.Comparison(sides, (operator,))
        return None

    def refuse_guarded(self, node: Node) -> None:
        """Refuse what is evaluated only where a condition before it holds, if evaluating it
        anywhere else could end the process: in C++, what goes through a pointer or an index, or
        asks an object for something that it need not have."""
        if self.language == "cpp" and _reaches(node):
            raise Untranslatable("read only where a condition before it holds")

    def _comparison(self, node: Node, notes: Translation) -> ast.Condition:
        """Python's, which may be a chain: children alternate between operands and operators."""
        operands = [child for child in node.named_children if child.type != "comment"]
        operators = [text(op) for op in node.children_by_field_name("operators")]
        operators = [" ".join(op.split()) for op in operators]
        if len(operators) == 1 and operators[0] in ("in", "not in"):
            items = operands[1]
            if items.type not in ("tuple", "list", "set"):
                raise Untranslatable(f"`{operators[0]}` something that is not written out")
            notes.operators.add("in")
            members = tuple(self.expression(child, notes) for child in items.named_children)
            if not all(isinstance(m, (ast.Number, ast.String)) for m in members) or not members:
                raise Untranslatable(f"`{operators[0]}` something that is not written out")
            value = self.expression(operands[0], notes)
            return ast.Membership(value, ast.SetDomain(members), operators[0] == "not in")
        if len(operators) + 1 != len(operands):
            raise Untranslatable("a comparison that is not understood")
        for operator in operators:
            if operator not in _NEGATED:
                raise Untranslatable(f"`{operator}`")
        notes.operators |= set(operators)
        return ast.Comparison(
            tuple(self.expression(operand, notes) for operand in operands), tuple(operators)
        )

    # --- expressions -----------------------------------------------------------------------

    def value(self, node: Node, notes: Translation) -> ast.Expr:
        """``value("…")`` for a variable, field, element or call."""
        source = flat(node)
        if len(source) > MOST_CHARACTERS:
            raise Untranslatable("a long expression")
        if "\\" in source or '"' in source:
            raise Untranslatable("a string in an expression")
        if _MAY_CHANGE.search(source) and _changes(node):
            raise Untranslatable("an expression that may change something")
        names = _names(node)
        if names & self.bound:
            raise Untranslatable(f"`{min(names & self.bound)}` is bound inside the expression")
        notes.invoked |= _invoked(node)
        if node.type not in ("identifier",):
            notes.operators.add("path")
        expr = value_of(source)
        notes.values[shown(expr)] = last_name(node)
        return expr

    def arithmetic(self, node: Node, notes: Translation) -> ast.Expr:
        """A binary operator, of either language."""
        operator = text(_field(node, "operator"))
        left, right = _field(node, "left"), _field(node, "right")
        if operator in ("<<", ">>", "**"):
            amount = self.expression(right, notes)
            if not isinstance(amount, ast.Number) or not 0 <= amount.value < 128:
                raise Untranslatable(f"`{operator}`")
            base = self._numeric(left, notes)
            return self._shifted(operator, base, int(amount.value))
        if operator == "//" or (operator == "/" and self.language == "cpp"):
            notes.operators.add("/")
            return ast.Binary("/", self._numeric(left, notes), self._numeric(right, notes))
        if operator not in _ARITHMETIC:
            why = "division that does not round" if operator == "/" else f"`{operator}`"
            raise Untranslatable(why)
        notes.operators.add(operator)
        return ast.Binary(operator, self._numeric(left, notes), self._numeric(right, notes))

    def _numeric(self, node: Node, notes: Translation) -> ast.Expr:
        """An operand of arithmetic. In Python `"%d" % x` puts a text together."""
        found = self.expression(node, notes)
        if isinstance(found, ast.String | ast.Boolean):
            raise Untranslatable("arithmetic with what is no number")
        return found

    @staticmethod
    def _shifted(operator: str, base: ast.Expr, amount: int) -> ast.Expr:
        if isinstance(base, ast.Number) and isinstance(base.value, int):
            number = base.value
            if operator == "<<":
                return ast.Number(number << amount)
            return ast.Number(number >> amount if operator == ">>" else number**amount)
        if operator == "**":
            raise Untranslatable("`**`")
        return ast.Binary("*" if operator == "<<" else "/", base, ast.Number(1 << amount))

    def small_call(self, name: str, arguments: Node, notes: Translation) -> ast.Expr | None:
        """``min``, ``max`` and ``abs``, which are functions of the rule language, too."""
        args = [a for a in arguments.named_children if a.type != "comment"]
        expected = 1 if name == "abs" else 2
        if name not in _SIZES or len(args) != expected:
            return None
        parts = tuple(self.expression(a, notes) for a in args)
        return ast.CallExpr(ast.Ident(name), parts)


def _python(reader: Reader, node: Node, notes: Translation) -> ast.Expr:
    match node.type:
        case "integer":
            return _number(text(node), notes)
        case "float":
            return _number(text(node), notes)
        case "true" | "false":
            return ast.Boolean(node.type == "true")
        case "string":
            return _string(node)
        case "parenthesized_expression":
            return reader.expression(_only(node), notes)
        case "unary_operator":
            return _negative(reader, node, notes)
        case "binary_operator":
            return reader.arithmetic(node, notes)
        case "call":
            function = _field(node, "function")
            name = text(function)
            arguments = _field(node, "arguments")
            small = reader.small_call(name, arguments, notes)
            if small is not None:
                return small
            if name == "int" and arguments.named_child_count == 1:
                return reader.expression(_only(arguments), notes)
            return reader.value(node, notes)
        case "identifier" | "attribute" | "subscript":
            return reader.value(node, notes)
    raise Untranslatable(_kind(node))


def _cpp(reader: Reader, node: Node, notes: Translation) -> ast.Expr:
    match node.type:
        case "number_literal":
            return _number(re.sub(r"(?<=[0-9a-fA-F.])[uUlLzZ]+$", "", text(node)), notes)
        case "true" | "false":
            return ast.Boolean(node.type == "true")
        case "string_literal":
            return _string(node)
        case "parenthesized_expression" | "condition_clause":
            return reader.expression(_only(node), notes)
        case "unary_expression":
            return _negative(reader, node, notes)
        case "binary_expression":
            return reader.arithmetic(node, notes)
        case "cast_expression":
            return reader.expression(_field(node, "value"), notes)
        case "call_expression":
            function = _field(node, "function")
            arguments = _field(node, "arguments")
            is_cast = text(function).startswith("static_cast<")
            if is_cast and arguments.named_child_count == 1:
                return reader.expression(_only(arguments), notes)
            small = reader.small_call(text(function).removeprefix("std::"), arguments, notes)
            return small if small is not None else reader.value(node, notes)
        case "identifier" | "field_expression" | "subscript_expression" | "qualified_identifier":
            return reader.value(node, notes)
    raise Untranslatable(_kind(node))


_READERS: dict[str, Callable[[Reader, Node, Translation], ast.Expr]] = {
    "python": _python,
    "cpp": _cpp,
}


def conjuncts(node: Node, holds: bool) -> list[tuple[Node, bool]]:
    """The parts of a condition that each must hold (or not, where the bool is false), if the whole
    must (or must not). So a part that cannot be translated does not hide the others."""
    inner = node
    while inner.type in ("parenthesized_expression", "condition_clause"):
        if inner.named_child_count != 1:
            return [(node, holds)]
        inner = inner.named_children[0]
    if inner.type == "not_operator" or (inner.type == "unary_expression" and text(inner)[0] == "!"):
        return conjuncts(_last(inner), not holds)
    if inner.type in ("boolean_operator", "binary_expression"):
        operator, left, right = (
            inner.child_by_field_name(n) for n in ("operator", "left", "right")
        )
        if operator is not None and left is not None and right is not None:
            if right.type in _MESSAGES:
                return conjuncts(left, holds)
            if text(operator) in (("and", "&&") if holds else ("or", "||")):
                return [*conjuncts(left, holds), *conjuncts(right, holds)]
    return [(inner, holds)]


def value_of(source: str) -> ast.CallExpr:
    """``value("source")``; the text must need no escapes."""
    return ast.CallExpr(ast.Ident("value"), (ast.String(source),))


def shown(node: ast.Expr | ast.Condition) -> str:
    """A node as text. Most are ``value("…")``, for which the formatter is slow."""
    match node:
        case ast.CallExpr(ast.Ident("value"), (ast.String(source),)):
            return f'value("{source}")'
        case ast.Number(int() as number):
            return str(number)
    return show(node)


def negated(condition: ast.Condition) -> ast.Condition:
    """The condition that holds exactly where this one does not, without ``not`` where possible."""
    match condition:
        case ast.Comparison(operands, (operator,)):
            return ast.Comparison(operands, (_NEGATED[operator],))
        case ast.Membership():
            return replace(condition, negated=not condition.negated)
        case ast.Not(inner):
            return inner
        case ast.And(parts):
            return ast.Or(tuple(negated(part) for part in parts))
        case ast.Or(parts):
            return ast.And(tuple(negated(part) for part in parts))
    return ast.Not(condition)


def text(node: Node) -> str:
    """The node's source text."""
    return (node.text or b"").decode("utf-8", "replace")


def flat(node: Node) -> str:
    """The node's source text on one line."""
    return " ".join(text(node).split())


def _changes(node: Node, called: bool = False) -> bool:
    """Whether an expression sets a variable, or gives a function the address of one."""
    if node.type in ("named_expression", "assignment_expression", "update_expression"):
        return True
    if called and node.type == "pointer_expression" and node.children[0].type == "&":
        return True
    inside = called or node.type == "argument_list"
    return any(_changes(child, inside) for child in node.named_children)


def _reaches(node: Node) -> bool:
    if node.type in ("pointer_expression", "subscript_expression"):
        return True
    if node.type == "field_expression":
        field = node.child_by_field_name("field")
        if "->" in (child.type for child in node.children):
            return True
        if field is not None and _GUARDED.fullmatch(text(field)):
            return True
    if node.type in ("template_function", "qualified_identifier") and _CAST.fullmatch(text(node)):
        return True
    return any(map(_reaches, node.named_children))


def _number(written: str, notes: Translation) -> ast.Expr:
    written = written.replace("'", "_")
    notes.operators.add("number")
    try:
        if re.fullmatch(r"0[0-7]+", written):  # C's octal
            return ast.Number(int(written, 8))
        return ast.Number(int(written, 0))
    except ValueError:
        pass
    try:
        return ast.Number(float(written.rstrip("fF")))
    except ValueError:
        raise Untranslatable(f"the number `{written}`") from None


def _string(node: Node) -> ast.Expr:
    parts = [child for child in node.named_children if child.type.endswith("content")]
    content = "".join(text(part) for part in parts)
    if text(node)[:1] not in "\"'" or len(parts) > 1 or "\\" in content or '"' in content:
        raise Untranslatable("a string that is put together")
    return ast.String(content)


def _negative(reader: Reader, node: Node, notes: Translation) -> ast.Expr:
    written = text(node)
    if not written.startswith("-"):
        raise Untranslatable(f"`{written[:1]}`")
    operand = reader.expression(_last(node), notes)
    if isinstance(operand, ast.Number):
        return ast.Number(-operand.value)
    return ast.Negate(operand)


def _joined(
    kind: type[ast.And] | type[ast.Or], left: ast.Condition, right: ast.Condition
) -> ast.Condition:
    parts: list[ast.Condition] = []
    for side in (left, right):
        parts += side.parts if isinstance(side, kind) else (side,)
    return kind(tuple(parts))


def _kind(node: Node) -> str:
    return (
        "an " + node.type.replace("_", " ")
        if node.type[0] in "aeiou"
        else "a " + node.type.replace("_", " ")
    )


def _only(node: Node) -> Node:
    children = [child for child in node.named_children if child.type != "comment"]
    if len(children) != 1:
        raise Untranslatable("more than one expression")
    return children[0]


def _last(node: Node) -> Node:
    children = [child for child in node.named_children if child.type != "comment"]
    if not children:
        raise Untranslatable("a piece of text that does not parse")
    return children[-1]


def _field(node: Node, name: str) -> Node:
    child = node.child_by_field_name(name)
    if child is None:
        raise Untranslatable("a piece of text that does not parse")
    return child


def _names(node: Node) -> set[str]:
    if node.type == "identifier":
        return {text(node)}
    return {name for child in node.named_children for name in _names(child)}


def _invoked(node: Node) -> set[str]:
    """The names of the functions that are called again when a value is asked for."""
    found = {name for child in node.named_children for name in _invoked(child)}
    if node.type in ("call", "call_expression"):
        found.add(last_name(node))
    return found


def last_name(node: Node) -> str:
    """The name that says most about a value: ``bandwidth`` of ``self.bandwidth`` and
    ``bandwidth()``."""
    match node.type:
        case "attribute":
            return text(_field(node, "attribute"))
        case "field_expression":
            return text(_field(node, "field"))
        case "call" | "call_expression":
            return last_name(_field(node, "function"))
        case "subscript":
            return last_name(_field(node, "value"))
        case "subscript_expression":
            return last_name(_field(node, "argument"))
        case "qualified_identifier":
            return text(node).rpartition("::")[2]
    return text(node)
