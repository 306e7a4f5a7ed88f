"""What went wrong at a token that the grammar does not allow, and where to go on."""

from __future__ import annotations

from reprise.lang.diagnostics import Diagnostic, Span
from reprise.lang.tables import END_OF_INPUT, Tables
from reprise.lang.tokens import DECLARATION_KEYWORDS, Tokens


class Recovery:
    """Collects the syntax errors of one run."""

    def __init__(self, tables: Tables, tokens: Tokens, start: int) -> None:
        self.tables = tables
        self.tokens = tokens
        self.start = start
        self.errors: list[Diagnostic] = []

    def report(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        self.errors.append(Diagnostic(code, message, span, hint))

    def explain(self, item: int, at: int) -> None:
        """Report the token ``at``, in the declaration that starts at ``item``."""
        tokens = self.tokens
        what = "the end of the file" if tokens.kinds[at] == END_OF_INPUT else f"`{tokens.texts[at]}`"
        self.report("syntax-error", f"unexpected {what}", tokens.span(at, at))


def next_declaration(tokens: Tokens, item: int, at: int) -> int:
    """The first token after ``at`` where a declaration seems to start."""
    i = max(at, item + 1)
    while tokens.kinds[i] != END_OF_INPUT:
        if tokens.kinds[i - 1] == "END":
            return i
        if (
            tokens.kinds[i] == "NAME"
            and tokens.texts[i] in DECLARATION_KEYWORDS
            and tokens.kinds[i + 1] in ("NAME", "QNAME", "STRING")
            and tokens.columns[i] == 1
        ):
            return i
        i += 1
    return i
