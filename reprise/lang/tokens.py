"""Source text to tokens.

:func:`scan` splits a whole text at once into parallel lists (a token is an index into them), sets
comments and documentation aside, and reports what is not a token at all: a stray character, an
unterminated string, a malformed number. Such a place still yields a token, of the nearest kind or
``ERROR``, so that the parser neither stumbles over it twice nor stops there.

Columns are 1-based and count code points, in the source as it is after an optional byte-order
mark. Every token lies on one line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from reprise.lang.diagnostics import Diagnostic, Span
from reprise.lang.tables import END_OF_INPUT, Tables

BOM = "\ufeff"
ERROR = "ERROR"

MAX_MALFORMED = 50
"""Things that are not tokens, after which no more are reported."""

OPENING = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
CLOSING = {close: opened for opened, close in OPENING.items()}

DECLARATION_KEYWORDS = frozenset(
    ["import", "set", "relation", "deny", "pattern", "op", "constraint", "monitor", "test"]
)
_ONLY_BEFORE_BRACE = frozenset(["count", "sum", "min", "max", "prod", "exists"])
_ONLY_BEFORE_NAME = frozenset(("const", "output"))

_VALUES = frozenset(("inf", "nan", "true", "false"))

_AFTER_NUMBER = re.compile(r"[A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
_MORE_NUMBER = re.compile(r"\.[A-Za-z0-9_]")
_SINGLE_QUOTED = re.compile(r"'[^'\n]*'")
_AFTER_UNDERSCORE = re.compile(r"[A-Za-z0-9_]+")
_REST_OF_LINE = re.compile(r"[^\n]*")

_CHARACTER_HINTS = {
    "'": "write strings in double quotes",
    "`": "write strings in double quotes",
    "“": "write strings in straight double quotes",
    "”": "write strings in straight double quotes",
    "#": "comments start with `//`",
    "&": "write `and`, or a comma",
    "!": "write `not`; `!=` compares",
    "≤": "write `<=`",
    "≥": "write `>=`",
    "≠": "write `!=`",
    "−": "this is a Unicode minus sign; write `-`",
    "–": "this is a dash; write `-`",
    "…": "write `...`",
    "\u00a0": "this is a non-breaking space; write a plain space",
    "^": "there is no power operator; multiply",
    "\\": "lines need no continuation mark",
    "$": "a value variable is just an identifier that starts with an uppercase letter",
}


@dataclass(slots=True)
class Tokens:
    """The tokens of one text, ``END_OF_INPUT`` last, and what was found on the way."""

    path: str
    text: str
    kinds: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """The column after each token."""
    docs: dict[int, list[int]] = field(default_factory=dict)
    """Token → the comments (by index) that are ``///`` lines directly before it."""
    comments: list[tuple[Span, str]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    malformed: set[tuple[int, int]] = field(default_factory=set)
    """Where the tokens stand (line, column) that ``diagnostics`` speak of."""

    def span(self, first: int, last: int) -> Span:
        """The region from one token to another, both included."""
        return Span(
            self.path, self.lines[first], self.columns[first], self.lines[last], self.ends[last]
        )


def is_documentation(comment: str) -> bool:
    """Whether a comment documents the declaration that it stands before."""
    return comment.startswith("///") and not comment.startswith("////")


def keyword_of(
    text: str, after: str, keywords: Mapping[str, str], row: Mapping[str, int], forced: bool
) -> str:
    """What a name that spells a keyword is: the keyword's terminal, or ``NAME``.

    ``after`` is the kind of the next token and ``row`` the parser's state. ``forced``: the name
    starts a line of a rule file; if it also looks like a declaration it is one, allowed or not,
    so that a block that is not closed is noticed there.
    """
    terminal = keywords[text]
    if (after == "EQUAL" or after == "COLON") and text not in _VALUES:
        return "NAME"
    if text in _ONLY_BEFORE_BRACE:
        fits = after == "LBRACE"
    elif text in _ONLY_BEFORE_NAME:
        fits = after == "NAME"
    elif text == "via":
        fits = after in ("NAME", "QNAME", "LBRACE", "LSQB")
    elif text in DECLARATION_KEYWORDS:
        if forced and after in ("NAME", "QNAME", "STRING"):
            return terminal
        fits = after != "LPAR"
    else:
        fits = True
    return terminal if fits and terminal in row else "NAME"


def scan(text: str, path: str, tables: Tables) -> Tokens:
    """Split ``text`` into tokens; see the module's description."""
    if text.startswith(BOM):
        text = text[1:]
    tokens = Tokens(path, text)
    kinds, texts, lines, columns, ends = (
        tokens.kinds,
        tokens.texts,
        tokens.lines,
        tokens.columns,
        tokens.ends,
    )
    match = tables.scanner.match
    pos, size, line, start = 0, len(text), 1, 0  # start: where the line begins
    docs: list[int] = []
    while pos < size:
        found = match(text, pos)
        if found is None:
            pos = _malformed(tokens, pos, line, start)
            docs = []
            continue
        kind = found.lastgroup
        end = found.end()
        if kind == "SPACE":
            newline = text.rfind("\n", pos, end)
            if newline >= 0:
                line += text.count("\n", pos, end)
                start = newline + 1
            pos = end
            continue
        if kind == "COMMENT":
            comment = found.group().rstrip()
            span = Span(path, line, pos - start + 1, line, pos - start + 1 + len(comment))
            if is_documentation(comment) and not (lines and lines[-1] == line):
                docs.append(len(tokens.comments))
            tokens.comments.append((span, comment))
            pos = end
            continue
        if docs:
            tokens.docs[len(kinds)] = docs
            docs = []
        word = found.group()
        if word == "in" and kinds and texts[-1] == "not" and kinds[-1] == "NAME":
            kinds[-1], texts[-1] = "NOT_IN", "not in"
            if lines[-1] == line:
                ends[-1] = end - start + 1
            pos = end
            continue
        kinds.append(kind)  # type: ignore[arg-type]  # every alternative is named
        texts.append(word)
        lines.append(line)
        columns.append(pos - start + 1)
        ends.append(end - start + 1)
        pos = end
    kinds.append(END_OF_INPUT)
    texts.append("")
    lines.append(lines[-1] if lines else 1)
    columns.append(ends[-1] if ends else 1)
    ends.append(columns[-1] + 1)
    return tokens


def _malformed(tokens: Tokens, pos: int, line: int, start: int) -> int:
    """Report what stands at ``pos``, leave a token for it, and return where it ends."""
    text = tokens.text
    character = text[pos]
    kind, hint = ERROR, None
    if character == '"':
        end = pos + len(_REST_OF_LINE.match(text, pos).group().rstrip())  # type: ignore[union-attr]
        kind = "STRING"
        code, message = "unterminated-string", "this string does not end on its line"
        hint = 'close it with `"`; write a line break in a string as `\\n`'
    elif quoted := _SINGLE_QUOTED.match(text, pos):
        end = quoted.end()
        kind = "STRING"
        code, message = "bad-string", "strings are written in double quotes"
        hint = f'write `"{quoted.group()[1:-1]}"`'
    elif character.isascii() and character.isdigit():
        end = _AFTER_NUMBER.match(text, pos).end()  # type: ignore[union-attr]
        kind = "INT"
        code, message = "bad-number", f"`{text[pos:end]}` is not a number"
        hint = "an identifier starts with a letter"
    elif _MORE_NUMBER.match(text, pos) and _follows(
        tokens, ("INT", "FLOAT"), line, pos - start + 1
    ):
        kind, pos = "INT", pos - len(_forget(tokens))
        end = _AFTER_NUMBER.match(text, pos).end()  # type: ignore[union-attr]
        code, message = "bad-number", f"`{text[pos:end]}` is not a number"
        hint = "a version is a string: put it in quotes"
    elif character == "_":
        end = _AFTER_UNDERSCORE.match(text, pos).end()  # type: ignore[union-attr]
        kind = "NAME"
        code, message = "bad-name", f"`{text[pos:end]}` is not a name"
        hint = "a name starts with a lowercase letter, a value variable with an uppercase one"
    elif character == ".":
        end = pos + 1
        code, message = "bad-character", "this `.` belongs to nothing"
        hint = "member access is `.name`; the `.` that ends a rule is followed by white space"
    elif character.isalpha():
        kind = "NAME"
        if _follows(tokens, ("NAME", "VAR"), line, pos - start + 1):
            pos -= len(_forget(tokens))
        end = pos + 1
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        code, message = "bad-name", f"`{text[pos:end]}` is not a name"
        hint = "identifiers consist of the letters a-z and A-Z, digits and `_`"
    else:
        end = pos + 1
        while end < len(text) and text[end] == character:
            end += 1
        code, message = "bad-character", f"unexpected {_describe(character)}"
        hint = _CHARACTER_HINTS.get(character)
    span = Span(tokens.path, line, pos - start + 1, line, end - start + 1)
    if len(tokens.diagnostics) < MAX_MALFORMED:
        tokens.diagnostics.append(Diagnostic(code, message, span, hint))
    tokens.malformed.add((line, span.column))
    tokens.kinds.append(kind)
    tokens.texts.append(text[pos:end])
    tokens.lines.append(line)
    tokens.columns.append(span.column)
    tokens.ends.append(span.end_column)
    return end


def _follows(tokens: Tokens, kinds: tuple[str, ...], line: int, column: int) -> bool:
    """Whether the last token is of one of some kinds and ends just there."""
    if not tokens.kinds or tokens.kinds[-1] not in kinds:
        return False
    return (tokens.lines[-1], tokens.ends[-1]) == (line, column)


def _forget(tokens: Tokens) -> str:
    """Take the last token back."""
    for column in (tokens.kinds, tokens.lines, tokens.columns, tokens.ends):
        column.pop()
    return tokens.texts.pop()


def _describe(character: str) -> str:
    if character.isprintable() and character != " ":
        return f"character `{character}`"
    return f"character U+{ord(character):04X}"
