"""Every verdict of the judge, on targets made of two numpy functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter

import ml_dtypes
import numpy as np
import pytest

from reprise.oracle.judge import Judge
from reprise.oracle.tolerance import Tolerances
from reprise.oracle.verdict import Judgement, Severity, Verdict
from reprise.targets.interface import Ended, Failure, ModeResult, Outcome, Stage
from reprise.uir.program import Program
from reprise.uir.semantics import evaluate
from tests.oracle.conftest import Arrays, Crashed, Target, f32

Build = Callable[..., Program]
MODES = ("optimised", "unoptimised")


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def plain(program: Program, given: Arrays) -> list[np.ndarray]:
    return list(evaluate(program.graph, given))


def check(judgement: Judgement, verdict: Verdict) -> Judgement:
    """The verdict, and that the evidence can be written as JSON."""
    assert judgement.verdict is verdict, judgement
    json.dumps(judgement.evidence, allow_nan=False)
    return judgement


# --- nothing to see -------------------------------------------------------------------------------


def test_modes_that_agree_are_fine(program: Build) -> None:
    p = program("x: float32[2, 3]\ny = relu(x)", x=random(2, 3))
    target = Target(p, lambda given, _: plain(p, given))
    check(target.judged(), Verdict.OK)
    assert target.runs == []


def test_what_is_within_the_tolerance_is_fine(program: Build) -> None:
    p = program("x: float32[2, 3]\ny = exp(x)", x=random(2, 3))
    target = Target(p, lambda given, _: [plain(p, given)[0] * np.float32(1.005)])
    check(target.judged(), Verdict.OK)


def test_long_half_precision_sums_get_a_wider_tolerance(program: Build) -> None:
    x = np.ones((4, 256), np.float16)
    p = program("x: float16[4, 256]\ny = sum(x, axes=[1])", x=x)
    target = Target(p, lambda given, _: [plain(p, given)[0] * np.float16(1.02)])
    check(target.judged(), Verdict.OK)
    q = program("x: float16[4, 256]\ny = neg(x)", x=x)
    check(
        Target(q, lambda given, _: [plain(q, given)[0] * np.float16(1.02)]).judged(),
        Verdict.WRONG_RESULT,
    )


@pytest.mark.parametrize("outputs", [None, ()])
def test_a_target_that_only_compiles_is_fine_if_it_compiles(program: Build, outputs: None) -> None:
    p = program("x: float32[2]\ny = relu(x)", x=f32(1, 2))
    outcome = Outcome(Ended.ANSWERED, {"compile": ModeResult(outputs, None, 0.0)})
    check(Judge(("compile",), share=1.0).judge(p, outcome), Verdict.OK)


# --- wrong results --------------------------------------------------------------------------------


def test_a_wrong_value_with_its_evidence(program: Build) -> None:
    p = program("x: float32[2, 3]\ny = exp(x)\nz = neg(y)", x=random(2, 3))

    def optimised(given: Arrays, _: tuple[str, ...]) -> list[np.ndarray]:
        (z,) = (z.copy() for z in plain(p, given))
        z[1, 2] = 7.0
        return [z]

    found = check(Target(p, optimised).judged(), Verdict.WRONG_RESULT)
    assert found.signature == "wrong | values | float32: neg(exp(input))"
    assert found.severity is Severity.NORMAL
    assert found.evidence["float64_sides_with"] == "baseline"
    (difference,) = found.evidence["differences"]
    assert difference["first_index"] == [1, 2]
    assert difference["actual"] == "7.0"
    assert difference["count"] == 1
    assert "0.001 absolute and 0.01 relative" in difference["tolerance"]


def test_all_digits_lost_is_no_rounding(program: Build) -> None:
    """PYTORCH-189803's root: expm1 computed as exp - 1."""
    x = f32(*np.logspace(-12, -8, 16))
    text = "x: float32[16]\nc: float32[1]\ny = expm1(x)\nz = mul(y, c)"
    p = program(text, x=x, c=f32(1e12))

    def optimised(given: Arrays, _: tuple[str, ...]) -> list[np.ndarray]:
        return [(np.exp(given["x"]) - np.float32(1)) * given["c"]]

    found = check(Target(p, optimised).judged(), Verdict.WRONG_RESULT)
    assert found.evidence["float64_sides_with"] == "baseline"


