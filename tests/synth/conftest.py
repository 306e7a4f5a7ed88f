"""What the generator's tests share: the shipped signatures, and rules from a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.data import data_path
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.solve.signatures import Signatures


@pytest.fixture(scope="session")
def signatures() -> Signatures:
    return Signatures.load()


@pytest.fixture(scope="session")
def shipped() -> RuleSet:
    return load_rules([data_path("rules/bugs")])


@pytest.fixture
def rules_of(tmp_path: Path):
    """Rules from a text, with the library."""

    def load(text: str) -> RuleSet:
        path = tmp_path / "test.rules"
        path.write_text(text)
        return load_rules([path])

    return load
