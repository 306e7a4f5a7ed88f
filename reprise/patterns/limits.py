"""What rules may derive from one graph before they are stopped, and how that is told.

Sane rules derive a few rows a node, so only a runaway rule comes near; the commands let their user
set both limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from reprise.datalog import LimitError, Limits
from reprise.lang.core import Relation

USUAL = Limits(max_derived_rows=2_000_000, max_seconds=60.0)


def limits_of(max_rows: int | None, max_seconds: float | None) -> Limits:
    """The usual limits, but for those that are given."""
    return Limits(max_rows or USUAL.max_derived_rows, max_seconds or USUAL.max_seconds)


def told(error: LimitError, limits: Limits, relations: Mapping[str, Relation]) -> tuple[str, str]:
    """Which limit stopped the rules, and the option that raises it; of ``relations`` the ones that
    somebody declared are named."""
    declared = relations.get(error.relation)
    named = declared is not None and declared.span is not None
    where = f"; most of it was `{error.relation}`" if named else ""
    if error.setting == "max_seconds":
        option, done = "--max-seconds", f"ran longer than {limits.max_seconds:g} s"
    else:
        option, done = "--max-rows", f"derived more than {limits.max_derived_rows:,} facts"
    return f"stopped, because the rules {done}{where}", option


@contextmanager
def told_to_users(limits: Limits, relations: Mapping[str, Relation], advice: str) -> Iterator[None]:
    """Where rules are compiled and run before any model: a limit that stops them is an error of
    what was asked for. ``advice`` may hold ``{option}``. Raises UsageError."""
    from reprise.patterns.check import UsageError

    try:
        yield
    except LimitError as error:
        message, option = told(error, limits, relations)
        raise UsageError(f"{message}; {advice.format(option=option)}") from None