def test_nan_where_there_is_none(program: Build) -> None:
    p = program("x: float32[4]\ny = softplus(x)", x=f32(1, 2, 300, 4))

    def naive(given: Arrays, _: tuple[str, ...]) -> list[np.ndarray]:
        with np.errstate(all="ignore"):
            e = np.exp(given["x"])
            return [e / e * np.log1p(np.exp(given["x"]))]

    found = check(Target(p, naive).judged(), Verdict.WRONG_RESULT)
    assert found.evidence["tested_error_to_float64"] == "inf"


def test_a_wrong_integer(program: Build) -> None:
    p = program("x: int32[3]\ny = add(x, x)", x=np.array([1, 2, 3], np.int32))
    target = Target(p, lambda given, _: [plain(p, given)[0] + np.int32(1)])
    check(target.judged(), Verdict.WRONG_RESULT)


def test_a_wrong_index_without_a_tie(program: Build) -> None:
    p = program("x: float32[2, 3]\ny = argmax(x, axis=1)", x=f32(1, 5, 2, 9, 8, 7).reshape(2, 3))
    target = Target(p, lambda given, _: [np.array([[0], [0]])[..., 0].reshape(p_shape(p))])
    check(target.judged(), Verdict.WRONG_RESULT)


def p_shape(p: Program) -> tuple[int, ...]:
    return tuple(e for e in p.graph.outputs[0].type.shape or () if isinstance(e, int))


def test_a_wrong_shape_or_dtype(program: Build) -> None:
    p = program("x: float32[2, 3]\ny = relu(x)", x=random(2, 3))
    flat = Target(p, lambda given, _: [plain(p, given)[0].ravel()])
    wide = Target(p, lambda given, _: [plain(p, given)[0].astype(np.float64)])
    for target in (flat, wide):
        found = check(target.judged(), Verdict.WRONG_RESULT)
        assert found.signature == "wrong | shape | float32: relu(input)"


def test_a_baseline_of_the_wrong_shape_is_not_the_optimiser_s_fault(program: Build) -> None:
    p = program("x: float32[2, 3]\ny = relu(x)", x=random(2, 3))
    target = Target(p, lambda given, _: plain(p, given), lambda given: [plain(p, given)[0].ravel()])
    check(target.judged(), Verdict.REFERENCE_DISAGREEMENT)


def test_the_pass_that_is_to_blame_is_the_signature(program: Build) -> None:
    p = program("x: float32[2, 2]\ny = relu(x)", x=f32(1, 2, 3, 4).reshape(2, 2))

    def optimised(given: Arrays, disabled: tuple[str, ...]) -> list[np.ndarray]:
        y = plain(p, given)[0]
        return [y if "TransposeFusion" in disabled else y.T.copy()]

    target = Target(p, optimised)
    passes = ("A", "B", "TransposeFusion", "C", "D")
    found = check(target.judged(passes), Verdict.WRONG_RESULT)
    assert found.signature == "pass:TransposeFusion"
    assert found.evidence["symptom"] == "wrong | values | float32: relu(input)"
    assert found.title.startswith("TransposeFusion: ")
    assert len([d for _, d in target.runs if d]) <= 5


def test_no_pass_is_blamed_for_a_result_that_is_wrong_only_at_times(program: Build) -> None:
    p = program("x: float32[2, 2]\ny = relu(x)", x=f32(1, 2, 3, 4).reshape(2, 2))
    wrong = iter([True, False])

    def optimised(given: Arrays, disabled: tuple[str, ...]) -> list[np.ndarray]:
        y = plain(p, given)[0]
        return [y.T.copy() if next(wrong, False) else y]

    found = check(Target(p, optimised).judged(("A", "B")), Verdict.WRONG_RESULT)
    assert found.signature == "wrong | values | float32: relu(input)"
    assert found.evidence["ablation"] == {
        "cures": [], "runs": 0, "complete": True, "uncovers": "", "stable": False
    }  # fmt: skip


# --- no verdict -----------------------------------------------------------------------------------


def test_a_tied_argmax_is_no_finding(program: Build) -> None:
    p = program("x: float32[1, 3]\ny = argmax(x, axis=1)", x=f32(5, 5, 2).reshape(1, 3))
    target = Target(p, lambda given, _: [np.full(p_shape(p), 1)])
    found = check(target.judged(), Verdict.UNDECIDED)
    assert found.evidence["why"] == "implementation-defined"


