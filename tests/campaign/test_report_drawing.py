"""Programs drawn: nothing overlaps, data flows down, and the right nodes are pointed at."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.campaign.findings import read_detail
from reprise.campaign.report.drawing import MOST, draw
from reprise.campaign.report.highlight import Highlight, Highlighter
from reprise.campaign.report.layout import BESIDE, Box, Edge, Layout, layered
from reprise.data import data_path
from reprise.lang.ruleset import load_rules
from reprise.oracle.verdict import Verdict
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Graph, TensorType
from reprise.uir.text import parse_uir
from tests.campaign.reported import PROGRAM, WRONG, defect, files


@st.composite
def dags(draw: st.DrawFn) -> tuple[list[Box], list[Edge]]:
    """Boxes of any size; edges, also twice the same, from earlier boxes to later ones."""
    boxes = draw(
        st.lists(
            st.builds(Box, st.floats(5, 300), st.floats(10, 60), st.booleans()),
            min_size=1, max_size=25,
        )
    )  # fmt: skip
    pairs = st.tuples(st.integers(0, len(boxes) - 1), st.integers(0, len(boxes) - 1))
    chosen = draw(st.lists(pairs.filter(lambda p: p[0] < p[1]), max_size=50))
    return boxes, [Edge(a, b) for a, b in chosen] if len(boxes) > 1 else []


def rectangles(boxes: list[Box], laid: Layout) -> list[tuple[float, float, float, float]]:
    return [
        (x, y, x + box.width, y + box.height) for box, (x, y) in zip(boxes, laid.boxes, strict=True)
    ]


@given(dags())
def test_no_box_overlaps_another_and_all_are_inside(dag: tuple[list[Box], list[Edge]]) -> None:
    boxes, edges = dag
    laid = layered(boxes, edges)
    placed = rectangles(boxes, laid)
    for a, b in combinations(placed, 2):
        apart_x = b[0] - a[2] > BESIDE - 1e-6 or a[0] - b[2] > BESIDE - 1e-6
        apart_y = b[1] >= a[3] or a[1] >= b[3]
        assert apart_x or apart_y
    for left, top, right, bottom in placed:
        assert min(left, top) > -1e-6
        assert right < laid.width + 1e-6
        assert bottom < laid.height + 1e-6


@given(dags())
def test_edges_lead_down_from_box_to_box(dag: tuple[list[Box], list[Edge]]) -> None:
    boxes, edges = dag
    laid = layered(boxes, edges)
    placed = rectangles(boxes, laid)
    for edge, path in zip(edges, laid.edges, strict=True):
        source, target = placed[edge.source], placed[edge.target]
        assert source[3] < target[1]
        numbers = [float(n) for n in re.findall(r"-?\d+\.\d", path)]
        assert numbers[0] == pytest.approx((source[0] + source[2]) / 2, abs=0.1)
        assert numbers[-2] == pytest.approx((target[0] + target[2]) / 2, abs=0.1)
        assert numbers[-1] == pytest.approx(target[1], abs=0.1)


def test_a_chain_is_straight_and_an_edge_cannot_lead_back() -> None:
    laid = layered([Box(10, 10), Box(50, 10), Box(20, 10)], [Edge(0, 1), Edge(1, 2)])
    middles = [x + w / 2 for (x, _), w in zip(laid.boxes, (10, 50, 20), strict=True)]
    assert middles == pytest.approx([25, 25, 25], abs=0.1)
    with pytest.raises(ValueError, match="later"):
        layered([Box(1, 1), Box(1, 1)], [Edge(1, 0)])


def test_edges_that_need_not_cross_do_not() -> None:
    # two chains, whose boxes are given in an order that crosses them
    laid = layered([Box(9, 9)] * 4, [Edge(0, 3), Edge(1, 2)])
    x = [corner[0] for corner in laid.boxes]
    assert (x[0] < x[1]) == (x[3] < x[2])


# --- programs --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def signatures() -> Signatures:
    return Signatures.load()


def parsed(signatures: Signatures, program: str = PROGRAM) -> Graph:
    return parse_uir(program, "p.uir", signatures)


def classes(svg: str) -> dict[str, list[str]]:
    """The first text in each box, by the box's class."""
    found: dict[str, list[str]] = {}
    for group in ElementTree.fromstring(svg).iter("g"):
        head = group.find("text")
        if head is not None:
            found.setdefault(group.get("class", ""), []).append(head.text or "")
    return found


