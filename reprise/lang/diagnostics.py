"""What Reprise tells a rule author: where, what, and what to do about it.

A :class:`Span` is a piece of a source file; a :class:`Diagnostic` is one message about one span.
Everything that can go wrong in a rule file is a diagnostic, collected rather than raised one by
one, and leaves this package inside a single :class:`RulesError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from reprise.lang.restoring import restored_quickly


@restored_quickly
@dataclass(frozen=True, slots=True)
class Span:
    """A region of a source file: 1-based lines and columns, the end column exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Severity(Enum):
    """How bad a diagnostic is; only errors keep a file from loading."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message about one span.

    ``code`` is a stable kebab-case identifier (``unknown-operator``) that tools may rely on.
    """

    code: str
    message: str
    span: Span
    hint: str | None = None
    severity: Severity = Severity.ERROR


class RulesError(Exception):
    """A rule file that cannot be used; carries every diagnostic found, in source order."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__("; ".join(f"{d.span}: {d.message}" for d in diagnostics))
        self.diagnostics = diagnostics
        self.sound: tuple[object, ...] = ()
        """Of a file with syntax errors: the declarations that have none, which may be checked."""