@pytest.mark.parametrize("index", [2, 3, -1])
def test_no_tie_excuses_an_index_of_another_value(program: Build, index: int) -> None:
    """PYTORCH-184893: argmin of booleans and bytes points at no minimum."""
    p = program("x: float32[1, 3]\ny = argmax(x, axis=1)", x=f32(5, 5, 2).reshape(1, 3))
    target = Target(p, lambda given, _: [np.full(p_shape(p), index)])
    found = check(target.judged(), Verdict.WRONG_RESULT)
    assert found.evidence["float64_sides_with"] == "baseline"


def test_a_sort_may_order_ties_as_it_likes_but_takes_each_element_once(program: Build) -> None:
    p = program("x: int32[4]\ny, z = sort(x, axis=0)", x=np.array([3, 1, 3, 0], np.int32))
    y, _ = plain(p, p.inputs)
    fine, twice, wrong = (np.array(i) for i in ([3, 1, 2, 0], [3, 1, 0, 0], [1, 3, 0, 2]))
    verdicts = [
        Target(p, lambda given, _, z=z: [y, z]).judged().verdict for z in (fine, twice, wrong)
    ]
    assert verdicts == [Verdict.UNDECIDED, Verdict.WRONG_RESULT, Verdict.WRONG_RESULT]


def test_equality_on_the_grid_of_the_dtype_is_rounding(program: Build) -> None:
    """In float64 the sum of a softmax is all but never 1; in float32 it is, every other time."""
    p = program(
        "x: float32[64, 17]\nc: float32[1]\ns = softmax(x, axis=1)\nt = sum(s, axes=[1])\n"
        "y = equal(t, c)",
        x=random(64, 17),
        c=f32(1),
    )
    rng = np.random.default_rng(0)
    target = Target(p, lambda given, _: [rng.random(64) < 0.5])
    check(target.judged(), Verdict.UNDECIDED)


def test_an_almost_tied_argmax_is_no_finding(program: Build) -> None:
    near = np.nextafter(np.float32(np.e), np.float32(9))
    p = program(
        "x: float32[1, 3]\ny = exp(x)\nz = argmax(y, axis=1)",
        x=np.log(f32(np.e, near, 2)).reshape(1, 3),
    )
    baseline = plain(p, p.inputs)[0]
    target = Target(p, lambda given, _: [1 - baseline])
    check(target.judged(), Verdict.UNDECIDED)


def test_a_cancellation_is_ill_conditioned(program: Build) -> None:
    a = f32(*np.linspace(1000.1, 2000.7, 8))
    p = program(
        "a: float32[8]\nb: float32[8]\nk: float32[1]\nd = sub(a, b)\ne = mul(d, k)",
        a=a,
        b=a + f32(1e-3),
        k=f32(1e4 / 3),
    )

    def optimised(given: Arrays, _: tuple[str, ...]) -> list[np.ndarray]:
        return [given["a"] * given["k"] - given["b"] * given["k"]]

    check(Target(p, optimised).judged(), Verdict.UNDECIDED)


def test_a_floor_on_its_step_is_rounding(program: Build) -> None:
    """log2(exp2(x)) of whole numbers: either side of the step, by the library."""
    p = program("x: float32[8]\ny = exp(x)\nz = log(y)\nw = floor(z)", x=f32(*range(1, 9)))

    def optimised(given: Arrays, _: tuple[str, ...]) -> list[np.ndarray]:
        w = plain(p, given)[0].copy()
        w[::2] -= 1
        w[1::2] += 1
        return [w]

    found = check(Target(p, optimised).judged(), Verdict.UNDECIDED)
    assert found.evidence["why"] == "rounding"


def test_a_floor_far_from_its_step_is_wrong(program: Build) -> None:
    p = program("x: float32[4]\ny = exp(x)\nz = log(y)\nw = floor(z)", x=f32(1.5, 2.5, 3.5, 4.5))
    target = Target(p, lambda given, _: [plain(p, given)[0] - np.float32(1)])
    check(target.judged(), Verdict.WRONG_RESULT)


def test_a_floor_of_whole_inputs_is_exact(program: Build) -> None:
    p = program("x: float32[4]\ny = add(x, x)\nw = floor(y)", x=f32(1, 2, 3, 4))
    target = Target(p, lambda given, _: [plain(p, given)[0] - np.float32(1)])
    check(target.judged(), Verdict.WRONG_RESULT)


