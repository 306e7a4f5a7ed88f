"""Generated programs are valid: checkers that we did not write take them, and so do the loaders and
eager modes of the targets. (`benchmarks/validity.py` does the same with a hundred thousand.)"""

from __future__ import annotations

import importlib.util
import os

import pytest

from benchmarks.validity import CHECKS, Tally, generator_for, rejecter, run, show
from reprise.solve.signatures import Signatures
from reprise.synth.options import Options

SEED = 20


def rejected(check: str, programs: int, **options: object) -> str:
    """What a check says against generated programs; empty if it takes them all. Programs keep away
    from known bugs: a crash is no defect of theirs."""
    tally = Tally(check, SEED, options)
    generator = generator_for(CHECKS[check], SEED, Options(**options), guided=True)  # type: ignore[arg-type]
    with rejecter(check) as reject:
        run(tally, generator, reject, programs)
    assert tally.valid + tally.rejected == programs
    return show(tally) if tally.rejected else ""


def several_results() -> frozenset[str]:
    """The operators with more results than one."""
    signatures = Signatures.load()
    return frozenset(n for n in signatures if len(signatures[n].plan.decl.results) > 1)


@pytest.mark.slow
def test_onnx_takes_them():
    assert not rejected("onnx", 300)


@pytest.mark.slow
def test_onnx_takes_operators_some_of_whose_results_nobody_asked_for():
    assert not rejected("onnx", 150, include=several_results(), results=0.3, nodes=5)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"empty": 1.0, "nodes": 3}], ids=["ordinary", "empty"])
def test_onnx_runtime_runs_them(options):
    pytest.importorskip("onnxruntime")
    assert not rejected("onnxruntime", 300, **options)


needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None and "REPRISE_TORCH_PYTHON" not in os.environ,
    reason="there is no torch",
)
needs_tvm = pytest.mark.skipif(
    "REPRISE_TVM_PYTHON" not in os.environ, reason="REPRISE_TVM_PYTHON names no interpreter"
)


@pytest.mark.slow
@needs_torch
def test_torch_runs_them_eagerly():
    assert not rejected("torch", 100)


@pytest.mark.slow
@needs_tvm
@pytest.mark.parametrize("options", [{}, {"empty": 1.0, "nodes": 3}], ids=["ordinary", "empty"])
def test_relax_takes_them_for_well_formed(options):
    assert not rejected("relax", 300, **options)


@pytest.mark.slow
def test_onnx_takes_many():
    assert not rejected("onnx", 5_000)


@pytest.mark.slow
def test_onnx_runtime_runs_many():
    pytest.importorskip("onnxruntime")
    assert not rejected("onnxruntime", 3_000)
