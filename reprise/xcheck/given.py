"""Models that are there already: what they violate, and what a compiler makes of them.

The loop makes its models itself; here are those of a paper, a bug report or another fuzzer, as ONNX
or as text (``.uir``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reprise.facts.errors import ModelError
from reprise.facts.onnx_apply import is_foreign
from reprise.lang.declared import Constraint
from reprise.lang.source import read_source
from reprise.patterns.check import UsageError
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Graph
from reprise.uir.inference import SignatureError
from reprise.uir.text import parse_uir
from reprise.xcheck.findings import source_of
from reprise.xcheck.judge import Judgement
from reprise.xcheck.models import Modeller
from reprise.xcheck.passes.interface import Compiler
from reprise.xcheck.verdict import Outcome, Verdict, outcome
from reprise.xcheck.write import Unwritten, onnx_refuses, parse_model, read_model, write


@dataclass(frozen=True, slots=True)
class Given:
    """A model that was given. ``violated``: constraints, and ``possible``: those that it may
    violate, as far as it leaves types open; ``asked``: how many were looked at; ``broken``: what of
    operators' signatures it does not have; ``unread``: why no graph can be read from it, so that
    nothing is known of any of these."""

    path: Path
    violated: tuple[Constraint, ...]
    possible: tuple[Constraint, ...]
    asked: int
    broken: tuple[str, ...]
    unread: str | None
    outcome: Outcome

    @property
    def words(self) -> str:
        """What became of it, for people."""
        if self.outcome.verdict is not Verdict.COMPILED:
            return self.outcome.words
        if self.possible or self.unread:
            return "compiled"  # what it violates is not known
        none = (
            "does not violate the constraint"
            if self.asked == 1
            else f"violates none of the {self.asked} constraints"
        )
        return f"compiled, {none}"


def examine(paths: Sequence[Path], modeller: Modeller, compiler: Compiler) -> Iterator[Given]:
    """Judge and compile models, one after another. Raises OSError, RulesError or UsageError for
    a file that cannot be read, is no model or has no form as ONNX."""
    for path in paths:
        data = _model(path, modeller)
        unread, judgement = None, Judgement(frozenset(), frozenset())
        broken: tuple[str, ...] = ()
        try:
            graph = read_model(data, path)
            judgement = modeller.judge_for(graph).judge(graph)
            broken = tuple(_broken(graph, modeller.signatures))
        except ModelError as error:
            unread = str(error)
        known = modeller.constraints.items()
        violated = tuple(c for name, c in known if name in judgement.violated)
        yield Given(
            path,
            violated,
            tuple(c for name, c in known if name in judgement.possible),
            len(known),
            broken,
            unread,
            _outcome(data, compiler, judgement, violated, unread),
        )


def _broken(graph: Graph, signatures: Signatures) -> Iterator[str]:
    """What operators' signatures ask for and the nodes do not have. Of an operator by ONNX's own
    name nothing is said: what decides its shapes is an attribute to its signature."""
    for node in graph.nodes:
        if node.op not in signatures or is_foreign(node.op):
            continue
        types = [None if t is None else t.type for t in node.inputs]
        given = {name: value for name, value in node.attributes.items() if name in node.given}
        try:
            signatures.check(node.op, types, given)
        except SignatureError as error:
            yield str(error)


def _outcome(
    data: bytes,
    compiler: Compiler,
    judgement: Judgement,
    violated: Collection[Constraint],
    unread: str | None,
) -> Outcome:
    """A rejection is one of a valid model only if nothing speaks against it, and acceptance is
    silent only of a model that certainly violates something."""
    wrong = judgement.violated or judgement.possible or unread
    valid = not wrong and onnx_refuses(data) is None
    return outcome(compiler.compile(data), valid=valid, violated=violated)


def _model(path: Path, modeller: Modeller) -> bytes:
    if not path.is_file():  # a device has no end
        raise UsageError(f"{path}: this is no regular file")
    if path.suffix != ".uir":
        data = path.read_bytes()
        try:
            parse_model(data, path)
        except ModelError as error:
            raise UsageError(str(error)) from error
        return data
    graph = parse_uir(read_source(path), str(path), modeller.signatures)
    try:
        return write(graph)
    except Unwritten as error:
        raise UsageError(f"{path}: {error}") from error


def as_json(given: Given) -> dict[str, Any]:
    """A model for tools; a stable form."""
    found = given.outcome
    return {
        "model": str(given.path),
        "violated": [{"constraint": c.name, "from": source_of(c)} for c in given.violated],
        "possibly_violated": [{"constraint": c.name, "from": source_of(c)} for c in given.possible],
        "breaks_signatures": list(given.broken),
        "unread": given.unread,
        "verdict": found.verdict.value,
        "finding": found.verdict.is_finding,
        "passes": found.passes,
        "stage": found.stage,
        "message": found.message,
        "warned": found.warned,
    }