def test_one_sided_rounding_is_a_low_finding(program: Build) -> None:
    """A rewrite of sum(softmax(x)) to 1, then floor: what PYTORCH-189787 was taken for."""
    p = program(
        "x: float32[64, 17]\ns = softmax(x, axis=1)\nt = sum(s, axes=[1])\nf = floor(t)",
        x=random(64, 17),
    )
    target = Target(p, lambda given, _: [np.ones(p_shape(p), np.float32)])
    found = check(target.judged(), Verdict.WRONG_RESULT)
    assert found.severity is Severity.LOW
    assert found.signature == ("wrong | one-sided rounding | float32: floor(sum(softmax(input)))")
    up, down = found.evidence["signs_on_perturbed_inputs"]
    assert up >= 8
    assert down == 0


def test_rounding_in_both_directions_is_no_finding(program: Build) -> None:
    p = program(
        "x: float32[64, 17]\ns = softmax(x, axis=1)\nt = sum(s, axes=[1])\nf = floor(t)",
        x=random(64, 17),
    )

    def optimised(given: Arrays, _: tuple[str, ...]) -> list[np.ndarray]:
        e = np.exp((given["x"] - given["x"].max(1, keepdims=True)).astype(np.float32))
        s = e * (np.float32(1) / e[:, ::-1].sum(1, keepdims=True, dtype=np.float32))
        total = np.zeros(64, np.float32)
        for column in s.T[::-1]:
            total += column
        return [np.floor(total).reshape(p_shape(p))]

    found = check(Target(p, optimised).judged(), Verdict.UNDECIDED)
    assert found.evidence["why"] == "rounding"
    assert min(found.evidence["signs_on_perturbed_inputs"]) > 0
    asked = check(Target(p, optimised).judged(steps=True), Verdict.WRONG_RESULT)
    assert asked.severity is Severity.LOW
    assert asked.signature == "wrong | rounding at a step | float32: floor(sum(softmax(input)))"


def test_an_ill_conditioned_program_is_no_step(program: Build) -> None:
    p = program(
        "a: float32[8]\nb: float32[8]\nk: float32[1]\nd = sub(a, b)\ne = mul(d, k)",
        a=f32(*np.linspace(1000.1, 2000.7, 8)),
        b=f32(*np.linspace(1000.1, 2000.7, 8)) + f32(1e-3),
        k=f32(1e4 / 3),
    )
    target = Target(p, lambda given, _: [given["a"] * given["k"] - given["b"] * given["k"]])
    check(target.judged(steps=True), Verdict.UNDECIDED)


def test_a_more_precise_optimiser_is_no_finding(program: Build) -> None:
    """Fused in single precision: what overflows in half precision does not overflow."""
    x = np.full((4,), 300, np.float16)
    p = program("x: float16[4]\ny = mul(x, x)\nz = sqrt(y)", x=x)
    target = Target(p, lambda given, _: [np.abs(given["x"])])
    found = check(target.judged(), Verdict.UNDECIDED)
    assert found.evidence["why"] in ("more precise", "rounding")


def test_intermediate_precision_is_emulated_if_the_target_can(program: Build) -> None:
    x = np.full((4,), 1.5, np.float16)
    p = program("x: float16[4]\ny = neg(x)", x=x)
    modes = ("optimised", "emulated", "unoptimised")
    wrong = [np.full(4, 9, np.float16)]
    cured = Target(p, lambda g, _: wrong, emulated=lambda g: plain(p, g), modes=modes)
    not_cured = Target(p, lambda g, _: wrong, emulated=lambda g: wrong, modes=modes)
    found = check(cured.judged(emulation="emulated"), Verdict.UNDECIDED)
    assert found.evidence["why"] == "intermediate precision"
    check(not_cured.judged(emulation="emulated"), Verdict.WRONG_RESULT)


def test_a_baseline_that_moves_as_much_is_ill_conditioned(program: Build) -> None:
    """The reference is stable, but the target's own unoptimised kernel is not."""
    p = program("x: float32[4]\ny = exp(x)", x=f32(1.1, 1.2, 1.3, 1.4))
    before = plain(p, p.inputs)[0]

    def baseline(given: Arrays) -> list[np.ndarray]:
        y = plain(p, given)[0]
        moved = given["x"] != p.inputs["x"]
        return [np.where(moved, y + np.float32(50), y)]

    target = Target(p, lambda given, _: [before + np.float32(50)], baseline)
    found = check(target.judged(), Verdict.UNDECIDED)
    assert found.evidence["why"] == "ill-conditioned"


