"""A draft and its text must mean the same: the shipped matcher is the judge of both."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import pytest

from reprise.distill.conditions import Among, Distinct, Holds, Near, Surroundings, Term, Within
from reprise.distill.draft import Draft, DraftNode, conditions_of, draft_of
from reprise.facts.onnx_import import Limits, import_model
from reprise.lang.format import format_text
from reprise.lang.lint import lint_rules
from reprise.lang.ruleset import RuleSet, load_text
from reprise.lower.onnx import to_onnx
from reprise.patterns.match import Matcher
from reprise.patterns.truth import Truth
from reprise.solve.signatures import Signatures
from reprise.synth.generator import Generator
from reprise.synth.options import Options
from reprise.uir.graph import Graph
from reprise.uir.program import Program
from reprise.uir.text import parse_uir


@cache
def signatures() -> Signatures:
    return Signatures.load()


def graph(text: str) -> Graph:
    return parse_uir(text, "test.uir", signatures())


def programs(count: int, seed: int, nodes: int = 4) -> list[Program]:
    source = Generator(load_text(""), signatures(), Options(nodes=nodes), seed)
    return [source.program(number).program for number in range(count)]


def matched(rules: RuleSet, names: list[str], graph: Graph) -> set[str]:
    """The patterns that the shipped matcher finds for certain."""
    found = Matcher(rules, [rules.patterns[name] for name in names]).run(graph).findings
    return {f.pattern.name for f in found if f.certainty is Truth.YES}


RELU_CLIP = """
x: float64[2, 3]
const w: float64[3] = [1.0, 2.0, -0.0]
r = relu(x)
c = clip(r, min=-1.0, max=1.0)
y = mul(c, w)
z = add(y, y)
output y
"""


def test_the_most_specific_draft_of_a_program_matches_it_and_says_all_its_lines() -> None:
    program = Program(graph(RELU_CLIP))
    draft, place = draft_of(program, "specific")
    assert draft.matches(program.graph)
    assert [n.operands for n in draft.nodes] == [("x1",), ("n1",), ("n2", "x2"), ("n3", "n3")]
    assert place.ids == {f"n{i}": node.id for i, node in enumerate(program.graph.nodes, 1)}
    assert draft.place_at(program.graph, place.ids) == place


def test_text_is_canonical_and_lints() -> None:
    draft, place = draft_of(Program(graph(RELU_CLIP)), "relu_clip")
    draft = draft.with_(*conditions_of(place, draft, weak=False)[::3])
    text = draft.text()
    assert format_text(text) == text
    assert [d.code for d in lint_rules(load_text(text))] == ["untested"]


def test_attributes_stand_in_their_lines_and_unused_names_are_left_out() -> None:
    draft, _ = draft_of(Program(graph(RELU_CLIP)), "relu_clip")
    draft = draft.with_(
        Within(Term("attr", "n2", "min"), -1.0, -1.0),
        Holds("attr", "n2", "max"),
        Among(Term("dtype", "x1"), ("float32", "float64")),
        Within(Term("fanout", "n1"), 1, 1),
        Holds("graph_output", "n1", negated=True),
    )
    assert draft.text() == (
        'pattern relu_clip "a draft" {\n'
        "    n1 = relu(x1)\n"
        "    n2 = clip(n1, min=-1.0, max=_)\n"
        "    n3 = mul(n2, _)\n"
        "    n4 = add(n3, n3)\n"
        "    where x1.dtype in {float32, float64}\n"
        "    graph fanout(n1) == 1, not graph_output(n1)\n"
        "}\n"
    )


def test_dropping_a_line_leaves_what_it_made_as_any_tensor() -> None:
    draft, _ = draft_of(Program(graph(RELU_CLIP)), "d")
    draft = draft.with_(
        Among(Term("dtype", "x1"), ("float64",)),
        Among(Term("dtype", "n2"), ("float64",)),
        Holds("attr", "n2", "min"),
    )
    smaller = draft.without_node("n1").without_node("n2")
    assert [n.name for n in smaller.nodes] == ["n3", "n4"]
    assert [str(c) for c in smaller.conditions] == ["n2.dtype == float64"]
    assert smaller.matches(graph("x: float64[2]; w: float64[2]; y = mul(x, w); z = add(y, y)"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_condition_means_in_the_rule_language_what_it_means_here(seed: int) -> None:
    """Conditions of one program, evaluated on another one with the same lines."""
    rng = Random(seed)
    made = programs(14, seed)
    asked: list[tuple[Draft, Program]] = []
    for program in made:
        draft, place = draft_of(program)
        first = rng.choice(draft.nodes)
        line = DraftNode(
            "n1", (), tuple(t and f"x{i}" for i, t in enumerate(first.operands)), more=True
        )
        small = Draft((line,))
        there = small.place_at(program.graph, {"n1": place.ids[first.name]})
        assert there is not None
        conditions = conditions_of(there, small)
        for condition in rng.sample(conditions, min(12, len(conditions))):
            asked.append((Draft((line,), (condition,), name=f"p{len(asked)}"), program))
    # a file must not hold two patterns that match the same
    asked = list({d.text().partition("{")[2]: (d, p) for d, p in asked}.values())
    rules = load_text("".join(d.text() for d, _ in asked))
    told = 0
    for program in made:
        found = matched(rules, [d.name for d, _ in asked], program.graph)
        around = Surroundings(program.graph)
        for draft, origin in asked:
            holds = draft.matches(around)
            assert holds == (draft.name in found), f"{draft.text()}\non {program.name}"
            assert holds or origin is not program
            told += holds
    assert len(asked) < told < len(asked) * len(made)


@pytest.mark.parametrize("value", [1, 1.0])
@pytest.mark.parametrize(("dtype", "is_one"), [("int8", True), ("float32", True), ("bool", False)])
def test_a_number_is_the_same_whatever_the_element_type(
    value: float, dtype: str, is_one: bool
) -> None:
    draft = Draft(
        (DraftNode("n1", (), ("_", "x2"), more=True),),
        (Within(Term("value", "x2"), value, value),),
        name="p",
    )
    op, one = ("logical_and", "true") if dtype == "bool" else ("mul", "1")
    program = graph(f"x: {dtype}[2]; const w: {dtype}[1] = [{one}]; y = {op}(x, w)")
    assert draft.matches(program) == is_one
    assert matched(load_text(draft.text()), ["p"], program) == ({"p"} if is_one else set())


@pytest.mark.slow
def test_whole_drafts_match_what_their_texts_match() -> None:
    rng = Random(5)
    made = programs(12, 5, nodes=3)
    drafts = []
    for number, program in enumerate(made):
        draft, place = draft_of(program, f"p{number}")
        conditions = conditions_of(place, draft)
        drafts.append(draft.with_(*rng.sample(conditions, 20)))
    rules = load_text("".join(d.text() for d in drafts))
    for number, program in enumerate(made):
        found = matched(rules, [d.name for d in drafts], program.graph)
        assert found == {d.name for d in drafts if d.matches(program.graph)}
        assert f"p{number}" in found


X, Y, H = "x: float32[2]", "y: float32[2]", "h: float32[]"


@pytest.mark.parametrize(
    ("line", "text", "expected"),
    [
        (DraftNode("n", ("add",), ("x", "x")), f"{X}; a = add(x, x)", True),
        (DraftNode("n", ("add",), ("x", "x")), f"{X}; {Y}; a = add(x, y)", False),
        (DraftNode("n", ("clip",), ("x", None, "y")), f"{X}; {H}; a = clip(x, none, h)", True),
        (DraftNode("n", ("clip",), ("x", None, "y")), f"{X}; {H}; a = clip(x, h)", False),
        (DraftNode("n", ("clip",), ("x",)), f"{X}; {H}; a = clip(x, h)", False),
        (DraftNode("n", ("clip",), ("x",), more=True), f"{X}; {H}; a = clip(x, h)", True),
        (DraftNode("n", ("clip",), ("x", "_?")), f"{X}; a = clip(x)", True),
        (DraftNode("n", ("abs", "relu"), ("x",)), f"{X}; a = relu(x)", True),
        (DraftNode("n", (), ("x",)), f"{X}; a = relu(x)", True),
    ],
)
def test_operands(line: DraftNode, text: str, expected: bool) -> None:
    draft = Draft((line,), name="p")
    program = graph(text)
    assert draft.matches(program) is expected
    assert bool(matched(load_text(draft.text()), ["p"], program)) is expected


def test_operands_in_any_order() -> None:
    lines = (
        DraftNode("s", ("sigmoid",), ("x",)),
        DraftNode("m", ("mul",), ("x", "s"), unordered=True),
    )
    draft = Draft(lines, (Distinct("x", "s"), Near("user", "s", ("mul",))), name="p")
    swapped = graph("x: float32[2]; s = sigmoid(x); m = mul(s, x)")
    assert draft.matches(swapped)
    assert matched(load_text(draft.text()), ["p"], swapped) == {"p"}
    assert not draft.matches(graph("x: float32[2]; y: float32[2]; s = sigmoid(x); m = mul(s, y)"))


def test_the_first_two_operands_in_either_order_before_others() -> None:
    lines = (
        DraftNode("t", ("relu",), ("x",)),
        DraftNode("g", ("gemm",), ("t", "y", "_?"), unordered=True),
    )
    draft = Draft(lines, (Within(Term("attr", "g", "alpha"), 1.0, 1.0),), name="p")
    start = "x: float32[2, 2]; y: float32[2, 2]; t = relu(x); "
    for text, expected in [
        ("g = gemm(t, y)", True),
        ("g = gemm(y, t)", True),
        ("g = gemm(y, t, x)", True),
        ("g = gemm(x, y, t)", False),
        ("g = gemm(y, t, alpha=2.0)", False),
    ]:
        program = graph(start + text)
        assert draft.matches(program) is expected, text
        assert bool(matched(load_text(draft.text()), ["p"], program)) is expected, text


def test_a_further_result_is_named_by_its_number() -> None:
    program = Program(graph("x: float32[4]; v, i = topk(x, k=2, axis=0); y = neg(i)"))
    draft, _ = draft_of(program, "p")
    draft = draft.with_(Among(Term("dtype", "n1_1"), ("int64",)))
    assert draft.nodes[1].operands == ("n1_1",)
    assert matched(load_text(draft.text()), ["p"], program.graph) == {"p"}
    first = graph("x: float32[4]; v, i = topk(x, k=2, axis=0); y = neg(v)")
    assert not draft.matches(first)
    assert not matched(load_text(draft.text()), ["p"], first)


def test_a_draft_about_a_mined_operator_matches_the_model_that_is_written() -> None:
    """There, what the program says by attributes is operands and numbers."""
    text = "a: float32[4, 5]\nb: float32[2, 3] = onnx.CenterCropPad(a, shape=[2, 3])\n"
    text += "w: float64[3] = onnx.HannWindow(size=3, output_datatype=float64)\noutput b\noutput w\n"
    program = graph(text)
    draft, place = draft_of(Program(program), "mined")
    exact = [c for c in conditions_of(place, draft, weak=False) if isinstance(c, Among | Within)]
    draft = draft.with_(*exact)
    rules = load_text(draft.text())
    assert "shape=[2, 3]" in draft.text() and "size=3" in draft.text()
    assert matched(rules, ["mined"], program) == {"mined"}
    written = import_model(to_onnx(program), Path("m.onnx"), Limits())
    assert matched(rules, ["mined"], written) == {"mined"}
