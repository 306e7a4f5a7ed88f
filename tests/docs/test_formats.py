"""``docs/formats.md`` names every key of every JSON document, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run

RULE = """\
pattern squared "squared" {
    target: tvm
    m = mul(x, x)
    where x.dim[0] >= 2
}
test squared {
    match { x: float32[4]; m = mul(x, x) }
}
"""


def documented(heading: str) -> set[str]:
    """The keys in the first block under a heading."""
    page = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    block = page.split(f"### `{heading}`\n")[1].split("```")[1]
    return set(re.findall(r'"(\w+)":', block))


def keys(value: Any, free: frozenset[str] = frozenset({"nodes", "values"})) -> set[str]:
    """Every key in a document, but for objects whose keys are the user's names."""
    if isinstance(value, list):
        return {key for item in value for key in keys(item, free)}
    if not isinstance(value, dict):
        return set()
    inner = {key: item for key, item in value.items() if key not in free}
    return {*value, *(key for item in inner.values() for key in keys(item, free))}


COMMANDS = {
    "reprise check": [
        "check",
        "--rules",
        "r.rules",
        "--explain",
        "--near",
        "m.uir",
        "n.uir",
        "b.onnx",
    ],
    "reprise rules lint": ["rules", "lint", "bad.rules"],
    "reprise rules test": ["rules", "test", "r.rules"],
    "reprise rules list": ["rules", "list", "r.rules"],
}


@pytest.mark.parametrize("heading", COMMANDS)
def test_the_keys_are_documented(reprise: Run, tmp_path: Path, heading: str) -> None:
    (tmp_path / "r.rules").write_text(RULE)
    (tmp_path / "bad.rules").write_text(RULE.replace("mul(x", "mull(x"))
    (tmp_path / "m.uir").write_text("x: float32[4]\nm = mul(x, x)\n")
    (tmp_path / "n.uir").write_text("x: float32[1]\nm = mul(x, x)\n")
    (tmp_path / "b.onnx").write_text("no model")
    done = reprise(*COMMANDS[heading], "--format", "json")
    found = keys(json.loads(done.stdout))
    users = {"s", "a"}  # names of nodes and variables in the example
    assert documented(heading) - users == found