def test_integer_division_by_zero_is_implementation_defined(program: Build) -> None:
    p = program(
        "a: int32[3]\nb: int32[3]\nc = div(a, b)\nd = neg(c)",
        a=np.array([1, 2, 3], np.int32),
        b=np.array([1, 0, 1], np.int32),
    )
    target = Target(p, lambda given, _: [np.array([-1, 77, -3], np.int32)])
    found = check(target.judged(), Verdict.UNDECIDED)
    assert "division" in found.evidence["causes"][0]


def test_no_reference_no_verdict(program: Build) -> None:
    p = program("x: float32[4]\ny: float32[4] = onnx.Unheard(x)", x=f32(1, 2, 3, 4))
    target = Target(p, lambda given, _: [f32(1, 2, 3, 4)], lambda given: [f32(5, 6, 7, 8)])
    assert check(target.judged(), Verdict.UNDECIDED).evidence["why"] == "no reference"


def test_a_job_that_never_started_says_nothing(program: Build) -> None:
    p = program("x: float32[2]\ny = relu(x)", x=f32(1, 2))
    check(Judge(MODES).judge(p, Outcome(Ended.UNSTARTED)), Verdict.UNDECIDED)


# --- the reference disagrees ----------------------------------------------------------------------


def test_a_wrong_baseline_is_a_disagreement_with_the_reference(program: Build) -> None:
    p = program("x: float32[4]\ny = exp(x)", x=f32(1, 2, 3, 4))
    target = Target(p, lambda g, _: plain(p, g), lambda g: [plain(p, g)[0] + np.float32(9)])
    found = check(target.judged(), Verdict.REFERENCE_DISAGREEMENT)
    assert found.evidence["float64_sides_with"] == "tested"


def test_two_different_wrong_results_too(program: Build) -> None:
    p = program("x: float32[4]\ny = exp(x)", x=f32(1, 2, 3, 4))
    target = Target(
        p,
        lambda g, _: [plain(p, g)[0] - np.float32(7)],
        lambda g: [plain(p, g)[0] + np.float32(9)],
    )
    found = check(target.judged(), Verdict.REFERENCE_DISAGREEMENT)
    assert found.evidence["float64_sides_with"] == "neither"


def test_what_both_modes_get_wrong_is_seen_in_the_share_that_is_checked(program: Build) -> None:
    p = program("x: float32[4]\ny = exp(x)", x=f32(1, 2, 3, 4))

    def wrong(given: Arrays, _: tuple[str, ...] = ()) -> list[np.ndarray]:
        return [plain(p, given)[0] + np.float32(9)]

    target = Target(p, wrong, wrong)
    found = check(target.judged(share=1.0), Verdict.REFERENCE_DISAGREEMENT)
    assert found.signature == "reference | float32: exp(input)"
    check(target.judged(share=0.0), Verdict.OK)


@pytest.mark.parametrize("wrong", [np.zeros(3, np.float32), np.zeros((1, 4), np.float32)])
def test_a_shape_that_both_modes_get_wrong_is_seen_in_every_test(
    program: Build, wrong: np.ndarray
) -> None:
    p = program("x: float32[4]\ny = exp(x)", x=f32(1, 2, 3, 4))

    def modes(given: Arrays, _: tuple[str, ...] = ()) -> list[np.ndarray]:
        return [wrong]

    check(Target(p, modes, modes).judged(share=0.0), Verdict.REFERENCE_DISAGREEMENT)


def test_a_dtype_that_both_modes_get_wrong_is_seen_in_every_test(program: Build) -> None:
    p = program("x: float32[4]\ny = exp(x)", x=f32(1, 2, 3, 4))

    def modes(given: Arrays, _: tuple[str, ...] = ()) -> list[np.ndarray]:
        return [plain(p, given)[0].astype(np.float64)]

    check(Target(p, modes, modes).judged(share=0.0), Verdict.REFERENCE_DISAGREEMENT)


def test_rounding_that_both_modes_share_is_fine(program: Build) -> None:
    p = program("x: float32[8]\ny = exp(x)\nz = log(y)\nw = floor(z)", x=f32(*range(1, 9)))

    def modes(given: Arrays, _: tuple[str, ...] = ()) -> list[np.ndarray]:
        return [plain(p, given)[0] - np.float32(1)]

    check(Target(p, modes, modes).judged(share=1.0), Verdict.OK)


