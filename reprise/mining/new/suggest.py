"""Names that may belong into an extractor's keyword sets, from a compiler's sources.

Comes in: the files of a checkout. Goes out: for each keyword set, candidates in order, with how
often and where each occurs, and why it was chosen. What is looked for is data: the queries and
``names.toml`` of ``extractors/_suggest/``.
"""

from __future__ import annotations

import builtins
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from tree_sitter import Node, Parser, Query, Tree

from reprise.data import data_path
from reprise.mining.source.derive import names_operator
from reprise.mining.source.extractor import COMMON, FILE, Extractor
from reprise.mining.source.files import Source, decoded
from reprise.mining.source.missing import unseen
from reprise.mining.source.queries import cursor, language
from reprise.mining.source.sites import Miner
from reprise.mining.source.syntax import CLASSES, FUNCTIONS, ancestors, function_name

MOST_NAMES = 12
"""Candidates for one set that are worth reading."""

MOST_PLACES = 3
"""Places told of each."""

_IDIOMS = ("ceiling", "round_up")

PURE = "pure"
"""The idiom of functions that change nothing."""

_PURE_CALLS = frozenset(
    ("abs", "all", "any", "bool", "float", "int", "isinstance", "len", "max", "min", "range",
     "round", "size", "static_cast", "str", "sum", "tuple", "type")
)  # fmt: skip
"""What a function may call that changes nothing, besides others like it."""

_CHANGES = frozenset(
    ("assignment_expression", "await", "delete_expression", "new_expression", "update_expression",
     "yield")
)  # fmt: skip

_ONLY_HELP = frozenset(
    ("arguments", "entry", "inner", "first", "second", "one", "b", "again", "operator", "returned")
)
"""Captures that are no names to suggest."""


@dataclass(frozen=True)
class Wanted:
    """What ``names.toml`` says of one keyword set."""

    name: str
    holds: str
    sources: tuple[str, ...]
    sure: re.Pattern[str]
    maybe: re.Pattern[str] | None
    idiom: str | None
    arguments: int
    least: int


@dataclass(frozen=True)
class Suggestion:
    """A name for a keyword set: ``sure`` where its name or an idiom says so. ``places`` are the
    first of its ``count`` occurrences."""

    keyword_set: str
    name: str
    count: int
    places: tuple[str, ...]
    why: str
    sure: bool


@dataclass(frozen=True)
class Suggestions:
    """By keyword set, the best first; ``device``: names that stand for something on the device;
    ``pragmas``: places of pragmas about loops."""

    names: tuple[Suggestion, ...]
    device: Mapping[str, tuple[str, str]]
    pragmas: tuple[str, ...]
    lines: int

    def of(self, keyword_set: str) -> tuple[Suggestion, ...]:
        """The candidates for one set."""
        return tuple(s for s in self.names if s.keyword_set == keyword_set)


