"""What is kept between runs, so that a run reads only what has changed.

Two files for each checkout and extractor: the facts of every file, by the file's content, and the
last result, by everything that it follows from. Neither changes what a run gives: what does not fit
is computed again.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from reprise import __version__
from reprise.cache import cache_folder, write_cache
from reprise.data import data_path
from reprise.mining.source.extractor import Extractor
from reprise.mining.source.facts import FileFacts

RULES = "rules/mining"


class Kept:
    """The two files of one checkout and extractor."""

    def __init__(self, checkout: Path, extractor: Extractor) -> None:
        name = hashlib.sha256(os.fsencode(checkout.resolve())).hexdigest()[:16]
        stem = f"mine-{extractor.name}-{name}"
        self._facts = cache_folder() / f"{stem}.pickle"
        self._result = cache_folder() / f"{stem}-result.pickle"
        code = digest_of(sorted(Path(__file__).parent.glob("*.py")))
        self._reads = f"{__version__} {code} {extractor.digest}"

    def facts(self) -> dict[str, tuple[str, FileFacts]]:
        """By path: the digest of a file's content, and its facts."""
        match _read(self._facts):
            case reads, dict() as files if reads == self._reads:
                return files
        return {}

    def keep_facts(self, files: Mapping[str, tuple[str, FileFacts]]) -> None:
        """For later runs; a failure is no error."""
        write_cache(self._facts, pickle.dumps((self._reads, dict(files)), 5))

    def key(self, digests: Mapping[str, str], *other: object) -> str:
        """Of all that a result follows from: the files, the extractor, the rules, and ``other``."""
        rules = sorted(data_path(RULES).glob("**/*.rules"))
        operators = sorted(data_path("rules/ops").glob("*"))
        hashed = hashlib.sha256(repr((self._reads, sorted(digests.items()), other)).encode())
        hashed.update(digest_of([*rules, *operators]).encode())
        return hashed.hexdigest()

    def result(self, key: str) -> Any:
        """The last result, if it has this key; else None."""
        match _read(self._result):
            case known, result if known == key:
                return result
        return None

    def keep_result(self, key: str, result: object) -> None:
        """For later runs; a failure is no error."""
        write_cache(self._result, pickle.dumps((key, result), 5))


def digest_of(paths: Iterable[Path]) -> str:
    """Of the names and contents of files."""
    hashed = hashlib.sha256()
    for path in paths:
        hashed.update(path.name.encode())
        hashed.update(path.read_bytes())
    return hashed.hexdigest()


def _read(path: Path) -> Any:
    try:
        return pickle.loads(path.read_bytes())
    except Exception:  # a cache that cannot be read is none
        return None
