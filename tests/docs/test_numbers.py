"""Pages that people write do not say how many rules ship: that changes with every rule."""

from __future__ import annotations

import re

from tests.docs.test_pages import FENCE, PAGES

MADE = {"bugs.md", "operators.md", "results.md"}
"""Written by commands, which count."""
COUNT = re.compile(r"\b\d+ (?:shipped |bug |known )*(?:rules|known bugs)\b")


def test_no_page_counts_the_rules_that_ship() -> None:
    counts = {
        page.name: found
        for page in PAGES
        if page.name not in MADE and (found := COUNT.findall(FENCE.sub("", page.read_text())))
    }
    assert counts == {}
