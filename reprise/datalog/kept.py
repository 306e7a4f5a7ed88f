"""Blueprints and compiled rules on disk, so that the next process need not work them out again.

One file holds what is known of one program: its blueprint and the functions compiled so far, under
a name made of a fingerprint of the program, of the engine's code and of the interpreter. Invariant:
a file is used only if it is whole (it begins with a digest of the rest) and was made of
exactly this program by exactly this engine; in every other case it counts as absent, so that
files may be damaged or deleted at any time.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from reprise.cache import write_cache
from reprise.datalog.blueprint import Blueprint
from reprise.datalog.clauses import Clauses
from reprise.lang.core import Aggregate, Atom, Compare, Const, Expr, Literal, Program, Relation, Var

_PREFIX = "plans-"
_DIGEST = 16
_MOST = 40
"""Programs that are kept; the one written longest ago makes room. One takes about 0.5 MB."""


class Kept:
    """The file that belongs to one program, in ``directory``."""

    def __init__(self, directory: Path, program: Program, timed: bool) -> None:
        self._program = program
        self._path = directory / f"{_PREFIX}{_fingerprint(program, timed)}"
        self._saved = -1

    def read(self, make: Callable[[], Clauses]) -> Blueprint | None:
        """The blueprint as kept; ``make`` makes its clauses when they are needed."""
        try:
            data = self._read()
            blueprint = Blueprint.of_data(data, self._program.relations, make)
        except Exception:  # whatever is wrong with it, it only means "work it out again"
            return None
        self._saved = blueprint.extent()
        return blueprint

    def _read(self) -> Any:
        content = self._path.read_bytes()
        payload = memoryview(content)[_DIGEST:]
        if content[:_DIGEST] != _digest(payload):
            raise ValueError("damaged")
        return marshal.loads(payload)

    def write(self, blueprint: Blueprint) -> None:
        """Keep ``blueprint``, if there is more in it than what is kept; a failure is no error."""
        if blueprint.extent() == self._saved:
            return
        payload = marshal.dumps(blueprint.data())
        write_cache(self._path, _digest(payload) + payload, _MOST, _PREFIX)
        self._saved = blueprint.extent()


def _digest(payload: bytes | memoryview) -> bytes:
    return blake2b(payload, digest_size=_DIGEST).digest()


def _fingerprint(program: Program, timed: bool) -> str:
    relations = [_relation(relation) for relation in program.relations.values()]
    rules = [(_atom(rule.head), _body(rule.body)) for rule in program.rules]
    text = repr((sys.version, _engine(), timed, relations, rules))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()


def _engine() -> list[tuple[str, int, int]]:
    """The version of all code that a blueprint depends on: its files as they are now."""
    here = Path(__file__).parent
    found = []
    for folder in (here, here.parent / "lang"):
        for path in sorted(folder.glob("*.py")):
            state = path.stat()
            found.append((path.name, state.st_mtime_ns, state.st_size))
    return found


def _relation(relation: Relation) -> tuple[Any, ...]:
    columns = [(column.name, column.type, column.key) for column in relation.columns]
    return relation.name, columns, relation.entity, relation.older, relation.same


def _atom(atom: Atom) -> tuple[Any, ...]:
    return atom.relation, atom.negated, [_term(term) for term in atom.terms]


def _term(term: Expr) -> Any:
    """A variable is a string, a constant a tuple, arithmetic a list."""
    kind = type(term)
    if kind is Var:
        return term.name  # type: ignore[union-attr]
    if kind is Const:
        return (term.value,)  # type: ignore[union-attr]
    return [term.op, *map(_term, term.args)]  # type: ignore[union-attr]


def _body(body: Iterable[Literal]) -> list[Any]:
    return [_atom(item) if type(item) is Atom else _literal(item) for item in body]


def _literal(literal: Literal) -> tuple[Any, ...]:
    match literal:
        case Atom():
            return _atom(literal)
        case Compare(op, left, right):
            return "compare", op, _term(left), _term(right)
        case Aggregate(result, kind, value, body):
            shown = None if value is None else _term(value)
            return "aggregate", result.name, kind, shown, _body(body)
        case _:
            return "member", _term(literal.expr), literal.values, literal.negated
