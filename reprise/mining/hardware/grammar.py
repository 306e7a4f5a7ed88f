"""Specifications in a notation that a Lark grammar describes, as documents.

A grammar names its parts by convention, and everything else in its tree is passed through:

- rule ``section``: a group; a first child ``NAME`` or ``STRING`` names it, ``TAG`` tags it
- rule ``entry``: its ``NAME``, or else a first child ``STRING``, and its value
- rule ``list``: several values
- terminals ``NUMBER``, ``STRING`` (quotes are taken off), ``WORD``, ``TRUE``, ``FALSE``, ``NULL``,
  and ``TEXT``: the rest of a line, blanks at its ends taken off

A text that ends in the middle, or has a mistake, gives what was complete before that place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

from lark import Lark, Token, Tree
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from reprise.lang.diagnostics import Diagnostic
from reprise.mining.hardware.document import MAX_DEPTH, Entry, Place, Section, Value, problem
from reprise.mining.hardware.units import written

Child: TypeAlias = Token | Tree[Token]


@cache
def load_grammar(path: Path) -> Lark:
    """The parser of a grammar file. Raises lark.exceptions.LarkError, OSError."""
    text = path.read_text(encoding="utf-8")
    return Lark(text, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def read_with_grammar(
    text: str, file: str, name: str, grammar: Path
) -> tuple[Section, list[Diagnostic]]:
    """The document in ``text`` and what is wrong with it. ``name`` names the outermost section."""
    parser = load_grammar(grammar)
    state = parser.parse_interactive(text)
    wrong: list[Diagnostic] = []
    roots: list[Child]
    try:
        state.exhaust_lexer()
        roots = [state.feed_eof()]  # type: ignore[no-untyped-call]
    except UnexpectedInput as error:
        wrong.append(_syntax_error(error, text, file))
        roots = [c for c in state.parser_state.value_stack if isinstance(c, Tree)]
    except LarkError as error:  # the lexer met something that no rule mentions
        wrong.append(problem("spec-syntax", str(error).splitlines()[0], Place(file, 1)))
        roots = []
    reader = _Reader(file, wrong)
    entries, sections = reader.parts(roots, 0)
    return Section(name, "", tuple(entries), tuple(sections), Place(file, 1)), wrong


def _syntax_error(error: UnexpectedInput, text: str, file: str) -> Diagnostic:
    if isinstance(error, UnexpectedToken) and error.token.type == "$END":
        lines = text.rstrip().splitlines() or [""]
        place = Place(file, len(lines), len(lines[-1]) + 1)
        return problem("spec-syntax", "the text ends in the middle", place, hint="is it cut off?")
    found = error.char if isinstance(error, UnexpectedCharacters) else str(error.token)  # type: ignore[attr-defined]
    place = Place(file, max(error.line, 1), max(error.column, 1))
    if found == '"':
        return problem("spec-syntax", "this string does not end", place)
    shown = found.splitlines()[0][:30] if found.strip() else "a line end"
    return problem("spec-syntax", f"did not expect `{shown}` here", place, shown)


class _Reader:
    """Turns a parse tree into entries and sections."""

    def __init__(self, file: str, wrong: list[Diagnostic]) -> None:
        self.file = file
        self.wrong = wrong

    def parts(self, children: list[Child], depth: int) -> tuple[list[Entry], list[Section]]:
        entries: list[Entry] = []
        sections: list[Section] = []
        for tree in self._relevant(children):
            if tree.data == "section":
                sections.append(self.section(tree, depth))
                continue
            name, place, rest = self._head(tree)
            nested = [c for c in self._relevant(rest) if c.data == "section"]
            if nested:
                sections += [self.section(c, depth, name) for c in nested]
            else:
                values = [self.value(c) for c in rest if _is_value(c)]
                if values:
                    entries.append(Entry(name, values[0], place))
        if depth == 0 and len(sections) == 1 and not entries:  # the braces around a whole file
            only = sections[0]
            if not only.name:
                return list(only.entries), list(only.sections)
        return entries, sections

    def section(self, tree: Tree[Token], depth: int, name: str = "") -> Section:
        place = self._place(tree)
        if depth > MAX_DEPTH:
            self.wrong.append(problem("spec-depth", "sections nest too deep", place))
            return Section(name, "", (), (), place)
        children = list(tree.children)
        tag = ""
        while children and isinstance(children[0], Token):
            token = children.pop(0)
            assert isinstance(token, Token)
            if token.type == "TAG":
                tag = str(token).lstrip("!")
            elif token.type in ("NAME", "STRING"):
                name = str(_plain(token))
        entries, sections = self.parts(children, depth + 1)
        return Section(name, tag, tuple(entries), tuple(sections), place)

    def value(self, child: Child) -> Value:
        if isinstance(child, Token):
            return _plain(child)
        return tuple(self.value(c) for c in child.children if _is_value(c))

    def _head(self, tree: Tree[Token]) -> tuple[str, Place, list[Child]]:
        rest: list[Child] = list(tree.children)
        tokens = [c for c in rest if isinstance(c, Token)]
        name = next((t for t in tokens if t.type == "NAME"), tokens[0] if tokens else None)
        if name is None:
            return "", self._place(tree), rest
        rest.remove(name)
        place = Place(self.file, name.line or 1, name.column or 1)
        return str(_plain(name)), place, rest

    def _relevant(self, children: list[Child]) -> Iterator[Tree[Token]]:
        """The entries and sections among ``children``, looking through all other rules."""
        stack = list(reversed(children))
        while stack:
            child = stack.pop()
            if isinstance(child, Token):
                continue
            if child.data in ("entry", "section"):
                yield child
            else:
                stack += reversed(child.children)

    def _place(self, tree: Tree[Token]) -> Place:
        meta = tree.meta
        return Place(self.file, 1) if meta.empty else Place(self.file, meta.line, meta.column)


def _is_value(child: Child) -> bool:
    if isinstance(child, Tree):
        return child.data == "list"
    return child.type in ("NUMBER", "STRING", "WORD", "TEXT", "TRUE", "FALSE", "NULL")


def _plain(token: Token) -> Value:
    text = str(token)
    match token.type:
        case "STRING":
            try:
                return str(json.loads(text, strict=False)) if text[0] == '"' else text[1:-1]
            except ValueError:
                return text[1:-1]
        case "NUMBER":
            number = written(text)
            if number is None or number[1]:
                return text
            return number[0].numerator if number[0].denominator == 1 else number[0]
        case "TRUE" | "FALSE":
            return token.type == "TRUE"
        case "NULL":
            return None
    return text.strip()
