"""A tour in half a minute: models with known compiler bugs, what happens to them, and what
`reprise check` says about them before anything is compiled.

The models are made here, from ONNX's own text format. Each bug comes with a twin that differs in
one detail and is fine. Run it with `make demo`, or `python examples/demo.py [FOLDER]`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime


@dataclass(frozen=True)
class Case:
    """A model with a bug in it, and the twin without: ``text`` with ``wrong`` replaced by
    ``right``."""

    name: str
    text: str
    wrong: str
    right: str
    why: str


CASES = (
    Case(
        "identity_transpose_gemm",
        """<ir_version: 8, opset_import: ["" : 17]>
        projection (float[3,4] x, float[4,4] w, float[4] b) => (float[3,4] y) {
            [transpose] wt = Transpose <perm: ints = [0, 1]> (w)
            [gemm] y = Gemm (x, wt, b)
        }""",
        "perm: ints = [0, 1]",
        "perm: ints = [1, 0]",
        "a transpose that changes nothing, fused as if it did",
    ),
    Case(
        "relu_clip_float64",
        """<ir_version: 8, opset_import: ["" : 17]>
        activation (double[2,3] x) => (double[2,3] y)
        <double low = {-1.0}, double high = {1.0}> {
            [relu] h = Relu (x)
            [clip] y = Clip (h, low, high)
        }""",
        "double",
        "float",
        "a fusion that takes every bound for a float32",
    ),
    Case(
        "layer_norm_by_hand",
        """<ir_version: 8, opset_import: ["" : 13]>
        norm (float[1,1] x) => (float[1,2] y)
        <float two = {2.0}, float epsilon = {0.00001}, float[2] scale = {1.0, 1.0}> {
            [mean] mu = ReduceMean <axes: ints = [-1], keepdims: int = 1> (x)
            [centre] d = Sub (x, mu)
            [square] sq = Pow (d, two)
            [variance] var = ReduceMean <axes: ints = [-1], keepdims: int = 1> (sq)
            [stabilise] ve = Add (var, epsilon)
            [deviation] sd = Sqrt (ve)
            [normal] nm = Div (d, sd)
            [scaled] y = Mul (scale, nm)
        }""",
        "float[1,1] x",
        "float[1,2] x",
        "a layer norm whose scale is longer than the axis, fused all the same",
    ),
    Case(
        "pad_max_pool",
        """<ir_version: 8, opset_import: ["" : 17]>
        pooling (float[1,1,4,4] x) => (float[1,1,5,5] y)
        <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
            [pad] p = Pad (x, pads)
            [pool] y = MaxPool <kernel_shape: ints = [2, 2]> (p)
        }""",
        "(p)",
        "(r)",
        "zeros that a max pool must see, fused into padding that it ignores",
    ),
)
RELU_BETWEEN = "[relu] r = Relu (p)\n            [pool]"


def write_models(folder: Path) -> tuple[Path, Path]:
    """Write every case and its twin; returns the two folders."""
    bugs, twins = folder / "bugs", folder / "twins"
    for case in CASES:
        twin = case.text.replace(case.wrong, case.right)
        if case.name == "pad_max_pool":
            twin = twin.replace("[pool]", RELU_BETWEEN)
        for target, text in ((bugs, case.text), (twins, twin)):
            target.mkdir(parents=True, exist_ok=True)
            onnx.save(onnx.parser.parse_model(text), str(target / f"{case.name}.onnx"))
    return bugs, twins


def outcome(path: Path) -> str:
    """What ONNX Runtime makes of a model with its optimisations, against without them."""
    plain = run(path, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    try:
        optimised = run(path, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
    except Exception as error:  # whatever it throws is what we came to see
        return f"FAILS: {told(error)}"
    if optimised.shape != plain.shape:
        return f"WRONG: shape {optimised.shape} instead of {plain.shape}"
    off = float(np.max(np.abs(optimised - plain)))
    return "right" if off < 1e-4 else f"WRONG: off by {off:.3g}"


def told(error: Exception) -> str:
    """The part of ONNX Runtime's message that says what happened."""
    text = " ".join(str(error).split())
    for before in (" const ", "Status Message: ", " : "):
        text = text.rsplit(before, 1)[-1]
    return text if len(text) <= 70 else f"{text[:69]}…"


def run(path: Path, level: onnxruntime.GraphOptimizationLevel) -> np.ndarray:
    """The model's output for inputs that are the same every time, all of them negative."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    random = np.random.default_rng(7)
    dtypes = {"tensor(float)": np.float32, "tensor(double)": np.float64}
    feeds = {i.name: -random.random(i.shape).astype(dtypes[i.type]) for i in session.get_inputs()}
    return np.asarray(session.run(None, feeds)[0])


def reprise(*arguments: str) -> int:
    """Run a `reprise` command line as a user would, showing it first."""
    print(f"$ reprise {' '.join(arguments)}", flush=True)
    start = time.perf_counter()
    code = subprocess.run([sys.executable, "-m", "reprise", *arguments], check=False).returncode
    print(f"  (exit code {code}, {time.perf_counter() - start:.2f} s)\n", flush=True)
    return code


def reprise_in_short(*arguments: str) -> None:
    """Run `reprise check` for its JSON, and print a line for each rule that a model matches."""
    print(f"$ reprise check --format json {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "reprise", "check", "--format", "json", *arguments]
    start = time.perf_counter()
    report = json.loads(subprocess.run(command, check=False, capture_output=True).stdout)
    for model in report["models"]:
        found = Counter((m["rule"], m["title"]) for m in model["matches"])
        name = Path(model["path"]).name
        print(f"{name} ({model['nodes']} nodes)" + ("" if found else ": nothing"))
        for (rule, title), places in found.items():
            print(f"    {rule}: {title}, in {places} place{'s' if places > 1 else ''}")
    print(f"  ({time.perf_counter() - start:.2f} s)\n")


def heading(text: str) -> None:
    """A line that starts a part of the tour."""
    print(f"\n== {text}\n", flush=True)


def main() -> int:
    """The tour; returns 0 if everything was as it should be."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo")
    bugs, twins = write_models(folder)
    version = onnxruntime.__version__
    target = ("--target", f"onnxruntime=={version}")

    heading(f"1. {len(CASES)} small models, run by ONNX Runtime {version}, and their twins")
    for case in CASES:
        print(f"{case.name}: {case.why}")
        print(f"    bug   {outcome(bugs / f'{case.name}.onnx')}")
        print(f"    twin  {outcome(twins / f'{case.name}.onnx')}")

    heading("2. What `reprise check` says about them, without running anything")
    found = reprise("check", *target, str(bugs))

    heading("3. Why: the rule's own lines, and the facts that met them")
    reprise("check", *target, "--explain", str(bugs / "identity_transpose_gemm.onnx"))

    heading("4. The twins are fine, and it knows")
    clean = reprise("check", *target, str(twins))

    heading("5. Real architectures, from the onnx package, against every rule that ships")
    reprise_in_short(str(Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"))

    print(f"The models are in {folder}. Try: reprise check --near {twins}")
    return 0 if (found, clean) == (1, 0) else 1


if __name__ == "__main__":
    sys.exit(main())
