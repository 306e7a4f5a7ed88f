"""Where names of limits occur in a file, apart from comments and texts.

One regular expression over the bytes finds candidates, and the syntax tree says what each is: to
ask a query for every identifier would cost more than all other queries together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

_NAME = re.compile(
    rb"\b(?:k(?:Max|Min)[A-Z][A-Za-z0-9]*"
    rb"|(?:[A-Z0-9]+_)*(?:MAX|MIN|MAXIMUM|MINIMUM|LIMIT|CAPACITY)(?:_[A-Z0-9]+)*)\b"
)
"""As in extractors/_common/*_limits.scm."""

_NO_USE = (
    "comment",
    "string",
    "string_content",
    "string_literal",
    "raw_string_content",
    "char_literal",
)


def occurrences(data: bytes, root: Node) -> Iterator[tuple[str, int]]:
    """Each name of a limit in code, with its line, from 1."""
    for found in _NAME.finditer(data):
        node = root.descendant_for_byte_range(found.start(), found.end())
        if node is not None and node.type not in _NO_USE:
            yield found[0].decode("ascii"), data.count(b"\n", 0, found.start()) + 1


def words(name: str) -> list[str]:
    """The words of a name, in lower case: ``max`` and ``dims`` of ``kMaxDims`` and ``MAX_DIMS``."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", name)]
