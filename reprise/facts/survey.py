"""``python -m reprise.facts.survey``: how much of ONNX the importer covers.

Imports every model of ONNX's node-test suite and every model file in the onnx package, and prints
how many load, how many nodes reach a UIR operator and which operators stay ``onnx.*``.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from reprise.facts.facts import facts_of
from reprise.facts.onnx_import import Limits, ModelError, import_model, load_onnx
from reprise.uir.graph import Graph

if TYPE_CHECKING:
    from onnx import ModelProto


@dataclass(slots=True)
class Survey:
    """Counts over a set of models."""

    models: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    facts: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, graph: Graph) -> None:
        """Count one imported model."""
        self.models += 1
        self.facts += sum(1 for _ in facts_of(graph))
        self.operators.update(node.op for node in graph.nodes)
        self.notes += [f"{name}: {note}" for note in graph.notes]

    @property
    def foreign(self) -> dict[str, int]:
        """Operators without a UIR form, and how often they occur."""
        return {op: count for op, count in sorted(self.operators.items()) if "." in op}


def node_tests() -> Iterator[tuple[str, ModelProto]]:
    """Name and model of every node test (they are generated: some 6 s)."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy warns about what some tests compute on purpose
        for case in collect_testcases(None):
            if case.model is not None:
                yield case.name, case.model


def packaged_models() -> list[Path]:
    """Every model file in the onnx package."""
    import onnx

    return sorted(Path(onnx.__file__).parent.rglob("*.onnx"))


def survey_node_tests() -> Survey:
    """Import every node test."""
    survey = Survey()
    for name, model in node_tests():
        try:
            survey.add(name, import_model(model, Path(f"{name}.onnx"), Limits()))
        except ModelError as error:
            survey.failed[name] = error.message
    return survey


def survey_files(paths: list[Path]) -> Survey:
    """Import model files."""
    survey = Survey()
    for path in paths:
        try:
            survey.add(path.parent.name, load_onnx(path))
        except ModelError as error:
            survey.failed[str(path)] = error.message
    return survey


def report(title: str, survey: Survey) -> str:
    """The survey as text."""
    nodes = survey.operators.total()
    foreign = survey.foreign
    lines = [
        f"{title}: {survey.models} loaded, {len(survey.failed)} failed; "
        f"{nodes:,} nodes, {survey.facts:,} facts",
        f"  in UIR: {nodes - sum(foreign.values()):,} nodes, "
        f"{len(survey.operators) - len(foreign)} operators",
        f"  not in UIR: {sum(foreign.values()):,} nodes, {len(foreign)} operators",
    ]
    lines += [f"    {op} {count}" for op, count in foreign.items()]
    lines += [f"  failed: {name}: {message}" for name, message in survey.failed.items()]
    lines += [f"  note: {note}" for note in survey.notes]
    return "\n".join(lines)


if __name__ == "__main__":
    print(report("node tests", survey_node_tests()))
    print(report("files in the onnx package", survey_files(packaged_models())))
