"""How far GeneSys gets with the models of the second paper's findings, and some more.

Needs an interpreter that `environment.sh` made: `python examples/genesys/cases.py PYTHON`. Nothing
is allocated, so that extents in the billions cost nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from onnx import TensorProto, helper

from reprise.xcheck.passes.compiler import PassCounter, parse_compiler

BIG = (1, 16, 302492402, 1410389859)
DTYPES = {
    TensorProto.DataType.Name(number): number for number in (1, 3, 13, 7, 11, 9, 10, 16, 17, 22, 8)
}


@dataclass(frozen=True)
class Case:
    """A model and the architecture to compile it for."""

    name: str
    model: bytes
    platform: str = "benchmark_16x16"


def chain(
    operators: Sequence[str],
    shapes: Sequence[tuple[int, ...]],
    result: tuple[int, ...],
    dtype: int = 1,
) -> bytes:
    """A model of operators one after another; the first reads all inputs."""
    values = [f"v{chr(97 + i)}" for i in range(len(operators))]
    inputs = [f"x{chr(97 + i)}" for i in range(len(shapes))]
    reads = [inputs, *([value] for value in values[:-1])]
    graph = helper.make_graph(
        [
            helper.make_node(operator, given, [value])
            for operator, given, value in zip(operators, reads, values, strict=True)
        ],
        "model",
        [
            helper.make_tensor_value_info(name, dtype, shape)
            for name, shape in zip(inputs, shapes, strict=True)
        ],
        [helper.make_tensor_value_info(values[-1], dtype, result)],
    )
    opset = [helper.make_opsetid("", 13)]
    return bytes(helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString())


def cases() -> Iterator[Case]:
    """The models, those for one architecture after another."""

    def same(*operators: str, shape: tuple[int, ...], dtype: int = 1) -> bytes:
        return chain(operators, [shape, shape], shape, dtype)

    yield Case("Add (1, 16, 32, 32)", same("Add", shape=(1, 16, 32, 32)))
    huge = (1, 16, 10048934087, 22145136773)
    yield Case(f"Add {huge}", same("Add", shape=huge))
    yield Case(f"Add {BIG}", same("Add", shape=BIG))
    sub = (1, 16, 300000000, 16)
    yield Case(f"Sub {sub}", same("Sub", shape=sub))
    square = (1, 16, 3600, 3600)
    yield Case(f"Add {square}", same("Add", shape=square))
    yield Case(f"Add, Relu {square}", same("Add", "Relu", shape=square))
    for n, k in ((512, 1000), (100, 10)):
        yield Case(f"Gemm 1 x {n} x {k}", chain(["Gemm"], [(1, n), (n, k), (k,)], (1, k)))
    for name, number in DTYPES.items():
        yield Case(f"Add of {name}", same("Add", shape=(1, 16, 32, 32), dtype=number))
    for platform in ("benchmark_32x32", "benchmark_128x128"):
        yield Case(f"Add {BIG}", same("Add", shape=BIG), platform)


def main(python: str) -> None:
    """Compile every model, and say how far that went."""
    platform, counter = "", None
    for case in cases():
        if counter is None or case.platform != platform:
            if counter is not None:
                counter.__exit__()
            platform = case.platform
            counter = PassCounter(parse_compiler(f"genesys:{platform}@{python}"))
            versions = ", ".join(f"{name} {version}" for name, version in counter.start().items())
            print(f"{platform} ({versions})")
        report = counter.compile(case.model)
        why = "" if report.failure is None else f": {report.failure.message.splitlines()[0]}"
        print(f"  {case.name}: {report.ending.value} {report.where}, {report.passes} passes{why}")
    if counter is not None:
        counter.__exit__()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
