"""A checkout of a few lines, mined."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reprise.lang.declared import Monitor
from reprise.lang.ruleset import RuleSet, load_text
from reprise.mining.source.extractor import load_extractor
from reprise.mining.source.mine import Mined, mine

DATA = Path(__file__).parent / "data"

Mine = Callable[..., Mined]


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared: what is kept of a checkout is told apart by the checkout's path."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture
def mined(tmp_path: Path) -> Mine:
    """Mine files, given by path and text, with a shipped extractor or settings of one's own."""

    def run(
        files: dict[str, str | bytes],
        extractor: str = "genesys",
        settings: str | None = None,
        queries: dict[str, str] | None = None,
        **options: object,
    ) -> Mined:
        checkout = tmp_path / "checkout"
        for path, text in files.items():
            place = checkout / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode() if isinstance(text, str) else text)
        checkout.mkdir(exist_ok=True)
        if settings is not None:
            folder = tmp_path / "extractor"
            folder.mkdir(exist_ok=True)
            (folder / "extractor.toml").write_text(settings)
            for name, query in (queries or {}).items():
                (folder / name).write_text(query)
            extractor = str(folder)
        return mine(checkout, load_extractor(extractor), **options)  # type: ignore[arg-type]

    return run


def monitors(found: Mined) -> dict[str, Monitor]:
    """The monitors of the file, which must load."""
    return rules(found).monitors


def rules(found: Mined) -> RuleSet:
    return load_text(found.text)


def assertions(found: Mined) -> list[str]:
    """The lines of all assertions, in order."""
    lines = (line.strip() for line in found.text.splitlines())
    return [line.removeprefix("assert ") for line in lines if line.startswith("assert ")]
