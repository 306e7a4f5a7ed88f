"""Every page of the documentation, read from top to bottom, does what it says.

The blocks of a page share one temporary folder:

- a block with a ``title`` is written to a file of that name;
- a ``rules`` block must lint without a word (but for lacking tests), and the tests in it must pass,
  unless the line before it is ``<!-- broken -->``;
- each ``$ command`` of a ``console`` block is run, and must print what stands below it; ``...`` on
  a line of its own stands for any lines, within a line for any text; if the line before the block
  is ``<!-- numbers vary -->``, a number stands for any number, and a gap for any gap.

``REPRISE_UPDATE_DOCS=1`` writes what the commands print into the pages instead.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT, environment

PAGES = sorted([*(ROOT / "docs").glob("**/*.md"), ROOT / "README.md"])
UPDATE = os.environ.get("REPRISE_UPDATE_DOCS") == "1"

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    language: str
    title: str | None
    body: str
    start: int  # of the body, in the page
    note: str  # what the comment on the line before says, if there is one


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    for match in FENCE.finditer(page):
        title = re.search(r'title="([^"]*)"', match["info"])
        before = page[: match.start()].rstrip().rsplit("\n", 1)[-1].strip()
        found.append(
            Block(
                match["language"],
                title[1] if title else None,
                match["body"],
                match.start("body"),
                before.removeprefix("<!-- ").removesuffix(" -->"),
            )
        )
    return found


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """Surroundings in which `reprise` and `python` are the ones under test."""
    commands = tmp_path / ".bin"
    commands.mkdir()
    for name, arguments in (("reprise", "-m reprise"), ("python", "")):
        script = commands / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
        script.chmod(0o755)
    surroundings = environment()
    return {**surroundings, "PATH": f"{commands}{os.pathsep}{surroundings['PATH']}"}


def run(command: str, folder: Path, shell: dict[str, str]) -> str:
    """What a command prints, on both streams."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=shell,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return "\n".join(line.rstrip() for line in done.stdout.split("\n")).strip("\n")


NUMBER = re.compile(r"\d[\d:.,]*\d|\d")


def matches(expected: str, actual: str, numbers_vary: bool = False) -> bool:
    """Whether ``actual`` is ``expected``, where ``...`` stands for anything."""
    if numbers_vary:
        expected, actual = (
            re.sub("(?<=[^ \n]) {2,}", " ", NUMBER.sub("0", t)) for t in (expected, actual)
        )
    lines = [re.escape(line).replace(r"\.\.\.", "[^\n]*") for line in expected.split("\n")]
    pattern = "\n".join(lines)
    pattern = re.sub(r"(^|\n)\[\^\n\]\*(?=\n|$)", r"\1(?:.*?)", pattern)
    return re.fullmatch(pattern, actual, re.DOTALL) is not None


def commands(body: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that stands below it."""
    parts = re.split(r"^\$ ", body, flags=re.MULTILINE)
    assert not parts[0].strip(), "a console block starts with a command"
    split = [part.partition("\n") for part in parts[1:]]
    return [(command, output.strip("\n")) for command, _, output in split]


SLOW = {"einsum.md", "fuzzing.md", "generating.md", "language.md"}


def cases() -> list[object]:
    """Every page, by its path; those that take more than a few seconds are marked."""
    return [
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.slow] if page.name in SLOW else [],
        )
        for page in PAGES
    ]


@pytest.mark.slow
@pytest.mark.parametrize("page", cases())
def test_page_does_what_it_says(page: Path, tmp_path: Path, shell: dict[str, str]) -> None:
    text = page.read_text(encoding="utf-8")
    updated, at = [], 0
    for block in blocks(text):
        if block.title:
            (tmp_path / block.title).write_text(block.body, encoding="utf-8")
        if block.language == "rules" and block.note != "broken":
            check_rules(block, tmp_path, shell)
        if block.language == "console":
            outputs = []
            for command, expected in commands(block.body):
                actual = run(command, tmp_path, shell)
                as_written = matches(expected, actual, block.note == "numbers vary")
                if not UPDATE:
                    assert as_written, f"$ {command}\n{actual}"
                kept = expected if as_written and expected else actual
                outputs.append(f"$ {command}\n{kept}".rstrip("\n") + "\n")
            updated += [text[at : block.start], "".join(outputs)]
            at = block.start + len(block.body)
    if UPDATE:
        page.write_text("".join([*updated, text[at:]]), encoding="utf-8")


def check_rules(block: Block, folder: Path, shell: dict[str, str]) -> None:
    """A block of rules lints (an example may do without tests), and its tests pass."""
    if not block.title:
        (folder / "block.rules").write_text(block.body, encoding="utf-8")
    name = block.title or "block.rules"
    report = json.loads(run(f"reprise rules lint --format json {name}", folder, shell))
    found = [d for d in report["diagnostics"] if d["code"] != "untested"]
    assert not found, block.body
    if re.search(r"^test ", block.body, re.MULTILINE):
        said = run(f"reprise rules test {name}", folder, shell)
        assert ", 0 failed" in said, f"{said}\n\n{block.body}"
