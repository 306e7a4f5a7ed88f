"""Guesses at what a misspelt word was meant to be, and what UIR calls foreign operators."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container, Iterable
from difflib import get_close_matches
from functools import lru_cache

from reprise.data import data_path
from reprise.lang.display import listed

FOREIGN = frozenset({"onnx", "ai.onnx", "torch", "aten", "relax"})
"""Qualifiers of operators of other systems: what UIR has is never called by these."""


LONGEST = 80
"""Letters of the longest word that is compared with others: it takes their product."""
MANY = 1000
"""Among more words than this, only those are found that one letter less makes alike."""


@lru_cache(maxsize=4096)
def similar(word: str, candidates: tuple[str, ...], cutoff: float) -> str | None:
    """The candidate most like ``word``, if their likeness (0 to 1) reaches ``cutoff``. A file may
    hold one mistake many times, so what was found is kept; and thousands of both."""
    if len(word) > LONGEST:
        return None
    if len(candidates) > MANY:
        shortened = _shortened(candidates)
        return next((shortened[w] for w in _one_less(word) if w in shortened), None)
    found = get_close_matches(word, candidates, n=1, cutoff=cutoff)
    return found[0] if found else None


@lru_cache(maxsize=4)
def _shortened(words: tuple[str, ...]) -> dict[str, str]:
    """The first of ``words`` by each of its forms with a letter less."""
    found: dict[str, str] = {}
    for word in words:
        for form in _one_less(word) if len(word) <= LONGEST else ():
            found.setdefault(form, word)
    return found


def _one_less(word: str) -> list[str]:
    """``word``, and without each of its letters."""
    return [word, *(word[:i] + word[i + 1 :] for i in range(len(word)))]


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like ``word``, if one is like it at all."""
    lowered = {candidate.lower(): candidate for candidate in sorted(candidates)}
    letters = sorted(word.lower())
    for candidate in lowered:
        if len(letters) > 2 and sorted(candidate) == letters:
            return lowered[candidate]  # letters in another order: short words count, too
    found = similar(word.lower(), tuple(lowered), 0.7)
    return None if found is None else lowered[found]


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """A hint such as ``did you mean `pattern`?``, or None."""
    guess = closest(word, candidates)
    return None if guess is None or guess == word else f"did you mean `{guess}`?"


@lru_cache(maxsize=1)
def _tables() -> dict[str, dict[str, list[str]]]:
    """UIR's operators by the words of other systems, system by system."""
    return tomllib.loads(data_path("rules/ops/spellings.toml").read_text())


@lru_cache(maxsize=1)
def _spellings() -> dict[str, tuple[str, ...]]:
    """Operators of ONNX and torch, by their own names, with UIR's."""
    return {
        word: tuple(names)
        for system in ("torch", "onnx")  # where both have a word, ONNX's meaning is shown
        for word, names in _tables()[system].items()
    }


@lru_cache(maxsize=1)
def _onnx_names() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for word, names in _tables()["onnx"].items():
        for name in names:
            found.setdefault(name, set()).add(word)
    return {name: frozenset(words) for name, words in found.items()}


def onnx_names(operator: str) -> frozenset[str]:
    """What ONNX calls the operators that become UIR's ``operator``."""
    return _onnx_names().get(operator, frozenset())


def operators_meant(word: str, operators: Container[str] | None = None) -> list[str]:
    """The operators (None: of those that ship) that another system calls ``word``: ``Relu``,
    ``onnx.Relu`` or ``addmm``."""
    qualifier, _, bare = word.rpartition(".")
    if qualifier and qualifier not in FOREIGN:
        return []
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", bare).lower()
    names = _spellings().get(bare, ())
    if operators is None:
        return list(names)
    known = [name for name in names if name in operators]
    return known or ([snake] if snake != word and snake in operators else [])


def operator_hint(word: str, operators: Container[str] | None = None) -> str | None:
    """A hint such as ``UIR calls this operator `relu` ``, or None."""
    meant = [f"`{name}`" for name in operators_meant(word, operators)]
    if not meant:
        return None
    return f"UIR calls this operator {listed(meant)}"
