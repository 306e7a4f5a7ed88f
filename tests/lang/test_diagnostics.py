"""What an author is told about a malformed file.

Each file in ``bad/`` ends with what must be said of it, in comments that start with ``//~``. To
accept what is said now, set ``REPRISE_ACCEPT=1`` and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprise.lang.diagnostics import Diagnostic, RulesError, Severity, Span
from reprise.lang.parse import parse_program, parse_text
from reprise.lang.render import WIDTH, render, to_json

BAD = sorted((Path(__file__).parent / "bad").glob("*.*"))


def found_in(text: str, name: str) -> list[Diagnostic]:
    parse = parse_program if name.endswith(".uir") else parse_text
    with pytest.raises(RulesError) as error:
        parse(text, name)
    return error.value.diagnostics


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_malformed(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    said = render(found_in(text, path.name), {path.name: text})
    source = "".join(line for line in text.splitlines(True) if not line.startswith("//~"))
    expected = "".join(f"//~ {line}".rstrip() + "\n" for line in said.splitlines())
    if os.environ.get("REPRISE_ACCEPT"):
        path.write_bytes((source + expected).encode())
    assert text == source + expected
