"""Findings as a triager meets them: filed, described, and shown again by a script alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import NoneType

import numpy as np
import pytest

from reprise.campaign import bench as benches
from reprise.campaign.bench import FuzzBench, Fuzzing
from reprise.campaign.filing import Known
from reprise.campaign.findings import finding_files, npz, read_detail, read_npz
from reprise.campaign.judging import Judging
from reprise.campaign.records import Confirmation, Record, RunInfo, StoreError
from reprise.lower.lowering import lowering
from reprise.oracle.tolerance import Tolerance
from reprise.oracle.verdict import Judgement, Verdict
from reprise.solve.signatures import Signatures
from reprise.synth.interface import Source, Synthesis
from reprise.targets.discover import Target, parse_target
from reprise.targets.interface import Ended, Failure, ModeResult, Outcome, Stage
from reprise.uir.graph import Role
from reprise.uir.program import Program
from reprise.uir.text import parse_uir
from reprise.uir.types import numpy_dtype
from tests.campaign.runs import info
from tests.campaign.toy import ToySource, toy_info, toy_work

TRANSPOSED = "x: float32[4, 4]\nw: float32[4, 4]\nt = transpose(x, perm=[0, 1])\ng = gemm(t, w)\n"
CLIPPED = "x: float64[4]\nr = relu(x)\nc = clip(r, min=0.0, max=6.0)\n"
LARGE = TRANSPOSED.replace("4, 4", "64, 64")
BOTH = TRANSPOSED + "y: float64[4]\nr = relu(y)\nc = clip(r, min=0.0, max=6.0)\n"
FINE = "x: float32[4]\nr = relu(x)\n"


@dataclass(frozen=True)
class Texts:
    """Programs from their text."""

    texts: tuple[str, ...]

    def __call__(self) -> Source:
        return self

    def program(self, index: int) -> Synthesis:
        graph = parse_uir(self.texts[index], "text", Signatures.load())
        graph.name = f"p{index}"
        rng = np.random.default_rng(index)
        inputs = {
            t.name: rng.standard_normal(t.type.shape).astype(numpy_dtype(t.type.dtype or ""))  # type: ignore[arg-type]
            for t in graph.tensors
            if t.role is Role.INPUT
        }
        return Synthesis(Program(graph, inputs, graph.name))


@pytest.fixture(scope="module")
def tested() -> dict[str, benches.Tested]:
    """Programs run on ONNX Runtime and judged."""
    texts = (TRANSPOSED, CLIPPED, FINE, LARGE, BOTH)
    known = Known("onnxruntime", "1.27.0", (), (("provider", "cpu"),))
    bench = FuzzBench(Fuzzing(parse_target("onnxruntime"), Texts(texts), Judging(0), known))
    try:
        done = dict(zip(texts, bench.run(range(len(texts))), strict=True))
        assert bench.confirm(done[TRANSPOSED], 3)[0] == Confirmation(3, 3)
        return done
    finally:
        bench.close()


def ort_info() -> RunInfo:
    return info(versions={"onnxruntime": "1.27.0"})


def folder(path: Path, tested: benches.Tested, run: RunInfo, target: str) -> Path:
    path.mkdir()
    for name, data in finding_files(tested, run, parse_target(target), Confirmation(3, 3)).items():
        (path / name).write_bytes(data)
    return path


def alone(
    script: Path, python: str = sys.executable, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a script where nothing of ours can be imported."""
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run(
        [python, "-P", str(script)],
        cwd="/",
        env={**plain, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_findings_are_filed_under_the_rule_whose_pass_is_to_blame(
    tested: dict[str, benches.Tested],
) -> None:
    assert tested[FINE].record.verdict is Verdict.OK
    assert tested[FINE].exhibit is None
    record = tested[TRANSPOSED].record
    assert (record.verdict, record.rule) == (Verdict.WRONG_RESULT, "ort_32228")
    record = tested[CLIPPED].record
    assert (record.verdict, record.rule) == (Verdict.CRASH, "ort_24158")


@pytest.mark.slow
def test_of_two_matches_the_one_that_fits_is_chosen(tested: dict[str, benches.Tested]) -> None:
    both = tested[BOTH]
    assert both.exhibit is not None
    assert {m.rule for m in both.exhibit.matches} == {"ort_32228", "ort_24158"}
    assert (both.record.verdict, both.record.rule) == (Verdict.CRASH, "ort_24158")


@pytest.mark.slow
@pytest.mark.parametrize("text", [TRANSPOSED, CLIPPED, LARGE], ids=["wrong", "crash", "large"])
def test_the_script_of_a_finding_shows_it_alone(
    tested: dict[str, benches.Tested], tmp_path: Path, text: str
) -> None:
    made = folder(tmp_path / "finding", tested[text], ort_info(), "onnxruntime")
    script = (made / "repro.py").read_text()
    imported = {line.split()[1] for line in script.splitlines() if line.startswith("import ")}
    assert imported <= {"base64", "os", "sys", "numpy", "onnxruntime"}
    done = alone(made / "repro.py")
    assert done.returncode == 1, done.stderr
    assert "onnxruntime 1.27" in done.stdout and "numpy 2" in done.stdout
    assert ("elements differ" if text != CLIPPED else "FAILS (optimised)") in done.stdout
    mended = script.replace('if mode == "optimised" else', "if False else")
    assert mended != script
    (made / "repro.py").write_text(mended)
    done = alone(made / "repro.py")
    assert done.returncode == 0, done.stdout + done.stderr
    (made / "repro.py").write_text(script.replace("import onnxruntime", "import no_compiler"))
    done = alone(made / "repro.py")
    assert done.returncode == 2 and "no_compiler" in done.stderr


@pytest.mark.slow
def test_a_small_finding_can_be_pasted(tested: dict[str, benches.Tested], tmp_path: Path) -> None:
    """The script alone is enough where the model and the inputs are small."""
    made = folder(tmp_path / "finding", tested[TRANSPOSED], ort_info(), "onnxruntime")
    shutil.move(made / "repro.py", tmp_path / "pasted.py")
    shutil.rmtree(made)
    assert alone(tmp_path / "pasted.py").returncode == 1
    text = (tmp_path / "pasted.py").read_text()
    assert "t: float32[4, 4] = transpose(x, perm=[0, 1])" in text.split("\nimport ")[0]


def test_the_description_says_what_a_triager_needs(
    tested: dict[str, benches.Tested], tmp_path: Path
) -> None:
    made = folder(tmp_path / "finding", tested[TRANSPOSED], ort_info(), "onnxruntime")
    detail = read_detail(made)
    assert detail.rule == "ort_32228"
    assert detail.signature == "pass:GemmTransposeFusion"
    assert detail.confirmation == Confirmation(3, 3)
    assert detail.raw["tolerances"][0]["relative"] == 0.01
    assert detail.evidence["ablation"]["cures"] == ["GemmTransposeFusion"]
    assert json.loads((made / "finding.json").read_text())["target"] == "onnxruntime"


@pytest.mark.slow
def test_a_third_partys_target_is_called_through_its_file(tmp_path: Path) -> None:
    bench = FuzzBench(toy_work(ToySource()))
    try:
        done = {t.record.signature: t for t in bench.run(range(60))}
    finally:
        bench.close()
    target = str(Path(__file__).with_name("toy_target.py"))
    for number, signature in enumerate(["no kernel of the first kind", "differs"]):
        made = folder(tmp_path / str(number), done[signature], toy_info(), target)
        result = alone(made / "repro.py")
        assert result.returncode == 1, result.stderr
        assert "toy 1.0" in result.stdout


@pytest.mark.slow
def test_what_ends_its_process_is_shown_from_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY", "dies")
    bench = FuzzBench(toy_work(ToySource()))
    try:
        died = next(t for t in bench.run(range(200)) if t.record.signature == "died")
    finally:
        bench.close()
    target = str(Path(__file__).with_name("toy_target.py"))
    made = folder(tmp_path / "finding", died, toy_info(), target)
    assert alone(made / "repro.py", TOY="dies").returncode == 1
    assert alone(made / "repro.py", TOY="").returncode == 0


def test_arrays_of_any_element_type_are_kept(tmp_path: Path) -> None:
    names = ["float32", "bool", "int8", "uint64", "float16", "bfloat16", "float8e4m3fn", "int4"]
    arrays = {name: np.array([[0, 1], [1, 0]]).astype(numpy_dtype(name)) for name in names}
    arrays["special"] = np.array([np.nan, np.inf, -0.0], "float32")
    arrays["string"] = np.array(["a", "béta"], object)
    (tmp_path / "a.npz").write_bytes(npz(arrays))
    read = read_npz(tmp_path / "a.npz")
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        if name == "string":
            assert read[name].tolist() == array.tolist()
        else:
            assert read[name].dtype == array.dtype
            assert read[name].tobytes() == array.tobytes()
    assert npz(arrays) == npz(arrays)


SOFTMAX = "x: float32[64, 17]\ns = softmax(x, axis=1)\nt = sum(s, axes=[1])\nf = floor(t)\n"
"""pytorch/pytorch#189787."""


def shown(text: str, target: Target, verdict: Verdict, path: Path) -> Path:
    """The folder of a program that is said to have failed on a target."""
    program = Texts((text,)).program(0).program
    model = lowering(target.lowering).lower(program.graph)
    judgement = Judgement(verdict, "s", "a title")
    failure = Failure(Stage.COMPILE, "Error", "message")
    failed = None if verdict is Verdict.WRONG_RESULT else failure
    outcome = Outcome(Ended.ANSWERED, {target.modes[0]: ModeResult(None, failed, 0.1)})
    tolerances = (Tolerance(1e-3, 1e-2),) * len(program.graph.outputs)
    files = {"program.uir": text.encode()}
    exhibit = benches.Exhibit(
        files, "p0", model, program.inputs, outcome, judgement, (), tolerances
    )
    done = benches.Tested(Record(0, verdict, "s", "a title"), exhibit)
    path.mkdir()
    for name, data in finding_files(done, ort_info(), target, None).items():
        (path / name).write_bytes(data)
    return path


def interpreter(variable: str, module: str) -> str:
    """An interpreter that has a compiler, or the test is skipped."""
    python = os.environ.get(variable, sys.executable)
    found = subprocess.run([python, "-c", f"import {module}"], check=False, capture_output=True)
    if found.returncode:
        pytest.skip(f"set {variable} to an interpreter that has {module}")
    return python


@pytest.mark.slow
def test_a_torch_script_shows_it_alone(tmp_path: Path) -> None:
    python = interpreter("REPRISE_TORCH_PYTHON", "torch")
    modes = ("inductor", "eager")
    target = Target("inductor", Path("none.py"), "torch", modes, ("cpu",), "cpu", python)
    made = shown(SOFTMAX, target, Verdict.WRONG_RESULT, tmp_path / "wrong")
    done = alone(made / "repro.py", python)
    assert done.returncode == 1, done.stderr
    assert "torch 2." in done.stdout and "elements differ" in done.stdout
    assert "nn.Module" in (made / "repro.py").read_text()
    made = shown(FINE, target, Verdict.WRONG_RESULT, tmp_path / "fine")
    assert alone(made / "repro.py", python).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tvm", "tvm-cuda-compile"])
def test_a_tvm_script_shows_it_alone(tmp_path: Path, name: str) -> None:
    python = interpreter("REPRISE_TVM_PYTHON", "tvm")
    target = parse_target(f"{name}@{python}")
    made = shown(FINE, target, Verdict.CRASH, tmp_path / "fine")
    done = alone(made / "repro.py", python)
    assert done.returncode == 0, done.stderr
    assert "apache-tvm 0." in done.stdout
    script = (made / "repro.py").read_text()
    broken = script.replace("R.nn.relu(", "R.nn.no_such_operator(")
    assert broken != script
    (made / "repro.py").write_text(broken)
    assert alone(made / "repro.py", python).returncode == 1
    if name == "tvm":
        made = shown(FINE, target, Verdict.WRONG_RESULT, tmp_path / "wrong")
        done = alone(made / "repro.py", python)
        assert done.returncode == 0, done.stderr
        assert "output 0: as expected" in done.stdout


DESCRIPTION = {
    "id": "00000007", "program": "p", "seed": 1, "index": 7, "verdict": "crash",
    "signature": "s", "title": "t", "severity": "normal", "rule": None, "matches": [],
    "confirmation": {"runs": 3, "agreed": 3}, "evidence": {}, "target": "onnxruntime",
    "versions": {"onnxruntime": "1"}, "files": [],
}  # fmt: skip


@pytest.mark.parametrize("key", sorted(DESCRIPTION))
@pytest.mark.parametrize("value", [5.5, [[]], [5], {"a": []}, "\0", float("nan")])
def test_a_description_is_as_its_types_say_or_damaged(
    tmp_path: Path, key: str, value: object
) -> None:
    path = tmp_path / "finding.json"
    path.write_text(json.dumps({**DESCRIPTION, key: value}))
    try:
        detail = read_detail(tmp_path)
    except StoreError as error:
        assert "finding.json: damaged" in str(error)
    else:
        assert isinstance(value, str) == isinstance(DESCRIPTION[key], str | NoneType)
        assert detail.raw[key] == value or value != value
    path.write_text(json.dumps({k: v for k, v in DESCRIPTION.items() if k not in (key,)}))
    if key != "severity":  # which older versions did not write
        with pytest.raises(StoreError, match="damaged"):
            read_detail(tmp_path)


@pytest.mark.parametrize("text", ["", "[", "[" * 99999, "null", "[]", '"x"', "9" * 5000])
def test_what_is_no_description_is_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / "finding.json").write_text(text)
    with pytest.raises(StoreError, match="damaged"):
        read_detail(tmp_path)


def _single_array(path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def _flipped(path: Path) -> None:
    path.write_bytes(npz({"x": np.arange(100.0)}))
    data = bytearray(path.read_bytes())
    data[200] ^= 255
    path.write_bytes(data)


def _unknown_type(path: Path) -> None:
    np.savez(path, **{"x:nosuch": np.zeros(3, "uint8")})


@pytest.mark.parametrize("damage", [Path.touch, _single_array, _flipped, _unknown_type])
def test_what_is_no_archive_of_arrays_is_a_value_error(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    path = tmp_path / "inputs.npz"
    damage(path)
    with pytest.raises(ValueError):
        read_npz(path)
