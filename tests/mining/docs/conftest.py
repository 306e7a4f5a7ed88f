"""The installed package's documentation and what is mined from it, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.mining.docs.mining import Mined, mine, read
from reprise.mining.docs.model import Documentation, Form

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def markdown() -> Documentation:
    """What the installed package's Markdown says."""
    return read((), Form.MARKDOWN)


@pytest.fixture(scope="session")
def pages() -> Documentation:
    """What the installed package's pages say."""
    return read((), Form.PAGES)


@pytest.fixture(scope="session")
def mined(markdown: Documentation) -> Mined:
    """The rules about the newest versions."""
    return mine(markdown)
