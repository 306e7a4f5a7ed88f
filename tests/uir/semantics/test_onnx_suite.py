"""ONNX's own node tests: their models, imported and evaluated, give the results they state."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from reprise.facts.onnx_import import load_onnx
from reprise.uir.semantics import UndefinedError, evaluate
from tests.uir.semantics.agreement import coarsest, difference

NO_TENSOR = {"test_identity_sequence", "test_identity_opt"}
"""Values of other kinds than tensors have no semantics here."""


def array(value):
    if isinstance(value, onnx.TensorProto):
        value = numpy_helper.to_array(value)
    if isinstance(value, list | dict) or value is None:
        return None
    value = np.asarray(value)
    return value.astype(object) if value.dtype.kind in "US" else value


@pytest.mark.slow
def test_node_tests_give_what_they_state(tmp_path):
    tally: Counter[str] = Counter()
    path = tmp_path / "m.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        onnx.save(case.model, path)
        graph = load_onnx(path)
        if any("." in node.op for node in graph.nodes):
            tally["other operators"] += 1
            continue
        for inputs, outputs in case.data_sets:
            names = [value.name for value in case.model.graph.input]
            feeds = {n: array(v) for n, v in zip(names, inputs, strict=False)}
            if case.name in NO_TENSOR:
                tally["other kinds"] += 1
                continue
            try:
                ours = evaluate(graph, feeds)
            except UndefinedError:
                tally["undefined"] += 1
                continue
            precision = coarsest([t.type for t in graph.tensors])
            for one, two in zip(ours, outputs, strict=True):
                found = difference(one, array(two), precision)
                assert found is None, f"{case.name}: {found}"
            tally["agree"] += 1
    assert tally == {"agree": 1384, "other operators": 479, "undefined": 19, "other kinds": 2}
