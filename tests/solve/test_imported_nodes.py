"""What the ONNX importer writes is what the signatures say: names, attributes, operands, types."""

from __future__ import annotations

from random import Random

import onnx
import pytest

from reprise.facts.onnx_import import load_onnx
from reprise.solve.sampling import Sampler
from tests.solve import onnx_forms
from tests.solve.crosscheck import agree

ROUNDS = 3

RENAMED = {
    "max_n": "maximum",  # of two operands
    "min_n": "minimum",
    "sum_n": "add",
    "full": "constant_of_shape",
    "arange": "range",
}
EMPTY = "identity"  # a reduction over no axes at all


@pytest.mark.slow
@pytest.mark.parametrize("op", sorted(onnx_forms.FORMS))
def test_an_imported_node_fits_its_signature(signatures, op, tmp_path):
    rng = Random(f"imported {op}")
    sampler = Sampler(signatures[op])
    compared = 0
    for _ in range(10 * ROUNDS):
        instance = sampler.draw(rng)
        typing = signatures.check(op, instance.operands, instance.attributes)
        try:
            form = onnx_forms.FORMS[op](instance, dict(typing.attributes))
        except onnx_forms.NotExpressible:
            continue
        if op == "pad" and not str(instance.operands[0].dtype).startswith(("float", "int", "uint")):
            continue  # to UIR, the value is a number
        path = tmp_path / "m.onnx"
        onnx.save(onnx_forms.model(form, instance.operands, len(typing.outputs)), path)
        node = load_onnx(path).nodes[-1]
        assert node.op in (op, RENAMED.get(op), EMPTY)
        operands = [None if t is None else t.type for t in node.inputs]
        ours = signatures.check(node.op, operands, node.attributes)
        for name in node.attributes.keys() & ours.attributes.keys():
            assert node.attributes[name] == ours.attributes[name], name
        if node.op == op:
            assert all(map(agree, ours.outputs, typing.outputs)), (ours, typing)
        compared += 1
        if compared == ROUNDS:
            return
    assert compared
