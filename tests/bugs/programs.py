"""The rules' own test cases as programs that another interpreter can build and run.

A case of a ``test`` block becomes plain data: its inputs, constants and nodes. The scripts
``run_relax.py`` and ``run_inductor.py`` read a list of them from standard input, inside an
interpreter that has the compiler, and answer with one outcome for each. So a rule's examples are
measured, not only matched.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from reprise.lang.ruleset import RuleSet
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Graph, Role, Tensor
from reprise.uir.text import read_graph

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Example:
    """One case of one rule's tests."""

    rule: str
    number: int
    kind: str
    title: str
    graph: Graph

    @property
    def key(self) -> str:
        return f"{self.rule}-{self.number}-{self.kind}"


def examples(rules: RuleSet, names: Iterable[str]) -> Iterator[Example]:
    """The cases of these rules whose extents are all known."""
    wanted = set(names)
    signatures = Signatures.of_symbols(rules.symbols)
    for test in rules.tests:
        if test.subject.text not in wanted:
            continue
        for number, case in enumerate(test.cases):
            graph = read_graph(case.lines, signatures)
            if all(t.type.elements is not None for t in graph.tensors):
                yield Example(test.subject.text, number, case.kind, case.title, graph)


def program(graph: Graph) -> dict[str, object]:
    """The graph as data: tensors by their names."""
    names = {t.id: t.name or f"t{t.id}" for t in graph.tensors}

    def described(tensor: Tensor) -> dict[str, object]:
        return {
            "name": names[tensor.id],
            "dtype": tensor.type.dtype,
            "shape": list(tensor.type.shape or ()),
        }

    def valued(tensor: Tensor) -> dict[str, object]:
        value = tensor.value if tensor.value is not None else np.ones(tensor.type.shape or ())
        return {**described(tensor), "value": np.asarray(value).astype(float).ravel().tolist()}

    return {
        "inputs": [described(t) for t in graph.tensors if t.role is Role.INPUT],
        "constants": [valued(t) for t in graph.tensors if t.role is Role.INITIALIZER],
        "nodes": [
            {
                "op": node.op,
                "inputs": [None if t is None else names[t.id] for t in node.inputs],
                "outputs": [described(t) for t in node.outputs if t is not None],
                "attributes": {
                    k: list(v) if isinstance(v, tuple) else v for k, v in node.attributes.items()
                },
                "given": sorted(node.given),
            }
            for node in graph.nodes
        ],
        "outputs": [names[t.id] for t in graph.outputs],
    }


def interpreter(variable: str) -> str | None:
    """The Python that has the compiler, if the environment names one."""
    path = os.environ.get(variable)
    return path if path and Path(path).exists() else None


def outcomes(
    python: str, script: str, tasks: list[dict[str, object]]
) -> tuple[str, dict[str, str]]:
    """Run all tasks in the interpreter; the compiler's version, and each task's outcome. A task
    that takes the process down is an outcome too, and the others go on in a new one."""
    version, answers = "", dict[str, str]()
    left = tasks
    while left:
        done = subprocess.run(
            [python, str(HERE / script)],
            input=json.dumps(left),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(HERE), "PYTHONWARNINGS": "ignore"},
        )
        lines = [json.loads(x[2:]) for x in done.stdout.splitlines() if x.startswith("@ ")]
        version = next((x["version"] for x in lines if "version" in x), version)
        answers |= {x["key"]: x["outcome"] for x in lines if "key" in x}
        rest = [t for t in left if t["key"] not in answers]
        assert version, f"{python} {script}: {done.stderr[-2000:]}"
        if rest:
            answers[str(rest[0]["key"])] = "process died"
        left = rest[1:]
    return version, answers
