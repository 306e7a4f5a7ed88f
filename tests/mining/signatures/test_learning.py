"""What probing finds is what ONNX's documentation says in prose."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reprise.lang import ast
from reprise.lang.parse import parse_text
from reprise.mining.signatures.examples import examples, refused
from reprise.mining.signatures.hypothesis import Condition, Domain, Hypothesis, Layout
from reprise.mining.signatures.learning import Learned, Skipped, learn, learn_all, written
from reprise.mining.signatures.reading import read
from reprise.mining.signatures.search import Effort

CROP = """
op onnx.CenterCropPad(input_data: T[...], shape: Tind[...]) -> T[...] {
    category mined
    attr axes: ints = absent
    where T in {float32, int64}, Tind in {int32, int64}
}
"""
LOSS = """
op onnx.NegativeLogLikelihoodLoss(input: T[...], target: Tind[...], weight?: T[...]) -> T[...] {
    category mined
    attr ignore_index: int = absent
    attr reduction: sym = "mean"
    where T in {float32, float64}, Tind in {int32, int64}
}
"""
HANN = """
op onnx.HannWindow(size: T1[...]) -> T2[...] {
    category mined
    attr output_datatype as T2: dtype = float32
    attr periodic: int = 1
    where T1 in {int32, int64}, T2 in {float32, float64}
}
"""
CROSS_ENTROPY = """
op onnx.SoftmaxCrossEntropyLoss(
    scores: T[...], labels: Tind[...], weights?: T[...]
) -> output: T[...], log_prob: T[...] {
    category mined
    attr ignore_index: int = absent
    attr reduction: sym = "mean"
    where T in {float32, float64}, Tind in {int32, int64}
}
"""
QUICK = Effort(trials=1500, steps=1500, enough=150)


def declared(text: str) -> list[ast.OpDecl]:
    return [d for d in parse_text(text, "raw.rules").decls if isinstance(d, ast.OpDecl)]


def learned(text: str) -> Learned:
    (decl,) = declared(text)
    answer = learn(decl, 0, QUICK)
    assert isinstance(answer, Learned), answer
    assert answer.accepted >= 0.9 * answer.drawn > 0
    return answer


@pytest.mark.slow
def test_an_operand_whose_value_decides_the_shape_is_stored() -> None:
    text = learned(CROP).text
    assert "shape?: Tind[" in text and "attr shape as Shape: ints in 1..7" in text
    assert "len(Shape) == rank(" in text


@pytest.mark.slow
def test_extents_that_must_agree_and_indices_into_an_axis() -> None:
    text = learned(LOSS).text
    assert "drop(" in text  # the target has the scores' shape without the axis of classes
    assert 'demands(onnx.NegativeLogLikelihoodLoss, 1, "channel_index").' in text
    assert '{"mean", "none", "sum"}' in text


@pytest.mark.slow
def test_where_a_scan_finds_what_examples_contradict_the_search_begins_with_these() -> None:
    text = learned(CROSS_ENTROPY).text
    assert "Learned from ONNX's own examples" in text
    assert "drop(" in text  # not labels of any shape, which the reference's kernel takes


def test_a_flag_is_zero_or_one() -> None:
    text = learned(HANN).text
    assert "attr periodic as Periodic: int in 0..1 = 1" in text
    assert "attr size as Size: int in 1..8" in text


@pytest.mark.slow
def test_same_seed_same_signature() -> None:
    assert learned(HANN) == learned(HANN)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("op onnx.StringConcat(x: T[...], y: T[...]) -> T[...] { where T in {string} }", "string"),
        (
            "op onnx.Nonsense(x: float32[...]) -> float32[...] { category mined }",
            "no such operator",
        ),
        ("op onnx.ImageDecoder(x: uint8[...]) -> uint8[...] { category mined }", "0 were valid"),
    ],
)
def test_what_cannot_be_used_is_said(text: str, reason: str) -> None:
    (decl,) = declared(text)
    answer = learn(decl, 0, Effort(trials=300, second=300, steps=10))
    assert isinstance(answer, Skipped) and reason in answer.reason


def test_operators_of_uir_are_left_to_it() -> None:
    text = "op onnx.Relu(x: T[...]) -> T[...] { where T in {float32} }"
    (answer,) = learn_all(declared(text))
    assert isinstance(answer, Skipped) and answer.uir == "relu"


@pytest.mark.slow
def test_the_file_that_is_written_can_be_loaded(tmp_path: Path) -> None:
    from reprise.solve.signatures import Signatures

    path = tmp_path / "mined.rules"
    answers = [learned(HANN), Skipped("onnx.Nonsense", "why not")]
    path.write_text(written("raw.rules", answers).partition("demands(")[0])
    assert "onnx.HannWindow" in Signatures.load([path])
    assert "// onnx.Nonsense: why not" in path.read_text()


def test_a_signature_that_refuses_every_example_of_onnx_is_no_signature() -> None:
    (decl,) = declared(LOSS)
    raw = read(decl)
    cases = examples(raw)
    assert len(cases) > 10
    free = Hypothesis(raw, {0: Layout(("N",), True), 1: Layout(("M",), True)})
    free.attributes["reduction"] = Domain()
    assert refused(free, cases) == 0
    fits = Condition("rank(M) == rank(N) - 1", lambda v: len(v["M"]) == len(v["N"]) - 1)
    assert refused(replace(free, conditions=[fits]), cases) == 0
    odd = Condition("rank(M) == 0", lambda v: len(v["M"]) == 0)
    assert refused(replace(free, conditions=[odd]), cases) > 5
