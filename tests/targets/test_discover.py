"""Target names on the command line, and what is said about those that are none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from reprise.targets.discover import TargetError, parse_target, read_target, target_names
from tests.targets.conftest import OBEDIENT

FILE = """
NAME = "mine"
LOWERING = "torch"
MODES = ("compiled", "eager")
DEVICES: tuple[str, ...] = ("cuda", "cpu")
class Runner: ...
"""


def test_a_name_alone_runs_here_on_the_first_device() -> None:
    target = parse_target("onnxruntime")
    assert (target.name, target.lowering, target.device) == ("onnxruntime", "onnx", "cpu")
    assert target.modes == ("optimised", "unoptimised")
    assert target.python == sys.executable
    assert "onnxruntime" in target_names()


@pytest.mark.parametrize("python", [sys.executable, Path(sys.executable).name])
def test_an_interpreter_is_a_path_or_a_command(
    python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert parse_target(f"onnxruntime@{python}").python.endswith(Path(sys.executable).name)


def test_an_interpreter_may_be_an_environment_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.symlink_to(sys.executable)
    target = parse_target(f"onnxruntime:cuda@{tmp_path}")
    assert (target.python, target.device) == (str(python), "cuda")
    assert str(target) == f"onnxruntime:cuda@{python}"


def test_a_path_may_hold_what_separates_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "a@b:c"
    folder.mkdir()
    file = folder / "mine.py"
    file.write_text(FILE)
    target = parse_target(f"{file}:cpu@{sys.executable}")
    assert (target.name, target.file, target.device) == ("mine", file, "cpu")
    assert parse_target(str(file)).device == "cuda"


def test_a_target_file_is_read_not_run(tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text("import a_compiler_that_is_missing\nraise SystemExit\n" + FILE)
    assert read_target(file).modes == ("compiled", "eager")


def test_a_target_file_says_what_variables_its_process_needs(tmp_path: Path) -> None:
    file = tmp_path / "t.py"
    file.write_text(FILE)
    assert read_target(file).environment == ()
    file.write_text('ENVIRONMENT = {"ONE": "1"}' + FILE)
    assert read_target(file).environment == (("ONE", "1"),)
    for wrong in ('["ONE"]', '{"ONE": 1}', '{"": "1"}', r'{"ONE": "\0"}'):
        file.write_text(f"ENVIRONMENT = {wrong}{FILE}")
        with pytest.raises(TargetError, match="ENVIRONMENT"):
            read_target(file)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("onnxruntme", "did you mean `onnxruntime`"),
        ("zzz", "there are .*onnxruntime"),
        ("onnxruntime:tpu", "no device `tpu`.*cpu, cuda"),
        ("onnxruntime@/no/such/python", "no interpreter /no/such/python"),
        ("onnxruntime@", "no target"),
        ("", "no target"),
        ("sparse", "there are mlir-sparse, pydata-sparse, scipy-sparse, torch-sparse"),
        ("no/such/file.py", "No such file"),
    ],
)
def test_mistakes_are_explained(text: str, says: str) -> None:
    with pytest.raises(TargetError, match=says):
        parse_target(text)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('"mine"', '"My Target"'), "needs NAME"),
        (('NAME = "mine"', ""), "needs NAME"),
        (('"torch"', '"tensorflow"'), "needs LOWERING = 'onnx' or 'torch' or 'relax'"),
        (('("compiled", "eager")', "()"), "needs MODES"),
        (('("compiled", "eager")', '("a", "a")'), "needs MODES"),
        (('("compiled", "eager")', '"eager"'), "needs MODES"),
        (('("compiled", "eager")', "tuple(modes())"), "needs MODES"),
        (('("cuda", "cpu")', '["cpu"]'), "needs DEVICES"),
        (("class Runner: ...", ""), "no class Runner"),
        (("class", "klass"), "not Python"),
        (("NAME", "\0"), "not Python"),
    ],
)
def test_a_file_that_is_no_target_says_what_is_missing(
    tmp_path: Path, change: tuple[str, str], says: str
) -> None:
    file = tmp_path / "t.py"
    file.write_text(FILE.replace(*change))
    with pytest.raises(TargetError, match=says):
        read_target(file)


def test_installed_packages_add_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "their_package"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "inner" / "target.py").write_text(OBEDIENT.read_text())
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[reprise.targets]\nobedient = their_package.inner.target\n"
        "onnxruntime = their_package.inner.target\ngone = their_package.nowhere\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert {"obedient", "onnxruntime"} <= {*target_names()}
    assert "gone" not in target_names()
    assert parse_target("obedient").file == package / "inner" / "target.py"
    assert parse_target("onnxruntime").name == "onnxruntime", "what ships comes first"
