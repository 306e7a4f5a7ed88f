"""The rule grammar, compiled: from ``grammars/rules.lark`` to the tables that the parser runs.

Lark reads the grammar and computes its LALR(1) table, which takes a few tenths of a second; the
result is plain data, kept as JSON in the user's cache folder together with the grammar that it was
computed from. Without a usable cache everything still works, only slower. Lark itself is imported
only when the table must be computed.

A table entry is one integer: ``n >= 0`` means *go to state n*, ``n < 0`` means *reduce rule
``-n - 1``*.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from reprise.cache import cache_folder, write_cache
from reprise.data import data_path

FORMAT = 1
"""Of the cached file; part of its name."""

END_OF_INPUT = "$END"

INLINE, PASS, BUILD = 0, 1, 2
"""What a reduction makes: a list to be spliced into its parent, its only child, or a node."""


@dataclass(frozen=True, slots=True)
class Production:
    """One alternative of a grammar rule, as the parser's reduction needs it.

    ``keep`` names the children that reach the action, as ``(index, splice, nones before)``;
    ``nones_after`` more placeholders follow. ``plain`` is true when every child is kept as it is.
    """

    origin: str
    length: int
    action: str
    mode: int
    plain: bool
    keep: tuple[tuple[int, bool, int], ...]
    nones_after: int


@dataclass(frozen=True, slots=True)
class Tables:
    """All that the parser needs to know about the grammar."""

    states: list[dict[str, int]]
    starts: dict[str, int]
    ends: dict[str, int]
    productions: list[Production]
    keywords: dict[str, str]
    """A keyword's text → its terminal."""
    terminals: dict[str, str]
    """A terminal → its text where that is fixed, else its name."""
    scanner: re.Pattern[str]
    """One alternative per non-keyword terminal, each a named group."""
    jumps: dict[tuple[int, int, str], int] = field(default_factory=dict)
    """What the parser has learnt: (state below, state, terminal) → the state after reducing by
    rules that only pass their child on."""


def compile_grammar(text: str) -> dict[str, Any]:
    """Compute the tables of a grammar as JSON-able data."""
    from lark import Lark
    from lark.lexer import PatternStr
    from lark.parsers.lalr_analysis import Shift

    lark = Lark(text, parser="lalr", start=["start", "program"], maybe_placeholders=True)
    table = lark.parser.parser._parse_table
    numbers: dict[Any, int] = {}
    productions: list[list[Any]] = []

    def encode(action: Any, argument: Any) -> int:
        if action is Shift:
            return int(argument)
        if argument not in numbers:
            numbers[argument] = len(numbers)
            productions.append(_production(argument))
        return -numbers[argument] - 1

    states: list[dict[str, int]] = [{} for _ in table.states]
    for state, row in table.states.items():
        states[state] = {str(name): encode(*entry) for name, entry in row.items()}
    ordered = sorted(lark.terminals, key=lambda t: -t.priority)
    fixed = {t.name: t.pattern.value for t in ordered if isinstance(t.pattern, PatternStr)}
    keywords = {text: name for name, text in fixed.items() if text.isidentifier() and text != "_"}
    signs = {name: text for name, text in fixed.items() if text not in keywords}
    patterns = [
        (t.name, t.pattern.value)
        for t in ordered
        if not isinstance(t.pattern, PatternStr) and t.name != "NOT_IN"
    ]
    patterns += [(n, re.escape(s)) for n, s in sorted(signs.items(), key=lambda i: -len(i[1]))]
    return {
        "grammar": text,
        "states": states,
        "starts": table.start_states,
        "ends": table.end_states,
        "productions": productions,
        "keywords": keywords,
        "terminals": {t.name: fixed.get(t.name, t.name) for t in ordered},
        "scanner": "|".join(f"(?P<{name}>{pattern})" for name, pattern in patterns),
    }


def _production(rule: Any) -> list[Any]:
    """A Lark rule as :class:`Production` fields; ``_x``, ``?x`` and ``[x]`` mean what Lark says."""
    expansion = list(rule.expansion)
    empty = rule.options.empty_indices
    nones = [0] * (len(expansion) + 1)
    if empty:
        marks = "".join("1" if absent else "0" for absent in empty)
        nones = [len(run) for run in marks.split("0")]
    keep: list[list[Any]] = []
    waiting = 0
    for i, symbol in enumerate(expansion):
        waiting += nones[i]
        if not (symbol.is_term and symbol.filter_out):
            keep.append([i, not symbol.is_term and symbol.name.startswith("_"), waiting])
            waiting = 0
    waiting += nones[-1]
    origin = str(rule.origin.name)
    plain = len(keep) == len(expansion) and not waiting and not any(k[1] or k[2] for k in keep)
    if origin.startswith("_"):
        mode = INLINE
    elif rule.options.expand1 and not rule.alias and len(expansion) == len(keep) == 1:
        mode = PASS
    else:
        mode = BUILD
    return [origin, len(expansion), str(rule.alias or origin), mode, plain, keep, waiting]


def _read_cache(path: Path, grammar: str) -> Tables | None:
    try:
        data = json.loads(path.read_bytes())
        return _tables(data) if data["grammar"] == grammar else None
    except (OSError, ValueError, KeyError, TypeError, IndexError, re.error):
        return None


def _tables(data: dict[str, Any]) -> Tables:
    return Tables(
        states=data["states"],
        starts=data["starts"],
        ends=data["ends"],
        productions=[
            Production(
                origin, length, action, mode, plain, tuple((i, s, n) for i, s, n in keep), nones
            )
            for origin, length, action, mode, plain, keep, nones in data["productions"]
        ],
        keywords=data["keywords"],
        terminals=data["terminals"],
        scanner=re.compile(data["scanner"]),
    )


@lru_cache(maxsize=1)
def load_tables() -> Tables:
    """The tables of ``grammars/rules.lark``, from the cache where possible."""
    text = data_path("grammars/rules.lark").read_text(encoding="utf-8")
    checksum = zlib.crc32(text.encode())
    path = cache_folder() / f"grammar-{FORMAT}-{checksum:08x}.json"
    tables = _read_cache(path, text)
    if tables is None:
        data = compile_grammar(text)
        write_cache(path, json.dumps(data, separators=(",", ":")).encode())
        tables = _tables(data)
    return tables