@pytest.mark.slow
def test_the_share_is_that_share_and_always_the_same(program: Build) -> None:
    p = program("x: float32[4]\ny = exp(x)", x=f32(1, 2, 3, 4))

    def wrong(given: Arrays, _: tuple[str, ...] = ()) -> list[np.ndarray]:
        return [plain(p, given)[0] + np.float32(9)]

    outcome = Target(p, wrong, wrong)()
    judge = Judge(MODES, share=0.25)

    def seen() -> list[int]:
        programs = [Program(p.graph, p.inputs, f"s1-{i:06}") for i in range(400)]
        return [i for i, q in enumerate(programs) if judge.judge(q, outcome).verdict
                is not Verdict.OK]  # fmt: skip

    first = seen()
    assert 60 < len(first) < 140
    assert first == seen()


# --- signs of zeros -------------------------------------------------------------------------------


@pytest.mark.parametrize(("strict", "verdict"), [(True, Verdict.WRONG_RESULT), (False, Verdict.OK)])
def test_the_sign_of_a_zero_is_a_low_finding_if_asked_for(
    program: Build, strict: bool, verdict: Verdict
) -> None:
    p = program("x: float32[2]\ny = tanh(x)", x=f32(-0.0, 1.0))
    target = Target(p, lambda given, _: [np.abs(plain(p, given)[0])])
    found = check(target.judged(tolerances=Tolerances(strict_zero=strict)), verdict)
    if strict:
        assert found.severity is Severity.LOW
        assert found.signature == "wrong | sign of zero | float32: tanh(input)"


# --- crashes, hangs, unsupported, invalid ---------------------------------------------------------


def crash(type: str, message: str, **more: object) -> Callable[..., list[np.ndarray]]:
    def mode(*_: object) -> list[np.ndarray]:
        raise Crashed(type, message, **more)

    return mode


def relu(program: Build) -> Program:
    return program("x: float32[2]\ny = relu(x)", x=f32(1, 2))


def test_an_optimiser_that_fails_is_a_crash_whatever_it_says(program: Build) -> None:
    p = relu(program)
    for type, message in [
        ("Fail", "[ONNXRuntimeError] : 1 : FAIL : Unexpected data type for Clip 'min' of 11"),
        ("InvalidArgument", "Invalid model. Node input 'n' is not a graph input, initializer"),
        ("NotImplemented", "Could not find an implementation for FusedConv(1) node"),
    ]:
        found = check(Target(p, crash(type, message)).judged(), Verdict.CRASH)
        assert type in found.title
        assert found.evidence["passes_in"] == ["unoptimised"]


def test_a_crash_is_keyed_by_the_pass_that_cures_it(program: Build) -> None:
    p = relu(program)

    def optimised(given: Arrays, disabled: tuple[str, ...]) -> list[np.ndarray]:
        if "FuseReluClip" not in disabled:
            raise Crashed("Fail", "Unexpected data type", Stage.LOAD)
        return plain(p, given)

    found = check(Target(p, optimised).judged(("X", "FuseReluClip", "Y")), Verdict.CRASH)
    assert found.signature == "pass:FuseReluClip"
    assert found.evidence["symptom"] == "crash | load | Fail |  | Unexpected data type"


def test_what_fails_in_both_modes_is_not_ablated(program: Build) -> None:
    p = relu(program)
    target = Target(p, crash("Fail", "boom"), crash("Fail", "boom"))
    found = check(target.judged(("A", "B")), Verdict.CRASH)
    assert found.signature == "crash | compile | Fail |  | boom"
    assert target.runs == []


def test_what_no_mode_has_is_unsupported(program: Build) -> None:
    p = relu(program)
    text = "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for Erf(13)"
    both = crash("NotImplemented", text)
    check(Target(p, both, both).judged(), Verdict.UNSUPPORTED)
    flagged = crash("Whatever", "no", unsupported=True)
    check(Target(p, flagged, flagged).judged(), Verdict.UNSUPPORTED)


def test_a_model_that_the_frontend_calls_invalid_is_our_fault(program: Build) -> None:
    p = relu(program)
    for type, message in [
        ("Fail", "[ONNXRuntimeError] : 1 : FAIL : Node () Op (MatMul) [ShapeInferenceError] Inc"),
        ("InvalidGraph", "[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model."),
        ("ValidationError", "Field 'shape' of 'type' is required but missing."),
    ]:
        both = crash(type, message, stage=Stage.LOAD)
        check(Target(p, both, both).judged(), Verdict.INVALID)