@cache
def wanted() -> tuple[tuple[Wanted, ...], Mapping[str, str]]:
    """The keyword sets of ``names.toml`` in order, and what names stand for on the device."""
    text = data_path("extractors/_suggest/names.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    device = tables.pop("device")
    return tuple(
        Wanted(
            name,
            table["holds"],
            tuple(table.get("from", ())),
            re.compile(
                table.get("sure", r"(?!)"), re.IGNORECASE if table.get("from") == ["called"] else 0
            ),
            re.compile(table["maybe"], re.IGNORECASE) if "maybe" in table else None,
            table.get("idiom"),
            table.get("arguments", 0),
            table.get("least", 1),
        )
        for name, table in tables.items()
    ), device


@dataclass
class _Seen:
    """One name in one set."""

    count: int = 0
    places: list[str] = field(default_factory=list)
    idiom: bool = False

    def at(self, place: str) -> None:
        self.count += 1
        if len(self.places) < MOST_PLACES and place not in self.places:
            self.places.append(place)


def suggest(files: Sequence[Source], tell: Callable[[int], None]) -> Suggestions:
    """Look through files. ``tell`` is called with how many were read. What the queries of an
    extractor would not find where they look for it is not suggested."""
    looker = _Looker()
    for done, source in enumerate(files):
        try:
            data = decoded(Path(source.absolute).read_bytes())
        except OSError:
            continue
        looker.look(source, data)
        tell(done + 1)
    found = looker.suggestions()
    lost = _unmatched(found, files)
    return replace(found, names=tuple(s for s in found.names if s.name not in lost))


def _unmatched(found: Suggestions, files: Sequence[Source]) -> set[str]:
    """The suggested names that `mine source` would say to occur nowhere where they are looked
    for."""
    keywords: dict[str, tuple[str, ...]] = {}
    for one in found.names:
        keywords[one.keyword_set] = (*keywords.get(one.keyword_set, ()), one.name)
    languages = tuple(sorted({source.language for source in files}))
    queries = {
        name: tuple(sorted(data_path(f"extractors/{COMMON}").glob(f"{name}*.scm")))
        for name in languages
    }
    extractor = Extractor(
        "", "new", languages, ("**",), (), "file", keywords, {}, {}, {}, queries, Path(FILE)
    )
    miners = {name: Miner(extractor, name) for name in languages}
    left = set(unseen(extractor, {}))
    for source in files:
        if not left:
            break
        try:
            data = decoded(Path(source.absolute).read_bytes())
        except OSError:
            continue
        if any(name.encode() in data for name in left):
            facts = miners[source.language].facts(source.path, data)
            left &= set(unseen(extractor, {source.path: facts}))
    return left


class _Looker:
    """Counts names over all files."""

    def __init__(self) -> None:
        self.sets, self.device = wanted()
        self.seen: dict[tuple[str, str], _Seen] = defaultdict(_Seen)
        self.calls: dict[str, _Seen] = defaultdict(_Seen)
        self.idioms: dict[str, dict[str, str]] = {idiom: {} for idiom in (*_IDIOMS, PURE)}
        self.functions: Counter[str] = Counter()
        self.returning: dict[str, list[tuple[str, frozenset[str]]]] = defaultdict(list)
        self.on_device: dict[str, str] = {}
        self.pragmas: list[str] = []
        self.lines = 0
        self._languages: dict[str, tuple[Parser, Query]] = {}
        self._matching: dict[tuple[str, str], tuple[tuple[Wanted, bool], ...]] = {}

    def look(self, source: Source, data: bytes) -> None:
        parser, query = self._language(source.language)
        tree = parser.parse(data)
        self.lines += data.count(b"\n")
        for _, captures in cursor(query).matches(tree.root_node):
            operator = captures.get("operator")
            if operator and not is_operator(operator[0]):
                continue
            if "function" in captures or PURE in captures:
                self._function(captures, source.path)
                continue
            for role, nodes in captures.items():
                self._captured(role, nodes[0], captures.get("arguments"), source.path, tree)

    def _language(self, name: str) -> tuple[Parser, Query]:
        if name not in self._languages:
            grammar = language(name)
            text = data_path(f"extractors/_suggest/{name}.scm").read_text(encoding="utf-8")
            self._languages[name] = Parser(grammar), Query(grammar, text)
        return self._languages[name]

    def _captured(
        self, role: str, node: Node, arguments: Sequence[Node] | None, path: str, tree: Tree
    ) -> None:
        place = f"{path}:{node.start_point[0] + 1}"
        if role in _IDIOMS:
            try:
                around = ancestors(node, tree.root_node)
            except RecursionError:  # no place to learn from
                return
            functions = [a for a in around if a.type in FUNCTIONS]
            if functions and _short(functions[0]):
                name = function_name(functions[0]).rpartition("::")[2]
                self.idioms[role].setdefault(name, place)
            return
        if role == "pragma":
            if len(self.pragmas) < MOST_PLACES:
                self.pragmas.append(f"{place}: {(node.text or b'').decode('utf-8', 'replace')}")
            return
        if role in _ONLY_HELP:
            return
        name = (node.text or b"").decode("utf-8", "replace")
        if hasattr(builtins, name):
            return
        if name in self.device:
            self.on_device.setdefault(name, place)
        if role == "called":
            self.calls[name].at(place)
        for want, _ in self._sets_of(role, name):
            if role == "called" and not _fits(arguments, want.arguments):
                continue
            self.seen[want.name, name].at(place)

    def _sets_of(self, role: str, name: str) -> tuple[tuple[Wanted, bool], ...]:
        """The sets that a name may belong to, and whether its name alone says so."""
        key = (role, name)
        if key not in self._matching:
            found = []
            for want in self.sets:
                if role not in want.sources:
                    continue
                if want.sure.search(name):
                    found.append((want, True))
                elif want.maybe is not None and want.maybe.search(name):
                    found.append((want, False))
            self._matching[key] = tuple(found)
        return self._matching[key]

    def _function(self, captures: Mapping[str, Sequence[Node]], path: str) -> None:
        """Count a definition, or note one that only returns something, with what it calls."""
        if "function" in captures:
            self.functions[_bare_name(captures["function"][0])] += 1
            return
        node, returned = captures[PURE][0], captures["returned"][0]
        called: set[str] = set()
        waiting = [returned]
        while waiting:
            inner = waiting.pop()
            if inner.type in _CHANGES:
                return
            if inner.type in ("call", "call_expression"):
                called.add(_called_name(inner))
            waiting += inner.named_children
        place = f"{path}:{node.start_point[0] + 1}"
        self.returning[_bare_name(node)].append((place, frozenset(called)))

    def _pure(self) -> dict[str, str]:
        """The functions all of whose definitions only return something, and call only such. What
        calls something of its own name is none: that may be another function."""
        waiting = {
            n: found for n, found in self.returning.items() if len(found) == self.functions[n]
        }
        pure: dict[str, str] = {}
        while True:
            allowed = _PURE_CALLS | pure.keys()
            more = [n for n, found in waiting.items() if all(c <= allowed for _, c in found)]
            if not more:
                return pure
            pure |= {name: waiting.pop(name)[0][0] for name in more}

    def suggestions(self) -> Suggestions:
        self.idioms[PURE] = self._pure()
        names: list[Suggestion] = []
        claimed = {
            n
            for (key, n) in self.seen
            for want in self.sets
            if key == want.name and want.sure.search(n)
        }
        for want in self.sets:
            found = [
                self._suggestion(want, name, seen)
                for (key, name), seen in self.seen.items()
                if key == want.name and seen.count >= want.least
            ]
            have = {s.name for s in found}
            certain = {s.name for s in names if s.sure} if want.idiom == PURE else set()
            if want.idiom is not None:
                found = [self._with_idiom(want, s) for s in found]
                found += [
                    self._by_idiom(want, name, place, certain)
                    for name, place in self.idioms[want.idiom].items()
                    if name not in have
                    and name in self.calls
                    and (name not in claimed or want.idiom == PURE)
                ]
            found.sort(key=lambda s: (not s.sure, -s.count, s.name))
            names += found[:MOST_NAMES]
        device = {name: (self.device[name], place) for name, place in self.on_device.items()}
        return Suggestions(
            tuple(names), dict(sorted(device.items())), tuple(self.pragmas), self.lines
        )

    def _suggestion(self, want: Wanted, name: str, seen: _Seen) -> Suggestion:
        sure = want.sure.search(name) is not None
        why = "its name" if sure else "its name, perhaps"
        return Suggestion(want.name, name, seen.count, tuple(seen.places), why, sure)

    def _with_idiom(self, want: Wanted, found: Suggestion) -> Suggestion:
        place = self.idioms[want.idiom or ""].get(found.name)
        if place is None:
            return found
        why = f"its name, and what it does ({place})"
        return Suggestion(want.name, found.name, found.count, found.places, why, True)

    def _by_idiom(self, want: Wanted, name: str, place: str, certain: set[str]) -> Suggestion:
        """``certain``: names that another set surely has, so that they stand in assertions."""
        calls = self.calls[name]
        why = f"what it does ({place})"
        return Suggestion(want.name, name, calls.count, tuple(calls.places), why, name in certain)


def is_operator(node: Node) -> bool:
    """Whether a text or a name is an operator's: ONNX's name or ours, with a prefix or without
    (``relax.nn.conv2d``, ``aten.mm``)."""
    return names_operator((node.text or b"").decode("utf-8", "replace"))


def _bare_name(function: Node) -> str:
    return function_name(function).rpartition("::")[2]


def _called_name(call: Node) -> str:
    """The last part of what a call calls: ``f`` of ``a.f(x)``."""
    callee = call.child_by_field_name("function")
    text = (callee.text or b"").decode("utf-8", "replace") if callee is not None else ""
    return re.split(r"\.|->|::|<", text.partition("<")[0])[-1].strip()


def _fits(arguments: Sequence[Node] | None, least: int) -> bool:
    """Whether a call has so many arguments, the first of which is no text (``str.split``)."""
    if not arguments:
        return least == 0
    given = [child for child in arguments[0].named_children if child.type != "comment"]
    return len(given) >= least and not (given and given[0].type.startswith("string"))


def _short(function: Node) -> bool:
    """Whether an idiom is all that a function does, so that it has the function's name for it."""
    return function.end_point[0] - function.start_point[0] <= 8 and not any(
        child.type in CLASSES for child in function.children
    )
