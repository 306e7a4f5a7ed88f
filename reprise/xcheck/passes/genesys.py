"""GeneSys, compiled only: PolyMath's ONNX importer, then the steps of codelets' program.

Runs in a worker (see ``interface``), in an interpreter that `examples/genesys/environment.sh` made.
The platform is an architecture's configuration: the name of one of codelets' own
("benchmark_16x16") or the path of a JSON file. Which functions are passes is said in
`extractors/genesys/passes.toml`.

The sources are those of the environment, or of the checkouts that REPRISE_GENESYS_CODELETS and
REPRISE_GENESYS_POLYMATH name: a copy that `reprise instrument` made, say.

Two things are set right that keep every compilation of the public sources from finishing: the
loader's ``GPU_SCALING = None`` (which three places take for a scaled configuration, whose base
shapes no public PolyMath keeps), and the packages that only data generation imports.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "genesys"
LOWERING = "onnx"
MODES = ("compiled",)
DEVICES = ("benchmark_16x16", "benchmark_32x32", "benchmark_128x128")

CHECKOUTS = {"codelets": "REPRISE_GENESYS_CODELETS", "polymath": "REPRISE_GENESYS_POLYMATH"}
"""The variable that names a checkout, by the package in it."""

_UNUSED = ("torch", "torchvision", "PIL")
"""Packages that codelets imports for generating data, which no compilation uses."""

_SAYS_SO = (
    "is not currently included in PolyMath",
    "operations which are unsupported by the target architecture",
)


class Runner:
    """Compiles for one configuration. The architecture is built anew for each model."""

    def __init__(self, device: str, announce: Any) -> None:
        self.announce = announce
        _use_checkouts()
        # Asks whether torch can be found, so it must come before the stand-ins.
        import onnxruntime.tools.symbolic_shape_infer  # noqa: F401

        sys.meta_path.append(_StandIns())
        self.polymath: Any = importlib.import_module("polymath")
        self.genesys: Any = importlib.import_module("codelets.examples.genesys")
        self.configuration = _configuration(
            device, Path(str(self.genesys.__file__)).parent / "configs"
        )
        self.load()  # raises for a configuration that is none
        hook = _sibling("python_hook")
        passes = hook.read_passes(_data("extractors/genesys/passes.toml"))
        self.hook = hook.Hook(passes, announce.begin, announce.end)

    def versions(self) -> dict[str, str]:
        import onnx

        sources = {
            name: _commit(Path(str(sys.modules[name].__file__)).parents[1]) for name in CHECKOUTS
        }
        return {**sources, "onnx": onnx.__version__}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        self.compile(model)
        return ()

    def compile(self, model: bytes) -> Any:
        """The compiled program."""
        self.announce("load")
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "model.onnx")
            Path(file).write_bytes(model)
            self.announce.begin("import")
            graph = self.polymath.from_onnx(file)
            self.announce.end("import")
            self.announce("compile")
            return self.genesys.compile_genesys(
                "model", self.load(), graph=graph, print_config=False, benchmark_path=folder
            )

    def load(self) -> dict[str, Any]:
        """The configuration, with its defaults."""
        return _Configuration(self.genesys.load_config(self.configuration))

    def passes(self, model: bytes) -> Sequence[str]:
        return ()

    def is_unsupported(self, error: Exception) -> bool:
        text = str(error)
        return any(words in text for words in _SAYS_SO)


class _Configuration(dict[str, Any]):
    """A configuration that is scaled only if it says how."""

    def __init__(self, loaded: dict[str, Any]) -> None:
        super().__init__(loaded)
        if self.get("GPU_SCALING") is None:
            self.pop("GPU_SCALING", None)

    def __missing__(self, key: str) -> Any:
        if key == "GPU_SCALING":
            return None
        raise KeyError(key)


class _StandIns(MetaPathFinder, Loader):
    """Modules in which every name exists, for packages that nothing here uses."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in _UNUSED:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Anything(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _Anything(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def _use_checkouts() -> None:
    """Put the checkouts that are asked for before everything else. Raises RuntimeError for one
    that is none, and where a package is nowhere."""
    for package, variable in CHECKOUTS.items():
        folder = os.environ.get(variable)
        if folder is not None:
            if not os.path.isdir(os.path.join(folder, package)):
                raise RuntimeError(f"{variable}: there is no package {package} in {folder}")
            sys.path.insert(0, os.path.abspath(folder))
        elif importlib.util.find_spec(package) is None:
            raise RuntimeError(
                f"this interpreter has no {package}: name its checkout in {variable}"
            )


def _configuration(device: str, shipped: Path) -> str:
    path = Path(device) if device.endswith(".json") else shipped / f"{device}.json"
    if not path.is_file():
        names = sorted(file.stem for file in shipped.glob("*.json"))
        raise RuntimeError(f"there is no configuration {device}; codelets has {', '.join(names)}")
    if path.read_bytes().startswith(b"version https://git-lfs"):
        raise RuntimeError(f"{path} is a pointer of Git LFS, whose file was not fetched")
    return str(path)


def _commit(folder: Path) -> str:
    """The commit that a checkout is at, or where it is: these packages have no versions."""
    git = folder / ".git"
    try:
        if git.is_file():  # of a linked work tree
            git = folder / git.read_text(encoding="utf-8").partition(":")[2].strip()
        text = (git / "HEAD").read_text(encoding="utf-8").strip()
        if text.startswith("ref: "):
            text = (git / text[5:]).read_text(encoding="utf-8").strip()
        return text[:12]
    except OSError:
        return f"in {folder}"


def _sibling(name: str) -> Any:
    """A module of this folder: the interpreter need not have Reprise."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"reprise_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"reprise_{name}"] = module
    spec.loader.exec_module(module)
    return module


def _data(relative: str) -> Path:
    """A file that ships, in a checkout or in a wheel (as ``reprise.data`` finds it)."""
    package = Path(__file__).resolve().parents[2]
    packed = package / "_data"
    return (packed if packed.is_dir() else package.parent) / relative
