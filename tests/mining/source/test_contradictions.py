"""What a compiler says of a machine against what it asserts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mining.source.conftest import Mine, rules

# The shape of onnx-mlir's VectorMachineSupport (Apache-2.0), in few lines.
MACHINES = """\
class Sse : public Machine {
  int64_t vectorBits() override { return 128; }
};
class Avx2 : public Sse {
  int64_t vectorBits() override { return 258; }
};
"""
LENGTH = """\
int64_t Machine::length(Type type) {
  int64_t simd = vectorBits();
  int64_t bits = type.getIntOrFloatBitWidth();
  assert(simd >= bits && simd % bits == 0 && "bad length");
  return simd / bits;
}
"""


def clashes(found: object) -> set[str]:
    monitors = rules(found).monitors.values()  # type: ignore[arg-type]
    return {where for monitor in monitors for where in monitor.meta.get("clashes", ())}


def test_a_width_for_which_an_assertion_cannot_hold(mined: Mine) -> None:
    found = mined({"src/machine.hpp": MACHINES, "src/machine.cpp": LENGTH}, "onnx-mlir")
    assert clashes(found) == {"src/machine.hpp:5"}
    (finding,) = found.derived.beyond.findings
    assert finding.place.statement == "int64_t vectorBits() override { return 258; }"
    assert finding.text == 'value("simd") % value("bits") == 0'
    contradicted = [m for m in rules(found).monitors.values() if "clashes" in m.meta]
    assert {where for m in contradicted for where in m.meta["from"]} == {"src/machine.cpp:4"}


def test_the_right_width_contradicts_nothing(mined: Mine) -> None:
    files = {"src/machine.hpp": MACHINES.replace("258", "256"), "src/machine.cpp": LENGTH}
    assert clashes(mined(files, "onnx-mlir")) == set()


@pytest.mark.parametrize(("lanes", "contradicted"), [(6, True), (8, False)])
def test_a_number_that_a_guard_divides_by(mined: Mine, lanes: int, contradicted: bool) -> None:
    text = f"""\
def lanes():
    return {lanes}

def lower():
    n = lanes()
    assert n % 4 == 0
"""
    assert bool(clashes(mined({"a.py": text}))) is contradicted


def test_a_function_that_may_return_something_else_says_nothing(mined: Mine) -> None:
    text = """\
def lanes(t):
    if t: return 8
    return 6

def lower(t):
    n = lanes(t)
    assert n % 4 == 0
"""
    assert clashes(mined({"a.py": text})) == set()


def test_what_a_hardware_description_says_is_held_against_guards(
    mined: Mine, tmp_path: Path
) -> None:
    described = tmp_path / "hw.rules"
    described.write_text('hw("x", simd_lanes, 6).\n')
    settings = """\
target = "x"
languages = ["python"]
include = ["**"]
[device]
lanes = "device(simd_lanes)"
"""
    text = "def f(lanes):\n    assert lanes % 4 == 0\n"
    found = mined({"a.py": text}, settings=settings, hardware=[described])
    assert clashes(found) == {"hw.rules:1"}
