"""Programs for the toy compiler, and what the tests of reductions ask of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from reprise.distill.subject import Subject, input_values
from reprise.solve.signatures import Signatures
from reprise.targets.discover import Target, read_target
from reprise.uir.program import Program
from reprise.uir.text import parse_uir

FILE = Path(__file__).with_name("toy_compiler.py")
UNARY = ("abs", "neg", "relu", "tanh", "sigmoid", "exp")
BINARY = ("add", "mul")


@cache
def signatures() -> Signatures:
    return Signatures.load()


def toy() -> Target:
    return read_target(FILE)


def program(text: str, inputs: dict[str, object] | None = None) -> Program:
    """A program, with the given values, as float arrays, for some of its inputs."""
    graph = parse_uir(text, "test.uir", signatures())
    for node in graph.nodes:
        types = [None if t is None else t.type for t in node.inputs]
        node.attributes = dict(signatures().check(node.op, types, node.attributes).attributes)
    types = {t.name: t.type.dtype for t in graph.tensors}
    given = {n: np.asarray(v, dtype=types[n]) for n, v in (inputs or {}).items()}
    return Program(graph, input_values(graph, given, Path("test.uir"), 0), "test")


def subject(made: Program, target: Target | None = None) -> Subject:
    target = target or toy()
    return Subject(Path("test.uir"), target, str(target.file), (made,))


def random_program(seed: int, nodes: int = 10) -> Program:
    """A graph of the toy compiler's operators; half of them have large values."""
    rng = Random(seed)
    dtype = rng.choice(("float32", "float64"))
    shape = [rng.randint(1, 4) for _ in range(rng.randint(0, 3))]
    type_ = f"{dtype}[{', '.join(map(str, shape))}]"
    lines = [f"x0: {type_}", f"x1: {type_}"]
    names = ["x0", "x1"]
    for number in range(nodes):
        recent = names[-4:]
        choice = rng.random()
        if choice < 0.25:
            call = f"{rng.choice(BINARY)}({rng.choice(recent)}, {rng.choice(recent)})"
        elif choice < 0.4:
            call = f"clip({rng.choice(recent)}, min=0.0, max={rng.choice((1.0, 6.0))})"
        else:
            call = f"{rng.choice(UNARY)}({rng.choice(recent)})"
        lines.append(f"v{number} = {call}")
        names.append(f"v{number}")
    made = program("\n".join(lines))
    if rng.random() < 0.5:
        made.inputs = {n: (a * 3).astype(a.dtype) for n, a in made.inputs.items()}
    return made
