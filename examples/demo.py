"""A tour of a minute and a half: what `reprise check` sees in four small models with known compiler
bugs, then sixty seconds of fuzzing ONNX Runtime around its known bugs, and the report.

The models are made here, from ONNX's own text format. Each bug comes with a twin that differs in
one detail and is fine. Run it with `make demo`, or `python examples/demo.py [FOLDER]`; each time
the fuzzer's run gets a new folder in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
REPRISE = (sys.executable, "-m", "reprise")
TARGET = ("--target", f"onnxruntime=={onnxruntime.__version__}")
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


def known_bugs(folder: Path) -> dict[str, list[str]]:
    """The rules that each model in a folder matches, by `reprise check --format json`."""
    command = [*REPRISE, "check", "--format", "json", *TARGET, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    report = json.loads(done.stdout)
    return {Path(m["path"]).stem: [x["rule"] for x in m["matches"]] for m in report["models"]}


def show_models(folder: Path) -> bool:
    """`reprise check` on one model in full, and on all in short beside what ONNX Runtime makes of
    them; whether each bug shows and is known, and no twin does or is."""
    bugs, twins = write_models(folder)
    known, known_twins = known_bugs(bugs), known_bugs(twins)
    reprise("check", *TARGET, str(bugs / f"{CASES[0].name}.onnx"))
    say(f"\nThe same for {len(CASES)} models, and for twins of them that differ in one detail:\n")
    as_promised = True
    for case in CASES:
        happens, twin = (outcome(f / f"{case.name}.onnx") for f in (bugs, twins))
        found, found_in_twin = known[case.name], known_twins[case.name]
        say(f"{case.name}: {case.why}")
        say(f"    check says {listed(found):<12}  ONNX Runtime: {happens}")
        say(f"    its twin:  {listed(found_in_twin):<12}  ONNX Runtime: {twin}")
        as_promised &= happens != "right" and bool(found)
        as_promised &= twin == "right" and not found_in_twin
    return as_promised


def listed(rules: list[str]) -> str:
    """The rules that a model matches, in words."""
    return ", ".join(rules) or "no match"


def call(*command: str, show: str) -> int:
    """Run a command as a user would, showing it first. Ctrl-C is the command's, not ours."""
    say(f"$ {show}")
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def reprise(*arguments: str) -> int:
    """Run a `reprise` command line."""
    return call(*REPRISE, *arguments, show=f"reprise {' '.join(arguments)}")


def new_run(folder: Path) -> Path:
    """A folder for a run that is not there yet."""
    number = 1
    while (folder / f"run-{number}").exists():
        number += 1
    return folder / f"run-{number}"


def report_of(run: Path) -> dict[str, Any]:
    """The report on a run, for tools."""
    command = [*REPRISE, "report", "--format", "json", str(run)]
    document: dict[str, Any] = json.loads(subprocess.check_output(command))
    return document


def show_again(run: Path, report: dict[str, Any]) -> None:
    """Run one finding's script, which needs only the compiler."""
    told = [d for d in report["defects"] if d["folder"] is not None and not d["flaky"]]
    if not told:
        avoided = sum(report["suppressed"].values())
        say(
            f"Nothing new in {report['tests']:,} programs; a known bug was avoided {avoided} times."
        )
        say("More time finds more: `reprise fuzz --time 30m`. `--no-guidance` avoids nothing.")
        return
    script = run / told[0]["folder"] / "repro.py"
    say("Each finding's folder has a script that needs the compiler only, to paste into a report.")
    say()
    code = call(sys.executable, str(script), show=f"python {script}")
    say(f"    (exit code {code}: {'it still fails' if code == 1 else 'it does not fail now'})")


def what_next(run: Path, folder: Path) -> Iterator[str]:
    """What to type after the tour; it may have run in an environment that the shell is not in."""
    if sys.prefix != sys.base_prefix and os.environ.get("VIRTUAL_ENV") != sys.prefix:
        activate = Path(os.path.relpath(sys.prefix)) / "bin" / "activate"
        yield f". {activate}   (then `reprise` and `python` are those of this tour)"
    yield f"open {run / 'report.html'}"
    yield f"reprise fuzz --resume {run} --time 10m"
    yield f"reprise check --explain {folder / 'bugs'}"
    yield "docs/fuzzing.md: read a report, make a finding a rule, see it suppressed"


def say(text: str = "") -> None:
    """A line, in its place among what commands print."""
    print(text, flush=True)


def heading(text: str, *explained: str) -> None:
    """What starts a part of the tour, and a few words on it."""
    say(f"\n== {text}\n")
    for paragraph in explained:
        say(textwrap.fill(paragraph, 96, break_on_hyphens=False))
        say()


def main() -> int:
    """The tour; returns 0 if everything was as it should be, findings or not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("build/demo"))
    parser.add_argument("--time", default="60s", help="how long to fuzz")
    parser.add_argument("--seed", default="5", help="which programs")
    given = parser.parse_args()
    folder: Path = given.folder

    heading(
        f"1. Known bugs of ONNX Runtime {onnxruntime.__version__}, seen without running anything",
        "A known bug is a rule: a few lines that look like the graph it is about.",
    )
    as_promised = show_models(folder)

    run = new_run(folder)
    heading(
        f"2. {given.time} of fuzzing ONNX Runtime, around what is known",
        "Programs grow node by node. A node that completes a known bug is taken back before "
        "anything is compiled; what is left is run with and without optimisations, and judged by a "
        "numpy reference. The first seconds go into preparing. Ctrl-C ends it early.",
    )
    jobs = str(min(2, os.cpu_count() or 1))
    target = ("--target", "onnxruntime")
    options = ("--time", given.time, "--seed", given.seed, "--jobs", jobs, "--out", str(run))
    fuzzed = reprise("fuzz", *target, *options)
    if fuzzed not in (0, 1, 130):  # nothing found, something found, stopped
        return fuzzed

    heading("3. The report: each defect once")
    if reprise("report", str(run)) != 0:
        return 1

    heading("4. One finding, by itself")
    show_again(run, report_of(run))

    heading("What next")
    for line in what_next(run, folder):
        say(f"    {line}")
    return 0 if as_promised else 1


if __name__ == "__main__":
    sys.exit(main())
