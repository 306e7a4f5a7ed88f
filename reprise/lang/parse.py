"""Rule files and programs from text.

:func:`parse_text` and :func:`parse_file` read ``.rules``, :func:`parse_program` reads ``.uir``.
They return a syntax tree or raise one :class:`RulesError` with everything that is wrong: after an
error the parser repairs the text where the repair is plain, else goes on at the next declaration.

The parser is the table-driven LR automaton of the grammar (``reprise.lang.tables``). It works on
three parallel stacks (states, values, and the first token of each value), never recurses, and
refuses trees deeper than :data:`MAX_DEPTH`, so that whatever walks a tree may recurse.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from reprise.lang import ast
from reprise.lang.build import Builder
from reprise.lang.diagnostics import Diagnostic, RulesError
from reprise.lang.recover import Recovery
from reprise.lang.source import read_source
from reprise.lang.tables import BUILD, END_OF_INPUT, PASS, Production, Tables, load_tables
from reprise.lang.tokens import Tokens, keyword_of, scan

MAX_DEPTH = 200
"""Levels of nesting in one tree."""

MAX_ERRORS = 50
"""Syntax errors after which a file is given up."""

_MAX_STACK = 6 * MAX_DEPTH
"""States on the stack; a level of nesting takes at most a handful."""


def parse_text(text: str, path: str = "<text>") -> ast.RuleFile:
    """Parse the text of a rule file.

    Raises:
        RulesError: with every syntax error, in source order.
    """
    tables = load_tables()
    tokens = scan(text, path, tables)
    builder = Builder(tokens)
    errors = _Parser(tables, tokens, builder).run("start")[1]
    try:
        _finish(tokens, builder, errors)
    except RulesError as error:
        spoilt = {d.span.line for d in error.diagnostics}
        error.sound = tuple(
            d for d in builder.decls if spoilt.isdisjoint(range(d.span.line, d.span.end_line + 1))
        )
        raise
    comments = tuple(
        comment for i, comment in enumerate(tokens.comments) if i not in builder.used_docs
    )
    return ast.RuleFile(path, tuple(builder.imports), tuple(builder.decls), comments)


def parse_program(text: str, path: str = "<text>") -> tuple[ast.Line, ...]:
    """Parse the text of a ``.uir`` program: the same lines as in a test's case.

    Raises:
        RulesError: with every syntax error, in source order.
    """
    tables = load_tables()
    tokens = scan(text, path, tables)
    builder = Builder(tokens)
    lines, errors = _Parser(tables, tokens, builder).run("program")
    _finish(tokens, builder, errors)
    return cast(tuple[ast.Line, ...], lines)


def parse_file(path: str | Path) -> ast.RuleFile:
    """Parse a rule file; an unreadable one is a diagnostic as well."""
    return parse_text(read_source(path), str(path))


def _finish(tokens: Tokens, builder: Builder, errors: list[Diagnostic]) -> None:
    """Raise what was found, in source order.

    After a repair a declaration is parsed anew, so that its mistakes may be there twice; and what
    is said of a made-up token (it has no width) is of no use to anyone.
    """
    found: dict[tuple[str, int, int], Diagnostic] = {}
    for one in tokens.diagnostics + errors:
        found.setdefault((one.code, one.span.line, one.span.column), one)
    for one in builder.diagnostics:
        span = one.span
        if (span.line, span.column) != (span.end_line, span.end_column):
            found.setdefault((one.code, span.line, span.column), one)
    if found:
        raise RulesError(sorted(found.values(), key=lambda d: (d.span.line, d.span.column)))


class _Parser:
    """One run over one list of tokens."""

    def __init__(self, tables: Tables, tokens: Tokens, builder: Builder) -> None:
        self.tables = tables
        self.tokens = tokens
        self.reductions = [
            (
                production,
                production.length,
                production.mode == PASS and production.length == 1,
                getattr(builder, production.action) if production.mode == BUILD else None,
            )
            for production in reversed(tables.productions)
        ]
        """By action: to reduce by rule *n* is action ``-n - 1``, which counts from the end."""

    def run(self, start: str) -> tuple[Any, list[Diagnostic]]:
        """The value of the whole input (None if it has errors), and the syntax errors."""
        tokens, tables, reductions = self.tokens, self.tables, self.reductions
        kinds, texts, columns = tokens.kinds, tokens.texts, tokens.columns
        table, keywords, jumps = tables.states, tables.keywords, tables.jumps
        first_state, end_state = tables.starts[start], tables.ends[start]
        whole_file = start == "start"
        recovery = Recovery(tables, tokens, first_state, end_state, whole_file, MAX_DEPTH)

        state = first_state  # the last of `states`
        states: list[int] = [state]
        values: list[Any] = []
        firsts: list[int] = []
        depths: list[int] = []
        item = 0  # where the present declaration starts
        i = 0
        while True:
            kind = kinds[i]
            if kind == "NAME" and texts[i] in keywords:
                forced = columns[i] == 1 and whole_file
                kind = keyword_of(texts[i], kinds[i + 1], keywords, table[state], forced)
            while (action := table[state].get(kind)) is not None and action < 0:
                production, length, passes, make = reductions[action]
                if passes:
                    jump = (states[-2], state, kind)
                    state = jumps.get(jump) or self._jump(*jump)
                    states[-1] = state
                    continue
                if length == 1:
                    first = firsts[-1]
                    value = values[-1]
                    kids = [value]
                    if not production.plain:
                        kids = _select(production, kids)
                    if make is not None:
                        kids = make(kids, first, i - 1)
                    values[-1] = kids
                    if production.origin == "item":
                        item = i
                        depths[-1] = 0
                    state = table[states[-2]][production.origin]
                    states[-1] = state
                    continue
                if length:
                    first = firsts[-length]
                    kids = values[-length:]
                    depth = max(depths[-length:])
                    del values[-length:], states[-length:], firsts[-length:], depths[-length:]
                    if make is not None:
                        depth += 1
                        if depth > MAX_DEPTH:
                            break
                else:
                    first, kids, depth = i, [], 0
                if not production.plain:
                    kids = _select(production, kids)
                values.append(kids if make is None else make(kids, first, i - 1))
                firsts.append(first)
                depths.append(depth)
                state = table[states[-1]][production.origin]
                states.append(state)
            if action is not None and action >= 0 and len(states) < _MAX_STACK:
                state = action
                states.append(action)
                values.append(i)
                firsts.append(i)
                depths.append(0)
                i += 1
                continue
            if kind == END_OF_INPUT and state == end_state:
                return (values[-1] if not recovery.found else None), recovery.errors
            i = recovery.recover(item, i) if action is None else recovery.give_up(item, i)
            if recovery.found >= MAX_ERRORS:
                return None, recovery.errors
            item = i
            state = first_state
            states, values, firsts, depths = [state], [], [], []

    def _jump(self, below: int, state: int, kind: str) -> int:
        """The state after all rules that only pass their child on; remembered in the tables."""
        table = self.tables.states
        start = state
        while (action := table[state].get(kind)) is not None and action < 0:
            production, _, passes, _ = self.reductions[action]
            if not passes:
                break
            state = table[below][production.origin]
        self.tables.jumps[below, start, kind] = state
        return state


def _select(production: Production, kids: list[Any]) -> list[Any]:
    """The children that the grammar keeps, inlined rules spliced in."""
    keep = production.keep
    if keep and keep[0][1] and not keep[0][2]:  # a list grows in place: linear, not quadratic
        chosen: list[Any] = kids[keep[0][0]]
        keep = keep[1:]
    else:
        chosen = []
    for index, splice, nones in keep:
        if nones:
            chosen.extend([None] * nones)
        if splice:
            chosen.extend(kids[index])
        else:
            chosen.append(kids[index])
    chosen.extend([None] * production.nones_after)
    return chosen
