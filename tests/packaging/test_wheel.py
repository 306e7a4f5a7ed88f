"""What is built can be installed and works, away from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

DATA = ("rules", "grammars", "extractors")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder


def data_files() -> set[str]:
    """Every tracked or new data file of the checkout, relative to it."""
    return {
        str(path.relative_to(ROOT))
        for folder in DATA
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def sources() -> set[str]:
    """Every file of the package, whatever its kind."""
    return {
        str(path.relative_to(ROOT))
        for path in (ROOT / "reprise").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_data(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"reprise/_data/{name}" for name in data_files()} <= names
    for folder in ("bugs", "conformance", "ops", "std", "targets"):
        assert any(name.startswith(f"reprise/_data/rules/{folder}/") for name in names), folder
    assert sources() <= names
    assert {f"reprise/targets/{name}.py" for name in ("worker", "wire", "onnxruntime")} <= names
    assert {"reprise/py.typed", "reprise/campaign/report/page.css"} <= names
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"reprise"}


@pytest.mark.slow
def test_the_source_archive_is_complete(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames() if "/" in name}
    assert data_files() <= names
    for name in ("Makefile", "LICENSE", "README.md", "mkdocs.yml", "tests/conftest.py", ".ci/run"):
        assert name in names
    assert not any(name.startswith((".venv", "site/", "build/")) for name in names)


@dataclass(frozen=True)
class Installed:
    """An environment that has the wheel and what it depends on, and nothing else."""

    home: Path

    def call(self, program: str, *arguments: str | Path, codes: tuple[int, ...] = (0,)) -> str:
        """What one of its programs prints, run away from the checkout."""
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
        done = subprocess.run(
            [str(part) for part in (self.home / "venv" / "bin" / program, *arguments)],
            cwd=self.home,
            env=clean,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert done.returncode in codes, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    (wheel,) = built.glob("*.whl")
    home = tmp_path_factory.mktemp("installed")
    venv.create(home / "venv", with_pip=True)
    environment = Installed(home)
    environment.call("python", "-m", "pip", "install", "--quiet", wheel)
    return environment


@pytest.mark.slow
def test_the_installed_wheel_checks_a_model(installed: Installed) -> None:
    assert "reprise" in installed.call("reprise", "--version")
    make = (
        "import onnx.parser, onnx;"
        "m = onnx.parser.parse_model('''<ir_version: 8, opset_import: [\"\" : 17]>"
        "g (float[3,4] x, float[4,4] w) => (float[3,4] y) {"
        "t = Transpose <perm: ints = [0, 1]> (w) y = Gemm (x, t) }''');"
        "onnx.save(m, 'model.onnx')"
    )
    installed.call("python", "-c", make)
    assert "32228" in installed.call("reprise", "check", "model.onnx", codes=(1,))
    assert str(ROOT) not in installed.call("reprise", "rules", "list", "--format", "json")


@pytest.mark.slow
def test_the_installed_wheel_fuzzes_onnxruntime(installed: Installed) -> None:
    """The base install is enough, and needs no torch."""
    installed.call("python", "-c", "import importlib.util as u; assert not u.find_spec('torch')")
    fuzz = ("fuzz", "--target", "onnxruntime", "--tests", "50", "--out", "run")
    installed.call("reprise", *fuzz, codes=(0, 1))
    installed.call("reprise", "report", "run")
    page = (installed.home / "run" / "report.html").read_text(encoding="utf-8")
    assert "<style" in page and "</html>" in page
    report = json.loads(installed.call("reprise", "report", "run", "--format", "json"))
    assert report["tests"] == 50
    assert report["verdicts"]["ok"] > 25
    assert "1.27" in report["versions"]["onnxruntime"]
    listed = installed.call("reprise", "targets", "list", "onnxruntime", "--format", "json")
    (state,) = json.loads(listed)["targets"]
    assert state["error"] is None
    assert state["file"].startswith(str(installed.home))
