"""Which assertions can fail at all, and which can hold.

A rule file with an assertion that is decided whatever the values are does not lint, and a monitor
that asks it says nothing. Most assertions need no look: one that mentions each value once is not
decided. The others are linted, in one go, and the answers kept."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable

from reprise.cache import cache_folder, write_cache
from reprise.lang.diagnostics import RulesError

_FILE = "mine-decided-2.pickle"
_NEUTRAL = re.compile(r"[%*/] -?[01]\b|\b0 [%*/]")
_VALUE = re.compile(r'(?:value|before|device)\((?:"(?:\\.|[^"\\])*"|\w+)\)')


def decided(assertions: Iterable[str]) -> set[str]:
    """Those of ``assertions`` that cannot fail, or cannot hold."""
    suspects = sorted({text for text in assertions if _suspect(text)})
    cache = cache_folder() / _FILE
    try:
        known: dict[str, bool] = dict(pickle.loads(cache.read_bytes()))
    except Exception:  # a cache that cannot be read is none
        known = {}
    fresh = [text for text in suspects if text not in known]
    if fresh:
        known.update(_linted(fresh))
        write_cache(cache, pickle.dumps(known, 5))
    return {text for text in suspects if known[text]}


def _suspect(assertion: str) -> bool:
    values = _VALUE.findall(assertion)
    return not values or len(values) != len(set(values)) or _NEUTRAL.search(assertion) is not None


def _linted(assertions: list[str]) -> dict[str, bool]:
    """Each assertion as a monitor, and its negation as another: both must be able to fail."""
    answers = dict.fromkeys(assertions, False)
    left = assertions
    while left:  # what does not even load hides what only the lint finds
        wrong = _refused(left)
        if not wrong:
            break
        answers.update(dict.fromkeys(wrong, True))
        left = [text for text in left if text not in wrong]
    return answers


def _refused(assertions: list[str]) -> set[str]:
    from reprise.lang.lint import lint_rules
    from reprise.lang.ruleset import load_text

    lines = []
    for number, text in enumerate(assertions):
        for way, asserted in (("a", text), ("b", f"not ({text})")):
            lines.append(
                f'monitor m{number}{way} : execution_safety on pass "p" {{ assert {asserted} }}'
            )
    try:
        lint_rules(load_text("\n".join(lines)))
    except RulesError as error:
        return {assertions[(d.span.line - 1) // 2] for d in error.diagnostics}
    return set()
