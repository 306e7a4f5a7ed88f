"""Operator signatures at work: which results an operator has, with which attributes, or why not.

Comes in: ``op`` and ``set`` declarations. Goes out: :class:`Signatures`, which answers
``infer(op, operand types, attributes)``. Every signature is checked when it is loaded; what a
caller can get wrong afterwards is a :class:`~reprise.uir.inference.SignatureError`. Fully known
operands take a compiled path; anything else, and every failure, is interpreted. Where a signature
leaves the shape of a result open (``T[...]``), whoever was given as ``results`` is asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from reprise.lang import ast
from reprise.lang.diagnostics import Diagnostic, RulesError
from reprise.lang.symbols import Report, Symbols, collect_symbols, suggest
from reprise.solve.emit import Apply, compile_plan
from reprise.solve.interpret import Operands, interpret
from reprise.solve.plan import Plan, make_plan
from reprise.uir.graph import Attribute, TensorType
from reprise.uir.inference import ResultTypes, SignatureError, Typing

NO_ATTRIBUTES: Mapping[str, Attribute] = {}


class Signature:
    """One operator's signature, ready to be applied."""

    def __init__(self, plan: Plan, results: ResultTypes | None = None) -> None:
        params = plan.decl.params
        self.plan = plan
        open_shapes = any(type_.shape is None for _, type_ in plan.decl.results)
        self._results = results if open_shapes and "untyped" not in self.flags else None
        self.name = plan.name
        self.least = max((i + 1 for i, p in enumerate(params) if not p.optional), default=0)
        self.ports = len(params)
        self.variadic = any(p.variadic for p in params)

    @cached_property
    def flags(self) -> frozenset[str]:
        """``commutative``, ``random``, ``data_dependent``, ``many_results``."""
        return self.plan.flags

    @property
    def category(self) -> str:
        """The operator's category, or the empty string."""
        return "" if self.plan.decl.category is None else self.plan.decl.category.text

    @cached_property
    def compiled(self) -> Apply:
        """The fast path: a function that returns None where it does not apply."""
        return compile_plan(self.plan)

    def check(self, operands: Operands, attributes: Mapping[str, Attribute]) -> Typing:
        """Apply the signature. Raises SignatureError."""
        arranged = self._arrange(operands)
        typing = self.compiled(arranged, attributes)
        return self._asked(arranged, typing or interpret(self.plan, arranged, attributes))

    def attempt(self, operands: Operands, attributes: Mapping[str, Attribute]) -> Typing | None:
        """As :meth:`check`, but None, and quickly, where it would raise. For generators."""
        try:
            arranged = self._arrange(operands)
            typing = self.compiled(arranged, attributes)
            if typing is None:
                typing = interpret(self.plan, arranged, attributes)
            return self._asked(arranged, typing) if typing else None
        except SignatureError:
            return None

    def _asked(self, operands: Operands, typing: Typing) -> Typing:
        """The typing with the shapes that the signature leaves open, as far as somebody knows them.
        Raises SignatureError."""
        if self._results is None:
            return typing
        types = self._results(self.name, operands, typing.attributes)
        return typing if types is None else typing._replace(outputs=types)

    def _arrange(self, operands: Operands) -> Operands:
        """Check the number of operands and drop trailing absences."""
        count = len(operands)
        while count > self.ports and operands[count - 1] is None:
            count -= 1
        if count < self.least or (count > self.ports and not self.variadic):
            raise SignatureError(self.name, "operand-count", f"takes {self._arity()}, not {count}")
        for number, port in enumerate(self.plan.decl.params):
            if not port.optional and operands[number] is None:
                raise SignatureError(
                    self.name,
                    "missing-operand",
                    f"operand `{port.name}` must be present",
                    port.name.text,
                )
        return operands if count == len(operands) else operands[:count]

    def _arity(self) -> str:
        if self.variadic:
            return f"{self.least} or more operands"
        most = f"{self.least} to {self.ports}" if self.least != self.ports else str(self.ports)
        return f"{most} operand{'' if self.ports == 1 else 's'}"


class Signatures:
    """Every operator's signature, by name."""

    def __init__(self, table: Mapping[str, Signature], symbols: Symbols) -> None:
        self._table = table
        self.symbols = symbols

    @classmethod
    def of(cls, files: Sequence[ast.RuleFile], results: ResultTypes | None = None) -> Signatures:
        """The signatures declared in ``files``, which must also declare the sets they use.

        Raises RulesError with everything that is wrong with them.
        """
        report = Report()
        symbols = collect_symbols(files, report)
        if report.diagnostics:
            raise RulesError(report.diagnostics)
        return cls.of_symbols(symbols, results)

    @classmethod
    def of_symbols(cls, symbols: Symbols, results: ResultTypes | None = None) -> Signatures:
        """The signatures of a rule set that is loaded already (``RuleSet.symbols``).

        Raises RulesError with everything that is wrong with them.
        """
        sets = {name: frozenset(s.values) for name, s in symbols.sets.items()}
        diagnostics: list[Diagnostic] = []
        table = {}
        for name, operator in symbols.operators.items():
            plan = make_plan(operator.decl, sets, diagnostics)
            if plan is not None:
                table[name] = Signature(plan, results)
        if diagnostics:
            raise RulesError(diagnostics)
        return cls(table, symbols)

    @classmethod
    def load(cls, paths: Iterable[Path] = (), results: ResultTypes | None = None) -> Signatures:
        """The signatures that ship with the library, and those in ``paths``. ``results``: who is
        asked for the shapes that signatures leave open."""
        from reprise.data import data_path
        from reprise.lang.parse import parse_file

        operators = sorted(data_path("rules/ops").glob("*.rules"))
        shipped = [data_path("rules/std/dtypes.rules"), *operators]
        return cls.of([parse_file(path) for path in [*shipped, *paths]], results)

    def __getitem__(self, op: str) -> Signature:
        """The signature of ``op``. Raises SignatureError if there is none."""
        signature = self._table.get(op)
        if signature is None:
            raise SignatureError(
                op, "unknown-operator", "no such operator", hint=suggest(op, self._table)
            )
        return signature

    def __contains__(self, op: object) -> bool:
        return op in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def check(
        self, op: str, operands: Operands, attributes: Mapping[str, Attribute] = NO_ATTRIBUTES
    ) -> Typing:
        """Result types, completed attributes and certainty. Raises SignatureError."""
        return self[op].check(operands, attributes)

    def infer(
        self, op: str, operands: Operands, attributes: Mapping[str, Attribute] = NO_ATTRIBUTES
    ) -> list[TensorType]:
        """The result types. Raises SignatureError."""
        return self[op].check(operands, attributes).outputs

    def complete_attributes(
        self, op: str, operands: Operands, attributes: Mapping[str, Attribute] = NO_ATTRIBUTES
    ) -> dict[str, Attribute]:
        """``attributes`` with defaults filled in, negative axes resolved and both spellings of
        list attributes. Raises SignatureError."""
        return self[op].check(operands, attributes).attributes
