"""The toy target of docs/targets.md is a target, and its bug is found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from reprise.lower.lowering import lowering
from reprise.targets.discover import parse_target
from reprise.targets.interface import Job
from reprise.targets.process import TargetProcess
from reprise.uir.graph import Graph, TensorType

PAGE = Path(__file__).resolve().parents[2] / "docs" / "targets.md"
X = np.array([-1.0, 2.0], np.float32)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TargetProcess]:
    (source,) = re.findall(r"^```python[^\n]*\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
    file = tmp_path_factory.mktemp("toy") / "toy.py"
    file.write_text(source)
    with TargetProcess(parse_target(str(file))) as process:
        yield process


def results(toy: TargetProcess, *ops: str, disabled: tuple[str, ...] = ()) -> list[list[float]]:
    """What each mode makes of a chain of operators."""
    graph = Graph("chain")
    kind = TensorType("float32", (2,))
    tensor = graph.add_input("x", kind)
    for i, op in enumerate(ops):
        (result,) = graph.add_node(op, [tensor], [(f"v{i}", kind)], name=f"n{i}").outputs
        assert result is not None
        tensor = result
    graph.outputs.append(tensor)
    model = lowering(toy.target.lowering).lower(graph)
    outcome = toy.run(Job(model, {"x": X}, toy.target.modes, disabled))
    return [(outcome.results[mode].outputs or ())[0].tolist() for mode in toy.target.modes]


@pytest.mark.slow
def test_the_page_s_target_computes(toy: TargetProcess) -> None:
    assert results(toy, "neg", "abs") == [[1, 2], [1, 2]]
    assert list(toy.start()) == ["onnx"]


def test_the_page_s_bug_shows_and_goes_with_its_pass(toy: TargetProcess) -> None:
    assert results(toy, "neg", "relu") == [[0, 2], [1, 0]]
    assert results(toy, "neg", "relu", disabled=toy.passes(b"")) == [[1, 0], [1, 0]]
