"""Edits of flows that need to know nothing of what the steps do."""

from __future__ import annotations

from collections.abc import Mapping

from reprise.distill.cost import uir_cost, value_cost
from reprise.distill.flow import Flow, Source
from reprise.distill.forms import UirForm
from reprise.uir.text import print_uir
from tests.distill.toys import program, signatures

FORM = UirForm(signatures(), "test")
DIAMOND = """
x: float32[2]
w: float32[2]
a = abs(x)
b = exp(a)
c = neg(a)
d = add(b, c)
e = mul(d, w)
"""


def flow(text: str = DIAMOND) -> Flow:
    return FORM.flow(program(text))


def values(made: Flow) -> Mapping[str, Source]:
    return FORM.values(made)


def text(made: Flow | None) -> str:
    assert made is not None
    found = FORM.program(made)
    assert found is not None
    return print_uir(found.graph)


def steps(made: Flow | None) -> list[str]:
    assert made is not None
    return [step.op for step in made.steps]


def test_a_program_is_the_same_after_editing_nothing() -> None:
    made = program(DIAMOND)
    again = FORM.program(FORM.flow(made))
    assert again is not None
    assert print_uir(again.graph).splitlines()[0] == "x: float32[2]"
    assert {n: a.tolist() for n, a in again.inputs.items()} == {
        n: a.tolist() for n, a in made.inputs.items()
    }


def test_what_no_output_depends_on_goes() -> None:
    made = flow().with_outputs(["b"])
    assert steps(made) == ["abs", "exp"]
    assert [source.name for source in made.sources] == ["x"]


def test_a_cut_puts_values_in_place_of_steps() -> None:
    whole = flow()
    cut = whole.without([0], values(whole), stored=False)
    assert steps(cut) == ["exp", "neg", "add", "mul"]
    assert cut is not None
    assert cut.by_name["a"].value.tolist() == abs(whole.by_name["x"].value).tolist()
    stored = whole.without([0], values(whole), stored=True)
    assert "const a: float32[2] = [" in text(stored)


def test_what_only_the_cut_steps_read_becomes_an_output() -> None:
    whole = flow()
    cut = whole.without([3, 4], values(whole), stored=False)
    assert cut is not None
    assert cut.outputs == ("b", "c")


def test_a_cut_where_no_value_is_known_is_none() -> None:
    assert flow().without([0], {}, stored=False) is None
    assert flow().without(range(5), {}, stored=False) is None


def test_readers_read_another_tensor() -> None:
    made = flow().renamed("d", "a")
    assert steps(made) == ["abs", "mul"]
    assert flow("x: float32[2]\na = abs(x)\n").renamed("a", "x") is None


def test_types_that_signatures_refuse_make_no_program() -> None:
    whole = flow("x: float32[2]\nw: float32[3, 2]\na = matmul(w, x)\n")
    swapped = whole.renamed("x", "w")
    assert swapped is not None
    assert FORM.program(swapped) is None


def test_what_is_smaller_costs_less() -> None:
    texts = [
        "x: float32[]\na = abs(x)\n",
        "x: float64[]\na = abs(x)\n",
        "x: float32[1]\na = abs(x)\n",
        "x: float32[2]\na = abs(x)\n",
        "x: float32[2]\ny: float32[2]\na = add(x, y)\n",
        "x: float32[2]\na = abs(x)\nb = neg(a)\n",
    ]
    costs = [uir_cost(flow(one), signatures()) for one in texts]
    assert None not in costs
    assert costs == sorted(costs)  # type: ignore[type-var]


def test_attributes_at_their_default_cost_nothing() -> None:
    def cost(call: str) -> tuple[float, ...]:
        found = uir_cost(flow(f"x: float32[2, 3]\na = {call}\n"), signatures())
        assert found is not None
        return found

    assert cost("sum(x, axes=[0])") < cost("sum(x, axes=[0], keepdims=true)")
    assert cost("leaky_relu(x)") < cost("leaky_relu(x, alpha=0.5)")


def test_plain_values_cost_less_than_odd_ones() -> None:
    def cost(*numbers: float) -> float:
        made = program("x: float64[2]\na = abs(x)\n", {"x": numbers})
        return value_cost(FORM.flow(made).by_name["x"])

    rows = [(0, 0), (1, 1), (2, 2), (-2, -2), (0.5, 0.5), (float("nan"), float("nan"))]
    costs = [cost(*row) for row in rows]
    assert costs == sorted(costs)
    assert cost(0, 0) < cost(-0.0, 0)
    assert cost(2, 2) < cost(2, 3)
