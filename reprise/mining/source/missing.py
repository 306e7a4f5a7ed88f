"""Keywords of an extractor that occur nowhere, and names in the checkout that are like them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from reprise.mining.source.extractor import Extractor
from reprise.mining.source.sites import FileFacts

MOST_NEAR = 3
"""Names suggested for a keyword."""

_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{2,60}")


def unseen(extractor: Extractor, files: Mapping[str, FileFacts]) -> list[str]:
    """Keywords that no site has. Macros made from others (``ICHECK_EQ``) are not looked for."""
    seen: set[str] = set()
    for facts in files.values():
        seen.update(str(row[3]) for row in facts.rows.get("captured", ()))
        seen.update(str(row[3]) for row in facts.rows.get("mentions", ()))
    wanted = {
        name
        for group, names in extractor.keywords.items()
        if group != "assert_compare"
        for name in names
    }
    return sorted(wanted - seen)


def names_in(texts: Iterable[bytes]) -> Counter[str]:
    """The identifiers of source texts, and how often each occurs."""
    counted: Counter[bytes] = Counter()
    for text in texts:
        counted.update(_NAME.findall(text))
    return Counter({name.decode("ascii"): count for name, count in counted.items()})


def near(keyword: str, names: Mapping[str, int]) -> list[str]:
    """The names most like ``keyword``: spelt nearly so, else with the same words in them."""
    folded: dict[str, str] = {}
    for name in sorted(names, key=lambda n: (-names[n], n)):
        folded.setdefault(name.lower().replace("_", ""), name)
    bare = keyword.lower().replace("_", "")
    if bare in folded:
        return [folded[bare]]
    alike = get_close_matches(bare, folded, n=MOST_NEAR, cutoff=0.75)
    if alike:
        return [folded[name] for name in alike]
    words = re.findall(r"[a-z]{3,}", keyword.lower())
    holding = [n for n in names if words and all(word in n.lower() for word in words)]
    return sorted(holding, key=lambda n: (-names[n], n))[:MOST_NEAR]
