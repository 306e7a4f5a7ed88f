"""Are generated programs valid? Every rejection is a defect of ours, or of what rejects.

Programs 0 to N of a seed, each lowered and given to one of four checks:

``onnx``         ``onnx.checker`` with full and strict shape inference;
``onnxruntime``  loaded and run without optimisation;
``torch``        run eagerly;
``relax``        built, and looked at by TVM's well-formedness check.

``python benchmarks/validity.py CHECK --programs N [--seed S] [--state FILE] [--json]``. With
``--state`` the counts are kept after every few hundred programs, and a second call goes on where
the first stopped. Checks run in a worker: a program that kills it is counted, and the next gets
another. The interpreters for torch and TVM are ``--python`` or the environment's
``REPRISE_TORCH_PYTHON`` and ``REPRISE_TVM_PYTHON``.

Prints rejections by normalised message, the commonest first, with the number of the first program
and the smallest: a single node where a node alone is rejected too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from reprise.campaign.source import SourceRequest, open_source
from reprise.lower.lowering import lowering
from reprise.oracle.crash import normalise
from reprise.synth import values
from reprise.synth.generator import Generator
from reprise.synth.options import Options
from reprise.targets.discover import parse_target
from reprise.targets.interface import Ended, Job
from reprise.targets.process import Limits, TargetProcess
from reprise.uir.graph import Node, Role
from reprise.uir.program import Program
from reprise.uir.text import print_uir

HERE = Path(__file__).parent
SAVE_EVERY = 500

Reject = Callable[[Program], str | None]
"""Why a program is rejected, or None."""


@dataclass(frozen=True)
class Check:
    """What is looked at: programs for ``target`` (None: for nobody in particular), in the last mode
    of the target called ``by``, by a name or a file. ``python``: the variable that names its
    interpreter."""

    target: str | None
    by: str
    lowering: str
    python: str = ""


CHECKS = {
    "onnx": Check(None, str(HERE / "onnx_checker.py"), "onnx"),
    "onnxruntime": Check("onnxruntime", "onnxruntime", "onnx"),
    "torch": Check("inductor", str(HERE / "torch_eager.py"), "torch", "REPRISE_TORCH_PYTHON"),
    "relax": Check("tvm", str(HERE / "relax_well_formed.py"), "relax", "REPRISE_TVM_PYTHON"),
}


@dataclass
class Rejection:
    """One kind of rejection: how often, the first program, and the smallest there was."""

    count: int
    first: int
    message: str
    smallest: str
    nodes: int


@dataclass
class Tally:
    """What a check has found so far. ``next``: the number of the next program; ``died``: workers
    lost."""

    check: str
    seed: int
    options: dict[str, object]
    next: int = 0
    valid: int = 0
    died: int = 0
    seconds: float = 0.0
    rejections: dict[str, Rejection] = field(default_factory=dict)

    @property
    def rejected(self) -> int:
        """Programs that are not valid."""
        return sum(one.count for one in self.rejections.values())

    @classmethod
    def load(cls, path: Path) -> Tally:
        data = json.loads(path.read_text())
        found = {key: Rejection(**one) for key, one in data.pop("rejections").items()}
        return cls(**data, rejections=found)

    def save(self, path: Path) -> None:
        partial = path.with_suffix(".part")
        partial.write_text(json.dumps(asdict(self), indent=1))
        partial.replace(path)


def generator_for(check: Check, seed: int, options: Options, guided: bool = False) -> Generator:
    """Programs as a campaign on the check's target would make them."""
    return open_source(
        SourceRequest(
            seed, options, target=check.target, guided=guided, lowerings=(check.lowering,)
        )
    )


@contextlib.contextmanager
def rejecter(name: str, python: str | None = None) -> Iterator[Reject]:
    """The check called ``name``, at work."""
    check = CHECKS[name]
    lower = lowering(check.lowering).lower
    found = python or os.environ.get(check.python, "") or sys.executable
    with TargetProcess(parse_target(f"{check.by}@{found}"), Limits(seconds=60)) as process:
        process.start()
        mode = process.target.modes[-1]

        def reject(program: Program) -> str | None:
            try:
                model = lower(program.graph)
            except Exception as error:
                return f"lowering: {type(error).__name__}: {error}"
            return _ran(process, model, program, mode)

        yield reject


def _ran(process: TargetProcess, model: bytes, program: Program, mode: str) -> str | None:
    outcome = process.run(Job(model, program.inputs, (mode,)))
    if outcome.ended is not Ended.ANSWERED:
        stage = outcome.stage.value if outcome.stage else "?"
        return f"{stage}: {outcome.ended.value} {outcome.signal or ''} {outcome.log[-300:]}"
    failure = outcome.results[mode].failure
    if failure is None:
        return None
    said = "unsupported: " if failure.unsupported else ""
    return f"{said}{failure.stage.value}: {failure.type}: {failure.message}"


