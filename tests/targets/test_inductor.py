"""torch.compile in workers, in the interpreter that ``REPRISE_TORCH_PYTHON`` names (else in this
one, if it has torch): all modes, unsupported programs, and known bugs with their passes."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from reprise.lower.torch import LOWERING
from reprise.solve.signatures import Signatures
from reprise.targets.discover import parse_target, read_target
from reprise.targets.interface import Job, ModeResult, Outcome, Stage
from reprise.targets.process import Limits, TargetProcess
from reprise.uir.text import parse_uir
from tests.conftest import ROOT

PYTHON = os.environ.get("REPRISE_TORCH_PYTHON")
if PYTHON is None and importlib.util.find_spec("torch") is not None:
    PYTHON = sys.executable
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="REPRISE_TORCH_PYTHON names no interpreter"),
]
LIMITS = Limits(seconds=120, startup_seconds=300)
SIGNATURES = Signatures.load()
MODES = ("optimised", "emulated", "unoptimised")


def source(text: str) -> bytes:
    return LOWERING.lower(parse_uir(text, "test.uir", SIGNATURES))


@pytest.fixture(scope="module")
def inductor() -> Iterator[TargetProcess]:
    with TargetProcess(parse_target(f"inductor@{PYTHON}"), LIMITS) as process:
        yield process


def run(
    process: TargetProcess, model: bytes, *disabled: str, **inputs: np.ndarray
) -> dict[str, ModeResult]:
    outcome: Outcome = process.run(Job(model, inputs, MODES, disabled))
    assert set(outcome.results) == set(MODES), outcome
    return outcome.results


def outputs(result: ModeResult) -> list[np.ndarray]:
    assert result.outputs is not None, result.failure
    return list(result.outputs)


def test_the_file_names_what_a_campaign_reads():
    target = read_target(ROOT / "reprise" / "targets" / "inductor.py")
    assert (target.name, target.lowering, target.modes) == ("inductor", "torch", MODES)


def test_it_says_which_version_it_is(inductor):
    assert inductor.start()["torch"].startswith("2.")


def test_all_modes_compute_what_numpy_does(inductor):
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    text = "x: float32[3, 4]; a = relu(x); b = sum(a, axis=1); output a"
    for result in run(inductor, source(text), x=x).values():
        a, b = outputs(result)
        np.testing.assert_allclose(a, np.maximum(x, 0))
        np.testing.assert_allclose(b, np.maximum(x, 0).sum(1), rtol=1e-6)


def test_programs_without_inputs_scalars_and_no_elements(inductor):
    text = "a = full(shape=[2], value=0.5); b = exp(a); c = full(shape=[0, 2]); d = neg(c)"
    for result in run(inductor, source(text)).values():
        b, d = outputs(result)
        np.testing.assert_allclose(b, np.exp(np.float32([0.5, 0.5])), rtol=1e-6)
        assert d.shape == (0, 2)


def test_bfloat16_goes_in_and_out_exactly(inductor):
    x = np.array([1.5, -0.0, 3e38, 1e-40], ml_dtypes.bfloat16)
    for result in run(inductor, source("x: bfloat16[4]; a = neg(x)"), x=x).values():
        (a,) = outputs(result)
        assert a.dtype == x.dtype and a.tobytes() == (-x).tobytes()


def test_half_floats_are_rounded_in_between_where_that_is_emulated(inductor):
    """1 + 2^-11 is not in float16: what the sum loses eagerly, fused code keeps."""
    x = np.array([1.0], np.float16)
    text = """
        x: float16[1]
        const tiny: float16[1] = [0.000244140625]
        const one: float16[1] = [1.0]
        a = add(x, tiny)
        b = sub(a, one)
    """
    results = run(inductor, source(text), x=x)
    assert outputs(results["emulated"])[0] == outputs(results["unoptimised"])[0] == 0.0
    assert outputs(results["optimised"])[0] != 0.0


def test_one_job_leaves_nothing_behind_for_the_next(inductor):
    for value in (1.0, 2.0, 3.0):
        text = f"x: float32[2]; a = full(shape=[2], value={value}); b = mul(x, a)"
        for result in run(inductor, source(text), x=np.ones(2, np.float32)).values():
            assert outputs(result)[0].tolist() == [value, value]


def test_a_broken_program_fails_to_load(inductor):
    results = run(inductor, b"import torch\nraise ValueError('no')\n")
    for result in results.values():
        assert result.failure is not None and result.failure.stage is Stage.LOAD


def test_what_eager_execution_has_no_kernel_for_is_unsupported(inductor):
    model = b"""
import torch

class Model(torch.nn.Module):
    inputs = {"x": "uint16[2]"}

    def forward(self, x):
        return (x + x,)
"""
    failure = run(inductor, model, x=np.ones(2, np.uint16))["unoptimised"].failure
    assert failure is not None and failure.unsupported and failure.stage is Stage.RUN


# --- known bugs of 2.13.0 ------------------------------------------------------------------------


@pytest.fixture
def at_2_13(inductor) -> TargetProcess:
    if not inductor.start()["torch"].startswith("2.13."):
        pytest.skip("measured on 2.13")
    return inductor


def cures(process: TargetProcess, model: bytes, name: str, **inputs: np.ndarray) -> bool:
    """Whether the compiled program agrees with the eager one without ``name``."""
    assert name in process.passes(model)
    results = run(process, model, name, **inputs)
    optimised, eager = results["optimised"], outputs(results["unoptimised"])
    return optimised.outputs is not None and all(
        np.allclose(a, b, 1e-3, 1e-3) for a, b in zip(optimised.outputs, eager, strict=True)
    )


def test_folding_an_infinite_constant_crashes_unless_nothing_is_folded(at_2_13):
    model = source("x = full(shape=[4]); l = log(x); s = sum(l, dtype=int32)")
    failure = run(at_2_13, model)["optimised"].failure
    assert failure is not None and failure.stage is Stage.COMPILE and not failure.unsupported
    assert "cannot convert float infinity to integer" in failure.message
    assert failure.frames[-1] == "torch/_inductor/index_propagation.py:__post_init__"
    for name in ("joint_graph_passes constant_fold_uniform_value", "config index_propagation"):
        assert name in at_2_13.passes(model)
        assert run(at_2_13, model, name)["optimised"].failure is None


def test_softmax_over_another_axis_is_no_attention(at_2_13):
    model = source("""
        q: float32[4, 4, 2, 8]
        k: float32[4, 4, 3, 8]
        v: float32[4, 4, 3, 8]
        const c: float32[] = 2.8
        t = transpose(k, perm=[0, 1, 3, 2])
        m = matmul(q, t)
        d = div(m, c)
        s = softmax(d, axis=0)
        o = matmul(s, v)
    """)
    random = np.random.default_rng(1)
    shapes = {"q": (4, 4, 2, 8), "k": (4, 4, 3, 8), "v": (4, 4, 3, 8)}
    inputs = {n: random.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    results = run(at_2_13, model, **inputs)
    wrong, right = (outputs(results[mode])[0] for mode in ("optimised", "unoptimised"))
    assert np.abs(wrong - right).max() > 0.1
    assert cures(at_2_13, model, "pattern fuse_attention", **inputs)