def test_a_baseline_that_cannot_while_the_optimiser_can(program: Build) -> None:
    p = relu(program)
    eager = crash("RuntimeError", "\"relu_cpu\" not implemented for 'Half'")
    check(Target(p, lambda g, _: plain(p, g), eager).judged(), Verdict.UNSUPPORTED)


@pytest.mark.parametrize(
    ("ended", "verdict", "words"),
    [
        (Ended.DIED, Verdict.CRASH, "SIGSEGV in mode optimised, stage compile"),
        (Ended.HANG, Verdict.HANG, "over the time limit in mode optimised, stage compile"),
        (Ended.MEMORY, Verdict.CRASH, "over the memory limit in mode optimised, stage compile"),
        (Ended.GARBAGE, Verdict.CRASH, "the answer was garbage in mode optimised, stage compile"),
    ],
)
def test_how_a_process_ended(program: Build, ended: Ended, verdict: Verdict, words: str) -> None:
    signal = "SIGSEGV" if ended is Ended.DIED else None
    outcome = Outcome(ended, {}, "optimised", Stage.COMPILE, signal)
    found = check(Judge(MODES).judge(relu(program), outcome), verdict)
    assert found.title == words


def test_a_process_that_dies_is_keyed_by_its_pass_too(program: Build) -> None:
    p = relu(program)
    died = Outcome(Ended.DIED, {}, "optimised", Stage.COMPILE, "SIGABRT", "double free or corrupt")
    good = ModeResult((f32(1, 2),), None, 0.0)

    def rerun(
        *,
        inputs: Arrays | None = None,
        modes: tuple[str, ...] | None = None,
        disabled: tuple[str, ...] = (),
    ) -> Outcome:
        if modes == ("unoptimised",) or "Bad" in disabled:
            return Outcome(Ended.ANSWERED, dict.fromkeys(modes or MODES, good))
        return died

    found = check(Judge(MODES).judge(p, died, rerun, ("Good", "Bad", "Ugly")), Verdict.CRASH)
    assert found.signature == "pass:Bad"
    assert found.evidence["passes_in"] == ["unoptimised"]
    found = Judge(MODES).judge(p, died, lambda **_: died, ("Good", "Bad", "Ugly"))
    assert found.evidence["also_fails_in"] == ["unoptimised"] and not found.evidence["passes_in"]


def test_a_crash_of_a_target_with_one_mode(program: Build) -> None:
    failure = Failure(Stage.COMPILE, "InternalError", "Check failed: scope != 'global'")
    outcome = Outcome(Ended.ANSWERED, {"compile": ModeResult(None, failure, 0.0)})
    check(Judge(("compile",)).judge(relu(program), outcome), Verdict.CRASH)


# --- the whole ------------------------------------------------------------------------------------


def test_the_same_judgement_every_time(program: Build) -> None:
    p = program(
        "x: float32[64, 17]\ns = softmax(x, axis=1)\nt = sum(s, axes=[1])\nf = floor(t)",
        x=random(64, 17),
    )
    target = Target(p, lambda given, _: [np.ones(p_shape(p), np.float32)])
    assert target.judged() == target.judged()


def test_a_test_that_is_fine_is_judged_in_a_third_of_a_millisecond(program: Build) -> None:
    p = program("x: float32[8, 16]\ny = relu(x)\nz = exp(x)", x=random(8, 16))
    outcome = Target(p, lambda given, _: plain(p, given))()
    judge = Judge(MODES, share=0.0)
    times = []
    for _ in range(200):
        start = perf_counter()
        assert judge.judge(p, outcome).verdict is Verdict.OK
        times.append(perf_counter() - start)
    assert sorted(times)[len(times) // 2] < 3e-4


def test_bfloat16_outputs_are_compared_in_their_own_steps(program: Build) -> None:
    x = np.linspace(0.5, 3, 8).astype(ml_dtypes.bfloat16)
    p = program("x: bfloat16[8]\ny = exp(x)", x=x)
    near = Target(p, lambda g, _: [(plain(p, g)[0].astype(np.float32) * 1.02).astype(x.dtype)])
    far = Target(p, lambda g, _: [(plain(p, g)[0].astype(np.float32) * 1.5).astype(x.dtype)])
    check(near.judged(), Verdict.OK)
    check(far.judged(), Verdict.WRONG_RESULT)
