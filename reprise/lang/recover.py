"""What went wrong at a token that the grammar does not allow, and how to go on.

The error is explained by the smallest change to the tokens that lets the parser go on: a bracket
put in, ``=`` written ``==``, a keyword spelt right. Every change that could have been meant is
tried on the automaton alone, without building anything; the one that gets farthest wins, and
among equals the more likely one. Its message says what to write. The change is then made, and the
declaration parsed again, so that the next mistake in it is found too. Where no change helps, the
parser goes on at the next declaration.

States are lists of automaton states; a *window* is the tokens around the error, changed or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from reprise.lang.diagnostics import Diagnostic, Span
from reprise.lang.expected import DECLARATIONS, LISTS, describe, expectation, operand_hint
from reprise.lang.spelling import closest, operator_hint
from reprise.lang.tables import END_OF_INPUT, Tables
from reprise.lang.tokens import (
    CLOSING,
    DECLARATION_KEYWORDS,
    ERROR,
    OPENING,
    Tokens,
    keyword_of,
)

FAR = 6
"""Tokens after the error that a change must lead over to count as good as any other."""

NEAR = 2
"""Tokens that it must lead over at least (or to the end of the input)."""

BACK = 3
"""Tokens before the error that may be the ones to change."""

LINE = 200
"""Tokens at most on the rest of a line that is skipped to go on after it."""

BUDGET = 100_000
"""Tokens that may be parsed again because of repairs, in one file."""

WORDS = {
    "use": "import",
    "include": "import",
    "enum": "set",
    "predicate": "relation",
    "rel": "relation",
    "decl": "relation",
    "operator": "op",
    "forbid": "deny",
    "bug": "pattern",
    "when": "where",
    "if": "where",
    "such": "where",
    "None": "none",
    "null": "none",
    "nil": "none",
    "True": "true",
    "False": "false",
    "NaN": "nan",
    "Inf": "inf",
    "infinity": "inf",
    "exist": "exists",
    "through": "via",
    "check": "assert",
    "ensure": "require",
    "requires": "require",
    "attribute": "attr",
}
"""Words of other languages → ours."""

JOINED = {
    "=<": ("<=",),
    "=>": (">=", "->"),
    "<>": ("!=",),
    "===": ("==",),
    "!==": ("!=",),
    "<-": (":-",),
    ":=": ("=",),
    "||": ("or",),
}
"""Signs of other languages that read as two of ours → what they may mean."""

CHARACTERS = {"!": "not", "&": "and", "≤": "<=", "≥": ">=", "≠": "!=", "−": "-", "–": "-"}
"""Characters that are no token of ours → what they mean."""

REPLACEMENTS: Mapping[str, tuple[str, ...]] = {
    "EQUAL": ("REL", "COLON"),
    "REL": ("EQUAL",),
    "COLON": ("EQUAL", "IF", "ARROW"),
    "SEMICOLON": ("COMMA", "END"),
    "COMMA": ("AND",),
    "VBAR": ("OR",),
    "IF": ("COLON",),
    "VAR": ("NAME",),
    "NAME": ("VAR",),
    "IN": ("EQUAL",),
}
"""Tokens that are written for one another."""

INSERTABLE = (
    *("COMMA", "EQUAL", "COLON", "IF", "END", "ARROW"),
    *("LBRACE", "LPAR", "LSQB", "ON", "IN", "PASS"),
)
"""Tokens that get forgotten, besides closing brackets."""

_ENDINGS = (END_OF_INPUT, "END", "LBRACE")
"""Other tokens before which an open bracket should have been closed."""

STAND_IN = ("NAME", "VAR", "STRING", "INT")
"""Tokens that can stand for what is missing where a value or a name is."""

_SAMPLES = {"REL": "==", "NAME": "", "VAR": "", "STRING": '""', "INT": "0"}


@dataclass(frozen=True, slots=True)
class Change:
    """Tokens ``at`` … ``at + removed - 1`` become ``put`` (kind, text); and how to say so.

    ``rank`` orders changes that lead equally far; ``least`` is how far they must lead. A
    ``problem`` of None asks for a general message.
    """

    rank: int
    at: int
    removed: int
    put: tuple[tuple[str, str], ...]
    problem: Diagnostic | None = None
    least: int = NEAR


class Recovery:
    """Collects the syntax errors of one run and mends its tokens."""

    def __init__(
        self, tables: Tables, tokens: Tokens, start: int, end: int, whole_file: bool, depth: int
    ) -> None:
        self.tables = tables
        self.tokens = tokens
        self.start = start
        self.end = end
        self.whole_file = whole_file
        self.depth = depth
        self.errors: list[Diagnostic] = []
        self.found = 0
        """How many errors there were, those included that the scanner had reported."""
        self.budget = BUDGET

    # --- what the parser calls ---------------------------------------------------------------

    def give_up(self, item: int, at: int) -> int:
        """Report nesting that is too deep; the token to go on at."""
        self.found += 1
        here = self.tokens.span(max(at - 1, 0), max(at - 1, 0))
        self.errors.append(
            Diagnostic(
                "too-deeply-nested",
                f"this is nested more than {self.depth} levels deep",
                here,
                "split it into several declarations",
            )
        )
        return self._next_start(item, at)

    def recover(self, item: int, at: int) -> int:
        """Report the token ``at``, which the declaration from ``item`` on cannot contain.

        Returns where to go on: at ``item`` if the tokens were mended, else beyond the error.
        """
        self.found += 1
        self.budget -= at - item
        if self._end_before_head(at):
            return item
        history = self._replay(item, at)
        change = self._best_change(item, at, history)
        if not self._follows_malformed(at):
            problem = change.problem if change is not None else None
            self.errors.append(problem or self._unexpected(item, at, history[-1]))
        if change is None:
            change = self._skipped_line(item, at, history[-1])
        if change is None or self.budget < 0:
            return self._next_start(item, at)
        self._apply(change)
        return item

    # --- the automaton, without values -------------------------------------------------------

    def _feed(self, states: list[int], kind: str) -> bool:
        """Let ``states`` take one token; False (and spoilt states) if they cannot."""
        table, productions = self.tables.states, self.tables.productions
        while True:
            action = table[states[-1]].get(kind)
            if action is None:
                return kind == END_OF_INPUT and states[-1] == self.end
            if action >= 0:
                states.append(action)
                return True
            production = productions[-action - 1]
            if production.length:
                del states[-production.length :]
            states.append(table[states[-1]][production.origin])

    def _takes(self, states: list[int], kind: str) -> bool:
        return self._feed(states.copy(), kind)

    def _kind(self, kind: str, text: str, after: str, states: list[int], column: int) -> str:
        keywords = self.tables.keywords
        if kind != "NAME" or text not in keywords:
            return kind
        forced = column == 1 and self.whole_file
        return keyword_of(text, after, keywords, self.tables.states[states[-1]], forced)

    def _replay(self, item: int, at: int) -> list[list[int]]:
        """The states before each of the last few tokens up to ``at``, which itself is the last."""
        tokens = self.tokens
        states = [self.start]
        history: list[list[int]] = []
        for i in range(item, at):
            if at - i <= BACK:
                history.append(states.copy())
            kind = self._kind(
                tokens.kinds[i], tokens.texts[i], tokens.kinds[i + 1], states, tokens.columns[i]
            )
            self._feed(states, kind)
        history.append(states)
        return history

    def _reach(self, states: list[int], change: Change, error: int) -> int:
        """How many tokens from ``error`` on the parser takes after ``change``; at most FAR."""
        tokens = self.tokens
        stop = min(error + FAR + 1, len(tokens.kinds))
        rest = change.at + change.removed
        kinds = [kind for kind, _ in change.put] + tokens.kinds[rest:stop]
        texts = [text for _, text in change.put] + tokens.texts[rest:stop]
        columns = [0] * len(change.put) + tokens.columns[rest:stop]
        if change.removed and change.put:
            columns[0] = tokens.columns[change.at]
        states = states.copy()
        # Tokens that come before the error's; one that is put in its place counts for it.
        before = len(change.put) + error - rest if rest <= error else 0
        for n, kind in enumerate(kinds):
            after = kinds[n + 1] if n + 1 < len(kinds) else END_OF_INPUT
            kind = self._kind(kind, texts[n], after, states, columns[n])
            if kind == ERROR and n > before:
                return max(n - before, NEAR)  # the next error; this one is mended
            if not self._feed(states, kind):
                return n - before
            if kind == END_OF_INPUT:
                return FAR
        return min(len(kinds) - before, FAR)

    # --- changes -----------------------------------------------------------------------------

    def _best_change(self, item: int, at: int, history: list[list[int]]) -> Change | None:
        best, best_score = None, (0, 0)
        first = at - len(history) + 1
        for change in self._changes(item, at, history):
            reach = self._reach(history[change.at - first], change, at)
            score = reach, -change.rank
            if reach >= change.least and (best is None or score > best_score):
                best, best_score = change, score
        return best

    def _changes(self, item: int, at: int, history: list[list[int]]) -> Iterator[Change]:
        first = at - len(history) + 1
        states = history[-1]
        opened = self._open_brackets(item, at)
        yield from self._joined(at, first)
        yield from self._extra_sign(at, states)
        yield from self._spaceless_end(at)
        yield from self._incomplete_line(at, states)
        for j in range(at, first - 1, -1):
            yield from self._respelt(j, item, history[j - first])
        yield from self._closed(at, opened, states)
        for j in range(at, first - 1, -1):
            yield from self._replaced(j, at, history[j - first])
        yield from self._inserted(at, states)
        yield from self._removed(at, opened)

    def _joined(self, at: int, first: int) -> Iterator[Change]:
        """Two adjacent tokens that another language would read as one."""
        tokens = self.tokens
        for j in range(max(first, at - 1), at + 1):
            if j + 1 >= len(tokens.kinds) or (tokens.lines[j], tokens.ends[j]) != (
                tokens.lines[j + 1],
                tokens.columns[j + 1],
            ):
                continue
            written = tokens.texts[j] + tokens.texts[j + 1]
            for ours in JOINED.get(written, ()):
                problem = Diagnostic(
                    "foreign-operator",
                    f"there is no `{written}` here",
                    tokens.span(j, j + 1),
                    f"write `{ours}`",
                )
                yield Change(0, j, 2, ((self._sign(ours), ours),), problem)

    def _spaceless_end(self, at: int) -> Iterator[Change]:
        """``q(X).r(X)``: the ``.`` that ends a rule reads as member access."""
        tokens = self.tokens
        member = at - 1
        if tokens.kinds[at] == "LPAR" and at and tokens.kinds[member] == "MEMBER":
            span = tokens.span(member, member)
            problem = Diagnostic(
                "missing-space",
                "this `.` reads as member access",
                Span(span.file, span.line, span.column, span.line, span.column + 1),
                "the `.` that ends a rule is followed by white space",
            )
            put = (("END", "."), ("NAME", tokens.texts[member][1:]))
            yield Change(2, member, 1, put, problem)

    def _extra_sign(self, at: int, states: list[int]) -> Iterator[Change]:
        """``category: x`` or ``where = …``: a keyword takes no sign."""
        tokens = self.tokens
        text = tokens.texts[at]
        terminal = self.tables.keywords.get(text)
        if tokens.kinds[at] != "NAME" or terminal is None or not self._takes(states, terminal):
            return
        sign = tokens.texts[at + 1]
        problem = Diagnostic(
            "wrong-sign", f"no `{sign}` after `{text}`", tokens.span(at + 1, at + 1), "remove it"
        )
        yield Change(2, at, 2, (("NAME", text),), problem)

    def _incomplete_line(self, at: int, states: list[int]) -> Iterator[Change]:
        """``softmax(x)`` without a name for the node; ``y = x`` without an operator."""
        tokens = self.tokens
        before = tokens.kinds[at - 1] if at else ""
        if before in ("NAME", "QNAME") and tokens.kinds[at] in ("LPAR", "LBRACE"):
            operator = tokens.texts[at - 1]
            problem = Diagnostic(
                "incomplete-line",
                "this node has no name",
                tokens.span(at - 1, at - 1),
                f"write `y = {operator}(…)`",
            )
            yield Change(4, at - 1, 0, (("NAME", ""), ("EQUAL", "=")), problem)
        if before in ("NAME", "QNAME") and self._takes(states, "VBAR"):
            word, text = tokens.texts[at - 1], tokens.texts[at]
            span = tokens.span(at - 1, at - 1)
            message = f"`{word}` is not applied to anything"
            if tokens.kinds[at] == "NAME" and not self._starts_line(at):
                put = (("LPAR", "("), ("NAME", text), ("RPAR", ")"))
                problem = Diagnostic("incomplete-line", message, span, f"write `{word}({text})`")
                yield Change(4, at, 1, put, problem)
            hint = f"a line applies an operator: `y = identity({word})`"
            problem = Diagnostic("incomplete-line", message, span, hint)
            yield Change(6, at, 0, (("LPAR", "("), ("RPAR", ")")), problem)

    def _skipped_line(self, item: int, at: int, states: list[int]) -> Change | None:
        """Without the rest of the line, or the line, things go on as if nothing were wrong."""
        tokens = self.tokens
        begin = end = at
        while tokens.kinds[end] != END_OF_INPUT and tokens.lines[end] == tokens.lines[at]:
            end += 1
            if end > at + LINE:
                return None
        while begin > item and tokens.lines[begin - 1] == tokens.lines[at]:
            begin -= 1
        for start in (at, begin):
            if start in (item, end):
                continue
            change = Change(0, start, end - start, ())
            if start == begin:
                states = self._replay(item, begin)[-1]
            if self._reach(states, change, end) > NEAR:
                return change
        return None

    def _sign(self, text: str) -> str:
        if text in ("<=", ">=", "!=", "=="):
            return "REL"
        if text in self.tables.keywords:
            return "NAME"
        return next(kind for kind, sign in self.tables.terminals.items() if sign == text)

    def _respelt(self, j: int, item: int, states: list[int]) -> Iterator[Change]:
        """A word that is almost a keyword which may stand there."""
        tokens = self.tokens
        kind, text = tokens.kinds[j], tokens.texts[j]
        if kind not in ("NAME", "VAR", "QNAME") or not text:
            return
        row = self.tables.states[states[-1]]
        allowed = [
            word
            for word, terminal in self.tables.keywords.items()
            if terminal in row and word != text and self._takes(states, terminal)
        ]
        guess = WORDS.get(text)
        if guess not in allowed:
            guess = closest(text, allowed)
        if guess is None:
            return
        at_start = j == item and self.whole_file
        hint = f"did you mean `{guess}`?"
        if guess == text.lower():
            hint = f"keywords are lowercase: `{guess}`"
        problem = Diagnostic(
            "unknown-keyword",
            f"`{text}` does not start a declaration" if at_start else f"unexpected `{text}`",
            tokens.span(j, j),
            hint,
        )
        yield Change(1, j, 1, (("NAME", guess),), problem)

    def _closed(self, at: int, opened: list[int], states: list[int]) -> Iterator[Change]:
        """Brackets that were not closed, or closed by the wrong sign."""
        tokens = self.tokens
        if not opened:
            return
        innermost = opened[-1]
        kind, text = self._closer(innermost)
        if tokens.kinds[at] in CLOSING and tokens.kinds[at] != kind:
            problem = Diagnostic(
                "mismatched-bracket",
                f"`{tokens.texts[at]}` does not close `{tokens.texts[innermost]}`",
                tokens.span(at, at),
                f"write `{text}`: the bracket was opened at {self._place(innermost, at)}",
            )
            yield Change(3, at, 1, ((kind, text),), problem)
        urgent = self._starts_line(at) or tokens.kinds[at] in (*CLOSING, *_ENDINGS)
        put: list[tuple[str, str]] = []
        places: list[str] = []
        for bracket in reversed(opened[-3:]):
            put.append(self._closer(bracket))
            places.append(f"`{tokens.texts[bracket]}` was opened at {self._place(bracket, at)}")
            missing = "".join(sign for _, sign in put)
            problem = Diagnostic(
                "unclosed-bracket", f"missing `{missing}`", self._gap(at), "; ".join(places)
            )
            rank = (5 if urgent else 8) + len(put) // 2
            yield Change(rank, at, 0, tuple(put), problem, 1 if urgent else NEAR)

    def _closer(self, bracket: int) -> tuple[str, str]:
        kind = OPENING[self.tokens.kinds[bracket]]
        return kind, self.tables.terminals[kind]

    def _replaced(self, j: int, at: int, states: list[int]) -> Iterator[Change]:
        """One token written for another."""
        tokens = self.tokens
        written = tokens.kinds[j]
        for kind in REPLACEMENTS.get(written, ()):
            if self._takes(states, kind):
                text = "." if kind == "END" else _SAMPLES.get(kind) or self.tables.terminals[kind]
                if kind in ("NAME", "VAR"):
                    text = tokens.texts[j]
                early = kind in ("REL", "EQUAL", "COLON", "AND", "OR", "ARROW")
                rank = 4 + (at - j) if early else 5 if j == at else 9
                put = ("NAME", text) if text in self.tables.keywords else (kind, text)
                yield Change(rank, j, 1, (put,), self._instead(j, written, kind, text))
        if written == ERROR:
            meant = CHARACTERS.get(tokens.texts[j][:1])
            if meant is not None:
                yield Change(4, j, 1, ((self._sign(meant), meant),))
            for kind in ("COMMA", "NAME"):
                yield Change(12, j, 1, ((kind, self.tables.terminals[kind]),))
        if written in ("INT", "FLOAT", "STRING", "MINUS") and j == at:
            hint = operand_hint(self.tables.states[states[-1]])
            if hint is not None:
                removed = 2 if written == "MINUS" else 1
                text = "".join(tokens.texts[j : j + removed])
                problem = Diagnostic(
                    "bad-operand",
                    f"{text} is not an operand",
                    tokens.span(j, j + removed - 1),
                    hint,
                )
                yield Change(6, j, removed, (("WILDCARD", "_"),), problem)

    def _instead(self, j: int, written: str, kind: str, text: str) -> Diagnostic:
        """The message about a token written for another."""
        tokens = self.tokens
        span = tokens.span(j, j)
        wrong = tokens.texts[j]
        if written == "EQUAL" and kind == "REL":
            return Diagnostic("assignment-in-condition", "`=` does not compare", span, "write `==`")
        if written == "REL" and kind == "EQUAL":
            return Diagnostic(
                "comparison-for-assignment", f"`{wrong}` compares", span, "write `=` here"
            )
        if written == "VAR":
            return Diagnostic(
                "uppercase-name",
                f"`{wrong}` is a value variable; a name is wanted here",
                span,
                self._foreign_operator(j) or "names start with a lowercase letter",
            )
        if kind == "VAR":
            return Diagnostic(
                "lowercase-variable",
                f"`{wrong}` is a name; a value variable is wanted here",
                span,
                "a value variable starts with an uppercase letter",
            )
        if kind == "END":
            return Diagnostic("missing-end", f"unexpected `{wrong}`", span, "a rule ends with `.`")
        if written == "COMMA":
            return Diagnostic(
                "comma-in-parentheses",
                "commas do not join conditions in parentheses",
                span,
                "write `and` here",
            )
        return Diagnostic("wrong-sign", f"unexpected `{wrong}`", span, f"write `{text}` here")

    def _foreign_operator(self, j: int) -> str | None:
        """What to write for ``Relu(``, where token ``j`` is an operator of another system."""
        tokens = self.tokens
        before = tokens.kinds[j - 1] if j > 0 else ""
        following = tokens.kinds[j + 1] if j + 1 < len(tokens.kinds) else ""
        if following not in ("LPAR", "LBRACE", "VBAR") or before == "RELATION":
            return None
        word = tokens.texts[j]
        if (meant := operator_hint(word)) is not None:
            return meant
        if before == "EQUAL" and any(letter.islower() for letter in word):
            return f"operators are lowercase; one that UIR lacks is written `onnx.{word}`"
        return None

    def _end_before_head(self, at: int) -> bool:
        """``a(X),`` newline ``b(X) :- …``: mend the comma, which should have ended a rule."""
        tokens = self.tokens
        kinds = tokens.kinds
        if kinds[at] != "IF" or not self.whole_file:
            return False
        depth, paren = 0, at - 1
        while paren > 2:
            depth += (kinds[paren] == "RPAR") - (kinds[paren] == "LPAR")
            if depth == 0:
                break
            paren -= 1
        name, comma = paren - 1, paren - 2
        if comma < 1 or tokens.columns[name] != 1 or kinds[comma] != "COMMA":
            return False
        self.errors.append(
            Diagnostic(
                "missing-end",
                "this rule does not end",
                tokens.span(comma, comma),
                "a rule ends with `.`",
            )
        )
        self._apply(Change(0, comma, 1, (("END", "."),)))
        return True

    def _inserted(self, at: int, states: list[int]) -> Iterator[Change]:
        """Something that was left out before the token."""
        tokens = self.tokens
        before, after = tokens.texts[at - 1] if at else "", tokens.texts[at]
        new_line = self._starts_line(at)
        for kind in INSERTABLE:
            if not self._takes(states, kind):
                continue
            text = self.tables.terminals[kind]
            rank, hint, code = 7, None, "missing-token"
            message = f"missing `{'.' if kind == 'END' else text}`"
            if kind == "END":
                code, message, hint = (
                    "missing-end",
                    "this rule does not end",
                    "a rule ends with `.`",
                )
                rank = 6 if new_line and tokens.columns[at] == 1 else 9
                text = "."
            elif kind == "COMMA" and tokens.kinds[at] != END_OF_INPUT:
                hint = f"{LISTS} are separated by commas"
            elif after:
                message += f" before `{after}`" if not new_line else f" after `{before}`"
            word = ("NAME", text) if text in self.tables.keywords else (kind, text)
            yield Change(rank, at, 0, (word,), Diagnostic(code, message, self._gap(at), hint))
        if at and tokens.kinds[at - 1] in ("NAME", "VAR") and self._takes(states, "LSQB"):
            dtype = tokens.texts[at - 1]
            problem = Diagnostic(
                "missing-shape",
                f"the type `{dtype}` has no shape",
                tokens.span(at - 1, at - 1),
                f"write `{dtype}[2, 3]`, `{dtype}[]` for a scalar, `{dtype}[...]` for any rank",
            )
            put = (("LSQB", "["), ("DOTS", "..."), ("RSQB", "]"))
            yield Change(6, at, 0, put, problem)
        for n, kind in enumerate(STAND_IN):
            if self._takes(states, kind):
                yield Change(12 + n, at, 0, ((kind, _SAMPLES[kind]),))

    def _removed(self, at: int, opened: list[int]) -> Iterator[Change]:
        """A token too many."""
        tokens = self.tokens
        kind, text = tokens.kinds[at], tokens.texts[at]
        if kind == END_OF_INPUT:
            return
        problem = None
        if kind in CLOSING and not opened:
            problem = Diagnostic(
                "unopened-bracket", f"`{text}` closes nothing", tokens.span(at, at), "remove it"
            )
        yield Change(11, at, 1, (), problem)
        if at and tokens.kinds[at - 1] == "COMMA":
            problem = Diagnostic(
                "trailing-comma",
                "nothing follows this `,`",
                tokens.span(at - 1, at - 1),
                "remove it",
            )
            yield Change(10, at - 1, 1, (), problem)

    # --- tokens ------------------------------------------------------------------------------

    def _apply(self, change: Change) -> None:
        tokens = self.tokens
        begin, end = change.at, change.at + change.removed
        if change.removed:
            line, column, stop = tokens.lines[begin], tokens.columns[begin], tokens.ends[end - 1]
        else:
            gap = self._gap(begin)
            line, column, stop = gap.line, gap.column, gap.column
        count = len(change.put)
        tokens.kinds[begin:end] = [kind for kind, _ in change.put]
        tokens.texts[begin:end] = [text for _, text in change.put]
        tokens.lines[begin:end] = [line] * count
        tokens.columns[begin:end] = [column] * count
        tokens.ends[begin:end] = [stop] * count

    def _open_brackets(self, item: int, at: int) -> list[int]:
        kinds = self.tokens.kinds
        opened: list[int] = []
        for i in range(item, at):
            if kinds[i] in OPENING:
                opened.append(i)
            elif kinds[i] in CLOSING and opened:
                opened.pop()
        return opened

    def _starts_line(self, at: int) -> bool:
        return at == 0 or self.tokens.lines[at] != self.tokens.lines[at - 1]

    def _gap(self, at: int) -> Span:
        """The place just after the token before ``at``."""
        tokens = self.tokens
        if not at:
            return Span(tokens.path, 1, 1, 1, 1)
        line, column = tokens.lines[at - 1], tokens.ends[at - 1]
        return Span(tokens.path, line, column, line, column)

    def _place(self, token: int, at: int) -> str:
        tokens = self.tokens
        line = tokens.lines[token]
        where = f"column {tokens.columns[token]}"
        return where if at and line == tokens.lines[at - 1] else f"line {line}, {where}"

    def _follows_malformed(self, at: int) -> bool:
        """Whether the scanner has reported this place already."""
        tokens = self.tokens
        near = range(max(at - 1, 0), at + 1)
        return any((tokens.lines[i], tokens.columns[i]) in tokens.malformed for i in near)

    def _unexpected(self, item: int, at: int, states: list[int]) -> Diagnostic:
        """The general message: what was not expected, and what was."""
        tokens = self.tokens
        row = self.tables.states[states[-1]]
        allowed = {kind for kind in row if kind.isupper() and self._takes(states, kind)}
        hint = expectation(allowed, self.tables.terminals)
        first = tokens.texts[item]
        headless = tokens.kinds[item] == "NAME" and first not in DECLARATION_KEYWORDS
        if at == item + 1 and self.whole_file and headless:
            return Diagnostic(
                "unknown-keyword",
                f"`{first}` does not start a declaration",
                tokens.span(item, item),
                f"{DECLARATIONS}; a rule is `head(X) :- body(X).`",
            )
        if tokens.kinds[at] == END_OF_INPUT:
            return Diagnostic("unexpected-end", "the file ends too early", self._gap(at), hint)
        if allowed == {"STRING"} and tokens.texts[at - 1] == "import":
            hint = "put the path in quotes"
        elif len(allowed) == 1 and (word := self.tables.terminals[min(allowed)]) not in allowed:
            where = f" before `{tokens.texts[at]}`" if not self._starts_line(at) else ""
            return Diagnostic("missing-token", f"missing `{word}`{where}", self._gap(at))
        return Diagnostic(
            "syntax-error",
            f"unexpected {describe(tokens.kinds[at], tokens.texts[at])}",
            tokens.span(at, at),
            hint,
        )

    def _next_start(self, item: int, at: int) -> int:
        """The first token after ``at`` where a declaration, or a program's line, seems to start."""
        tokens = self.tokens
        kinds = tokens.kinds
        i = max(at, item + 1)
        while kinds[i] != END_OF_INPUT:
            if not self.whole_file:
                if self._starts_line(i) and kinds[i] == "NAME":
                    return i
            elif kinds[i - 1] == "END" or self._looks_like_declaration(i):
                return i
            i += 1
        return i

    def _looks_like_declaration(self, i: int) -> bool:
        tokens = self.tokens
        if tokens.kinds[i] != "NAME" or not self._starts_line(i):
            return False
        if tokens.kinds[i + 1] == "LPAR":  # a rule's head
            return tokens.columns[i] == 1
        named = tokens.kinds[i + 1] in ("NAME", "QNAME", "STRING")
        return named and tokens.texts[i] in DECLARATION_KEYWORDS
