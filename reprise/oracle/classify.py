"""Whose fault an exception is: the target does not do this, our program is invalid, or a crash.

A message is only a message: what decides first is whether the target's own unoptimised mode runs
the program. If it does, the program is valid and supported, whatever the optimiser says of it:
ONNX Runtime's fusions make nodes that its own loader then calls an "invalid model" (ort-31147).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from reprise.oracle.verdict import Verdict
from reprise.targets.interface import Failure, ModeResult

_UNSUPPORTED_TYPES = frozenset(
    ["NotImplemented", "NotImplementedError", "OpNotImplemented", "OpAttributeUnImplemented"]
)
_CAPTURE_TYPES = frozenset(("Unsupported",))
"""The frontend of the optimised mode alone says no: torch.compile's graph capture."""
_UNSUPPORTED = re.compile(
    r"not implemented for|NOT_IMPLEMENTED|Could not find an implementation|(is|are) not supported"
    r"|not supported (on|for|by|in|with)|no kernel|unsupported (data ?type|dtype|operator|op\b)"
    r"|does not support|only supports|not yet implemented|No conversion rule"
    r"|is not a registered function/op",
    re.IGNORECASE,
)
_INVALID_TYPES = frozenset(
    ("InvalidGraph", "InvalidProtobuf", "NoModel", "ValidationError", "InferenceError")
) | {"SyntaxError", "NameError", "IndentationError"}
_INVALID = re.compile(
    r"Invalid model\.|INVALID_GRAPH|\[(Shape|Type)InferenceError\]|Type Error: "
    r"|Required inputs|Invalid Feed Input Name|Unexpected input data type"
    r"|Got invalid dimensions for input|only \*guarantees\* support for models"
    r"|protobuf parsing failed|No Op registered|indices element out of data bounds"
    r"|not well[- ]formed|ill[- ]formed|mat1 and mat2 shapes|must match the size of tensor"
    r"|shapes? (cannot|can't) be|size mismatch|expected (scalar|m1 and m2|input\[)"
    r"|cannot be reshaped|is invalid for input of size|Dimension out of range"
    r"|got an unexpected keyword argument|missing \d+ required positional"
)
_INTERNAL = re.compile(
    r"INTERNAL ASSERT|InternalError|Check failed|Assertion .* failed|InsertedPrecisionFreeCast_"
)
"""What only the target can have done: ONNX Runtime, for one, inserts casts in every mode."""


def classify(failure: Failure) -> Verdict:
    """UNSUPPORTED, INVALID or CRASH, for a failure that says nothing more than itself."""
    name = failure.type.rpartition(".")[2]
    if failure.unsupported or name in _UNSUPPORTED_TYPES or name in _CAPTURE_TYPES:
        return Verdict.UNSUPPORTED
    if _INTERNAL.search(failure.message):
        return Verdict.CRASH
    if name in _INVALID_TYPES or _INVALID.search(failure.message):
        return Verdict.INVALID
    if _UNSUPPORTED.search(failure.message):
        return Verdict.UNSUPPORTED
    return Verdict.CRASH


def blame(
    results: Mapping[str, ModeResult], tested: str, baseline: str | None
) -> tuple[Verdict, str] | None:
    """The verdict on a job in which some mode failed, and that mode; None if none did.

    ``tested``: the mode under test; ``baseline``: the least optimised one, None if the target has
    one mode only.
    """
    failed = {mode: r.failure for mode, r in results.items() if r.failure is not None}
    if not failed:
        return None
    ours = failed.get(tested)
    if ours is not None and baseline is not None and baseline not in failed:
        captured = ours.type.rpartition(".")[2] in _CAPTURE_TYPES
        if baseline in results:
            return (Verdict.UNSUPPORTED if captured else Verdict.CRASH), tested
        return classify(ours), tested
    verdicts = {mode: classify(failure) for mode, failure in failed.items()}
    # The baseline sees the program as it is, the tested mode what the optimiser made of it.
    first = baseline if baseline in failed else next(iter(failed))
    assert first is not None
    verdict = verdicts[first]
    return verdict, tested if ours is not None and verdict is Verdict.CRASH else first
