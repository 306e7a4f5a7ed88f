"""The one canonical layout of rule files and programs.

:func:`format_text` formats source text; :func:`format_file` prints a syntax tree, which need not
come from text; :func:`format_program` prints a ``.uir`` program, and :func:`show` any node on one
line. What is printed parses to an equal tree, formatting twice changes nothing, and no comment is
lost: one that stands inside something that is printed as a whole moves before it.

The style: four spaces, 100 columns, everything in the order in which it was written. A block is on
one line if its author wrote it so and it fits; else each of its parts has its own lines. Blank
lines are kept, at most one in a row; a block of several lines has one around it, except between a
declaration and its test.

The walk over a file keeps the comments that are not printed yet (:class:`_Comments`). Before
something is printed, the comments that stand before it are; after it, the one that trails it.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TypeVar

from reprise.lang import ast
from reprise.lang.diagnostics import Span
from reprise.lang.layout import INDENT, SOFT, SPACE, WIDTH, Doc, Fill, Group, Nest, flat, layout
from reprise.lang.parse import parse_text
from reprise.lang.tables import load_tables
from reprise.lang.tokens import is_documentation, scan

T = TypeVar("T")

Place = tuple[int, int]
"""A line and a column."""

_KINDS = {"{": "LBRACE", "}": "RBRACE", ":-": "IF"}

_BLOCKS = (ast.PatternDecl, ast.OpDecl, ast.ConstraintDecl, ast.MonitorDecl, ast.TestDecl)

_BARE = re.compile(r"[a-z][A-Za-z0-9_]*|[0-9]+(\.[0-9]+)?")
"""Metadata values that need no quotes."""

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}

_PRODUCTS = frozenset("*/%")

_SUM, _PRODUCT, _UNARY, _POSTFIX = range(4)
"""Precedences of expressions."""

_OR, _AND, _NOT = range(3)
"""Precedences of conditions."""


def format_text(text: str, path: str = "<text>") -> str:
    """Format the text of a rule file.

    Raises:
        RulesError: the text does not parse.
    """
    return format_file(parse_text(text, path), text)


def format_file(file: ast.RuleFile, text: str = "") -> str:
    """Print a rule file.

    With the ``text`` that it was parsed from, numbers keep their spelling and ``where`` clauses
    their grouping.
    """
    return _Formatter(text, file.comments).file(file)


def format_program(lines: Iterable[ast.Line]) -> str:
    """Print a ``.uir`` program, one line each."""
    formatter = _Formatter("", ())
    return "".join(f"{out}\n" for line in lines for out in layout(formatter.doc(line)))


def show(node: ast.Node) -> str:
    """A line, condition, expression, operand, domain or type as one line of source text."""
    return flat(_Formatter("", ()).doc(node))


# --- comments and blank lines ----------------------------------------------------------------

_LAST: Place = (1 << 60, 0)


def _start(span: Span) -> Place:
    return span.line, span.column


def _end(span: Span) -> Place:
    return span.end_line, span.end_column


def _known(span: Span) -> bool:
    """Whether a node comes from a text."""
    return span.file != ast.NOWHERE.file


def _join(first: Span, last: Span) -> Span:
    return Span(first.file, first.line, first.column, last.end_line, last.end_column)


class _Comments:
    """The comments of a file that are not printed yet."""

    def __init__(self, comments: Sequence[tuple[Span, str]]) -> None:
        self.rest = sorted(comments, key=lambda c: _start(c[0]), reverse=True)  # the next one last

    def before(self, place: Place) -> list[tuple[Span, str]]:
        """Take the comments that start before ``place``."""
        taken = []
        while self.rest and _start(self.rest[-1][0]) < place:
            taken.append(self._take())
        return taken

    def trailing(self, after: Place, until: Place) -> str:
        """Take the comment that follows ``after`` on its line, before ``until``."""
        if self.rest:
            place = _start(self.rest[-1][0])
            if place[0] == after[0] and after <= place < until:
                return "  " + self._take()[1]
        return ""

    def within(self, start: Place, end: Place) -> bool:
        """Whether one of them lies between two places."""
        return any(start <= _start(span) < end for span, _ in self.rest[-1:])

    def _take(self) -> tuple[Span, str]:
        span, text = self.rest.pop()
        if is_documentation(text):
            text = text[1:]  # it documents nothing; here it must not begin to
        return span, text


class _Source:
    """The text that a tree was parsed from, as tokens by their places."""

    def __init__(self, text: str) -> None:
        self.tokens = scan(text, "", load_tables())
        self.starts = list(zip(self.tokens.lines, self.tokens.columns, strict=True))[:-1]

    def before(self, place: Place, kind: str) -> Place | None:
        """Where the token before ``place`` starts, if it is a ``kind`` or reads so."""
        i = bisect_left(self.starts, place) - 1
        if i >= 0 and kind in (self.tokens.kinds[i], self.tokens.texts[i]):
            return self.starts[i]
        return None

    def after(self, place: Place, kind: str) -> Place | None:
        """Where the token at or after ``place`` ends, if it is a ``kind``."""
        i = bisect_left(self.starts, place)
        if i < len(self.starts) and self.tokens.kinds[i] == kind:
            return self.tokens.lines[i], self.tokens.ends[i]
        return None

    def number(self, span: Span) -> str:
        """The spelling of a number, or of whatever else is there."""
        i = bisect_left(self.starts, _start(span))
        j = bisect_left(self.starts, _end(span))
        return "".join(self.tokens.texts[i:j])


class _Lines:
    """Output lines of one block, with the blank lines that its author left."""

    def __init__(self, indent: int) -> None:
        self.pad = " " * indent
        self.out: list[str] = []
        self.source_line = 0
        """Where in the source the last of them ended; 0 for nowhere."""

    def add(self, lines: Sequence[str], span: Span, blank: bool = False) -> None:
        """Append lines, the first not yet indented, that stood at ``span``."""
        known = _known(span)
        apart = known and self.source_line and span.line > self.source_line + 1
        if self.out and (blank or apart):
            self.out.append("")
        self.out.append(self.pad + lines[0])
        self.out.extend(lines[1:])
        self.source_line = span.end_line if known else 0

    def comments(self, comments: Iterable[tuple[Span, str]], blank: bool = False) -> None:
        """Append comments, each on its line."""
        for span, text in comments:
            self.add([text], span, blank)
            blank = False


@dataclass(slots=True)
class _Part:
    """A piece of a block, printed as ``doc`` and ``suffix``.

    A piece of several ``items`` has a ``heading`` too: if a comment stands between them, they are
    printed below it on lines of their own, and then ``closing``.
    """

    doc: Doc
    span: Span = ast.NOWHERE
    suffix: str = ""
    heading: Doc = ""
    items: list[_Part] = field(default_factory=list)
    closing: str = ""
    opened: Place | None = None
    """Where the heading ends, if not where the part starts."""
    block: ast.Case | None = None
    """Instead of all that: a test case, a block in itself."""


# --- the walk --------------------------------------------------------------------------------


class _Formatter:
    """Prints one file."""

    def __init__(self, text: str, comments: Sequence[tuple[Span, str]]) -> None:
        self.source = _Source(text) if text else None
        self.comments = _Comments(comments)
        self.hoisted: list[tuple[Span, str]] = []
        """Comments in what is being printed, to be printed before it."""

    def file(self, file: ast.RuleFile) -> str:
        """The whole text."""
        decls: list[ast.Import | ast.Decl] = [*file.imports, *file.decls]
        if all(_known(decl.span) for decl in decls):
            decls.sort(key=lambda decl: _start(decl.span))
        top = _Lines(0)
        previous: ast.Import | ast.Decl | None = None
        was_block = False
        for decl, after in _with_next(decls):
            doc = () if isinstance(decl, ast.Import) else decl.doc
            known = _known(decl.span)
            span = decl.span
            if known:
                span = replace(span, line=self._doc_line(span, len(doc)))
            leading = self.comments.before(_start(decl.span)) if known else []
            until = _start(after.span) if after is not None and known else _LAST
            self.hoisted = []
            body = self._declaration(decl, until)
            leading += self.hoisted
            is_block = len(body) > 1 and isinstance(decl, _BLOCKS)
            blank = (was_block or is_block) and not _tests(decl, previous)
            if not known:
                blank = blank or type(decl) is not type(previous)
            top.comments(leading, blank)
            lines = [*(f"/// {line}".rstrip() for line in doc), *body]
            top.add(lines, span, blank and not leading)
            previous, was_block = decl, is_block
        top.comments(self.comments.before(_LAST), was_block)
        return "".join(f"{line}\n" for line in top.out)

    def _doc_line(self, span: Span, lines: int) -> int:
        """Where the documentation of a declaration begins."""
        if self.source is None or not lines:
            return span.line - lines
        comments = self.source.tokens.comments
        last = bisect_left(comments, _start(span), key=lambda comment: _start(comment[0]))
        while lines and last > 0:
            last -= 1
            lines -= is_documentation(comments[last][1])
        return comments[last][0].line

    def _hoist(self, place: Place) -> None:
        """Let the comments up to ``place`` be printed before what is being printed."""
        self.hoisted += self.comments.before(place)

    def _part(self, part: _Part, indent: int, until: Place) -> list[str]:
        """The lines of a part, the first not indented; takes the comments in it and after it.

        ``until``: where the next part starts.
        """
        if part.block is not None:
            return self._case(part.block, indent, until)
        if not _known(part.span):
            return layout((part.doc, part.suffix), indent)
        end = _end(part.span)
        if part.items:
            self._hoist(part.opened or _start(part.span))
        if part.items and self.comments.within(_start(part.span), end):
            lines = layout(part.heading, indent)
            opened = part.opened or _start(part.span)
            lines[-1] += self.comments.trailing(opened, _start(part.items[0].span))
            lines += self._parts(part.items, indent + INDENT, end)
            if part.closing:
                lines.append(" " * indent + part.closing)
        else:
            self._hoist(end)
            lines = layout((part.doc, part.suffix), indent)
        lines[-1] += self.comments.trailing(end, until)
        return lines

    def _parts(self, parts: Sequence[_Part], indent: int, end: Place) -> list[str]:
        """The lines of a block's inside; ``end``: where the block ends."""
        lines = _Lines(indent)
        outer = self.hoisted
        for part, after in _with_next(parts):
            known = _known(part.span)
            self.hoisted = self.comments.before(_start(part.span)) if known else []
            until = end if after is None else _start(after.span)
            printed = self._part(part, indent, until if known else _LAST)
            lines.comments(self.hoisted)
            lines.add(printed, part.span)
        self.hoisted = outer
        if end != _LAST:
            lines.comments(self.comments.before(end))
        return lines.out

    def _block(
        self, header: Doc, parts: Sequence[_Part], span: Span, one_line: bool, indent: int = 0
    ) -> list[str]:
        """``header { parts }``, without what follows; ``one_line`` if it may be."""
        known = _known(span)
        if known:
            first = _start(parts[0].span) if parts else (span.end_line, span.end_column - 1)
            opened = self._word_before(first, "{")
            self._hoist(opened)
        if not known or not self.comments.within(opened, _end(span)):
            if not parts:
                return layout((header, " {}"), indent)
            if one_line:
                inside = "; ".join(flat((part.doc, part.suffix)) for part in parts)
                line = f"{flat(header)} {{ {inside} }}"
                if indent + len(line) <= WIDTH:
                    return [line]
        lines = layout((header, " {"), indent)
        if known:
            lines[-1] += self.comments.trailing(opened, first)
        lines += self._parts(parts, indent + INDENT, _end(span) if known else _LAST)
        lines.append(" " * indent + "}")
        return lines

    def _word_before(self, place: Place, word: str) -> Place:
        """Where the token before ``place`` starts if it is ``word``, else ``place``."""
        found = self.source.before(place, _KINDS.get(word, word)) if self.source else None
        return found or place

    def _from_word(self, span: Span, word: str) -> Span:
        """A span, with the keyword before it."""
        if not _known(span):
            return span
        line, column = self._word_before(_start(span), word)
        return Span(span.file, line, column, span.end_line, span.end_column)

    # --- declarations ------------------------------------------------------------------------

    def _declaration(self, decl: ast.Import | ast.Decl, until: Place) -> list[str]:
        """The lines of a declaration, without its documentation."""
        match decl:
            case ast.Import():
                return self._part(_Part(("import ", quoted(decl.path)), decl.span), 0, until)
            case ast.SetDecl():
                return self._part(self._set(decl), 0, until)
            case ast.RelationDecl():
                return self._part(_Part(self._relation(decl), decl.span), 0, until)
            case ast.RuleDecl() | ast.DenyDecl():
                return self._part(self._rule(decl), 0, until)
            case ast.PatternDecl():
                lines = self._pattern(decl)
            case ast.OpDecl():
                lines = self._op(decl)
            case ast.ConstraintDecl():
                return self._constraint(decl, until)
            case ast.MonitorDecl():
                lines = self._monitor(decl)
            case ast.TestDecl():
                lines = self._test(decl)
        if _known(decl.span):
            lines[-1] += self.comments.trailing(_end(decl.span), until)
        return lines

    def _set(self, decl: ast.SetDecl) -> _Part:
        head = f"set {decl.name} = {{"
        items = [self.doc(item) for item in decl.items]
        doc = Group((head, Nest((SOFT, _fill(items))), SOFT, "}"))
        rows: list[_Part] = []  # what the author wrote on one line stays there
        row: list[Doc] = []
        for item, printed in zip(decl.items, items, strict=True):
            if rows and _known(item.span) and item.span.line == rows[-1].span.end_line:
                rows[-1].span = _join(rows[-1].span, item.span)
            else:
                if rows:
                    rows[-1].doc = _fill(row)
                row = []
                rows.append(_Part("", item.span, ","))
            row.append(printed)
        if rows:
            rows[-1].doc, rows[-1].suffix = _fill(row), ""
        opened = self._word_before(_start(rows[0].span), "{") if rows else None
        return _Part(doc, decl.span, "", head, rows, "}", opened)

    def _relation(self, decl: ast.RelationDecl) -> Doc:
        columns: list[Doc] = [
            f"{column.name}: {column.type}{' key' if column.key else ''}" for column in decl.columns
        ]
        flags: list[Doc] = []
        for flag_ in decl.flags:
            args = f"({', '.join(map(str, flag_.args))})" if flag_.args else ""
            flags += [SPACE, f"@{flag_.name}{args}"]
        return Group((f"relation {decl.name}", _brackets("(", columns, ")"), Nest(tuple(flags))))

    def _rule(self, decl: ast.RuleDecl | ast.DenyDecl) -> _Part:
        head = self.doc(decl.head)
        if isinstance(decl, ast.DenyDecl):
            head = ("deny ", head, " ", quoted(decl.message))
        if not decl.body:
            return _Part((head, "."), decl.span)
        heading = (head, " :-")
        items = self._items(decl.body, ".")
        lines = Group(tuple(_separated([(item.doc, item.suffix) for item in items])))
        if _known(decl.span):  # what stands before the full stop is printed before the condition
            items[-1].span = _join(items[-1].span, decl.span)
        opened = self._word_before(_start(decl.body[0].span), ":-")
        doc = Group((heading, Nest((SPACE, lines))))
        return _Part(doc, decl.span, "", heading, items, opened=opened)

    def _items(self, conditions: Sequence[ast.Condition], stop: str = "") -> list[_Part]:
        """Conditions with commas between them, and ``stop`` after the last."""
        parts = [_Part(self.doc(one), one.span, ",") for one in conditions]
        if parts:
            parts[-1].suffix = stop
        return parts

    def _clauses(self, word: str, conditions: Sequence[ast.Condition]) -> list[_Part]:
        """``where`` or ``graph`` clauses; those that the author wrote, where they are known."""
        clauses: list[list[ast.Condition]] = []
        for one in conditions:
            if clauses and not self._apart(clauses[-1][-1].span, one.span):
                clauses[-1].append(one)
            else:
                clauses.append([one])
        return [self._clause(word, clause) for clause in clauses]

    def _clause(self, word: str, conditions: Sequence[ast.Condition]) -> _Part:
        items = self._items(conditions)
        doc: Doc = Nest((f"{word} ", Fill(tuple((item.doc, item.suffix) for item in items))))
        span = self._from_word(_join(conditions[0].span, conditions[-1].span), word)
        return _Part(doc, span, "", word, items)

    def _apart(self, before: Span, after: Span) -> bool:
        """Whether no comma stands between two places of the source."""
        if self.source is None or not (_known(before) and _known(after)):
            return False
        return self.source.after(_end(before), "COMMA") is None

    def _pattern(self, decl: ast.PatternDecl) -> list[str]:
        title = f" {quoted(decl.title)}" if decl.title else ""
        parts = [_Part(self._meta(entry), entry.span) for entry in decl.meta]
        parts += [_Part(self.doc(line), line.span) for line in decl.lines]
        parts += self._clauses("where", decl.where)
        parts += self._clauses("graph", decl.graph)
        return self._block(f"pattern {decl.name}{title}", _ordered(parts), decl.span, False)

    def _meta(self, entry: ast.MetaEntry) -> str:
        value = entry.value
        return f"{entry.key}: {metadata_value(value)}"

    def _op(self, decl: ast.OpDecl) -> list[str]:
        params: list[Doc] = [self.doc(param) for param in decl.params]
        results = [
            self.doc(written) if name is None else (f"{name}: ", self.doc(written))
            for name, written in decl.results
        ]
        inputs: Doc = Nest((SOFT, _fill(params))), SOFT
        header: Doc = Group(
            (f"op {decl.name}(", inputs if params else (), ") -> ", Nest(_fill(results)))
        )
        parts = []
        if decl.category is not None:
            span = self._from_word(decl.category.span, "category")
            parts.append(_Part(f"category {decl.category}", span))
        parts += [
            _Part(self._attribute(attribute), attribute.span) for attribute in decl.attributes
        ]
        flags: list[list[ast.Ident]] = []
        for one in decl.flags:
            if flags and not self._apart(flags[-1][-1].span, one.span):
                flags[-1].append(one)
            else:
                flags.append([one])
        for group in flags:
            names: list[Doc] = [str(one) for one in group]
            doc: Doc = Nest(("flag ", _fill(names)))
            span = self._from_word(_join(group[0].span, group[-1].span), "flag")
            parts.append(_Part(doc, span))
        parts += self._clauses("where", decl.where)
        if not parts:
            if _known(decl.span):
                self._hoist(_end(decl.span))
            return layout(header)
        parts = _ordered(parts)
        return self._block(header, parts, decl.span, _on_one_line(decl.span, parts, False))

    def _comments_in(self, span: Span) -> bool:
        return _known(span) and self.comments.within(_start(span), _end(span))

    def _attribute(self, decl: ast.AttrDecl) -> Doc:
        parts: list[Doc] = [f"attr {decl.name}"]
        if decl.variable is not None:
            parts.append(f" as {decl.variable}")
        parts.append(f": {decl.type}")
        if decl.domain is not None:
            parts += [" in ", self.doc(decl.domain)]
        if decl.default is not None:
            parts += [" = ", self.doc(decl.default)]
        return tuple(parts)

    def _constraint(self, decl: ast.ConstraintDecl, until: Place) -> list[str]:
        parts = [_Part(self._meta(entry), entry.span) for entry in decl.meta]
        parts += [_Part(self.doc(line), line.span) for line in decl.lines]
        parts += self._clauses("where", decl.where)
        parts = _ordered(parts)
        header = f"constraint {decl.name} : {decl.klass} on"
        require = self._clause("require", decl.require) if decl.require else _Part("require")
        span = decl.span
        if _known(span):
            brace = _start(require.span)  # of `require`, and then of the `}` before it
            if decl.require:
                brace = self._word_before(brace, "}")
            line, column = brace
            span = Span(span.file, span.line, span.column, line, column + 1)
            require.span = Span(span.file, line, column, *_end(require.span))
            require.opened = self._word_before(_start(decl.require[0].span), "require")
        one_line = _on_one_line(decl.span, parts, True)
        block = self._block(header, parts, span, one_line)
        if len(block) == 1 and not self._comments_in(decl.span):
            doc = Group((block[0], Nest((SPACE, require.doc))))
            return self._part(_Part(doc, decl.span), 0, until)
        require.doc = (block[-1], " ", require.doc)
        require.heading = (block[-1], " ", require.heading)
        return block[:-1] + self._part(require, 0, until)

    def _monitor(self, decl: ast.MonitorDecl) -> list[str]:
        header = f"monitor {decl.name} : {decl.klass} on pass {quoted(decl.pass_name)}"
        parts = [_Part(self._meta(entry), entry.span) for entry in decl.meta]
        for condition, message in decl.asserts:
            doc: Doc = ("assert ", Nest(self.doc(condition)))
            span = self._from_word(condition.span, "assert")
            if message is not None:
                doc = Group((doc, Nest((SPACE, quoted(message)))))
                end = self.source.after(_end(span), "STRING") if self.source else None
                span = Span(span.file, *_start(span), *(end or _end(span)))
            parts.append(_Part(doc, span))
        parts = _ordered(parts)
        return self._block(header, parts, decl.span, _on_one_line(decl.span, parts, True))

    def _test(self, decl: ast.TestDecl) -> list[str]:
        parts = [_Part("", case.span, block=case) for case in decl.cases]
        return self._block(f"test {decl.subject}", parts, decl.span, False)

    def _case(self, case: ast.Case, indent: int, until: Place) -> list[str]:
        parts = [_Part(self.doc(line), line.span) for line in case.lines]
        header = f"{case.kind} {quoted(case.title)}" if case.title else case.kind
        one_line = _on_one_line(case.span, parts, True)
        lines = self._block(header, parts, case.span, one_line, indent)
        if _known(case.span):
            lines[-1] += self.comments.trailing(_end(case.span), until)
        return lines

    # --- lines, conditions and expressions as documents --------------------------------------

    def doc(self, node: ast.Node) -> Doc:
        """A node that is not a declaration, as a document."""
        match node:
            case ast.Ident() | ast.Name():
                return node.text
            case ast.InputLine():
                const = "const " if node.constant else ""
                value: Doc = () if node.value is None else (" = ", self.doc(node.value))
                return (f"{const}{node.name}: ", self.doc(node.type), value)
            case ast.OutputLine():
                return f"output {node.name}"
            case ast.Given():
                return self.doc(node.fact)
            case ast.Bind():
                return self._bind(node)
            case ast.TypeExpr():
                return self._type(node)
            case ast.Param():
                mark = "?" if node.optional else "..." if node.variadic else ""
                return (f"{node.name}{mark}: ", self.doc(node.type))
            case ast.Splat():
                return ("*", self.doc(node.expr))
            case ast.Call():
                return self._call(node)
            case ast.AttributeArg():
                word = " in " if isinstance(node.value, ast.Domain) else ""
                return (f"{node.name}={word.lstrip()}", self.doc(node.value))
            case ast.TensorRef():
                return str(node.name) if node.output is None else f"{node.name}[{node.output}]"
            case ast.AnyOperand():
                return "_?" if node.optional else "_"
            case ast.AbsentOperand():
                return "none"
            case ast.RestOperands():
                return "..."
            case ast.Via():
                word = "via" if node.path is None else f"via[{_path(node.path)}]"
                return (word, " ", self.doc(node.domain), "(", self.doc(node.operand), ")")
            case ast.SetDomain():
                return _brackets("{", [self.doc(item) for item in node.items], "}")
            case ast.RangeDomain():
                return (self._expr(node.low, _SUM), "..", self._expr(node.high, _SUM))
            case ast.NamedDomain():
                return str(node.name)
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
                return self._condition(node, _OR)
        return self._expr(node, _SUM)

    def _bind(self, line: ast.Bind) -> Doc:
        targets: list[Doc] = []
        for i, name in enumerate(line.names):
            written = line.types[i] if i < len(line.types) else None
            targets.append(str(name) if written is None else (f"{name}: ", self.doc(written)))
        first, *others = [self.doc(call) for call in line.calls]
        tail: list[Doc] = []
        for call in others:
            tail += [SPACE, ("or ", call)]
        return Group((_intersperse(targets, ", "), " = ", first, Nest(tuple(tail))))

    def _type(self, written: ast.TypeExpr) -> Doc:
        dtype = (
            written.dtype.name if isinstance(written.dtype, ast.Variable) else written.dtype.text
        )
        if written.shape is None:
            return f"{dtype}[...]"
        dims = ["?" if isinstance(d, ast.Wildcard) else self.doc(d) for d in written.shape]
        return (dtype, _brackets("[", dims, "]"))

    def _call(self, call: ast.Call) -> Doc:
        operands = [self.doc(operand) for operand in call.operands]
        rest: list[Doc] = []
        if call.operands and isinstance(call.operands[-1], ast.RestOperands):
            rest = [operands.pop()]
        args = operands + [self.doc(attribute) for attribute in call.attributes] + rest
        opening, closing = ("{", "}") if call.unordered else ("(", ")")
        *others, last = map(str, call.ops)
        ops = Nest(Fill((*(f"{op}|" for op in others), last), gap=""))
        return (ops, _brackets(opening, args, closing))

    def _condition(self, node: ast.Condition, level: int) -> Doc:
        """A condition where one of at least the given precedence is wanted."""
        match node:
            case ast.Or(parts) | ast.And(parts):
                own, word = (_OR, "or") if isinstance(node, ast.Or) else (_AND, "and")
                first, *others = [self._condition(part, own + 1) for part in parts]
                tail: list[Doc] = []
                for part in others:
                    tail += [SPACE, (f"{word} ", part)]
                doc: Doc = (first, Nest(tuple(tail)))
                return Group(("(", doc, ")")) if own < level else Group(doc)
            case ast.Not(condition):
                return ("not ", self._condition(condition, _NOT))
            case ast.Comparison(operands, ops):
                links: list[Doc] = []
                for op, operand in zip(ops, operands[1:], strict=True):
                    links += [SPACE, (f"{op} ", self._expr(operand, _SUM))]
                return Group((self._expr(operands[0], _SUM), Nest(tuple(links))))
            case ast.Membership(expr, domain, negated):
                word = " not in " if negated else " in "
                return (self._expr(expr, _SUM), word, self.doc(domain))
            case ast.AtomCond(relation, args):
                return (str(relation), _brackets("(", [self.doc(arg) for arg in args], ")"))
            case ast.Context(word, path, subject, domain):
                steps = "" if path is None else f"[{_path(path)}]"
                return (f"{word}{steps}({subject}) in ", self.doc(domain))
            case ast.Exists(lines, conditions):
                inside: list[Doc] = []
                for line in lines:
                    if inside:
                        inside += [";", SPACE]
                    inside.append(self.doc(line))
                if lines and conditions:
                    inside += [SPACE, "where "]
                inside += _separated(_commas([self.doc(one) for one in conditions]))
                return Group(("exists {", Nest((SPACE, tuple(inside))), SPACE, "}"))

    def _expr(self, node: ast.Expr | ast.Splat, level: int) -> Doc:
        """An expression where one of at least the given precedence is wanted."""
        own, doc = _POSTFIX, self._primary(node)
        match node:
            case ast.Binary(op):
                own = _PRODUCT if op in _PRODUCTS else _SUM
            case ast.Negate():
                own = _UNARY
            case ast.Number(value) if math.copysign(1, value) < 0:
                own = _UNARY
        return ("(", doc, ")") if own < level else doc

    def _primary(self, node: ast.Expr | ast.Splat) -> Doc:
        match node:
            case ast.Variable(name):
                return name
            case ast.Name(text):
                return text
            case ast.Wildcard():
                return "_"
            case ast.Number():
                return self._number(node)
            case ast.String(value):
                return quoted(value)
            case ast.Boolean(value):
                return "true" if value else "false"
            case ast.Member(base, member):
                return (self._expr(base, _POSTFIX), f".{member}")
            case ast.Index(base, index):
                return (self._expr(base, _POSTFIX), "[", self._expr(index, _SUM), "]")
            case ast.CallExpr(function, args):
                return (str(function), _brackets("(", [self._expr(a, _SUM) for a in args], ")"))
            case ast.ListExpr(items):
                return _brackets("[", [self._expr(item, _SUM) for item in items], "]")
            case ast.Binary():
                return self._chain(node)
            case ast.Negate(operand):
                inner = self._expr(operand, _UNARY)
                return ("-(", inner, ")") if isinstance(operand, ast.Number) else ("-", inner)
            case ast.Splat(expr):
                return ("*", self._expr(expr, _POSTFIX))
            case ast.AggregateExpr(kind, value, body):
                inside: Doc = tuple(_separated(_commas([self.doc(one) for one in body])))
                if value is not None:
                    inside = (self._expr(value, _SUM), " : ", inside)
                return Group((f"{kind}{{", Nest((SPACE, inside)), SPACE, "}"))

    def _chain(self, node: ast.Binary) -> Doc:
        """``a + b - c``: a chain of one precedence, broken before its operators if at all."""
        product = node.op in _PRODUCTS
        own = _PRODUCT if product else _SUM
        links: list[Doc] = []
        left: ast.Expr = node
        while isinstance(left, ast.Binary) and (left.op in _PRODUCTS) == product:
            links += [(f"{left.op} ", self._expr(left.right, own + 1)), SPACE]
            left = left.left
        links.append(self._expr(left, own))
        links.reverse()
        return Group((links[0], Nest(tuple(links[1:]))))

    def _number(self, node: ast.Number) -> str:
        """A number as it was written, if that is known."""
        value = node.value
        if self.source is not None and _known(node.span):
            written = self.source.number(node.span)
            with suppress(ValueError):
                if (int if isinstance(value, int) else float)(written) == value:
                    return written
        return repr(value)


