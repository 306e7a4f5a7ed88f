"""Unsupported, invalid or a crash: what real messages are taken for, alone and by mode."""

from __future__ import annotations

import pytest

from reprise.oracle.classify import blame, classify
from reprise.oracle.verdict import Verdict
from reprise.targets.interface import Failure, ModeResult, Stage

ORT = "[ONNXRuntimeError] : 1 : FAIL : "
U, I, C = Verdict.UNSUPPORTED, Verdict.INVALID, Verdict.CRASH  # noqa: E741
FINE = ModeResult((), None, 0.0)


def failure(type: str, message: str, *, unsupported: bool = False) -> Failure:
    return Failure(Stage.COMPILE, type, message, (), unsupported)


def failed(type: str, message: str) -> ModeResult:
    return ModeResult(None, failure(type, message), 0.0)


@pytest.mark.parametrize(
    ("type", "message", "verdict"),
    [
        ("NotImplemented", "NOT_IMPLEMENTED : Could not find an implementation for Erf(13)", U),
        ("RuntimeError", "\"softplus_cpu\" not implemented for 'Int'", U),
        ("NotImplementedError", "", U),
        ("OpNotImplemented", "The following operators are not supported: Loop", U),
        ("Unsupported", "Dynamic shape operator", U),
        ("Fail", ORT + "Fatal error: ai.onnx.preview:Adam(-1) is not a registered function/op", U),
        ("InvalidGraph", "INVALID_GRAPH : This is an invalid model. Error No Op registered", I),
        ("InvalidProtobuf", "Failed to load model because protobuf parsing failed.", I),
        ("Fail", ORT + "Node () Op (MatMul) [ShapeInferenceError] Incompatible dimensions", I),
        (
            "Fail",
            ORT + "Type Error: Type parameter (T) of Optype (Add) bound to different",
            I,
        ),
        ("Fail", ORT + "ONNX Runtime only *guarantees* support for models stamped with", I),
        ("InvalidArgument", "indices element out of data bounds, idx=7 must be within [-2,1]", I),
        ("InvalidArgument", "Got invalid dimensions for input: x for the following indices", I),
        ("ValueError", "Required inputs (['x']) are missing from input feed ([]).", I),
        ("onnx.checker.ValidationError", "Field 'shape' of 'type' is required but missing.", I),
        ("InferenceError", "[ShapeInferenceError] Inferred shape and existing shape differ", I),
        ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", I),
        ("RuntimeError", "The size of tensor a (3) must match the size of tensor b (4)", I),
        ("NameError", "name 'torch_' is not defined", I),
        ("Fail", ORT + "Type Error: Type of output arg (InsertedPrecisionFreeCast_a) of node", C),
        ("Fail", ORT + "Exception during initialization: relu_clip_fusion.cc:83 Unexpected", C),
        ("RuntimeError", "!x INTERNAL ASSERT FAILED at a.cpp: size mismatch is not supported", C),
        ("InternalError", "Check failed: scope != global : Cannot allocate", C),
        ("AttributeError", "'FloorDiv' object has no attribute 'value'", C),
        ("InductorError", "OverflowError: cannot convert float infinity to integer", C),
        ("CppCompileError", "C++ compile error\nerror: 'tmp3' was not declared", C),
    ],
)
def test_what_a_failure_says(type: str, message: str, verdict: Verdict) -> None:
    assert classify(failure(type, message)) is verdict


def test_the_target_s_own_word_counts_first() -> None:
    assert classify(failure("InternalError", "Check failed", unsupported=True)) is U


@pytest.mark.parametrize(
    ("optimised", "unoptimised", "expected"),
    [
        (FINE, FINE, None),
        (failed("InvalidArgument", "Invalid model. Node input 'n'"), FINE, (C, "optimised")),
        (failed("NotImplemented", "Could not find an implementation"), FINE, (C, "optimised")),
        (failed("Unsupported", "call_function"), FINE, (U, "optimised")),
        (FINE, failed("RuntimeError", '"x" not implemented for'), (U, "unoptimised")),
        (FINE, failed("RuntimeError", "boom"), (C, "unoptimised")),
        (failed("E", "boom"), failed("RuntimeError", "size mismatch, got 3"), (I, "unoptimised")),
        (failed("E", "boom"), failed("NotImplemented", "Erf"), (U, "unoptimised")),
        (failed("E", "boom"), failed("E", "boom"), (C, "optimised")),
    ],
)
def test_the_modes_together(
    optimised: ModeResult, unoptimised: ModeResult, expected: tuple[Verdict, str] | None
) -> None:
    results = {"optimised": optimised, "unoptimised": unoptimised}
    assert blame(results, "optimised", "unoptimised") == expected


def test_a_target_with_one_mode_has_only_its_word() -> None:
    results = {"compile": failed("InternalError", "Check failed: x")}
    assert blame(results, "compile", None) == (C, "compile")
    results = {"compile": failed("NotImplementedError", "x")}
    assert blame(results, "compile", None) == (U, "compile")