def run(
    tally: Tally,
    generator: Generator,
    reject: Reject,
    programs: int,
    save: Callable[[Tally], None] = lambda tally: None,
) -> None:
    """Check programs until ``programs`` have been."""
    started = time.monotonic() - tally.seconds
    while tally.next < programs:
        index = tally.next
        program = generator.program(index).program
        message = reject(program)
        if message is None:
            tally.valid += 1
        else:
            _count(tally, index, program, message, reject)
        tally.next += 1
        tally.seconds = time.monotonic() - started
        if tally.next % SAVE_EVERY == 0:
            save(tally)
    save(tally)


_FIRST = re.compile(r"(.*?\(op_type:.*?)[\n ]\(op_type:", re.DOTALL)


def key_of(message: str) -> str:
    """What is the same whenever a defect is seen. Of shape inference's errors the first counts:
    others follow from it."""
    first = _FIRST.match(message)
    return normalise(first.group(1) if first else message)


def _count(tally: Tally, index: int, program: Program, message: str, reject: Reject) -> None:
    key = key_of(message)
    found = tally.rejections.get(key)
    if found is None:
        small = smallest(program, key, reject)
        text = print_uir(small.graph, limit=8)
        found = Rejection(0, index, message[:1500], text, len(small.graph.nodes))
        tally.rejections[key] = found
    found.count += 1
    tally.died += " died " in message


def smallest(program: Program, key: str, reject: Reject) -> Program:
    """The first node that is rejected with the same message by itself, or the whole program."""
    for node in program.graph.nodes:
        alone = only(program, node)
        message = reject(alone)
        if message is not None and key_of(message) == key:
            return alone
    return program


def only(program: Program, node: Node) -> Program:
    """A program of one node of another; what other nodes computed becomes an input."""
    graph = type(program.graph)(program.graph.name)
    inputs = {}
    made = {}
    for tensor in node.inputs:
        if tensor is None or tensor.id in made:
            continue
        if tensor.role is Role.INITIALIZER:
            made[tensor.id] = graph.add_initializer(tensor.name, tensor.type, tensor.value)
            continue
        made[tensor.id] = graph.add_input(tensor.name, tensor.type)
        value = program.inputs.get(tensor.name)
        if value is None:
            value = values.ordinary(Random(tensor.id), tensor.type)
        inputs[tensor.name] = value
    copy = graph.add_node(
        node.op,
        [None if t is None else made[t.id] for t in node.inputs],
        [None if t is None else (t.name, t.type) for t in node.outputs],
        node.attributes,
        name=node.name,
        given=node.given,
    )
    graph.outputs += [t for t in copy.outputs if t is not None]
    return Program(graph, inputs, program.name)


def _said(options: dict[str, object]) -> str:
    return "".join(f", {name} {value}" for name, value in options.items())


def show(tally: Tally) -> str:
    """The table for people."""
    lines = [
        f"{tally.check}: {tally.next:,} programs of seed {tally.seed}{_said(tally.options)}: "
        f"{tally.valid:,} valid, {tally.rejected:,} rejected in {len(tally.rejections)} ways, "
        f"{tally.died:,} workers lost, {tally.seconds:.0f} s"
    ]
    for one in sorted(tally.rejections.values(), key=lambda r: (-r.count, r.first)):
        lines += ["", f"{one.count:>6}  first: {one.first}  {' '.join(one.message.split())[:400]}"]
        lines += [f"        {line[:200]}" for line in one.smallest.splitlines()]
    return "\n".join(lines)


def main() -> None:
    """Run one check, print what it rejects, and exit with 1 if it rejects anything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("--programs", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--empty", type=float, help="share of programs that may be empty somewhere")
    parser.add_argument("--results", type=float, help="how often other results are asked for")
    parser.add_argument("--special", type=float, help="share of sources with special floats")
    parser.add_argument("--include", help="operators and categories, with commas")
    parser.add_argument("--guided", action="store_true", help="steer around known bugs")
    parser.add_argument("--python", help="the interpreter that has the target")
    parser.add_argument("--state", type=Path, help="keep the counts here, and go on from them")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    names = ("nodes", "empty", "results", "special", "include", "guided")
    chosen = {n: getattr(given, n) for n in names if getattr(given, n) not in (None, False)}
    tally = Tally(given.check, given.seed, chosen)
    if given.state and given.state.exists():
        kept = Tally.load(given.state)
        if (kept.check, kept.seed, kept.options) != (given.check, given.seed, chosen):
            parser.error(f"{given.state} is about other programs")
        tally = kept
    settings: dict[str, Any] = {k: v for k, v in chosen.items() if k != "guided"}
    if given.include:
        settings["include"] = frozenset(given.include.split(","))
    generator = generator_for(CHECKS[given.check], given.seed, Options(**settings), given.guided)
    with rejecter(given.check, given.python) as reject, contextlib.suppress(KeyboardInterrupt):
        run(
            tally,
            generator,
            reject,
            given.programs,
            lambda t: t.save(given.state) if given.state else None,
        )
    print(json.dumps(asdict(tally), indent=1) if given.json else show(tally))
    sys.exit(1 if tally.rejected else 0)


if __name__ == "__main__":
    main()
