"""What is built can be installed and works, away from the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
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


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_its_data(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"reprise/_data/{name}" for name in data_files()} <= names
    sources = {str(p.relative_to(ROOT)) for p in (ROOT / "reprise").rglob("*.py")}
    assert sources <= names
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


@pytest.mark.slow
def test_the_installed_wheel_checks_a_model(built: Path, tmp_path: Path) -> None:
    """In an environment of its own, with the real dependencies."""
    (wheel,) = built.glob("*.whl")
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    python = home / "bin" / "python"
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def call(*command: str | Path, code: int = 0) -> str:
        done = subprocess.run(
            [str(part) for part in command],
            cwd=tmp_path,
            env=clean,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    call(python, "-m", "pip", "install", "--quiet", wheel)
    program = home / "bin" / "reprise"
    assert "reprise" in call(program, "--version")
    make = (
        "import onnx.parser, onnx;"
        "m = onnx.parser.parse_model('''<ir_version: 8, opset_import: [\"\" : 17]>"
        "g (float[3,4] x, float[4,4] w) => (float[3,4] y) {"
        "t = Transpose <perm: ints = [0, 1]> (w) y = Gemm (x, t) }''');"
        "onnx.save(m, 'model.onnx')"
    )
    call(python, "-c", make)
    said = call(program, "check", "model.onnx", code=1)
    assert "32228" in said
    assert str(ROOT) not in call(program, "rules", "list", "--format", "json")
