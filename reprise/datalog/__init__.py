"""The incremental Datalog engine: core programs in, maintained relations out.

:class:`Database` is ours. ``clingo_engine`` and ``pydatalog_engine`` beside it run the same
programs on other engines, and are imported only by those who want them.
"""

from typing import TYPE_CHECKING

from reprise.datalog.changes import Changes, Proposal
from reprise.datalog.database import Database
from reprise.datalog.engine import Engine
from reprise.datalog.errors import (
    DatalogError,
    KeyConflictError,
    LimitError,
    MarkError,
    RowError,
    UnsupportedError,
)
from reprise.datalog.facts import Facts
from reprise.datalog.runtime import Limits

if TYPE_CHECKING:
    from reprise.datalog.explain import Derivation, NearMiss

__all__ = [
    "Changes",
    "Database",
    "DatalogError",
    "Derivation",
    "Engine",
    "Facts",
    "KeyConflictError",
    "LimitError",
    "Limits",
    "MarkError",
    "NearMiss",
    "Proposal",
    "RowError",
    "UnsupportedError",
]


def __getattr__(name: str) -> object:
    """The classes of explanations, which are loaded only where something is explained."""
    if name in ("Derivation", "NearMiss"):
        from reprise.datalog import explain

        return getattr(explain, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
