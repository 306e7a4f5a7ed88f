"""Whether an extractor fits a checkout, and which of the shipped ones fits it better.

Somebody who names the wrong extractor is told so in one line, with the right one where it ships,
rather than in a line for each of its keywords. What counts is how many of an extractor's keywords
are words of the files that its globs ask for: globs alone fit many checkouts (``**/*.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from reprise.lang.display import counted
from reprise.mining.source.extractor import Extractor, known_extractors, load_extractor
from reprise.mining.source.files import MOST_BYTES, sources
from reprise.mining.source.missing import searched_for

HARDLY = Fraction(1, 2)
"""An extractor fits badly if at most so many of its keywords occur."""
WELL = Fraction(2, 3)
"""One is suggested if at least so many of its own occur."""

_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Fit:
    """``occur`` of an extractor's ``keywords`` are words of the ``files`` that it asks for."""

    name: str
    files: int
    keywords: int
    occur: int

    @property
    def share(self) -> Fraction:
        """How well it fits: of 1."""
        return Fraction(self.occur, self.keywords) if self.files and self.keywords else Fraction(0)

    @property
    def hint(self) -> str:
        """What to try instead of the extractor that was named."""
        return (
            f"`--extractor {self.name}` fits better: {self.occur} of its "
            f"{counted(self.keywords, 'keyword')} are in {counted(self.files, 'file')} here"
        )


def better(checkout: Path, named: Extractor) -> Fit | None:
    """Of the shipped extractors other than ``named``, the one that fits the checkout best, if it
    fits well and better than that."""
    shipped = [load_extractor(name) for name in known_extractors() if name != named.name]
    words = _Words()
    own = _fit(checkout, named, words)
    found = [_fit(checkout, extractor, words) for extractor in shipped]
    best = max(found, key=lambda fit: fit.share, default=None)
    return best if best is not None and best.share >= max(WELL, own.share) else None


def _fit(checkout: Path, extractor: Extractor, words: _Words) -> Fit:
    listed, _ = sources(checkout, extractor, MOST_BYTES)
    wanted = searched_for(extractor)
    occur = wanted & words.of(source.absolute for source in listed)
    return Fit(extractor.name, len(listed), len(wanted), len(occur))


class _Words:
    """The words of files; each file is read once, whatever number of extractors ask for it."""

    def __init__(self) -> None:
        self.known: dict[str, frozenset[str]] = {}

    def of(self, files: Iterable[str]) -> set[str]:
        found: set[str] = set()
        for file in files:
            if file not in self.known:
                try:
                    data = Path(file).read_bytes()
                except OSError:
                    data = b""
                names = (name.decode("ascii") for name in set(_WORD.findall(data)))
                self.known[file] = frozenset(names)
            found |= self.known[file]
        return found
