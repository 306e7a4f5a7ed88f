"""Which operators models are made of, and in which order constraints come."""

from __future__ import annotations

from pathlib import Path
from random import Random

import onnx
import pytest

from reprise.campaign.source import require_shapes
from reprise.data import data_path
from reprise.lang.ruleset import load_rules, load_text
from reprise.solve.signatures import Signatures
from reprise.synth.options import OptionsError
from reprise.xcheck.device import device
from reprise.xcheck.models import Made, Modeller
from reprise.xcheck.open import prepare
from reprise.xcheck.signatures import interleaved
from reprise.xcheck.store import Asked

GRID = (
    "constraint two : cardinality on { n = onnx.AffineGrid(...) } require arity(n) == 2\n"
    "constraint kinds : data_representation on { n = onnx.AffineGrid(x, ...) }"
    " require x.dtype in {float16, float32, float64}\n"
)


def modeller(text: str) -> Modeller:
    rules = load_text(text)
    return Modeller(rules, rules.constraints, device(rules, None))


def operands(found: object) -> list[str]:
    assert isinstance(found, Made), str(found)
    (node,) = onnx.load_from_string(found.model).graph.node
    return list(node.input)


def test_an_operator_that_no_rule_declares_is_made_by_its_mined_signature() -> None:
    maker = modeller(GRID)
    assert "onnx.AffineGrid" in maker.signatures and "onnx.SwiGLU" not in maker.signatures
    valid = maker.valid("kinds", Random(0))
    assert len(operands(valid)) == 2
    assert isinstance(valid, Made)
    model = onnx.load_from_string(valid.model)
    onnx.checker.check_model(onnx.shape_inference.infer_shapes(model, strict_mode=True))


@pytest.mark.parametrize("seed", range(2))
def test_an_operand_that_a_signature_has_as_an_attribute_counts_as_one(seed: int) -> None:
    maker = modeller(GRID)
    assert len(operands(maker.valid("two", Random(seed)))) == 2
    assert len(operands(maker.violating("two", Random(seed)))) != 2


PAD = """
constraint kinds : data_representation on { n = onnx.CenterCropPad(_, shape, ...) }
    require shape.dtype in {int32, int64}
constraint few : parameter_bound on { n = onnx.HannWindow(size=S, ...) } require S < 4
constraint has : parameter_bound on { n = onnx.HannWindow(...) } require given(n, "size")
"""


@pytest.mark.slow
def test_a_constraint_may_name_an_operand_that_a_signature_has_as_an_attribute() -> None:
    maker = modeller(PAD)
    assert isinstance(maker.valid("kinds", Random(0)), Made)
    found = maker.violating("kinds", Random(0))
    assert isinstance(found, Made) and found.violated == {"kinds"}
    graph = onnx.load_from_string(found.model).graph
    types = {v.name: v.type.tensor_type.elem_type for v in graph.input}
    assert not types.keys() & {v.name for v in graph.initializer}
    integers = {onnx.TensorProto.INT32, onnx.TensorProto.INT64}
    assert types[graph.node[0].input[1]] not in integers


def test_a_constraint_may_name_the_attribute_that_onnx_has_as_an_operand() -> None:
    maker = modeller(PAD)
    for found, most in ((maker.valid("few", Random(0)), 3), (maker.violating("few", Random(0)), 0)):
        assert isinstance(found, Made)
        (size,) = onnx.load_from_string(found.model).graph.initializer
        value = int(onnx.numpy_helper.to_array(size))
        assert value <= most if most else value >= 4
    assert isinstance(maker.valid("has", Random(0)), Made)
    assert "always holds" in str(maker.violating("has", Random(0)))


def test_a_declared_signature_goes_before_a_mined_one() -> None:
    maker = modeller("op onnx.AffineGrid(x: T[2]) -> T[2] { category mined }\n" + GRID)
    assert len(maker.signatures["onnx.AffineGrid"].plan.decl.params) == 1


def test_signatures_are_given_as_files_and_kept_with_the_run(tmp_path: Path) -> None:
    rules, signatures = tmp_path / "c.rules", tmp_path / "s.rules"
    rules.write_text("constraint c : cardinality on { n = my.Foo(...) } require arity(n) == 1\n")
    signatures.write_text("op my.Foo(x: T[2]) -> T[2] { category mined }\n")
    asked = Asked("onnxruntime", (str(rules),), (), None, 0, 60.0, 4096)
    assert "my.Foo" not in prepare(asked).modeller().signatures
    more = Asked(*(getattr(asked, n) for n in Asked.__slots__[:-1]), (str(signatures),))
    assert "my.Foo" in prepare(more).modeller().signatures


def test_a_signature_without_operand_shapes_is_refused() -> None:
    rules = load_text("op my.Foo(x: T[...]) -> T[...] { category mined }\n")
    with pytest.raises(OptionsError, match="mine signatures"):
        require_shapes(Signatures.of_symbols(rules.symbols))


def test_constraints_go_round_the_operators() -> None:
    def one(name: str, op: str) -> str:
        return f"constraint {name} : cardinality on {{ n = {op}(...) }} require arity(n) < 9\n"

    rules = load_text(
        one("a1", "abs") + one("a2", "abs|add") + one("a3", "abs") + one("b1", "add|abs")
        + one("c1", "neg") + one("b2", "add")
    )  # fmt: skip
    order = [c.name for c in interleaved(rules, rules.constraints.values())]
    assert order == ["a1", "b1", "c1", "a2", "b2", "a3"]


def test_the_constraints_that_ship_stand_in_that_order_already() -> None:
    rules = load_rules([data_path("rules/constraints")])
    for target in ("onnxruntime", "tvm", "genesys"):
        shipped = [
            c
            for c in rules.constraints.values()
            if target in c.meta.get("target", (target,))
        ]  # fmt: skip
        assert [c.name for c in interleaved(rules, shipped)] == [c.name for c in shipped]
