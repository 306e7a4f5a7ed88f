"""The fact vocabulary as it ships, for every test of facts."""

from __future__ import annotations

import pytest

from reprise.data import data_path
from reprise.lang.core import Relation
from reprise.lang.ruleset import load_rules


@pytest.fixture(scope="session")
def vocabulary() -> dict[str, Relation]:
    """The relations of graphs and their surroundings that the standard rules declare."""
    files = [data_path(f"rules/std/{name}.rules") for name in ("graph", "environment")]
    return load_rules(files, library=False).program.relations
