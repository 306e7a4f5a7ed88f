"""Passes of compilers written in Python: functions that data names."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from reprise.xcheck.passes import python_hook
from reprise.xcheck.passes.python_hook import Hook, HookError, read_passes

COMPILER = """
from toy_steps import fold as imported_fold

class Program:
    def sequence(self, n): return n + 1
    def finalize_memory(self): return 1 // 0
    def finalize_all(self): return self.finalize_memory()
    @staticmethod
    def static(n): return n * 2
    @classmethod
    def made(cls): return cls()

    class Inner:
        def lower(self): return "lowered"

class Stage:
    def __init__(self, name): self.name = name
    def run(self, value): return value

def compile(n):
    program = Program.made()
    n = imported_fold(program.sequence(n))
    n = Stage("tile").run(Stage("hoist").run(n))
    return Program.static(n), program.Inner().lower()

async def later(n): return n
def several(n):
    yield n
    yield n + 1
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    (tmp_path / "toy_compiler.py").write_text(COMPILER)
    (tmp_path / "toy_steps.py").write_text("def fold(n): return n * 10\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("toy_compiler")
    for name in ("toy_compiler", "toy_steps"):
        sys.modules.pop(name, None)


def hooked(folder: Path, text: str) -> tuple[Hook, list[str]]:
    """A hook for a file of passes, and what it is told: ``+`` for a begin, ``-`` for an end."""
    path = folder / "passes.toml"
    path.write_text(text)
    told: list[str] = []
    hook = Hook(
        read_passes(path), lambda name: told.append(f"+{name}"), lambda n: told.append(f"-{n}")
    )
    return hook, told


def test_functions_methods_and_what_others_imported_are_seen(
    toy: ModuleType, tmp_path: Path
) -> None:
    _, told = hooked(
        tmp_path,
        """
        passes = ["toy_steps:fold", "toy_compiler:Program.sequence", "toy_compiler:Program.static",
                  "toy_compiler:Program.made", "toy_compiler:Program.Inner.*",
                  "toy_compiler:Stage.run"]
        [by_name]
        "toy_compiler:Stage.run" = "name"
        """,
    )
    assert toy.compile(1) == (40, "lowered")
    names = ["made", "sequence", "fold", "hoist", "tile", "static", "lower"]
    assert told == [f"{sign}{name}" for name in names for sign in "+-"]


def test_a_pass_that_raises_has_begun_and_not_ended(toy: ModuleType, tmp_path: Path) -> None:
    text = """
    passes = ["toy_compiler:Program.finalize_*"]
    containers = ["toy_compiler:Program.finalize_all"]
    """
    _, told = hooked(tmp_path, text)
    with pytest.raises(ZeroDivisionError):
        toy.Program().finalize_all()
    assert told == ["+finalize_memory"]


def test_coroutines_and_generators_end_when_they_are_done(toy: ModuleType, tmp_path: Path) -> None:
    _, told = hooked(tmp_path, 'passes = ["toy_compiler:later", "toy_compiler:several"]')
    assert asyncio.run(toy.later(3)) == 3
    values = toy.several(1)
    assert (next(values), told) == (1, ["+later", "-later", "+several"])
    assert [*values] == [2]
    assert told[-1] == "-several"


def test_removing_the_hook_puts_everything_back(toy: ModuleType, tmp_path: Path) -> None:
    before = {**vars(toy.Program)}, toy.imported_fold
    text = 'passes = ["toy_compiler:Program.*", "toy_steps:*"]'
    hook, told = hooked(tmp_path, text)
    assert vars(toy.Program)["static"] is not before[0]["static"]
    hook.remove()
    assert ({**vars(toy.Program)}, toy.imported_fold) == before
    toy.compile(1)
    assert told == []


def test_a_function_that_two_entries_name_is_one_pass(toy: ModuleType, tmp_path: Path) -> None:
    _, told = hooked(tmp_path, 'passes = ["toy_steps:fold", "toy_steps:*"]')
    toy.compile(1)
    assert told == ["+fold", "-fold"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('passes = ["toy_compiler:Program.sequense"]', "near ones: Program.sequence"),
        ('passes = ["no_such_module:f"]', "No module named 'no_such_module'"),
        ('passes = ["toy_compiler"]', "write module:qualified.name"),
        ("passes = []", "it needs passes"),
        ("passes = [", "passes.toml"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(
    toy: ModuleType, tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(HookError, match=message.replace(".", r"\.")):
        hooked(tmp_path, text)


def test_a_hook_that_fails_leaves_nothing_wrapped(toy: ModuleType, tmp_path: Path) -> None:
    before = toy.imported_fold
    with pytest.raises(HookError):
        hooked(tmp_path, 'passes = ["toy_steps:fold", "toy_compiler:nothing"]')
    assert toy.imported_fold is before


def test_it_needs_the_standard_library_only() -> None:
    code = f"import runpy; runpy.run_path({python_hook.__file__!r}, run_name='hook')"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, timeout=60)
