"""Which targets there are, and what ``--target NAME[:DEVICE][@PYTHON]`` means.

A target's file is found by name (those that ship, then the entry points of group
``reprise.targets``, whose values name modules) or given as a path that ends in ``.py``. Its
constants are read from its source: nothing in it runs in this process.
"""

from __future__ import annotations

import ast
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

GROUP = "reprise.targets"
LOWERINGS = ("onnx", "torch", "relax", "einsum")
"""What targets read. All are lowered from graphs but "einsum": Python that computes a kernel."""

_SHIPPED = {
    "targets": ("onnxruntime", "inductor", "tvm", "tvm_cuda_compile"),
    "einsum/targets": (
        *("tensora", "finch", "finch_julia", "pydata_sparse", "scipy_sparse", "torch_sparse"),
        *("mlir_sparse", "taco"),
    ),
}
"""The files of the targets that ship, by their folder in the package."""
SHORT_NAMES = {
    "mlir": "mlir-sparse",
    "pydata": "pydata-sparse",
    "scipy": "scipy-sparse",
    "torch": "torch-sparse",
}
"""Other names of targets: those that rules about kernels have for them."""
_SPEC = re.compile(r"(?P<name>.+?\.py|[^:@]+)(?::(?P<device>\w+))?(?:@(?P<python>.+))?", re.S)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")


class TargetError(Exception):
    """A target that cannot be used, and why; for people."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target file's constants, and where it is to run."""

    name: str
    file: Path
    lowering: str
    modes: tuple[str, ...]
    devices: tuple[str, ...]
    device: str
    python: str
    environment: tuple[tuple[str, str], ...] = ()
    """Variables that its process starts with, where the user's own environment has none."""

    def __str__(self) -> str:
        device = "" if self.device == self.devices[0] else f":{self.device}"
        return f"{self.name}{device}@{self.python}"


def parse_target(text: str) -> Target:
    """The target that ``NAME[:DEVICE][@PYTHON]`` means. NAME may be a target file's path; PYTHON
    an interpreter, a command, or a virtual environment's folder. Raises TargetError."""
    match = _SPEC.fullmatch(text)
    if match is None:
        raise TargetError(f"`{text}` is no target: write NAME, NAME:DEVICE or NAME@PYTHON")
    name, device, python = match.group("name", "device", "python")
    target = read_target(_file_of(name))
    if device is not None:
        if device not in target.devices:
            known = ", ".join(target.devices)
            raise TargetError(f"target {target.name} has no device `{device}` (it has {known})")
        target = replace(target, device=device)
    return replace(target, python=_interpreter(python)) if python is not None else target


def target_names() -> list[str]:
    """The names of all targets that ship or are installed, sorted."""
    return sorted(_files())


def read_target(file: Path) -> Target:
    """The constants of a target file, on its first device, in this interpreter. Raises
    TargetError."""
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except OSError as error:
        raise TargetError(f"{file}: {error.strerror}") from error
    except (SyntaxError, ValueError) as error:
        raise TargetError(f"{file} is not Python: {error}") from error
    if not any(isinstance(node, ast.ClassDef) and node.name == "Runner" for node in tree.body):
        raise TargetError(f"{file} is no target: it has no class Runner")
    constants = dict(_constants(tree))

    def constant(name: str, fits: Callable[[object], bool], wanted: str) -> object:
        value = constants.get(name)
        if not fits(value):
            raise TargetError(f"{file} is no target: it needs {name} = {wanted}")
        return value

    name = constant("NAME", lambda v: isinstance(v, str) and bool(_NAME.fullmatch(v)), '"a-name"')
    lowering = constant("LOWERING", lambda v: v in LOWERINGS, " or ".join(map(repr, LOWERINGS)))
    modes = constant("MODES", _are_words, '("tested", ..., "least optimised")')
    devices = constant("DEVICES", _are_words, '("cpu", ...)')
    assert isinstance(name, str) and isinstance(lowering, str)
    assert isinstance(modes, tuple) and isinstance(devices, tuple)
    variables = constants.get("ENVIRONMENT", {})
    if not isinstance(variables, dict) or not all(map(_is_variable, variables.items())):
        raise TargetError(f'{file} is no target: ENVIRONMENT must be {{"NAME": "value", ...}}')
    path, given = file.resolve(), tuple(variables.items())
    return Target(name, path, lowering, modes, devices, devices[0], sys.executable, given)


def _constants(tree: ast.Module) -> list[tuple[str, object]]:
    found: list[tuple[str, object]] = []
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), value=value):
                try:
                    found.append((name, ast.literal_eval(value) if value is not None else None))
                except ValueError:
                    continue
    return found


def _are_words(value: object) -> bool:
    if not isinstance(value, tuple) or not value or len(value) > 100:
        return False
    return all(isinstance(word, str) and word for word in value) and len({*value}) == len(value)


def _is_variable(item: tuple[object, object]) -> bool:
    return all(isinstance(word, str) and "\0" not in word for word in item) and item[0] != ""


def _files() -> dict[str, Path]:
    """Every named target's file."""
    package = Path(__file__).parent.parent
    shipped = {
        stem.replace("_", "-"): package / folder / f"{stem}.py"
        for folder, stems in _SHIPPED.items()
        for stem in stems
    }
    return {**_installed(), **{name: file for name, file in shipped.items() if file.exists()}}


def _installed() -> dict[str, Path]:
    """Targets of other packages. A module is located in its package's folder, not imported."""
    found = {}
    for point in sorted(entry_points(group=GROUP), key=lambda p: (p.name, p.value)):
        file = _source_of(point.value)
        if file is not None:
            found[point.name] = file
    return found


def _source_of(module: str) -> Path | None:
    paths: list[str] | None = None
    spec = None
    for part in module.partition(":")[0].strip().split("."):
        spec = find_spec(part) if paths is None else PathFinder.find_spec(part, paths)
        if spec is None:
            return None
        paths = list(spec.submodule_search_locations or ())
    return Path(spec.origin) if spec is not None and spec.origin is not None else None


def _file_of(name: str) -> Path:
    if name.endswith(".py"):
        return Path(name)
    files = _files()
    if name not in files:
        name = SHORT_NAMES.get(name, name)
    if name not in files:
        from reprise.lang.symbols import suggest

        alike = sorted(file for file in files if name in file.split("-"))
        near = suggest(name, files) if len(alike) < 2 else None
        hint = near or f"there are {', '.join(alike or sorted(files))}"
        raise TargetError(f"there is no target `{name}`: {hint}; or give a target file's path")
    return files[name]


def _interpreter(python: str) -> str:
    """The interpreter's path. Not resolved: a virtual environment's is a link to another."""
    path = Path(python).expanduser()
    if path.is_dir():
        path = path / "bin" / "python"
    found = shutil.which(path)
    if found is None:
        raise TargetError(f"there is no interpreter {python}")
    return str(Path(found).absolute())
