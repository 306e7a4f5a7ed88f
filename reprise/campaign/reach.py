"""Which of ONNX's operators generated programs have: the generator's reach, counted.

Each operator of the vocabulary is generated alone, a number of times, and written as ONNX at the
usual opset and at the newest. What is counted are the operators of the models, however they came
there: an operator of UIR may become a node of its own name or several others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reprise.datalog import Database
from reprise.facts.onnx_apply import OnnxResults
from reprise.facts.onnx_table import TABLE
from reprise.lang.ruleset import load_rules
from reprise.lower.onnx import DEFAULT_OPSET, OnnxLowering
from reprise.lower.onnx.spec import NEWEST
from reprise.solve.signatures import Signatures
from reprise.synth.generator import Generator
from reprise.synth.options import Options
from reprise.synth.vocabulary import LEFT_OUT

OnnxOp = tuple[str, str]
"""Domain and name; ONNX's main domain is empty."""

_WHY = {
    "random": "its results differ from run to run (--also random)",
    "data_dependent": "its extents depend on values (--also data_dependent)",
    "untyped": "it runs sub-graphs, which are not generated",
}


@dataclass(frozen=True)
class Reach:
    """``reached``: the operators of the vocabulary that each ONNX operator came from; ``missing``:
    why each of the others did not come."""

    reached: Mapping[OnnxOp, Sequence[str]]
    missing: Mapping[OnnxOp, str]

    def of_domain(self, domain: str) -> tuple[int, int]:
        """How many of a domain's operators are reached, and how many there are."""
        here = sum(d == domain for d, _ in self.reached)
        return here, here + sum(d == domain for d, _ in self.missing)

    @property
    def domains(self) -> list[str]:
        return sorted({domain for domain, _ in (*self.reached, *self.missing)})


def operators_of_onnx() -> set[OnnxOp]:
    """Every operator of the installed onnx package whose newest version is not deprecated."""
    from onnx import defs

    newest = {(s.domain, s.name): s for s in defs.get_all_schemas()}
    return {key for key, schema in newest.items() if not schema.deprecated}


class Reaching:
    """A count that is to be made. ``files``: signatures besides those that ship; ``also``: as in
    :class:`Options`; ``names``: the operators of the vocabulary. Raises RulesError for bad files.
    """

    def __init__(
        self, files: Sequence[Path], *, also: frozenset[str] = frozenset(), seed: int = 0
    ) -> None:
        self.also = also
        self.seed = seed
        self.rules = load_rules(list(files))
        self.signatures = {
            opset: Signatures.load(files, OnnxResults(opset)) for opset in (DEFAULT_OPSET, NEWEST)
        }
        known = Database(self.rules.program.restricted_to(("never_generated",)))
        self.never = {str(op): str(why) for op, why in known.rows("never_generated")}
        usual = self.signatures[DEFAULT_OPSET]
        whole = Generator(self.rules, usual, Options(also=also), seed)
        self.names = [operator.name for operator in whole.vocabulary.operators]

    def count(self, programs: int = 10, done: Callable[[int], None] | None = None) -> Reach:
        """Generate so many programs of each operator at each opset, and count. ``done`` is told
        how many operators are through."""
        every = operators_of_onnx()
        found: dict[OnnxOp, set[str]] = {}
        for number, name in enumerate(self.names, 1):
            for key in self._made_of(name, programs) & every:
                found.setdefault(key, set()).add(name)
            if done is not None:
                done(number)
        missing = {key: self._reason(key) for key in sorted(every - found.keys())}
        return Reach({key: sorted(found[key]) for key in sorted(found)}, missing)

    def _made_of(self, name: str, programs: int) -> set[OnnxOp]:
        """ONNX's operators in programs of one operator."""
        options = Options(nodes=1, include=frozenset({name}), also=self.also)
        made: set[OnnxOp] = set()
        for opset, signatures in self.signatures.items():
            language = OnnxLowering(opset)
            alone = Generator(
                self.rules, signatures, options, self.seed, unsupported=language.unsupported
            )
            for index in range(programs):
                made |= _nodes_of(language.lower(alone.program(index).program.graph))
        return made

    def _reason(self, key: OnnxOp) -> str:
        """Why programs do not have an operator."""
        domain, name = key
        signatures = self.signatures[DEFAULT_OPSET]
        entry = None if domain else TABLE.get(name)
        if entry is not None and entry.op in signatures:
            flags = sorted(signatures[entry.op].flags & (LEFT_OUT - self.also))
            if flags:
                return f"`{entry.op}`: {_WHY[flags[0]]}"
            return f"`{entry.op}` was not written as this operator in what was drawn"
        foreign = f"{domain or 'onnx'}.{name}"
        if foreign in signatures:
            return "it was not drawn"
        return self.never.get(foreign, "no signature")


def _nodes_of(model: bytes) -> set[OnnxOp]:
    from onnx import ModelProto

    return {(node.domain, node.op_type) for node in ModelProto.FromString(model).graph.node}
