"""Guesses at what a misspelt word was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """The candidate most like ``word``, if one is like it at all."""
    lowered = {candidate.lower(): candidate for candidate in sorted(candidates)}
    letters = sorted(word.lower())
    for candidate in lowered:
        if len(letters) > 2 and sorted(candidate) == letters:
            return lowered[candidate]  # letters in another order: short words count, too
    found = get_close_matches(word.lower(), lowered, n=1, cutoff=0.7)
    return lowered[found[0]] if found else None


def did_you_mean(word: str, candidates: Iterable[str]) -> str | None:
    """A hint such as ``did you mean `pattern`?``, or None."""
    guess = closest(word, candidates)
    return None if guess is None or guess == word else f"did you mean `{guess}`?"
