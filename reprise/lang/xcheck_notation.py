"""XCheck's notation for constraints, as text: parsed and printed (the paper's Table 2 and Fig. 3c).

Comes in: text with tuples ``("id", ["op"], ["arg"], "%arg LEQ %other")``, assertions
``"assert" A "%" B "==" "0"`` (as in Fig. 4, the quotes may be left out), labels and definitions
``Name -> …``, and ``#`` comments. Goes out: a :class:`Notation`, whose conditions are the rule
language's own, over leaves that are still XCheck's: ``Name("%arg")``, ``Name("TensorWidth")``.
``reprise.lang.xcheck_rules`` gives those leaves their meaning.

The invariant: ``parse(write(entries)) == entries`` (places aside). Errors are collected, one per
entry, and leave as one :class:`RulesError`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from reprise.lang import ast
from reprise.lang.diagnostics import Diagnostic, RulesError, Severity, Span
from reprise.lang.symbols import suggest

MAX_OPERATORS = 100
"""Operators in one condition, and how deep parentheses nest: far above any real constraint, far
below what recursion over the tree could not take."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """``("id", ["op"], ["arg"], "relation")``. None stands for a part that is elided: ``...``.

    ``relation`` keeps its text as written; ``condition`` is what it says.
    """

    identifier: str | None
    operators: tuple[str, ...] | None
    arguments: tuple[str, ...] | None
    relation: str
    condition: ast.Condition
    span: Span = field(default=ast.NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Definition:
    """``ArraySize -> ArrayHeight "*" ArrayWidth``: a name for an expression in later assertions."""

    name: str
    value: ast.Expr
    quoted: bool = True
    span: Span = field(default=ast.NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Assertions:
    """One or more assertions, under one label if they have one. ``quoted``: written with quotes
    around operators, as in Table 2, and not as in Fig. 4."""

    label: str | None
    conditions: tuple[ast.Condition, ...]
    quoted: bool = True
    span: Span = field(default=ast.NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A constraint, assertions or a definition with the comment lines that stand above it.

    ``directives`` are ``#: key=value`` comments: what a tuple cannot say (class, name, pass).
    """

    item: Constraint | Definition | Assertions
    comments: tuple[str, ...] = ()
    directives: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Notation:
    """What a text holds, in order; ``trailing`` are comments after the last entry."""

    entries: tuple[Entry, ...]
    trailing: tuple[str, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()


# --- tokens ----------------------------------------------------------------------------------

_TEXT_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<comment>(?:\#|//)[^\n]*)
      | (?P<string>["“”„‟″][^"“”„‟″\n]*["“”„‟″]|['‘’‚‛][^'‘’‚‛\n]*['‘’‚‛])
      | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
      | (?P<ellipsis>\.\.\.|…)
      | (?P<arrow>->|→)
      | (?P<op>==|!=|<=|>=|[-+*/%<>])
      | (?P<mark>[()\[\],])
    """,
    re.VERBOSE,
)
_RELATION_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<argument>%\s*[A-Za-z_][A-Za-z0-9_.]*(?:-[A-Za-z0-9_.]+)*)
      | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
      | (?P<word>[A-Za-z_][A-Za-z0-9_.]*(?:-[A-Za-z0-9_.]+)*)
      | (?P<op>==|!=|<=|>=|[-+*/<>])
      | (?P<mark>[(){},])
    """,
    re.VERBOSE,
)
_BARE_OPERATORS = {"==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # string number word ellipsis arrow op mark argument end bad
    text: str  # a string's content, without its quotes
    span: Span


class _Failure(Exception):
    """One entry cannot be read; caught where the next entry starts."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def _fail(message: str, span: Span, hint: str | None = None) -> _Failure:
    return _Failure(Diagnostic("xcheck-syntax", message, span, hint))


def _tokens(pattern: re.Pattern[str], text: str, start: Span) -> list[_Token]:
    """Split ``text``, which begins at ``start``. What fits no token is a ``bad`` one."""
    found: list[_Token] = []
    line, column, position = start.line, start.column, 0
    while position < len(text):
        match = pattern.match(text, position)
        piece = match.group() if match else text[position]
        kind = (match.lastgroup if match else None) or "bad"
        span = Span(start.file, line, column, line, column + len(piece))
        if kind != "space":
            found.append(_Token(kind, piece[1:-1] if kind == "string" else piece, span))
        lines = piece.count("\n")
        line, column = line + lines, len(piece) - piece.rfind("\n") if lines else span.end_column
        position += len(piece)
    found.append(_Token("end", "the end", Span(start.file, line, column, line, column + 1)))
    return found


# --- conditions ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    """How one of the two notations spells operators: each spelling to the language's operator."""

    compare: dict[str, str]
    add: dict[str, str]
    multiply: dict[str, str]


_RELATION_WORDS = _Words(
    compare={
        "EQUAL": "==", "EQ": "==", "NEQ": "!=", "LEQ": "<=", "GEQ": ">=", "LT": "<", "LESS": "<",
        "GT": ">", "GREATER": ">", "==": "==", "!=": "!=", "<=": "<=", ">=": ">=", "<": "<",
        ">": ">",
    },
    add={"PLUS": "+", "MINUS": "-", "+": "+", "-": "-"},
    multiply={"TIMES": "*", "DIV": "/", "MOD": "%", "*": "*", "/": "/"},
)  # fmt: skip
_ASSERT_WORDS = _Words(
    compare={op: op for op in ("==", "!=", "<=", ">=", "<", ">")},
    add={"+": "+", "-": "-"},
    multiply={"*": "*", "/": "/", "%": "%"},
)


class _Conditions:
    """Recursive descent over a token list, for relations and assertions alike: they differ in
    ``words``, in how an operator is recognised (``operator``) and in what a leaf is (``leaf``)."""

    def __init__(self, tokens: Sequence[_Token], words: _Words, position: int = 0) -> None:
        self.tokens = tokens
        self.words = words
        self.position = position
        self.operators = 0

    # what the two notations do differently

    def operator(self, token: _Token) -> str | None:
        """The spelling by which ``token`` could be an operator or keyword."""
        raise NotImplementedError

    def leaf(self) -> ast.Expr:
        raise NotImplementedError

    # what they share

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def take(self, spellings: Iterable[str]) -> str | None:
        """Consume the next token if it is one of these operators."""
        spelling = self.operator(self.next)
        if spelling is None or spelling not in spellings:
            return None
        self.operators += 1
        if self.operators > MAX_OPERATORS:
            raise _fail(f"more than {MAX_OPERATORS} operators in one condition", self.next.span)
        self.position += 1
        return spelling

    def disjunction(self) -> ast.Condition:
        parts = [self.conjunction()]
        while self.take({"OR"}):
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else ast.Or(tuple(parts), parts[0].span)

    def conjunction(self) -> ast.Condition:
        parts = [self.negation()]
        while self.take({"AND"}):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else ast.And(tuple(parts), parts[0].span)

    def negation(self) -> ast.Condition:
        start = self.next
        if self.take({"NOT"}):
            return ast.Not(self.negation(), start.span)
        return self.comparison()

    def comparison(self) -> ast.Condition:
        mark, operators = self.position, self.operators
        if self.take({"("}):  # a condition in parentheses, or else an expression
            try:
                inner = self.disjunction()
                if self.take({")"}) and not self._goes_on():
                    return inner
            except _Failure:
                pass
            self.position, self.operators = mark, operators + 1
        operands = [self.sum()]
        ops: list[str] = []
        while (op := self._relation()) is not None:
            if op in ("IN", "NOT IN"):
                if ops:
                    raise _fail("a comparison before IN", self.next.span, "use AND between them")
                return self._membership(operands[0], op == "NOT IN")
            ops.append(op)
            operands.append(self.sum())
        if not ops:
            raise _fail(
                f"expected a comparison, found {_show(self.next)}",
                self.next.span,
                f"one of {' '.join(sorted(self.words.compare))}",
            )
        return ast.Comparison(tuple(operands), tuple(ops), operands[0].span)

    def _goes_on(self) -> bool:
        """Whether what was just read in parentheses was only the left part of a comparison."""
        spelling = self.operator(self.next)
        words = self.words
        return spelling in {*words.compare, *words.add, *words.multiply, "IN"}

    def _relation(self) -> str | None:
        if spelling := self.take(self.words.compare):
            return self.words.compare[spelling]
        if self.take({"IN"}):
            return "IN"
        mark = self.position
        if self.take({"NOT"}):
            if self.take({"EQUAL", "EQ"}):
                return "!="
            if self.take({"IN"}):
                return "NOT IN"
            self.position = mark
        return None

    def _membership(self, expr: ast.Expr, negated: bool) -> ast.Membership:
        opening = self.next
        if opening.text != "{":
            raise _fail(f"expected a set {{…}} after IN, found {_show(opening)}", opening.span)
        self.position += 1
        items: list[ast.Expr] = []
        while self.next.text != "}":
            items.append(self.sum())
            if self.next.text == ",":
                self.position += 1
            elif self.next.text != "}":
                raise _fail(f"expected `,` or `}}`, found {_show(self.next)}", self.next.span)
        self.position += 1
        if not items:
            raise _fail("an empty set holds nothing", opening.span)
        return ast.Membership(expr, ast.SetDomain(tuple(items), opening.span), negated, expr.span)

    def sum(self) -> ast.Expr:
        left = self.product()
        while spelling := self.take(self.words.add):
            left = ast.Binary(self.words.add[spelling], left, self.product(), left.span)
        return left

    def product(self) -> ast.Expr:
        left = self.factor()
        while spelling := self.take(self.words.multiply):
            left = ast.Binary(self.words.multiply[spelling], left, self.factor(), left.span)
        return left

    def factor(self) -> ast.Expr:
        start = self.next
        if self.take({"-", "MINUS"}):
            operand = self.factor()
            if isinstance(operand, ast.Number):  # as the rule language reads it
                return ast.Number(-operand.value, start.span)
            return ast.Negate(operand, start.span)
        if self.take({"("}):
            inner = self.sum()
            if not self.take({")"}):
                raise _fail(f"expected `)`, found {_show(self.next)}", self.next.span)
            return inner
        return self.leaf()


class _Relation(_Conditions):
    """The fourth part of a tuple: ``%a TIMES %b LEQ %c``."""

    KEYWORDS = frozenset(
        {*_RELATION_WORDS.compare, *_RELATION_WORDS.add, *_RELATION_WORDS.multiply}
        | {"AND", "OR", "NOT", "IN"}
    )

    def operator(self, token: _Token) -> str | None:
        if token.kind in ("op", "mark"):
            return token.text
        return token.text if token.kind == "word" and token.text in self.KEYWORDS else None

    def leaf(self) -> ast.Expr:
        token = self.next
        match token.kind:
            case "argument":
                leaf: ast.Expr = ast.Name("%" + token.text[1:].lstrip(), token.span)
            case "number":
                leaf = ast.Number(_number(token.text), token.span)
            case "word" if token.text not in self.KEYWORDS:
                leaf = ast.Name(token.text, token.span)
            case _:
                raise _fail(
                    f"expected `%argument`, a number or a word, found {_show(token)}", token.span
                )
        self.position += 1
        return leaf


class _Assertion(_Conditions):
    """What follows ``"assert"``; operators are quoted (Table 2) or bare (Fig. 4)."""

    quoted = False

    def operator(self, token: _Token) -> str | None:
        if token.kind == "string" and token.text.strip() in _BARE_OPERATORS:
            self.quoted = True
            return token.text.strip()
        if token.kind == "op" or (token.kind == "mark" and token.text in "()"):
            return token.text
        if token.kind in ("string", "word") and token.text in ("and", "or", "not"):
            return token.text.upper()
        return None

    def leaf(self) -> ast.Expr:
        token = self.next
        match token.kind:
            case "string" if _NUMBER.fullmatch(token.text.strip()):
                self.quoted = True
                leaf: ast.Expr = ast.Number(_number(token.text.strip()), token.span)
            case "string" if token.text != "assert":
                leaf = ast.String(token.text, token.span)
            case "number":
                leaf = ast.Number(_number(token.text), token.span)
            case "word" if token.text not in ("and", "or", "not", "assert"):
                leaf = ast.Name(token.text, token.span)
            case _:
                raise _fail(f"expected a name or a value, found {_show(token)}", token.span)
        self.position += 1
        return leaf


_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _show(token: _Token) -> str:
    match token.kind:
        case "end":
            return "the end"
        case "string":
            return f'"{token.text}"'
        case _:
            return f"`{token.text}`"


# --- entries ---------------------------------------------------------------------------------


class _Reader:
    """Reads entries one after another; after an error it goes on where the next one starts."""

    def __init__(self, text: str, path: str) -> None:
        start = Span(path, 1, 1, 1, 1)
        everything = _tokens(_TEXT_TOKEN, text, start)
        self.comments = [token for token in everything if token.kind == "comment"]
        self.tokens = [token for token in everything if token.kind != "comment"]
        self.position = 0
        self.diagnostics: list[Diagnostic] = []
        self.identifiers: set[str] = set()

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def read(self) -> Notation:
        entries: list[Entry] = []
        while self.next.kind != "end":
            start = self.position
            try:
                comments, directives = self._comments_before(self.next.span)
                entries.append(Entry(self._item(), comments, directives))
            except _Failure as failure:
                self.diagnostics.append(failure.diagnostic)
                self.position = max(self.position, start + 1)
                self._skip_to_next_entry()
        trailing, _ = self._comments_before(self.next.span)
        return Notation(tuple(entries), trailing, tuple(self.diagnostics))

    def _skip_to_next_entry(self) -> None:
        """An entry starts a line: a parenthesis, an assertion, or a label."""
        while self.next.kind != "end":
            previous = self.tokens[self.position - 1]
            after = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
            starts = self.next.text in ("(", "assert") or after.kind == "arrow"
            if starts and self.next.span.line > previous.span.line:
                return
            self.position += 1

    def _comments_before(self, place: Span) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Take the comments that stand above ``place``: text, and ``#: key=value`` directives."""
        lines: list[str] = []
        directives: list[tuple[str, str]] = []
        while self.comments and _before(self.comments[0].span, place):
            token = self.comments.pop(0)
            text = token.text.lstrip("/") if token.text.startswith("//") else token.text[1:]
            if token.text.startswith("#:"):
                directives += self._directives(text[1:], token.span)
            else:
                lines.append(text.strip())
        return tuple(lines), tuple(directives)

    def _directives(self, text: str, span: Span) -> list[tuple[str, str]]:
        found = []
        for word in text.split():
            key, equals, value = word.partition("=")
            if not equals or key not in ("class", "name", "pass") or not value:
                raise _fail(f"`{word}` is no directive", span, "#: class=CLASS name=NAME pass=PASS")
            found.append((key, value))
        return found

    def _item(self) -> Constraint | Definition | Assertions:
        token, after = self.next, self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if token.text == "(" and token.kind == "mark":
            return self._constraint()
        if token.kind == "word" and after.kind == "arrow":
            self.position += 2
            if self._at_assert():
                return self._assertions(token.text, token.span)
            return self._definition(token)
        if self._at_assert():
            return self._assertions(None, token.span)
        raise _fail(
            f"expected a constraint or an assertion, found {_show(token)}",
            token.span,
            'a constraint is ("id", ["op"], ["argument"], "relation"); '
            'an assertion starts with "assert"',
        )

    # constraints

    def _constraint(self) -> Constraint:
        opening = self._mark("(", "")
        identifier = None
        if not self._elided():
            token = self._string("the identifier")
            identifier = token.text
            if identifier in self.identifiers:
                raise _Failure(
                    Diagnostic(
                        "xcheck-duplicate",
                        f'the identifier "{identifier}" stands twice',
                        token.span,
                        "identifiers are unique",
                    )
                )
            self.identifiers.add(identifier)
        self._mark(",", "after the identifier")
        operators = self._list("operator")
        self._mark(",", "after the operators")
        arguments = self._list("argument")
        self._mark(",", "after the arguments")
        relation = self._string("the relation")
        condition = self._relation(relation)
        closing = self._mark(")", "after the relation")
        if self.next.text == "," and self.next.kind == "mark":
            self.position += 1
        self._check_arguments(condition, arguments, relation.span)
        span = _cover(opening.span, closing.span)
        return Constraint(identifier, operators, arguments, relation.text, condition, span)

    def _relation(self, token: _Token) -> ast.Condition:
        start = replace(token.span, column=token.span.column + 1)
        parser = _Relation(_tokens(_RELATION_TOKEN, token.text, start), _RELATION_WORDS)
        condition = parser.disjunction()
        if parser.next.kind != "end":
            raise _fail(f"unexpected {_show(parser.next)} in the relation", parser.next.span)
        return condition

    def _check_arguments(
        self, condition: ast.Condition, arguments: tuple[str, ...] | None, span: Span
    ) -> None:
        if arguments is None:
            return
        used = [leaf for leaf in names(condition) if leaf.text.startswith("%")]
        for leaf in used:
            if leaf.text[1:] not in arguments:
                raise _Failure(
                    Diagnostic(
                        "xcheck-unknown-argument",
                        f"`{leaf.text}` is not among the arguments",
                        leaf.span,
                        suggest(leaf.text[1:], arguments),
                    )
                )
        for argument in arguments:
            if all(leaf.text[1:] != argument for leaf in used):
                self.diagnostics.append(
                    Diagnostic(
                        "xcheck-unused-argument",
                        f'the relation does not mention "{argument}"',
                        span,
                        severity=Severity.WARNING,
                    )
                )

    def _list(self, what: str) -> tuple[str, ...] | None:
        if self._elided():
            return None
        self._mark("[", f"before the {what}s")
        items: list[str] = []
        while self.next.text != "]" or self.next.kind != "mark":
            items.append(self._string(f"an {what}").text)
            if self.next.text == "," and self.next.kind == "mark":
                self.position += 1
            elif self.next.text != "]":
                raise _fail(f"expected `,` or `]`, found {_show(self.next)}", self.next.span)
        self.position += 1
        return tuple(items)

    def _elided(self) -> bool:
        if self.next.kind != "ellipsis":
            return False
        self.position += 1
        return True

    def _mark(self, mark: str, where: str) -> _Token:
        token = self.next
        if token.kind != "mark" or token.text != mark:
            raise _fail(f"expected `{mark}` {where}, found {_show(token)}", token.span)
        self.position += 1
        return token

    def _string(self, what: str) -> _Token:
        token = self.next
        if token.kind != "string":
            raise _fail(
                f"expected {what} in quotes, found {_show(token)}",
                token.span,
                "the closing quote is missing" if token.kind == "bad" else None,
            )
        if not token.text.strip():
            raise _fail(f"{what} is empty", token.span)
        self.position += 1
        return token

    # assertions

    def _at_assert(self) -> bool:
        return self.next.text == "assert" and self.next.kind in ("word", "string")

    def _assertions(self, label: str | None, start: Span) -> Assertions:
        """A label takes the assertions on its line and on indented lines after it; without one,
        each assertion is its own entry."""
        conditions: list[ast.Condition] = []
        quoted = False
        while self._at_assert():
            place, previous = self.next.span, self.tokens[self.position - 1].span
            if conditions and place.line > previous.line and place.column <= start.column:
                break
            quoted = quoted or self.next.kind == "string"
            parser = _Assertion(self.tokens, _ASSERT_WORDS, self.position + 1)
            try:
                conditions.append(parser.disjunction())
            finally:
                self.position = parser.position
            if label is None:
                break
        end = self.tokens[self.position - 1].span
        return Assertions(label, tuple(conditions), quoted, _cover(start, end))

    def _definition(self, name: _Token) -> Definition:
        parser = _Assertion(self.tokens, _ASSERT_WORDS, self.position)
        try:
            value = parser.sum()
        finally:
            self.position = parser.position
        end = self.tokens[self.position - 1].span
        return Definition(name.text, value, parser.quoted, _cover(name.span, end))


def _before(span: Span, place: Span) -> bool:
    return (span.line, span.column) < (place.line, place.column)


def _cover(start: Span, end: Span) -> Span:
    return replace(start, end_line=end.end_line, end_column=end.end_column)


def parse_notation(text: str, path: str) -> Notation:
    """Read a text. Raises :class:`RulesError` with one diagnostic for each entry that is wrong."""
    notation = _Reader(text, path).read()
    if any(d.severity is Severity.ERROR for d in notation.warnings):
        raise RulesError(list(notation.warnings))
    return notation


# --- walking ---------------------------------------------------------------------------------


def names(part: ast.Condition | ast.Expr) -> list[ast.Name]:
    """Every name in a condition or expression, in order, with repeats."""
    found: list[ast.Name] = []

    def visit(expr: ast.Expr) -> ast.Expr | None:
        if isinstance(expr, ast.Name):
            found.append(expr)
        return None

    if isinstance(part, ast.Condition):
        rewrite_condition(part, visit)
    else:
        rewrite(part, visit)
    return found


def rewrite(expr: ast.Expr, replacement: Callable[[ast.Expr], ast.Expr | None]) -> ast.Expr:
    """``expr`` with every sub-expression for which ``replacement`` has an answer replaced by it."""
    found = replacement(expr)
    if found is not None:
        return found
    match expr:
        case ast.Binary(op, left, right, span):
            return ast.Binary(op, rewrite(left, replacement), rewrite(right, replacement), span)
        case ast.Negate(operand, span):
            return ast.Negate(rewrite(operand, replacement), span)
        case ast.Member(base, name, span):
            return ast.Member(rewrite(base, replacement), name, span)
        case ast.Index(base, index, span):
            return ast.Index(rewrite(base, replacement), rewrite(index, replacement), span)
        case ast.CallExpr(function, args, span):
            return ast.CallExpr(function, tuple(rewrite(a, replacement) for a in args), span)
        case _:
            return expr


def rewrite_condition(
    condition: ast.Condition, replacement: Callable[[ast.Expr], ast.Expr | None]
) -> ast.Condition:
    """:func:`rewrite` in every expression of a condition of the forms that the notation has."""
    match condition:
        case ast.Comparison(operands, ops, span):
            return ast.Comparison(tuple(rewrite(o, replacement) for o in operands), ops, span)
        case ast.Membership(expr, ast.SetDomain(items, at), negated, span):
            domain = ast.SetDomain(tuple(rewrite(i, replacement) for i in items), at)
            return ast.Membership(rewrite(expr, replacement), domain, negated, span)
        case ast.Not(inner, span):
            return ast.Not(rewrite_condition(inner, replacement), span)
        case ast.And(parts, span):
            return ast.And(tuple(rewrite_condition(p, replacement) for p in parts), span)
        case ast.Or(parts, span):
            return ast.Or(tuple(rewrite_condition(p, replacement) for p in parts), span)
        case _:
            return condition


# --- printing --------------------------------------------------------------------------------


class NotWritable(Exception):
    """Part of a condition that the notation has no form for."""

    def __init__(self, part: ast.Condition | ast.Expr, why: str | None = None) -> None:
        self.part = part
        self.why = why or f"{type(part).__name__} has no form in it"
        super().__init__(self.why)


@dataclass(frozen=True, slots=True)
class _Style:
    """How to spell a condition: the other direction of :class:`_Words`."""

    operators: dict[str, str]
    leaf: Callable[[ast.Expr], str]
    words: dict[str, str]  # and or not ( )


def relation_text(condition: ast.Condition) -> str:
    """A condition over ``%argument`` leaves as the fourth part of a tuple."""
    return _condition(condition, _RELATION_STYLE, 0)


def assertion_text(condition: ast.Condition, quoted: bool = True) -> str:
    """A condition as an assertion, with its ``"assert"``."""
    keyword = '"assert"' if quoted else "assert"
    return f"{keyword} {_condition(condition, _QUOTED if quoted else _BARE, 0)}"


def write_item(item: Constraint | Definition | Assertions) -> str:
    """One entry on one line."""
    match item:
        case Constraint():
            identifier = "..." if item.identifier is None else f'"{item.identifier}"'
            lists = [
                "..." if part is None else "[" + ", ".join(f'"{text}"' for text in part) + "]"
                for part in (item.operators, item.arguments)
            ]
            return f'({identifier}, {lists[0]}, {lists[1]}, "{item.relation}")'
        case Definition():
            style = _QUOTED if item.quoted else _BARE
            return f"{item.name} -> {_expression(item.value, style, 0)}"
        case Assertions():
            label = f"{item.label} -> " if item.label is not None else ""
            return label + " ".join(assertion_text(c, item.quoted) for c in item.conditions)


def write_notation(notation: Notation) -> str:
    """The whole text: one entry a line, with its comments and directives above it."""
    lines: list[str] = []
    for entry in notation.entries:
        lines += [f"# {line}".rstrip() for line in entry.comments]
        if entry.directives:
            lines.append("#: " + " ".join(f"{key}={value}" for key, value in entry.directives))
        lines.append(write_item(entry.item))
    lines += [f"# {line}".rstrip() for line in notation.trailing]
    return "".join(line + "\n" for line in lines)


def _condition(condition: ast.Condition, style: _Style, outer: int) -> str:
    """``outer``: how tightly the surroundings bind (or 1, and 2, not 3, none 0)."""
    match condition:
        case ast.Or(parts):
            text, level = _joined(parts, style, "or", 1), 1
        case ast.And(parts):
            text, level = _joined(parts, style, "and", 2), 2
        case ast.Not(inner):
            text, level = f"{style.words['not']} {_condition(inner, style, 3)}", 3
        case ast.Comparison(operands, ops):
            shown = [_expression(operand, style, 0) for operand in operands]
            pairs = zip(ops, shown[1:], strict=True)
            text = shown[0] + "".join(f" {style.operators[op]} {operand}" for op, operand in pairs)
            level = 4
        case ast.Membership(expr, ast.SetDomain(items), negated) if "in" in style.words:
            members = ", ".join(_expression(item, style, 0) for item in items)
            word = style.words["not in" if negated else "in"]
            text, level = f"{_expression(expr, style, 0)} {word} {{{members}}}", 4
        case _:
            raise NotWritable(condition)
    return text if level > outer or level == 4 else _bracketed(text, style)


def _joined(parts: Sequence[ast.Condition], style: _Style, word: str, level: int) -> str:
    return f" {style.words[word]} ".join(_condition(part, style, level) for part in parts)


def _expression(expr: ast.Expr, style: _Style, outer: int) -> str:
    """``outer``: 0 none, 1 a sum's left, 2 its right or a product's left, 3 a product's right."""
    match expr:
        case ast.Binary(op, left, right):
            level = 1 if op in "+-" else 2
            sides = _expression(left, style, level - 1), _expression(right, style, level)
            text = f"{sides[0]} {style.operators[op]} {sides[1]}"
            return text if level > outer else _bracketed(text, style)
        case ast.Number(value) if math.copysign(1, value) < 0:
            return f"{style.operators['-']} {style.leaf(ast.Number(-value))}"
        case ast.Negate(operand):
            return f"{style.operators['-']} {_expression(operand, style, 2)}"
        case _:
            return style.leaf(expr)


def _bracketed(text: str, style: _Style) -> str:
    return f"{style.words['(']}{text}{style.words[')']}"


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(?:-[A-Za-z0-9_.]+)*")


def _number_text(value: int | float) -> str:
    text = repr(value)
    if not _NUMBER.fullmatch(text):
        raise NotWritable(ast.Number(value))
    return text


def _relation_leaf(expr: ast.Expr) -> str:
    match expr:
        case ast.Number(value):
            return _number_text(value)
        case ast.Name(text) if text.startswith("%") or text not in _Relation.KEYWORDS:
            return text
        case ast.String(value) if _WORD.fullmatch(value) and value not in _Relation.KEYWORDS:
            return value
        case _:
            raise NotWritable(expr)


def _assertion_leaf(quoted: bool) -> Callable[[ast.Expr], str]:
    def leaf(expr: ast.Expr) -> str:
        match expr:
            case ast.Number(value):
                return f'"{_number_text(value)}"' if quoted else _number_text(value)
            case ast.Name(text):
                return text
            case ast.String(value) if not set(value) & {'"', "\n"} and _is_plain(value):
                return f'"{value}"'
            case _:
                raise NotWritable(expr)

    return leaf


def _is_plain(value: str) -> bool:
    """Whether a quoted word could not be taken for an operator, a number or a keyword."""
    reserved = {*_BARE_OPERATORS, "and", "or", "not", "assert"}
    return value.strip() not in reserved and not _NUMBER.fullmatch(value.strip())


_RELATION_STYLE = _Style(
    operators={
        "==": "EQUAL", "!=": "NEQ", "<=": "LEQ", ">=": "GEQ", "<": "LT", ">": "GT",
        "+": "PLUS", "-": "MINUS", "*": "TIMES", "/": "DIV", "%": "MOD",
    },
    leaf=_relation_leaf,
    words={"and": "AND", "or": "OR", "not": "NOT", "in": "IN", "not in": "NOT IN",
           "(": "(", ")": ")"},
)  # fmt: skip
_OPERATORS = ("==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%")
_QUOTED = _Style(
    operators={op: f'"{op}"' for op in _OPERATORS},
    leaf=_assertion_leaf(quoted=True),
    words={"and": '"and"', "or": '"or"', "not": '"not"', "(": '"(" ', ")": ' ")"'},
)
_BARE = _Style(
    operators={op: op for op in _OPERATORS},
    leaf=_assertion_leaf(quoted=False),
    words={"and": "and", "or": "or", "not": "not", "(": "(", ")": ")"},
)
