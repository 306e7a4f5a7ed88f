"""Reductions on ONNX Runtime: what a campaign finds, and programs that hold two defects at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.campaign.findings import read_detail
from reprise.campaign.open import Request, begin
from reprise.campaign.progress import PlainWatch
from reprise.campaign.run import Budget
from reprise.distill.kept import Report
from reprise.distill.session import reduce_subject
from reprise.distill.subject import read_subject
from reprise.uir.text import parse_uir
from tests.distill.toys import signatures

pytest.importorskip("onnxruntime")

RELU_CLIP = """
x: float64[3, 4]
r: float64[3, 4] = relu(x)
k: float64[3, 4] = clip(r, min=0.0, max=6.0)
output k
"""
SQUARE = """
v: float32[3, 3]
vt: float32[3, 3] = transpose(v, perm=[0, 1])
b: float32[3, 5]
y: float32[3, 5] = gemm(vt, b)
"""
"""An identity transpose is folded into Gemm as if it were none: a wrong result if square..."""
OBLONG = """
w: float32[3, 4]
wt: float32[3, 4] = transpose(w, perm=[0, 1])
u: float32[4, 2]
q: float32[3, 2] = gemm(wt, u)
"""
"""...and an error if not."""
PAD_POOL = """
i: float32[1, 2, 6, 6]
e = exp(i)
n = neg(e)
p: float32[1, 2, 8, 8] = pad(n, pads=[0, 0, 1, 1, 0, 0, 1, 1])
j = max_pool2d(p, kernel=[2, 2], stride=2)
"""


def reduce(text: str, folder: Path) -> Report:
    path = folder / "program.uir"
    path.write_text(text)
    subject = read_subject(path, "onnxruntime", signatures())
    return reduce_subject(subject, signatures(), folder / "out")


def operators(report: Report) -> list[str]:
    path = report.folder / "program.uir"
    return [n.op for n in parse_uir(path.read_text(), str(path), signatures()).nodes]


@pytest.mark.slow
def test_a_crash_hides_a_wrong_result(tmp_path: Path) -> None:
    """The record blames both passes; of the two, the one that crashes is kept."""
    report = reduce(SQUARE + RELU_CLIP, tmp_path)
    assert report.aimed == "pass:FuseReluClip+GemmTransposeFusion"
    assert report.judgement.signature == "pass:FuseReluClip"
    assert operators(report) == ["relu", "clip"]


def test_one_pass_with_two_verdicts_keeps_the_verdict(tmp_path: Path) -> None:
    report = reduce(SQUARE + OBLONG, tmp_path)
    assert report.aimed == report.judgement.signature == "pass:GemmTransposeFusion"
    assert report.judgement.verdict.value == "crash"
    assert "gemm(" in report.text


@pytest.mark.slow
def test_a_wrong_result_does_not_become_the_error_of_the_same_pass(tmp_path: Path) -> None:
    """Extents shrink, but the matrix stays square."""
    report = reduce(SQUARE, tmp_path)
    assert report.judgement.verdict.value == "wrong_result"
    assert operators(report) == ["transpose", "gemm"]
    assert "v: float32[2, 2]" in report.text


@pytest.mark.slow
def test_two_wrong_results_come_down_to_one_of_them(tmp_path: Path) -> None:
    report = reduce(SQUARE + PAD_POOL, tmp_path)
    assert report.judgement.signature in ("pass:GemmTransposeFusion", "pass:Pad_Fusion")
    assert operators(report) in (["transpose", "gemm"], ["pad", "max_pool2d"])


@pytest.mark.slow
@pytest.mark.parametrize("first", ["topk", "lp_normalize"])
def test_of_two_kernels_that_die_alike_the_first_is_kept(tmp_path: Path, first: str) -> None:
    """Both divide by zero, and there is nothing in the signature to tell them apart."""
    calls = {"topk": "t, i = topk({}, k=2, axis=1)", "lp_normalize": "n = lp_normalize({}, axis=0)"}
    second = "lp_normalize" if first == "topk" else "topk"
    text = f"x: float32[0, 4]\np = exp(x)\n{calls[first].format('p')}\n"
    text += f"{calls[second].format('t' if first == 'topk' else 'n')}\n"
    assert operators(reduce(text, tmp_path)) == [first]


@pytest.mark.slow
def test_what_a_campaign_finds_comes_down_to_what_its_rule_names(tmp_path: Path) -> None:
    """Each finding that a shipped rule explains: it still does, of a program of three nodes at
    most."""
    request = Request("onnxruntime", 21, guided=False, budget=Budget(tests=900), keep=1)
    campaign = begin(request, tmp_path / "run", PlainWatch(lambda line: None), 1)
    try:
        campaign.run()
    finally:
        campaign.writer.close()
    rules = []
    for folder in sorted((tmp_path / "run" / "findings").iterdir()):
        detail = read_detail(folder)
        flaky = detail.confirmation is not None and detail.confirmation.flaky
        if flaky or not detail.verdict.is_finding:
            continue
        subject = read_subject(folder, None, signatures())
        report = reduce_subject(subject, signatures(), tmp_path / folder.name)
        assert report.judgement.signature == detail.signature
        assert report.judgement.verdict is detail.verdict
        assert report.after.nodes <= 3
        assert report.after.nodes < report.before.nodes
        if detail.rule is not None:
            assert report.rule == detail.rule
            rules.append(detail.rule)
    assert len(rules) >= 2
