"""Crash signatures, on what compilers really said (`crashes.json`: messages and frames of
ONNX Runtime 1.27.0, TVM 0.25 and 0.27, torch 2.13.0, from the triggers in `tests/bugs`; printed
programs are shortened)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.oracle.crash import (
    Clusters,
    Crash,
    crash_of,
    crash_of_end,
    normalise,
    own_frames,
    parse_key,
    same_defect,
)
from reprise.targets.interface import Ended, Failure, Outcome, Stage

GROUPS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "crashes.json").read_text(encoding="utf-8")
)
NAMES = [g["defect"] for g in GROUPS]


def crashes(group: dict[str, Any]) -> list[Crash]:
    return [
        crash_of(Failure(Stage(c["stage"]), c["type"], c["message"], tuple(c.get("frames", ()))))
        for c in group["crashes"]
    ]


@pytest.mark.parametrize("group", GROUPS, ids=NAMES)
def test_sightings_of_one_defect_have_one_key(group: dict[str, Any]) -> None:
    assert len({c.key for c in crashes(group)}) == 1


@pytest.mark.slow
def test_different_defects_stay_apart() -> None:
    for i, one in enumerate(GROUPS):
        for other in GROUPS[i + 1 :]:
            for a in crashes(one):
                for b in crashes(other):
                    assert not same_defect(a, b), (one["defect"], other["defect"], a.key)


def test_clusters_are_the_defects_in_any_order() -> None:
    every = [(name, c) for name, g in zip(NAMES, GROUPS, strict=True) for c in crashes(g)]
    for order in (every, every[::-1], sorted(every, key=lambda pair: len(pair[1].message))):
        clusters = Clusters()
        leaders: dict[str, set[str]] = {}
        for name, crash in order:
            leaders.setdefault(clusters.leader(crash).key, set()).add(name)
        assert len(leaders) == len(GROUPS)
        assert all(len(names) == 1 for names in leaders.values())


@pytest.mark.parametrize("group", GROUPS, ids=NAMES)
def test_a_key_is_one_line_and_can_be_read_back(group: dict[str, Any]) -> None:
    for crash in crashes(group):
        assert "\n" not in crash.key
        assert parse_key(crash.key) == crash


@pytest.mark.parametrize(
    ("message", "normal"),
    [
        ("Load/Store of buffer x_red (0x55b331cf6770)", "Load/Store of buffer NAME (ADDRESS)"),
        ("Got {4,5}, expected (2, 3) or [7]", "Got [N], expected [N] or [N]"),
        ("type mismatch. T !=N11onnxruntime17PrimitiveDataTypeIhEE", "type mismatch. T !=DTYPE"),
        (
            "type mismatch. T !=N11onnxruntime17PrimitiveDataTypeINS_9MLFloat16EEE",
            "type mismatch. T !=DTYPE",
        ),
        ("bias.shape={} and axis=1", "bias.shape=[N] and axis=N"),
        ("node with name 'node_Erf_17'", "node with name 'NAME'"),
        (
            "'FloorDiv' object has no attribute 'value'",
            "'FloorDiv' object has no attribute 'value'",
        ),
        ("/onnxruntime_src/core/graph.cc:83 Foo", "graph.cc Foo"),
        ("cannot open /tmp/tmpa1b2c3d4/x9.so now", "cannot open PATH now"),
        ("conv2d of float32 and torch.bfloat16", "conv2d of DTYPE and DTYPE"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id UUID"),
        ("took 1.5e-3 s, tmp17 of 12", "took N s, tmpN of N"),
        ("", ""),
    ],
)
def test_what_varies_is_taken_out(message: str, normal: str) -> None:
    assert normalise(message) == normal


@pytest.mark.slow
@given(st.text(max_size=300))
def test_normalising_anything_never_fails_and_gives_one_line(message: str) -> None:
    normal = normalise(message)
    assert len(normal.splitlines()) <= 1
    crash = Crash("run", "E", ("a.py:f", "b.cc:C::g()"), normal)
    assert parse_key(crash.key) is not None


@given(
    st.lists(st.integers(0, 10**9), min_size=2, max_size=2),
    st.floats(allow_nan=False, allow_infinity=False),
)
def test_numbers_never_tell_defects_apart(numbers: list[int], real: float) -> None:
    a = normalise(f"index {numbers[0]} of v{numbers[0]} is not {real}")
    assert a == normalise(f"index {numbers[1]} of v{numbers[1]} is not 7")


def test_native_frames_keep_their_demangled_names() -> None:
    frames = (
        "/opt/x/site-packages/tvm/s_tir/schedule/schedule.py:rfactor",
        "<unknown>:TVMFFIPyCallback(void*, TVMFFIAny const*, int, TVMFFIAny*)",
        "<unknown>:tvm::tirx::StmtMutator::VisitStmt_(tvm::tirx::SBlockNode const*)",
        "/project/src/s_tir/reduction.cc:virtual tvm::ffi::UnchangedOr<tvm::Stmt> "
        "tvm::s_tir::BlockReplacer::Mutate_(const tvm::SBlock*, tvm::ffi::InplaceMode)",
    )
    assert own_frames(frames) == (
        "schedule/schedule.py:rfactor",
        "s_tir/reduction.cc:BlockReplacer::Mutate_()",
    )


SEGFAULT = """some output
Fatal Python error: Segmentation fault

