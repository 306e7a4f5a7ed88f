"""The shipped signatures, loaded once."""

from __future__ import annotations

import pytest

from reprise.solve.signatures import Signatures


@pytest.fixture(scope="session")
def signatures() -> Signatures:
    return Signatures.load()