# --- small documents -------------------------------------------------------------------------


def _with_next(items: Sequence[T]) -> Iterator[tuple[T, T | None]]:
    """Each item with the one after it."""
    return zip(items, [*items[1:], None], strict=False)


def _brackets(opening: str, items: Sequence[Doc], closing: str) -> Doc:
    if not items:
        return opening + closing
    return Group((opening, Nest((SOFT, _fill(items))), SOFT, closing))


def _fill(items: Sequence[Doc]) -> Fill:
    return Fill(tuple(_commas(items)))


def _commas(items: Sequence[Doc]) -> list[Doc]:
    """A comma after each but the last."""
    return [*((item, ",") for item in items[:-1]), *items[-1:]]


def _separated(items: Sequence[Doc]) -> list[Doc]:
    """A break after each but the last."""
    return [part for item in items for part in (SPACE, item)][1:]


def _intersperse(items: Sequence[Doc], separator: str) -> Doc:
    return tuple([part for item in items for part in (separator, item)][1:])


def metadata_value(text: str) -> str:
    """A text after a metadata key: in quotes where it needs them."""
    return text if _BARE.fullmatch(text) else quoted(text)


def quoted(text: str) -> str:
    """A string literal of the language."""

    def escape(character: str) -> str:
        if character in _ESCAPES:
            return _ESCAPES[character]
        code = ord(character)
        if code < 0x20 or code == 0x7F:
            return f"\\x{code:02x}"
        return character

    return f'"{"".join(map(escape, text))}"'


def _path(path: tuple[int, int]) -> str:
    return f"{path[0]}..{path[1]}"


def _ordered(parts: list[_Part]) -> list[_Part]:
    """Parts as their author ordered them, if known."""
    if all(_known(part.span) for part in parts):
        return sorted(parts, key=lambda part: _start(part.span))
    return parts


def _on_one_line(span: Span, parts: Sequence[_Part], default: bool) -> bool:
    """Whether a block should be on one line, if it fits."""
    if not _known(span):
        return default
    return not parts or parts[-1].span.end_line == span.line


def _tests(decl: ast.Import | ast.Decl, previous: ast.Import | ast.Decl | None) -> bool:
    """Whether ``decl`` is the test of the declaration before it."""
    if not isinstance(decl, ast.TestDecl):
        return False
    match previous:
        case ast.RuleDecl() | ast.DenyDecl():
            return previous.head.relation == decl.subject
        case None | ast.Import() | ast.TestDecl():
            return False
    return previous.name == decl.subject
