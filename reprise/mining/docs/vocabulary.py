"""Which operators of rules an ONNX operator becomes, and what of its operands is left there.

Facts about a model have UIR's operators where one means the same; the rest, and uses that UIR has
no words for, stay ``onnx.Foo`` (docs/facts.md). A constraint from ONNX's documents is therefore
about both names. The importer keeps operands in their places, but a parameter that the model fixes
becomes an attribute and its place is empty, and UIR lets an operand be absent that ONNX asks for
(``layer_norm`` without a scale). So a place of a UIR operator is *certain* only if ONNX requires
it, UIR requires it, and the importer never empties it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from reprise.data import data_path
from reprise.mining.docs.model import Entry, Option
from reprise.mining.docs.naming import operator_name


@dataclass(frozen=True, slots=True)
class Guard:
    """The names under which facts know an operator. ``certain``: for each input, whether it (of a
    variadic one, the first) is there in every node, whatever the name."""

    names: tuple[str, ...]
    certain: tuple[bool, ...]


class Vocabulary:
    """Guards for the operators of some documentation."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._owners: dict[str, str] = {}
        names = [e.name for e in entries if not e.domain and not e.deprecated]
        # The operator that becomes nothing else owns a UIR name: Add owns `add`, not Sum.
        for name in sorted(names, key=lambda n: (len(uir_names(n)), n)):
            for uir in uir_names(name):
                self._owners.setdefault(uir, name)

    def guard(self, entry: Entry) -> Guard:
        """What to call ``entry``'s operator in the lines of a constraint."""
        own = operator_name(entry)
        uir = uir_names(entry.name) if not entry.domain and _keeps_places(entry) else ()
        owned = tuple(u for u in uir if self._owners.get(u) == entry.name)
        least = 0 if entry.input_arity is None else entry.input_arity.least
        required = [
            p.option is Option.SINGLE or (p.option is Option.VARIADIC and place < least)
            for place, p in enumerate(entry.inputs)
        ]
        absorbed = _absorbed(entry.name) if owned else frozenset()
        certain = tuple(
            needed and i not in absorbed and all(_requires(u, i) for u in owned)
            for i, needed in enumerate(required)
        )
        return Guard((*owned, own), certain)


def _keeps_places(entry: Entry) -> bool:
    """Whether operands have the same places in facts. The older ways to resize had no region of
    interest, for which `resize` has a place (``onnx_steps.resizing``)."""
    return entry.name != "Upsample" and (entry.name != "Resize" or entry.since >= 11)


@cache
def _spellings() -> dict[str, tuple[str, ...]]:
    text = data_path("rules/ops/spellings.toml").read_text(encoding="utf-8")
    return {name: tuple(uir) for name, uir in tomllib.loads(text)["onnx"].items()}


def uir_names(name: str) -> tuple[str, ...]:
    """The UIR operators that an operator of ONNX's own domain becomes; none if it keeps its
    name."""
    return _spellings().get(name, ())


@cache
def _absorbed(name: str) -> frozenset[int]:
    """The inputs that the importer may turn into attributes."""
    from reprise.facts.onnx_table import TABLE

    entry = TABLE.get(name)
    if entry is None:
        return frozenset()
    moved = {attr.operand for attr in entry.attrs if attr.operand is not None}
    # A resize's other inputs become attributes by a step, which no data describes.
    return frozenset(moved | ({1, 2, 3} if entry.op == "resize" else set()))


@cache
def _parameters() -> dict[str, Sequence[bool]]:
    """For each UIR operator, which of its operands are required; of a variadic one, the first."""
    from reprise.lang.ast import OpDecl
    from reprise.lang.parse import parse_file

    return {
        decl.name.text: tuple(not p.optional for p in decl.params)
        for path in sorted(data_path("rules/ops").glob("*.rules"))
        for decl in parse_file(path).decls
        if isinstance(decl, OpDecl)
    }


def _requires(uir: str, place: int) -> bool:
    required = _parameters().get(uir, ())
    return place < len(required) and required[place]
