"""Keywords of an extractor that occur nowhere, and names in the checkout that are like them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice

from reprise.mining.source.extractor import Extractor
from reprise.mining.source.facts import FileFacts

MOST_NEAR = 3
"""Names suggested for a keyword."""

_ELSEWHERE = frozenset(
    ("assert_compare", "attributes", "condition_text", "converter_table", "element_bits", "looks")
)
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{2,60}")


def unseen(extractor: Extractor, files: Mapping[str, FileFacts]) -> list[str]:
    """Keywords that no site has."""
    seen: set[str] = set()
    for facts in files.values():
        seen.update(str(row[3]) for row in facts.rows.get("captured", ()))
        seen.update(str(row[3]) for row in facts.rows.get("mentions", ()))
    return sorted(searched_for(extractor) - seen)


def searched_for(extractor: Extractor) -> set[str]:
    """The keywords that some site should have: not those of sets that other facts come from, nor
    macros made from others (``ICHECK_EQ``)."""
    return {
        name
        for group, names in extractor.keywords.items()
        if group not in _ELSEWHERE
        for name in names
    }


def names_in(texts: Iterable[bytes]) -> Counter[str]:
    """The identifiers of source texts, and how often each occurs."""
    counted: Counter[bytes] = Counter()
    for text in texts:
        counted.update(_NAME.findall(text))
    return Counter({name.decode("ascii"): count for name, count in counted.items()})


class Names:
    """The names of a checkout, to look for such as are like a keyword."""

    def __init__(self, counted: Mapping[str, int]) -> None:
        self.known = frozenset(counted)
        self.ordered = sorted(counted, key=lambda name: (-counted[name], name))
        self.folded: dict[str, str] = {}
        for name in self.ordered:
            self.folded.setdefault(name.lower().replace("_", ""), name)

    def near(self, keyword: str) -> list[str]:
        """The names most like ``keyword``: itself if it is one, those spelt nearly so, else those
        with the same words in them."""
        bare = keyword.lower().replace("_", "")
        if keyword in self.known:
            return [keyword]
        if bare in self.folded:
            return [self.folded[bare]]
        like = [n for n in self.folded if abs(len(n) - len(bare)) < 4 and set(n) & set(bare[:2])]
        alike = get_close_matches(bare, like, n=MOST_NEAR, cutoff=0.75)
        if alike:
            return [self.folded[name] for name in alike]
        words = re.findall(r"[a-z]{3,}", keyword.lower())
        holding = (n for n in self.ordered if words and all(w in n.lower() for w in words))
        return list(islice(holding, MOST_NEAR))
