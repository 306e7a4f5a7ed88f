"""Tree-sitter queries of an extractor: its names put in, compiled, and run over a syntax tree.

In a ``.scm`` file ``$NAME`` stands for the names of a keyword set, as strings. A pattern that
asks for a set without names is left out (it could never match); so one file serves all
extractors. ``$called`` is every name of every set whose own name does not end a pattern of its
own: the functions whose calls are sites."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import tree_sitter_cpp
import tree_sitter_python
from tree_sitter import Language, Node, Query, QueryCursor, QueryError

from reprise.lang.diagnostics import Diagnostic, RulesError, Span
from reprise.lang.source import read_source
from reprise.lang.symbols import suggest
from reprise.mining.source.extractor import Extractor
from reprise.mining.source.syntax import MOST_DEPTH

SITE = "site."
"""Starts the name of the outermost capture of a pattern; the rest is the kind of the site."""

NOT_CALLED = frozenset(
    (
        "assert",
        "assert_compare",
        "ceiling",
        "tile",
        "unroll_factor",
        "fusion_table",
        "fusion_call",
        "fusion_operator",
        "memory",
        "proves",
        "proves_equal",
        "proves_zero",
        "schedule",
        "attributes",
        "converter_table",
        "element_bits",
        "looks",
    )
)
"""Keyword sets that patterns or rules of their own ask for; of all others, calls are sites."""

_KIND = re.compile(r"@site\.(\w+)")
_VALUE = re.compile(r'\(#set!\s+value\.(\w+)\s+"([^"]*)"\)')
_SET = re.compile(r"\$([a-z_]+)")


def language(name: str) -> Language:
    """The grammar of a language."""
    if name == "python":
        return Language(tree_sitter_python.language())
    return Language(tree_sitter_cpp.language())


def cursor(query: Query) -> QueryCursor:
    """To run a query with, as far down as sites may be: the time that a query takes grows with the
    square of the depth, up to hours for a generated file."""
    made = QueryCursor(query)
    made.set_max_start_depth(MOST_DEPTH)
    return made


@dataclass(frozen=True)
class Match:
    """One site: its kind, its node, the other captures by role, and by role what else it says:
    ``(#set! value.ROLE "…")`` in its pattern, source text in which ``{role}`` is a capture."""

    kind: str
    node: Node
    captures: Mapping[str, Sequence[Node]]
    values: Mapping[str, str]


class Queries:
    """All queries of an extractor for one language, as one compiled query."""

    def __init__(self, extractor: Extractor, name: str) -> None:
        self.language = language(name)
        texts = [_filled(path, extractor) for path in extractor.queries[name]]
        try:
            self._query = _compiled(self.language, "\n".join(texts))
        except QueryError:  # which file is it?
            for path, text in zip(extractor.queries[name], texts, strict=True):
                _check(self.language, text, path)
            raise
        self._values = _values(texts)

    def matches(self, root: Node) -> Iterator[Match]:
        """The sites of a tree, in the order of their places."""
        found = []
        for _, captures in cursor(self._query).matches(root):
            for name, nodes in captures.items():
                if name.startswith(SITE):
                    kind = name.removeprefix(SITE)
                    found.append(Match(kind, nodes[0], captures, self._values.get(kind, {})))
        found.sort(key=lambda m: (m.node.start_byte, m.node.end_byte, m.kind))
        return iter(found)


def _values(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """What ``#set!`` says of each kind of site. Read from the text, and kept from the binding
    (0.26), which crashes where a pattern has settings."""
    said: dict[str, dict[str, str]] = {}
    for text in texts:
        for pattern in map(_without_comments, _patterns(text)):
            kind = _KIND.search(pattern)
            if kind is not None:
                said.setdefault(kind[1], {}).update(_VALUE.findall(pattern))
    return said


def _filled(path: Path, extractor: Extractor) -> str:
    """The text of a query file with names for ``$NAME``; lines and columns stay as they are as far
    as possible: patterns that are left out become blank."""
    text = read_source(path)
    known = {**extractor.keywords, "called": tuple(sorted(called(extractor)))}
    out = []
    for pattern in _patterns(text):
        sets = _SET.findall(_without_comments(pattern))
        for name in sets:
            if name not in known and path.parent == extractor.path.parent:
                raise _unknown_set(path, text, name, known)
        if sets and not any(known.get(name) for name in sets):
            out.append(re.sub(r"[^\n]", " ", pattern))
        else:
            out.append(_SET.sub(lambda m: _strings(known.get(m[1], ())), pattern))
    return "".join(out)


def called(extractor: Extractor) -> set[str]:
    """Functions whose calls are sites."""
    return {
        name for key, names in extractor.keywords.items() if key not in NOT_CALLED for name in names
    }


def _strings(names: Sequence[str]) -> str:
    return " ".join('"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"' for name in names)


def _patterns(text: str) -> Iterator[str]:
    """The top-level pieces of a query file, each with what precedes it; together they are the
    text."""
    depth, start = 0, 0
    for found in re.finditer(r'"(?:\\.|[^"\\])*"|;[^\n]*|[()\[\]]|\n', text):
        token = found[0]
        if token in "([":
            if depth == 0:
                yield text[start : found.start()]
                start = found.start()
            depth += 1
        elif token in ")]":
            depth -= 1
    yield text[start:]


def _without_comments(pattern: str) -> str:
    return re.sub(r'("(?:\\.|[^"\\])*")|;[^\n]*', lambda m: m[1] or "", pattern)


def _compiled(grammar: Language, text: str) -> Query:
    return Query(grammar, _VALUE.sub(lambda m: " " * len(m[0]), text))


def _check(grammar: Language, text: str, path: Path) -> None:
    """Raises RulesError, with the place, if the query does not compile."""
    try:
        _compiled(grammar, text)
    except QueryError as error:
        raise _broken(path, text, str(error)) from None


def _broken(path: Path, text: str, message: str) -> RulesError:
    """The error of a query with its place. The message of the binding names row and column, from 0,
    or an offset."""
    line, column = 1, 1
    found = re.search(r"row (\d+), column (\d+)", message)
    if found:
        line, column = int(found[1]) + 1, int(found[2]) + 1
    else:
        found = re.search(r"offset (\d+)", message)
        before = text.encode()[: int(found[1])].decode("utf-8", "replace") if found else text
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    message = message.split("\n")[0].rstrip(": ")
    span = Span(str(path), line, column, line, column + 1)
    return RulesError([Diagnostic("bad-query", f"this query does not compile: {message}", span)])


def _unknown_set(path: Path, text: str, name: str, known: Mapping[str, object]) -> RulesError:
    found = re.search(rf"\${name}\b", text)
    start = found.start() if found else 0
    line = text.count("\n", 0, start) + 1
    column = start - text.rfind("\n", 0, start)
    span = Span(str(path), line, column, line, column + len(name) + 1)
    message = f"`${name}` is no keyword set of extractor.toml"
    return RulesError(
        [Diagnostic("unknown-keyword-set", message, span, suggest(name, list(known)))]
    )
