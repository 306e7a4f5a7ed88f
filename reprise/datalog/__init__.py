"""The incremental Datalog engine: core programs in, maintained relations out.

:class:`Database` is ours. ``clingo_engine`` and ``pydatalog_engine`` beside it run the same
programs on other engines, and are imported only by those who want them.
"""

from reprise.datalog.database import Changes, Database, Facts, Proposal
from reprise.datalog.engine import Engine
from reprise.datalog.errors import (
    DatalogError,
    KeyConflictError,
    LimitError,
    MarkError,
    RowError,
    UnsupportedError,
)
from reprise.datalog.explain import Derivation, NearMiss
from reprise.datalog.runtime import Limits

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