def test_operators_sources_outputs_and_types_are_all_there(signatures: Signatures) -> None:
    svg = draw(parsed(signatures), Highlight())
    drawn = classes(svg)
    assert sorted(drawn["op"]) == ["gemm", "relu", "transpose"]
    assert drawn["source input"] == ["x", "w"]
    assert drawn["output"] == ["output 0", "output 1"]
    assert svg.count("float32[4, 4]</text>") == 5  # of x, w and what each operator makes
    assert len(ElementTree.fromstring(svg).findall(".//path")) == 6


def test_a_known_rule_points_at_the_nodes_it_matches(
    tmp_path: Path, signatures: Signatures
) -> None:
    rules = load_rules([data_path("rules/bugs/onnxruntime")])
    graph = parsed(signatures)
    detail = described(tmp_path, "p", WRONG)
    seen = Highlighter(rules).look(graph, detail, rules.patterns["ort_32228"])
    assert seen.why == "the nodes that ort_32228 matches"
    assert {n.op for n in graph.nodes if n.id in seen.nodes} == {"transpose", "gemm"}
    drawn = classes(draw(graph, seen))
    assert sorted(drawn["op hot"]) == ["gemm (g)", "transpose (t)"]
    assert drawn["output differs"] == ["output 0"]


def test_without_a_rule_a_wrong_result_points_at_what_led_to_it(
    tmp_path: Path, signatures: Signatures
) -> None:
    graph = parsed(signatures)
    seen = Highlighter(None).look(graph, described(tmp_path, "p", WRONG), None)
    assert {n.op for n in graph.nodes if n.id in seen.nodes} == {"transpose", "gemm"}


@pytest.mark.parametrize(
    ("message", "op"),
    [
        ("running node. Name:'n2' failed", "relu"),
        ("(node:'n0/QuickGelu/' ep:'CPU')", "transpose"),
        ("gemm.cc: GEMM: dimension mismatch", "gemm"),
    ],
)
def test_a_crash_points_at_the_node_that_its_message_names(
    tmp_path: Path, signatures: Signatures, message: str, op: str
) -> None:
    graph = parsed(signatures)
    detail = described(tmp_path, "s", {"message": message})
    seen = Highlighter(None).look(graph, detail, None)
    assert [n.op for n in graph.nodes if n.id in seen.nodes] == [op]


def test_a_large_program_is_cut_to_what_matters() -> None:
    graph, type_ = Graph("large"), TensorType("float32", (2,))
    tensor = graph.add_input("x", type_)
    for number in range(200):
        made = graph.add_node("abs", [tensor], [(f"v{number}", type_)]).outputs[0]
        assert made is not None
        tensor = made
    graph.outputs.append(tensor)
    hot = graph.nodes[100]
    svg = draw(graph, Highlight(frozenset([hot.id]), why="a test"))
    drawn = classes(svg)
    assert len(drawn["op"]) + len(drawn["op hot"]) == MOST
    assert len(drawn["op hot"]) == 1
    assert "160 more are not drawn" in svg
    assert "… v" in drawn["source more"][0]


def test_names_in_a_drawing_are_text(signatures: Signatures) -> None:
    graph = parsed(signatures)
    graph.tensors[0].name = '"><script>alert(1)</script>'
    graph.nodes[0].attributes["mode"] = "</svg><b>"
    svg = draw(graph, Highlight())
    assert "<script" not in svg
    assert "<b>" not in svg
    ElementTree.fromstring(svg)


def described(path: Path, signature: str, evidence: dict[str, object]):  # type: ignore[no-untyped-def]
    record = defect(0, signature)
    assert record.verdict is Verdict.CRASH
    for name, data in files(record, evidence=evidence).items():
        (path / name).write_bytes(data)
    return read_detail(path)
