"""``docs/architecture.md`` says who may import whom, and the sources keep to it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "reprise"

# Belong to no package and import none.
COMMON = {"__version__", "cache", "data"}


def text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


PAGE = text(ROOT / "docs" / "architecture.md")


def order() -> list[str]:
    """The packages from left to right, as the page's one line of arrows has them."""
    (line,) = re.findall(r"^lang → .*$", PAGE, re.MULTILINE)
    return [name.strip() for name in re.split("[→,]", line)]


def permitted() -> dict[str, set[str]]:
    """What the page's table says that each package may import."""
    rows = re.findall(r"^\| `reprise/(\w+)` \|.*\|([^|]*)\|$", PAGE, re.MULTILINE)
    return {name: set(re.findall(r"`(\w+)`", cell)) for name, cell in rows}


@cache
def imported(file: Path) -> tuple[tuple[str, int], ...]:
    """Every module that a file imports, at its top or within a function, with the line."""
    return tuple(found_in(file))


def found_in(file: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(text(file))):
        match node:
            case ast.Import():
                yield from ((name.name, node.lineno) for name in node.names)
            case ast.ImportFrom(module=None) | ast.ImportFrom(level=1 | 2 | 3):
                yield "." * node.level, node.lineno
            case ast.ImportFrom(module="reprise"):
                yield from ((f"reprise.{name.name}", node.lineno) for name in node.names)
            case ast.ImportFrom():
                yield str(node.module), node.lineno


def crossings(package: str) -> dict[str, list[str]]:
    """The other packages that a package imports, each with the places."""
    found: dict[str, list[str]] = {}
    for file in sorted((PACKAGE / package).rglob("*.py")):
        for module, line in imported(file):
            head, _, rest = module.partition(".")
            other = rest.split(".")[0]
            if head == "reprise" and other != package:
                found.setdefault(other, []).append(f"{file.relative_to(ROOT)}:{line}")
    return found


def worker_files() -> list[Path]:
    """What runs in a target's process: the worker, its protocol, and target files."""
    files = [PACKAGE / "targets" / "worker.py", PACKAGE / "targets" / "wire.py"]
    constants = re.compile(r"^MODES = .*^DEVICES = ", re.MULTILINE | re.DOTALL)
    return files + [file for file in sorted(PACKAGE.rglob("*.py")) if constants.search(text(file))]


def test_the_page_names_every_package() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(order()) == packages
    assert set(permitted()) == packages
    assert len(order()) == len(packages)


def test_the_page_permits_imports_to_the_left_only() -> None:
    place = {name: number for number, name in enumerate(order())}
    for package, others in permitted().items():
        assert all(place[other] < place[package] for other in others), package


@pytest.mark.parametrize("package", order())
def test_a_package_imports_what_the_page_permits(package: str) -> None:
    found = crossings(package)
    excess = {o: where for o, where in found.items() if o not in permitted()[package] | COMMON}
    assert not excess


def test_imports_are_absolute() -> None:
    """So that the tests above see all of them."""
    relative = {
        f"{file.relative_to(ROOT)}:{line}"
        for file in PACKAGE.rglob("*.py")
        for module, line in imported(file)
        if module.startswith(".")
    }
    assert not relative


def test_modules_of_no_package_import_none() -> None:
    for name in ("__init__", "cache", "data"):
        modules = {module for module, _ in imported(PACKAGE / f"{name}.py")}
        assert not {module for module in modules if module.split(".")[0] == "reprise"}, name


def test_what_runs_in_a_worker_needs_nothing_of_ours() -> None:
    """Other interpreters have the compiler and numpy, but not Reprise."""
    files = worker_files()
    assert {"worker.py", "wire.py", "onnxruntime.py", "tvm.py"} <= {file.name for file in files}
    for file in files:
        ours = [place for place in imported(file) if "reprise" in place[0]]
        assert not ours, file


def test_a_worker_starts_with_the_standard_library_and_numpy_only() -> None:
    third = {"numpy", "ml_dtypes"}
    for name in ("worker", "wire"):
        heads = {m.split(".")[0] for m, _ in imported(PACKAGE / "targets" / f"{name}.py")}
        assert heads <= third | set(sys.stdlib_module_names), name
