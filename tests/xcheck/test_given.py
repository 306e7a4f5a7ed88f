"""Models that are given: what they violate and what a compiler makes of them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from tests.conftest import ROOT, environment
from tests.forking import forked

HERE = Path(__file__).parent
PICKY = ["--target", str(HERE / "picky.py"), "--rules", str(HERE / "picky.rules")]
Done = subprocess.CompletedProcess[str]

FINE = "x: float32[4]\ny: float32[4]\nn = add(x, y)\noutput n\n"
LARGE = "x: float32[1048576, 4096]\ny: float32[1048576, 4096]\nn = add(x, y)\noutput n\n"
DEADLY = "x: float32[13]\nn = abs(x)\noutput n\n"


def compiled(folder: Path, *arguments: str) -> Done:
    return forked(["xcheck", "compile", *arguments], folder, environment(), 120)


def put(folder: Path, **models: str) -> list[str]:
    for name, text in models.items():
        (folder / f"{name}.uir").write_text(text)
    return [f"{name}.uir" for name in models]


@pytest.mark.slow
def test_each_model_is_told_with_what_it_violates_and_how_far_it_got(tmp_path: Path) -> None:
    done = compiled(tmp_path, *put(tmp_path, fine=FINE, large=LARGE, deadly=DEADLY), *PICKY)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        "fine.uir: compiled, violates none of the 4 constraints, at the end (4 passes)",
        "large.uir: accepted silently though a constraint is violated, at the end (4 passes)",
        "    violates add_fits (picky.py:5)",
        "deadly.uir: crashed, in codegen (3 passes)",
        "    SIGSEGV",
        "    violates never_13 (picky.py:6)",
    ]


@pytest.mark.slow
def test_what_contradicts_a_signature_is_told(tmp_path: Path) -> None:
    a, b, c = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [int(name[1])])
        for name in ("a2", "b3", "c2")
    )
    node = helper.make_node("Mul", ["a2", "b3"], ["c2"])
    model = helper.make_model(helper.make_graph([node], "odd", [a, b], [c]))
    (tmp_path / "odd.onnx").write_bytes(model.SerializeToString())
    said = compiled(tmp_path, "odd.onnx", *PICKY).stdout
    assert "contradicts the signature of mul" in said and "valid model" not in said


@pytest.mark.slow
def test_what_is_found_can_be_had_as_json(tmp_path: Path) -> None:
    done = compiled(tmp_path, *put(tmp_path, large=LARGE), *PICKY, "--format", "json")
    (model,) = json.loads(done.stdout)["models"]
    assert model["violated"] == [{"constraint": "add_fits", "from": "picky.py:5"}]
    assert (model["verdict"], model["finding"], model["passes"]) == ("accepted", True, 4)


@pytest.mark.parametrize(
    "name, data, message",
    [
        ("broken.onnx", b"\xff\x00garbage", "broken.onnx: not an ONNX model"),
        ("empty.onnx", b"", "empty.onnx: not an ONNX model: it has no graph"),
        ("broken.uir", b"x: float32[", "broken.uir:1"),
        ("binary.uir", bytes(range(256)), "binary.uir:2"),
    ],
)
def test_a_file_that_is_no_model_is_told(
    tmp_path: Path, name: str, data: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(data)
    done = compiled(tmp_path, name, *PICKY)
    assert done.returncode == 2 and message in done.stderr


def test_a_device_that_has_no_end_is_not_read(tmp_path: Path) -> None:
    done = compiled(tmp_path, "/dev/zero", *PICKY)
    assert (done.returncode, "no regular file" in done.stderr) == (2, True)


def test_a_model_of_which_nothing_is_known_is_not_called_valid(tmp_path: Path) -> None:
    nodes = [helper.make_node("Add", ["a", "d"], ["c"]), helper.make_node("Relu", ["c"], ["d"])]
    a, d = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "ad")
    model = helper.make_model(helper.make_graph(nodes, "cyclic", [a], [d]))
    (tmp_path / "cyclic.onnx").write_bytes(model.SerializeToString())
    said = compiled(tmp_path, "cyclic.onnx", *PICKY).stdout.splitlines()
    assert said[0] == "cyclic.onnx: compiled, at the end (4 passes)" and "cycle" in said[1]


@pytest.mark.slow
@pytest.mark.parametrize("said", ["confidence: low", "template: fusion"])
def test_what_violates_a_constraint_that_is_no_demand_is_no_finding(
    tmp_path: Path, said: str
) -> None:
    rules = (HERE / "picky.rules").read_text()
    (tmp_path / "own.rules").write_text(
        rules.replace('from: "picky.py:5"', f'from: "picky.py:5"\n    {said}')
    )
    done = compiled(tmp_path, *put(tmp_path, large=LARGE), *PICKY[:2], "--rules", "own.rules")
    assert done.returncode == 0, done.stderr
    assert "no demand" in done.stdout and "violates add_fits" in done.stdout


@pytest.mark.slow
def test_the_second_papers_models_are_accepted_by_onnxruntime() -> None:
    models = sorted((ROOT / "examples" / "xcheck").glob("*.uir"))
    options = ["--target", "onnxruntime", "--device", "h100_80gb", "--format", "json"]
    done = compiled(ROOT, *map(str, models), *options)
    told = {Path(m["model"]).stem: m for m in json.loads(done.stdout)["models"]}
    assert told["add_32"]["verdict"] == "compiled"
    for name in ("add_302492402", "add_10048934087", "sub_300000000"):
        assert told[name]["verdict"] == "accepted"
        assert [v["constraint"] for v in told[name]["violated"]] == [f"input_size_{name[:3]}"]


@pytest.mark.slow
def test_operators_of_other_signatures_are_known(tmp_path: Path) -> None:
    (tmp_path / "s.rules").write_text(
        "op onnx.CastLike(x: T[2], y: T[2]) -> T[2] { category mined }\n"
    )
    models = put(tmp_path, foo="x: float32[2]\nn = onnx.CastLike(x, x)\ny = abs(n)\noutput y\n")
    assert compiled(tmp_path, *models, *PICKY).returncode == 2
    known = compiled(tmp_path, *models, *PICKY, "--signatures", "s.rules")
    assert known.stdout.startswith("foo.uir: compiled, violates none"), known.stderr