Current thread 0x00007f9e8b892b80 (most recent call first):
  File "/opt/lib/python3.11/site-packages/torch/_inductor/codecache.py", line 519 in load
  File "/opt/lib/python3.11/site-packages/torch/_inductor/graph.py", line 3 in compile
  File "/work/reprise/targets/worker.py", line 40 in main
  File "<string>", line 1 in <module>
"""
ABORT = """terminate called after throwing an instance of 'std::out_of_range'
  what():  vector::_M_range_check: __n (which is 8) >= this->size() (which is 3)
"""


def ended(log: str, signal: str = "SIGSEGV", mode: str = "optimised") -> Crash:
    return crash_of_end(Outcome(Ended.DIED, {}, mode, Stage.COMPILE, signal, log))


def test_a_signal_is_keyed_by_mode_stage_and_what_faulthandler_saw() -> None:
    crash = ended(SEGFAULT)
    assert (crash.stage, crash.kind) == ("optimised/compile", "SIGSEGV")
    assert crash.frames == ("_inductor/graph.py:compile", "_inductor/codecache.py:load")
    moved = SEGFAULT.replace("519", "77").replace("0x00007f9e8b892b80", "0x1")
    assert ended(moved).key == crash.key
    assert not same_defect(ended(SEGFAULT, "SIGABRT"), crash)
    assert not same_defect(ended(SEGFAULT, mode="unoptimised"), crash)


def test_an_abort_is_keyed_by_its_last_words() -> None:
    crash = ended(ABORT, "SIGABRT")
    assert crash.message == (
        "vector::_M_range_check: __n (which is N) >= this->size() (which is N)"
    )
    assert ended(ABORT.replace("8", "11"), "SIGABRT").key == crash.key
    other = ended("x.cc:3: int main(): Assertion `x.size()==9' failed.", "SIGABRT")
    assert other.message.startswith("Assertion")
    assert other.key != crash.key


def test_near_equal_messages_merge_only_at_one_call_site() -> None:
    frames = ("codegen/codegen_cuda.cc:CodeGenCUDA::Print()",)
    words = "Check failed: the lanes of this vector are more than the target can load at once"
    a = Crash("compile", "InternalError", frames, words)
    b = Crash("compile", "InternalError", frames, words + " here")
    assert same_defect(a, b)
    assert not same_defect(a, Crash("run", "InternalError", frames, words + " here"))
    assert not same_defect(
        Crash("compile", "InternalError", (), words),
        Crash("compile", "InternalError", (), words + " here"),
    )
