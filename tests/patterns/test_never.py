"""Patterns that ask for element types which their operators never have."""

from __future__ import annotations

import pytest

from reprise.facts.onnx_import import load_onnx
from reprise.facts.survey import node_tests, packaged_models
from reprise.lang import core
from reprise.lang.diagnostics import Diagnostic, RulesError
from reprise.lang.lint import lint_rules
from reprise.lang.ruleset import RuleSet, load_text
from reprise.patterns.never import typed_clash
from reprise.uir.graph import Node
from tests.facts.onnx_text import import_proto

REFUSED = {
    "an operand": ("n = sqrt(x) where x.dtype == int32", "operand `x` of `sqrt` is never int32"),
    "a result": ("n = less(x, y) where n.dtype == float32", "result of `less` is never float32"),
    "a second result": ("v, i = topk(x, ...) where i.dtype == int32", "result 1 of `topk`"),
    "several operators": ("n = sqrt|exp(x) where x.dtype in ints", "of `sqrt` or `exp` is never"),
    "a category": ("n = exponential(x) where x.dtype == bool", "any of 9 operators such as"),
    "a negated set": ("n = sqrt(x) where x.dtype not in floats", "never any type but float16"),
    "a width": ("n = sqrt(x) where bits(x.dtype) == 8", "of `sqrt` is never float8e4m3fn"),
    "by way of an equality": (
        "n = any(x) m = sqrt(n) where x.dtype == int8, n.dtype == x.dtype",
        "operand `x` of `sqrt` is never int8",
    ),
    "by way of the flow": ("n = less(x, y) m = sqrt(n)", "that is all that `less` gives"),
    "two ports together": (
        "n = sqrt(x) where n.dtype == float32, x.dtype == float64",
        "`sqrt` never has these element types together",
    ),
    "an attribute": ("n = cast(x, to=float32) where n.dtype == int8", "attribute `to` float32"),
    "a difference": ("n = sqrt(x) where n.dtype != x.dtype", "never different"),
    "every alternative": (
        "n = sqrt(x) where x.dtype == int8 or n.dtype == bool",
        "operand `x` of `sqrt` is never int8",
    ),
}


def problems(text: str) -> list[Diagnostic]:
    rules = load_text(text)
    try:
        found = lint_rules(rules, looks=[typed_clash(rules)])
    except RulesError as error:
        found = error.diagnostics
    return [d for d in found if d.code == "never-matches"]


@pytest.mark.parametrize("kind", REFUSED)
def test_types_that_no_operator_has_are_refused_with_the_reason(kind: str) -> None:
    lines, reason = REFUSED[kind]
    (found,) = problems(f'pattern p "p" {{\n    {lines}\n}}\n')
    assert reason in found.message
    assert found.span.line == 2


@pytest.mark.parametrize(
    "lines",
    [
        "n = sqrt(x) where x.dtype == float64",
        "n = sqrt(x) where x.dtype == int8 or n.dtype == float16",
        "n = onnx.Foo(x) or sqrt(x) where x.dtype == int8",
        "n = sqrt|abs(x) where x.dtype == int8",
        "n = pow(x, y) where x.dtype != y.dtype",
        "n = cast(x, to=T) where n.dtype == T, x.dtype != T",
        "n = erf(x) where x.dtype == int32",  # the signature has floats, ONNX has more
        "n = dropout(x, ...) where x.dtype == float8e5m2",
        "n = if(c) where n.dtype == int8",
        "n = resize(x, antialias=true, ...) where x.dtype == float32",
    ],
)
def test_what_a_signature_or_onnx_allows_is_not_refused(lines: str) -> None:
    assert problems(f'pattern p "p" {{ {lines} }}') == []


def test_a_constraint_may_forbid_what_no_operator_allows_but_not_speak_of_it() -> None:
    head = "constraint c : data_representation on { n = sqrt(x)"
    assert problems(f"{head} }} require x.dtype in floats") == []
    assert problems(f"{head} where x.dtype == int8 }} require x.rank == 1") != []


@pytest.mark.slow
def test_every_model_that_onnx_ships_has_types_that_are_not_refused() -> None:
    graphs = [import_proto(model) for _, model in node_tests()]
    graphs += [load_onnx(path) for path in packaged_models()]
    rules = load_text('pattern p "p" { n = any(...) }')
    clash = typed_clash(rules)
    told = [
        str(found.message)
        for graph in graphs
        for node in graph.nodes
        if (found := clash(_rule_for(node))) is not None
    ]
    assert told == []
    assert _refuses_something(rules)


def _rule_for(node: Node) -> core.Rule:
    """A body that asks for exactly what ``node`` has."""
    n = core.Var("N")
    body: list[core.Literal] = [core.Atom("node", (n, core.Const(node.op)))]
    for side, tensors in (("input", node.inputs), ("output", node.outputs)):
        for place, tensor in enumerate(tensors):
            if tensor is not None and tensor.type.dtype is not None:
                variable = core.Var(f"{side}{place}")
                body.append(core.Atom(side, (n, core.Const(place), variable)))
                body.append(core.Atom("dtype", (variable, core.Const(tensor.type.dtype))))
    return core.Rule(core.Atom("p", (n,)), tuple(body), "p")


def _refuses_something(rules: RuleSet) -> bool:
    n, x = core.Var("N"), core.Var("X")
    body = (
        core.Atom("node", (n, core.Const("sqrt"))),
        core.Atom("input", (n, core.Const(0), x)),
        core.Atom("dtype", (x, core.Const("int8"))),
    )
    return typed_clash(rules)(core.Rule(core.Atom("p", (n,)), body, "p")) is not None
