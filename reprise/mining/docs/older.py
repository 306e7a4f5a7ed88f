"""Pages as onnx.ai had them until 2023, in reStructuredText, put into today's layout.

Comes in: such a page. Goes out: its lines as a page of today has them, each with the number of the
line that it was. Titles are underlined there or bold, types stand on lines of their own, and
values are bold. Attributes have no types: of each entry, the first is passed on, so that whoever
reads it says that they cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TITLE = re.compile(r"\*\*([A-Z][A-Za-z ]*)\*\*")
_PROPERTY = re.compile(r"\* \*\*([a-z_ ]+)\*\*: (?:\*\*)?([^*`]+?)(?:\*\*)?")
_TYPED = re.compile(r"\* \*\*[^*]+ - [A-Z_]+\*\*")


def is_older(text: str) -> bool:
    """Whether this is a page of the older layout."""
    return "\n**Version**\n" in text and "\n* **since_version**: **" in text


def modern(text: str) -> Iterator[tuple[int, str]]:
    """The page's lines in today's layout, with their numbers."""
    lines = text.split("\n")
    section, attributes, number = "", 0, 0
    while number < len(lines):
        line, start = lines[number].rstrip(), number + 1
        number += 1
        below = lines[number] if number < len(lines) else ""
        title = _TITLE.fullmatch(line)
        if re.fullmatch(r"={3,}", below) and " - " in line:
            section = ""
            yield start, f"## {line}"
        elif title is not None:
            section, attributes = title[1], 0
            yield start, f"### {section}"
        elif section == "Version":
            found = _PROPERTY.fullmatch(line)
            yield start, line if found is None else f"- **{found[1]}**: `{found[2]}`"
        elif section in ("Inputs", "Outputs"):
            yield start, f"- {line[2:]}" if line.startswith("* ") else line
        elif section == "Attributes" and line.startswith("* "):
            attributes += 1
            if attributes == 1 or _TYPED.match(line):
                yield start, line
        elif section == "Type Constraints" and line.endswith(" in ("):
            types: list[str] = []
            while number < len(lines) and lines[number].startswith("  "):
                item = lines[number].strip()
                number += 1
                if item.startswith(")"):
                    line = f"{line} {', '.join(types)} ):"
                    break
                types.append(f"`{item.rstrip(',')}`")
            yield start, line
        else:
            yield start, line
