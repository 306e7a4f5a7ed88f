"""From reductions of the grammar to the syntax tree.

The parser calls one method of :class:`Builder` per reduced alternative, by its name in the
grammar, with the children that the grammar keeps (a terminal is the index of its token), and the
first and last token that the alternative covers. What the grammar cannot say is checked here: a
condition is not a value, ``downstream`` wants ``in``, a string's escapes. Such mistakes become
diagnostics and the node is made as well as possible, so that one file reports them all.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, cast

from reprise.lang import ast
from reprise.lang.diagnostics import Diagnostic, Span
from reprise.lang.spelling import did_you_mean
from reprise.lang.tokens import Tokens

_PROVENANCE = frozenset(["target", "from", "commit", "template", "agrees", "clashes", "confidence"])
_ABOUT_A_BUG = ("bug", "target", "affects", "symptom", "verdict", "severity", "since", "fixed")
_ABOUT_A_RULE = ("status", "owner", "advice", "found_by", "pass", "says", "opset")
META_KEYS = {
    "pattern": frozenset((*_ABOUT_A_BUG, *_ABOUT_A_RULE)),
    "constraint": _PROVENANCE,
    "monitor": _PROVENANCE,
}
"""What each kind of declaration can state about itself."""
CASE_KINDS = frozenset(
    ["match", "no_match", "possible", "todo_match", "todo_no_match", "holds", "violates"]
)
CONTEXT_WORDS = frozenset(["downstream", "upstream", "user", "producer", "elsewhere"])
_ONLY_CONTEXT = frozenset(("downstream", "upstream", "elsewhere"))

_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)")
_ESCAPES = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r", "0": "\0", "/": "/"}
_MAX_DIGITS = 400

Kids = list[Any]


class Builder:
    """Makes the nodes of one file."""

    def __init__(self, tokens: Tokens) -> None:
        self.tokens = tokens
        self.texts = tokens.texts
        self.span = tokens.span
        self.diagnostics: list[Diagnostic] = []
        self.imports: list[ast.Import] = []
        self.decls: list[ast.Decl] = []
        self.used_docs: set[int] = set()
        """Comments (by index) that turned out to document a declaration."""

    # --- small things ------------------------------------------------------------------------

    def report(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, hint))

    def ident(self, token: int) -> ast.Ident:
        return ast.Ident(self.texts[token], self.span(token, token))

    def doc(self, first: int) -> tuple[str, ...]:
        """The documentation lines directly before the declaration that starts at ``first``."""
        comments = self.tokens.docs.get(first, [])
        self.used_docs.update(comments)
        texts = (self.tokens.comments[i][1][3:] for i in comments)
        return tuple(text[1:] if text.startswith(" ") else text for text in texts)

    def literal(self, token: int) -> str:
        """The value of a STRING token."""
        text = self.texts[token]
        inner = text[1:-1] if len(text) > 1 and text.endswith('"') else text[1:]
        if "\\" not in inner:
            return inner
        line, column = self.tokens.lines[token], self.tokens.columns[token] + 1

        def replace(found: re.Match[str]) -> str:
            body = found.group(1)
            if len(body) > 1 and not 0xD800 <= int(body[1:], 16) <= 0xDFFF:
                return chr(int(body[1:], 16))
            if body in _ESCAPES:
                return _ESCAPES[body]
            span = Span(self.tokens.path, line, column + found.start(), line, column + found.end())
            hint = 'the escapes are `\\"`, `\\\\`, `\\n`, `\\t`, `\\r`, `\\0`, `\\xNN`, `\\uNNNN`'
            self.report("bad-escape", f"unknown escape `{found.group()}`", span, hint)
            return body

        return _ESCAPE.sub(replace, inner)

    def whole(self, token: int) -> int:
        """The value of an INT token."""
        text = self.texts[token].replace("_", "")
        if len(text) > _MAX_DIGITS:
            self.report("bad-number", "this number is too long", self.span(token, token))
            return 0
        return int(text) if text.isdigit() else 0  # malformed: the scanner has reported it

    def condition(self, value: Any) -> ast.Condition:
        """A parsed cond where a condition is needed."""
        match value:
            case ast.CallExpr(function, args, span):
                if function.text in _ONLY_CONTEXT:
                    self.report(
                        "context-without-set",
                        f"`{function.text}(…)` must say which operators to look for",
                        span,
                        f"write `{function.text}(x) in {{relu, tanh}}`",
                    )
                return ast.AtomCond(function, args, span)
            case _PathCall(word, _, args, span):
                self.report(
                    "context-without-set",
                    f"`{word.text}[…](…)` must say which operators to look for",
                    span,
                    f"write `{word.text}[1..3](x) in {{relu, tanh}}`",
                )
                return ast.AtomCond(word, args, span)
            case (
                ast.Comparison()
                | ast.Membership()
                | ast.AtomCond()
                | ast.Context()
                | ast.Exists()
                | ast.Not()
                | ast.And()
                | ast.Or()
            ):
                return value
        if isinstance(value, ast.Boolean):
            hint = "leave it out" if value.value else "compare with it: `x == false`"
        elif isinstance(value, (ast.Name, ast.Member)):
            hint = "compare it with a value, or ask for membership with `in`"
        else:
            hint = "a condition compares (`==`, `<`, …), asks for membership (`in`) or is an atom"
        self.report("not-a-condition", "this is a value, not a condition", value.span, hint)
        return ast.Comparison((value, value), ("==",), value.span)

    def expr(self, value: Any) -> ast.Expr:
        """A parsed cond where a value is needed."""
        match value:
            case (
                ast.Comparison()
                | ast.Membership()
                | ast.Context()
                | ast.Exists()
                | ast.Not()
                | ast.And()
                | ast.Or()
            ):
                self.report(
                    "not-a-value",
                    "this is a condition, not a value",
                    value.span,
                    "conditions are combined with `,`, `and`, `or` and `not`",
                )
                return ast.Wildcard(value.span)
            case _PathCall():
                self.report(
                    "not-a-value",
                    f"`{value.word.text}[…](…)` is not a value",
                    value.span,
                    f"write `{value.word.text}[…](…) in {{…}}`",
                )
                return ast.Wildcard(value.span)
        return cast(ast.Expr, value)

    def conditions(self, values: Sequence[Any]) -> tuple[ast.Condition, ...]:
        return tuple(map(self.condition, values))

    def exprs(self, values: Sequence[Any]) -> tuple[ast.Expr, ...]:
        return tuple(map(self.expr, values))

    # --- files -------------------------------------------------------------------------------

    def start(self, kids: Kids, a: int, b: int) -> None:
        return None

    def program(self, kids: Kids, a: int, b: int) -> tuple[ast.Line, ...]:
        return tuple(line for part in kids for line in part)

    def item(self, kids: Kids, a: int, b: int) -> None:
        decl = kids[0]
        if isinstance(decl, ast.Import):
            self.imports.append(decl)
        else:
            self.decls.append(decl)

    # --- plain Datalog -----------------------------------------------------------------------

    def import_decl(self, kids: Kids, a: int, b: int) -> ast.Import:
        return ast.Import(self.literal(kids[0]), self.span(a, b))

    def set_decl(self, kids: Kids, a: int, b: int) -> ast.SetDecl:
        name, *items = kids
        return ast.SetDecl(self.ident(name), self.exprs(items), self.doc(a), self.span(a, b))

    def relation_decl(self, kids: Kids, a: int, b: int) -> ast.RelationDecl:
        columns = tuple(kid for kid in kids[1:] if isinstance(kid, ast.ColumnDecl))
        flags = tuple(kid for kid in kids[1:] if isinstance(kid, ast.Flag))
        return ast.RelationDecl(self.ident(kids[0]), columns, flags, self.doc(a), self.span(a, b))

    def column(self, kids: Kids, a: int, b: int) -> ast.ColumnDecl:
        return ast.ColumnDecl(self.ident(kids[0]), self.ident(kids[1]), False, self.span(a, b))

    def key_column(self, kids: Kids, a: int, b: int) -> ast.ColumnDecl:
        return ast.ColumnDecl(self.ident(kids[0]), self.ident(kids[1]), True, self.span(a, b))

    def flag(self, kids: Kids, a: int, b: int) -> ast.Flag:
        name, *args = map(self.ident, kids)
        return ast.Flag(name, tuple(args), self.span(a, b))

    def rule_decl(self, kids: Kids, a: int, b: int) -> ast.RuleDecl:
        head, body, _ = kids
        return ast.RuleDecl(head, body or (), self.doc(a), self.span(a, b))

    def deny_decl(self, kids: Kids, a: int, b: int) -> ast.DenyDecl:
        head, message, body, _ = kids
        text = self.literal(message)
        return ast.DenyDecl(head, text, body or (), self.doc(a), self.span(a, b))

    def atom(self, kids: Kids, a: int, b: int) -> ast.AtomCond:
        return ast.AtomCond(self.ident(kids[0]), self.exprs(kids[1:]), self.span(a, b))

    # --- patterns ----------------------------------------------------------------------------

    def pattern_decl(self, kids: Kids, a: int, b: int) -> ast.PatternDecl:
        name, title, *parts = kids
        lines: list[ast.Bind] = []
        where: list[ast.Condition] = []
        graph: list[ast.Condition] = []
        for part in parts:
            match part:
                case ast.Bind():
                    lines.append(part)
                case _Where():
                    where += part.conditions
                case _Graph():
                    graph += part.conditions
        return ast.PatternDecl(
            self.ident(name),
            "" if title is None else self.literal(title),
            self.checked_meta(parts, "pattern"),
            tuple(lines),
            tuple(where),
            tuple(graph),
            self.doc(a),
            self.span(a, b),
        )

    def meta(self, kids: Kids, a: int, b: int) -> ast.MetaEntry:
        key, value = kids
        written = self.texts[value]
        if self.tokens.kinds[value] == "STRING":
            written = self.literal(value)
        return ast.MetaEntry(self.ident(key), written, self.span(a, b))

    def checked_meta(self, parts: Iterable[object], kind: str) -> tuple[ast.MetaEntry, ...]:
        """The metadata among a declaration's parts; reports keys that its kind does not have."""
        entries = tuple(part for part in parts if isinstance(part, ast.MetaEntry))
        known = META_KEYS[kind]
        for entry in entries:
            text = entry.key.text
            if text not in known:
                self.report(
                    "unknown-meta-key",
                    f"`{text}` is not a key that a {kind} can state",
                    entry.key.span,
                    did_you_mean(text, known) or f"the keys are {', '.join(sorted(known))}",
                )
        return entries

    def where(self, kids: Kids, a: int, b: int) -> _Where:
        return _Where(kids[0])

    def graph(self, kids: Kids, a: int, b: int) -> _Graph:
        return _Graph(kids[0])

    def bind(self, kids: Kids, a: int, b: int) -> ast.Bind:
        names = tuple(self.ident(kid) for kid in kids if isinstance(kid, int))
        calls = tuple(kid for kid in kids if isinstance(kid, ast.Call))
        return ast.Bind(names, calls, (), self.span(a, b))

    sub_line = bind

    def call(self, kids: Kids, a: int, b: int) -> ast.Call:
        return self._call(kids, False, self.span(a, b))

    def unordered_call(self, kids: Kids, a: int, b: int) -> ast.Call:
        return self._call(kids, True, self.span(a, b))

    def _call(self, kids: Kids, unordered: bool, span: Span) -> ast.Call:
        ops, operands, attributes = [], [], []
        for kid in kids:
            if isinstance(kid, int):
                ops.append(self.ident(kid))
            elif isinstance(kid, ast.AttributeArg):
                attributes.append(kid)
            else:
                if attributes and not isinstance(kid, ast.RestOperands):
                    self.report(
                        "operand-after-attribute",
                        "an operand after an attribute",
                        kid.span,
                        "operands come first, then attributes",
                    )
                operands.append(kid)
        return ast.Call(tuple(ops), tuple(operands), tuple(attributes), unordered, span)

    def tensor(self, kids: Kids, a: int, b: int) -> ast.TensorRef:
        output = self.whole(kids[1]) if len(kids) > 1 else None
        return ast.TensorRef(self.ident(kids[0]), output, self.span(a, b))

    def any_operand(self, kids: Kids, a: int, b: int) -> ast.AnyOperand:
        return ast.AnyOperand(False, self.span(a, b))

    def maybe_operand(self, kids: Kids, a: int, b: int) -> ast.AnyOperand:
        return ast.AnyOperand(True, self.span(a, b))

    def absent_operand(self, kids: Kids, a: int, b: int) -> ast.AbsentOperand:
        return ast.AbsentOperand(self.span(a, b))

    def rest_operands(self, kids: Kids, a: int, b: int) -> ast.RestOperands:
        return ast.RestOperands(self.span(a, b))

    def via(self, kids: Kids, a: int, b: int) -> ast.Via:
        path, domain, operand = kids
        if isinstance(operand, (ast.AttributeArg, ast.RestOperands)):
            self.report(
                "bad-operand",
                "`via` leads to one operand",
                operand.span,
                "write `via {identity, cast}(x)`",
            )
            operand = ast.AnyOperand(False, operand.span)
        return ast.Via(domain, path, operand, self.span(a, b))

    def path(self, kids: Kids, a: int, b: int) -> tuple[int, int]:
        return self._path(self.whole(kids[0]), self.whole(kids[1]), self.span(a, b))

    def _path(self, low: int, high: int, span: Span) -> tuple[int, int]:
        if low > high:
            self.report(
                "empty-range", f"no length lies in {low}..{high}", span, f"write `{high}..{low}`"
            )
        return low, high

    def attribute(self, kids: Kids, a: int, b: int) -> ast.AttributeArg:
        name, value = kids
        if not isinstance(value, ast.Domain):
            value = self.expr(value)
        return ast.AttributeArg(self.ident(name), value, self.span(a, b))

    # --- operators ---------------------------------------------------------------------------

    def op_decl(self, kids: Kids, a: int, b: int) -> ast.OpDecl:
        name, *parts = kids
        params, results = [], []
        categories: list[_Category] = []
        attributes: list[ast.AttrDecl] = []
        flags: list[ast.Ident] = []
        where: list[ast.Condition] = []
        body: list[Any] = []
        for part in parts:
            match part:
                case ast.Param():
                    params.append(part)
                case _OpBody():
                    body = part.parts
                case _:
                    results.append(part)
        for part in body:
            match part:
                case _Category():
                    categories.append(part)
                case ast.AttrDecl():
                    attributes.append(part)
                case _Where():
                    where += part.conditions
                case _:
                    flags += part
        for extra in categories[1:]:
            self.report(
                "repeated-category",
                "an operator belongs to one category",
                extra.name.span,
                f"it is already {categories[0].name.text}",
            )
        return ast.OpDecl(
            self.ident(name),
            tuple(params),
            tuple(results),
            categories[0].name if categories else None,
            tuple(attributes),
            tuple(where),
            tuple(flags),
            self.doc(a),
            self.span(a, b),
        )

    def op_body(self, kids: Kids, a: int, b: int) -> _OpBody:
        return _OpBody(kids)

    def param(self, kids: Kids, a: int, b: int) -> ast.Param:
        return ast.Param(self.ident(kids[0]), kids[1], False, False, self.span(a, b))

    def optional_param(self, kids: Kids, a: int, b: int) -> ast.Param:
        return ast.Param(self.ident(kids[0]), kids[1], True, False, self.span(a, b))

    def variadic_param(self, kids: Kids, a: int, b: int) -> ast.Param:
        return ast.Param(self.ident(kids[0]), kids[1], False, True, self.span(a, b))

    def result(self, kids: Kids, a: int, b: int) -> tuple[ast.Ident | None, ast.TypeExpr]:
        name, written = kids
        return None if name is None else self.ident(name), written

    def type(self, kids: Kids, a: int, b: int) -> ast.TypeExpr:
        shape = tuple(dim if isinstance(dim, ast.Splat) else self.expr(dim) for dim in kids[1:])
        return ast.TypeExpr(self._dtype(kids[0]), shape, self.span(a, b))

    def unranked_type(self, kids: Kids, a: int, b: int) -> ast.TypeExpr:
        return ast.TypeExpr(self._dtype(kids[0]), None, self.span(a, b))

    def _dtype(self, token: int) -> ast.Variable | ast.Name:
        span = self.span(token, token)
        if self.tokens.kinds[token] == "VAR":
            return ast.Variable(self.texts[token], span)
        return ast.Name(self.texts[token], span)

    def unknown_dim(self, kids: Kids, a: int, b: int) -> ast.Wildcard:
        return ast.Wildcard(self.span(a, b))

    def splat_variable(self, kids: Kids, a: int, b: int) -> ast.Splat:
        return ast.Splat(self.variable(kids, b, b), self.span(a, b))

    def splat_call(self, kids: Kids, a: int, b: int) -> ast.Splat:
        call = self.call_expr(kids, a + 1, b)
        return ast.Splat(call, self.span(a, b))

    def category(self, kids: Kids, a: int, b: int) -> _Category:
        return _Category(self.ident(kids[0]))

    def attr(self, kids: Kids, a: int, b: int) -> ast.AttrDecl:
        name, variable, kind, domain, default = kids
        return ast.AttrDecl(
            self.ident(name),
            None if variable is None else self.texts[variable],
            self.ident(kind),
            domain,
            None if default is None else self.expr(default),
            self.span(a, b),
        )

    def op_flags(self, kids: Kids, a: int, b: int) -> list[ast.Ident]:
        return [self.ident(kid) for kid in kids]

    # --- constraints and monitors ------------------------------------------------------------

    def constraint_decl(self, kids: Kids, a: int, b: int) -> ast.ConstraintDecl:
        name, klass, *parts, require = kids
        lines: list[ast.Bind] = []
        where: list[ast.Condition] = []
        for part in parts:
            match part:
                case ast.Bind():
                    lines.append(part)
                case _Where():
                    where += part.conditions
        return ast.ConstraintDecl(
            self.ident(name),
            self.ident(klass),
            tuple(lines),
            tuple(where),
            require,
            self.checked_meta(parts, "constraint"),
            self.doc(a),
            self.span(a, b),
        )

    def monitor_decl(self, kids: Kids, a: int, b: int) -> ast.MonitorDecl:
        name, klass, where, *parts = kids
        quoted = self.tokens.kinds[where] == "STRING"
        return ast.MonitorDecl(
            self.ident(name),
            self.ident(klass),
            self.literal(where) if quoted else self.texts[where],
            tuple(part for part in parts if isinstance(part, tuple)),
            self.checked_meta(parts, "monitor"),
            self.doc(a),
            self.span(a, b),
        )

    def assertion(self, kids: Kids, a: int, b: int) -> tuple[ast.Condition, str | None]:
        condition, message = kids
        text = None if message is None else self.literal(message)
        return self.condition(condition), text

    # --- tests and programs ------------------------------------------------------------------

    def test_decl(self, kids: Kids, a: int, b: int) -> ast.TestDecl:
        subject, *cases = kids
        return ast.TestDecl(self.ident(subject), tuple(cases), self.doc(a), self.span(a, b))

    def case(self, kids: Kids, a: int, b: int) -> ast.Case:
        kind, title, *parts = kids
        text = self.texts[kind]
        if text not in CASE_KINDS:
            self.report(
                "unknown-case",
                f"`{text}` is not a kind of test case",
                self.span(kind, kind),
                did_you_mean(text, CASE_KINDS) or f"the kinds are {', '.join(sorted(CASE_KINDS))}",
            )
        return ast.Case(
            text,
            tuple(line for part in parts for line in part),
            "" if title is None else self.literal(title),
            self.span(a, b),
        )

    def typed(self, kids: Kids, a: int, b: int) -> tuple[int, ast.TypeExpr | None, Span]:
        return kids[0], kids[1], self.span(a, b)

    def typed_bind(self, kids: Kids, a: int, b: int) -> list[ast.Line]:
        calls = tuple(kid for kid in kids if isinstance(kid, ast.Call))
        targets = kids[: len(kids) - len(calls)]
        types = tuple(target[1] for target in targets)
        names = tuple(self.ident(target[0]) for target in targets)
        return [ast.Bind(names, calls, types if any(types) else (), self.span(a, b))]

    def inputs(self, kids: Kids, a: int, b: int) -> list[ast.Line]:
        lines: list[ast.Line] = []
        for name, written, span in kids:
            if written is None or self.texts[name] == "_":
                self.report(
                    "incomplete-line",
                    f"`{self.texts[name]}` has neither a type nor a value"
                    if written is None
                    else "an input needs a name",
                    span,
                    "an input is `x: float32[2, 3]`, a node `y = relu(x)`",
                )
                continue
            lines.append(ast.InputLine(self.ident(name), written, False, None, span))
        return lines

    def constant(self, kids: Kids, a: int, b: int) -> list[ast.Line]:
        name, written, value = kids
        data = None if value is None else self.expr(value)
        return [ast.InputLine(self.ident(name), written, True, data, self.span(a, b))]

    def outputs(self, kids: Kids, a: int, b: int) -> list[ast.Line]:
        first, *others = kids
        lines: list[ast.Line] = [ast.OutputLine(self.ident(first), self.span(a, first))]
        lines += [ast.OutputLine(self.ident(kid), self.span(kid, kid)) for kid in others]
        return lines

    def given(self, kids: Kids, a: int, b: int) -> list[ast.Line]:
        return [ast.Given(kids[0], self.span(a, b))]

    # --- conditions --------------------------------------------------------------------------

    def conds(self, kids: Kids, a: int, b: int) -> tuple[ast.Condition, ...]:
        return self.conditions(kids)

    def or_cond(self, kids: Kids, a: int, b: int) -> ast.Or:
        return ast.Or(self.conditions(kids), self.span(a, b))

    def and_cond(self, kids: Kids, a: int, b: int) -> ast.And:
        return ast.And(self.conditions(kids), self.span(a, b))

    def not_cond(self, kids: Kids, a: int, b: int) -> ast.Not:
        return ast.Not(self.condition(kids[0]), self.span(a, b))

    def comparison(self, kids: Kids, a: int, b: int) -> ast.Comparison:
        ops = tuple(self.texts[kid] for kid in kids[1::2])
        return ast.Comparison(self.exprs(kids[0::2]), ops, self.span(a, b))

    def member_of(self, kids: Kids, a: int, b: int) -> ast.Condition:
        return self._membership(kids, False, self.span(a, b))

    def not_member_of(self, kids: Kids, a: int, b: int) -> ast.Condition:
        value, _, domain = kids
        return self._membership([value, domain], True, self.span(a, b))

    def _membership(self, kids: Kids, negated: bool, span: Span) -> ast.Condition:
        value, domain = kids
        word: ast.Ident | None = None
        path: tuple[int, int] | None = None
        args: tuple[ast.Expr, ...] = ()
        if isinstance(value, _PathCall):
            word, path, args = value.word, value.path, value.args
        elif isinstance(value, ast.CallExpr) and value.function.text in CONTEXT_WORDS:
            word, args = value.function, value.args
        if word is None:
            return ast.Membership(self.expr(value), domain, negated, span)
        if len(args) == 1 and isinstance(args[0], ast.Name):
            subject = ast.Ident(args[0].text, args[0].span)
        else:
            self.report(
                "bad-context",
                f"`{word.text}` looks around one node or tensor",
                value.span,
                f"name it: `{word.text}(x) in …`",
            )
            subject = word
        context = ast.Context(word.text, path, subject, domain, span)
        return ast.Not(context, span) if negated else context

    def exists(self, kids: Kids, a: int, b: int) -> ast.Exists:
        lines: list[ast.Bind] = []
        conditions: list[ast.Condition] = []
        names: list[ast.Ident] = []  # of a line with several results, as far as it was read
        for i, kid in enumerate(kids):
            if isinstance(kid, int):
                if self.tokens.kinds[kid] != "COMMA":
                    self._loose(names, conditions)
            elif isinstance(kid, ast.Bind):
                if names:
                    begin, end = names[0].span, kid.span
                    span = Span(begin.file, begin.line, begin.column, end.end_line, end.end_column)
                    kid = ast.Bind((*names, *kid.names), kid.calls, (), span)
                    names = []
                lines.append(kid)
            elif isinstance(kid, ast.Name) and i + 1 < len(kids) and isinstance(kids[i + 1], int):
                names.append(ast.Ident(kid.text, kid.span))
            else:
                self._loose(names, conditions)
                conditions.append(self.condition(kid))
        self._loose(names, conditions)
        return ast.Exists(tuple(lines), tuple(conditions), self.span(a, b))

    def _loose(self, names: list[ast.Ident], conditions: list[ast.Condition]) -> None:
        """Names that turned out not to be the results of a line."""
        conditions += [self.condition(ast.Name(name.text, name.span)) for name in names]
        names.clear()

    def sum_domain(self, kids: Kids, a: int, b: int) -> ast.Domain:
        (value,) = kids
        if isinstance(value, ast.Name):
            return ast.NamedDomain(ast.Ident(value.text, value.span), value.span)
        span = self.span(a, b)
        hint = "after `in` comes a set `{a, b}`, a range `1..3` or the name of a set"
        if isinstance(value, ast.ListExpr):
            hint = "write a set with braces: `{a, b}`"
        elif isinstance(value, ast.Variable):
            hint = "a set's name is lowercase; compare a value variable with `==`"
        self.report("not-a-domain", "this is neither a set nor a range", span, hint)
        return ast.SetDomain((), span)

    def named_domain(self, kids: Kids, a: int, b: int) -> ast.Domain:
        return ast.NamedDomain(self.ident(kids[0]), self.span(a, b))

    def range_domain(self, kids: Kids, a: int, b: int) -> ast.Domain:
        low, high = self.exprs(kids)
        if isinstance(low, ast.Number) and isinstance(high, ast.Number) and low.value > high.value:
            self.report(
                "empty-range",
                "nothing lies in this range",
                self.span(a, b),
                "the lower bound comes first",
            )
        return ast.RangeDomain(low, high, self.span(a, b))

    def set_domain(self, kids: Kids, a: int, b: int) -> ast.Domain:
        return ast.SetDomain(self.exprs(kids), self.span(a, b))

    # --- expressions -------------------------------------------------------------------------

    def binary(self, kids: Kids, a: int, b: int) -> ast.Binary:
        left, op, right = kids
        return ast.Binary(self.texts[op], self.expr(left), self.expr(right), self.span(a, b))

    def negate(self, kids: Kids, a: int, b: int) -> ast.Expr:
        operand = self.expr(kids[1])
        if isinstance(operand, ast.Number):
            return ast.Number(-operand.value, self.span(a, b))
        return ast.Negate(operand, self.span(a, b))

    def member(self, kids: Kids, a: int, b: int) -> ast.Member:
        base, token = kids
        span = self.span(token, token)
        name = ast.Ident(
            self.texts[token][1:],
            Span(span.file, span.line, span.column + 1, span.end_line, span.end_column),
        )
        return ast.Member(self.expr(base), name, self.span(a, b))

    def index(self, kids: Kids, a: int, b: int) -> ast.Index:
        return ast.Index(self.expr(kids[0]), self.expr(kids[1]), self.span(a, b))

    def path_call(self, kids: Kids, a: int, b: int) -> _PathCall:
        word, low, high, *args = kids
        span = self.span(a, b)
        bounds = [n.value if isinstance(n, ast.Number) else None for n in (low, high)]
        if not isinstance(word, ast.Name) or word.text not in CONTEXT_WORDS:
            hint = f"a path length goes with {', '.join(sorted(CONTEXT_WORDS))}"
            if isinstance(word, ast.Name):
                hint = did_you_mean(word.text, CONTEXT_WORDS) or hint
            self.report("bad-context", "a path length where none belongs", word.span, hint)
            word = ast.Name("downstream", word.span)
        path = (0, 0)
        if isinstance(bounds[0], int) and isinstance(bounds[1], int):
            path = self._path(bounds[0], bounds[1], span)
        else:
            self.report(
                "bad-context",
                "a path length is a range of whole numbers",
                span,
                f"write `{word.text}[1..3](x) in …`",
            )
        return _PathCall(ast.Ident(word.text, word.span), path, self.exprs(args), span)

    def variable(self, kids: Kids, a: int, b: int) -> ast.Variable:
        return ast.Variable(self.texts[kids[0]], self.span(a, b))

    def wildcard(self, kids: Kids, a: int, b: int) -> ast.Wildcard:
        return ast.Wildcard(self.span(a, b))

    def integer(self, kids: Kids, a: int, b: int) -> ast.Number:
        return ast.Number(self.whole(kids[0]), self.span(a, b))

    def real(self, kids: Kids, a: int, b: int) -> ast.Number:
        value = float(self.texts[kids[0]].replace("_", ""))
        if math.isinf(value):
            self.report("bad-number", "this number is too large", self.span(a, b), "write `inf`")
        return ast.Number(value, self.span(a, b))

    def infinity(self, kids: Kids, a: int, b: int) -> ast.Number:
        return ast.Number(math.inf, self.span(a, b))

    def not_a_number(self, kids: Kids, a: int, b: int) -> ast.Number:
        return ast.Number(math.nan, self.span(a, b))  # one object: equal to itself in a tuple

    def string(self, kids: Kids, a: int, b: int) -> ast.String:
        return ast.String(self.literal(kids[0]), self.span(a, b))

    def true(self, kids: Kids, a: int, b: int) -> ast.Boolean:
        return ast.Boolean(True, self.span(a, b))

    def false(self, kids: Kids, a: int, b: int) -> ast.Boolean:
        return ast.Boolean(False, self.span(a, b))

    def name(self, kids: Kids, a: int, b: int) -> ast.Name:
        return ast.Name(self.texts[kids[0]], self.span(a, b))

    def call_expr(self, kids: Kids, a: int, b: int) -> ast.CallExpr:
        return ast.CallExpr(self.ident(kids[0]), self.exprs(kids[1:]), self.span(a, b))

    def list(self, kids: Kids, a: int, b: int) -> ast.ListExpr:
        return ast.ListExpr(self.exprs(kids), self.span(a, b))

    def paren(self, kids: Kids, a: int, b: int) -> Any:
        (inner,) = kids
        return inner if isinstance(inner, _Part) else replace(inner, span=self.span(a, b))

    def aggregate(self, kids: Kids, a: int, b: int) -> ast.AggregateExpr:
        kind, body = kids
        return ast.AggregateExpr(self.texts[kind], None, body, self.span(a, b))

    def aggregate_of(self, kids: Kids, a: int, b: int) -> ast.AggregateExpr:
        kind, value, body = kids
        return ast.AggregateExpr(self.texts[kind], self.expr(value), body, self.span(a, b))


class _Part:
    """A piece of a declaration on its way to it; not in the tree."""

    __slots__ = ()


class _Where(_Part):
    __slots__ = ("conditions",)

    def __init__(self, conditions: tuple[ast.Condition, ...]) -> None:
        self.conditions = conditions


class _Graph(_Part):
    __slots__ = ("conditions",)

    def __init__(self, conditions: tuple[ast.Condition, ...]) -> None:
        self.conditions = conditions


class _Category(_Part):
    __slots__ = ("name",)

    def __init__(self, name: ast.Ident) -> None:
        self.name = name


class _OpBody(_Part):
    __slots__ = ("parts",)

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts


class _PathCall(_Part):
    """``upstream[1..3](x)`` before its ``in`` is seen."""

    __slots__ = ("args", "path", "span", "word")
    __match_args__ = ("word", "path", "args", "span")

    def __init__(
        self, word: ast.Ident, path: tuple[int, int], args: tuple[ast.Expr, ...], span: Span
    ) -> None:
        self.word = word
        self.path = path
        self.args = args
        self.span = span
