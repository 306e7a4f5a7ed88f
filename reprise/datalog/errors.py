"""What can go wrong while a database runs. None of these leaves a database half changed.

Errors in the rules themselves are diagnostics (:class:`reprise.lang.diagnostics.RulesError`) and
are found before any fact is stored.
"""

from __future__ import annotations

from reprise.lang.core import Row


class DatalogError(Exception):
    """Any error of the engine; the database is as it was before the call that raised it."""


class RowError(DatalogError):
    """A row that its relation cannot hold: unknown relation, wrong arity, wrong column type."""


class KeyConflictError(DatalogError):
    """Two different rows with the same key in one relation."""

    def __init__(self, relation: str, old: Row, new: Row) -> None:
        super().__init__(
            f"`{relation}` already holds {old!r}, which has the same key as {new!r}; "
            "delete the old row in the same commit to replace it"
        )
        self.relation = relation
        self.old = old
        self.new = new


class LimitError(DatalogError):
    """A commit that derived more rows, or took longer, than :class:`~reprise.datalog.Limits` allow.

    ``relation`` is the one that was growing; ``setting`` the limit's name.
    """

    def __init__(self, relation: str, setting: str, limit: float, rules: str = "") -> None:
        by = f" by {rules}" if rules else ""
        super().__init__(
            f"stopped while deriving `{relation}`{by}: more than {setting}={limit:g}; the commit "
            "was taken back"
        )
        self.relation = relation
        self.setting = setting
        self.limit = limit


class MarkError(DatalogError):
    """A mark that can no longer be returned to, or a call that an open proposal forbids."""


class UnsupportedError(DatalogError):
    """A program that another engine cannot run, with the construct at fault."""
