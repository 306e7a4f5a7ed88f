"""Constraints from documentation: how many operands, of which element types.

Comes in: entries. Goes out: ``constraint`` declarations as text, each with the line that it comes
from. *cardinality*: an operator's number of operands, and of results. *data_representation*: the
element types of an operand or result, and that operands of one type variable have one type. Each
constraint says one thing, so that it can be violated alone.

A constraint is about the operator as facts have it (:mod:`reprise.mining.docs.vocabulary`); what
could not be read gives none, and what an operand that may be absent must be is asked only where
it is present.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from reprise.lang.display import printable
from reprise.lang.format import quoted
from reprise.mining.docs.model import UNBOUNDED, Arity, Entry, Option, Parameter, Part, Place
from reprise.mining.docs.naming import dtypes_of, nameless, slug, written_name
from reprise.mining.docs.vocabulary import Guard, Vocabulary


@dataclass(frozen=True, slots=True)
class MinedConstraint:
    """A constraint: its name, class and text, and the line behind it."""

    name: str
    klass: str
    text: str
    place: Place


def constraints(
    entry: Entry,
    vocabulary: Vocabulary,
    cite: Callable[[Place], str] = str,
    again: Sequence[Place] = (),
) -> Iterator[MinedConstraint]:
    """What ``entry`` demands. ``cite``: how to state a place; ``again``: places of entries that
    say the same."""
    if entry.deprecated:
        return
    writer = _Writer(entry, vocabulary.guard(entry), cite, again)
    yield from writer.cardinalities()
    if Part.TYPES not in entry.damaged:
        yield from writer.types()


class _Writer:
    def __init__(
        self, entry: Entry, guard: Guard, cite: Callable[[Place], str], again: Sequence[Place]
    ) -> None:
        self.entry = entry
        self.guard = guard
        self.cite = cite
        self.again = again
        self.slug = f"onnx_{slug(entry)}"
        taken: set[str] = {"n"}
        self.names = {
            part: [written_name(p.name, taken) for p in parameters]
            for part, parameters in (
                (Part.INPUTS, entry.inputs),
                (Part.OUTPUTS, entry.outputs),
            )
        }

    # --- how many ----------------------------------------------------------------------------

    def cardinalities(self) -> Iterator[MinedConstraint]:
        entry = self.entry
        if entry.input_arity is not None and Part.INPUTS not in entry.damaged:
            arity = Arity(self._least(), entry.input_arity.most)
            yield from self._cardinality("inputs", "arity", "operands", arity)
        if entry.output_arity is not None and Part.OUTPUTS not in entry.damaged:
            yield from self._cardinality("outputs", "results", "results", entry.output_arity)

    def _least(self) -> int:
        """The least number of operands in facts, where absent ones at the end do not count."""
        arity = self.entry.input_arity
        assert arity is not None
        if len(self.guard.names) == 1:
            return arity.least
        return max((i + 1 for i, sure in enumerate(self.guard.certain) if sure), default=0)

    def _cardinality(
        self, suffix: str, relation: str, word: str, arity: Arity
    ) -> Iterator[MinedConstraint]:
        count = f"{relation}(n)"
        if arity.least == arity.most:
            require = f"{count} == {arity.least}"
        elif arity.most < UNBOUNDED:
            require = f"{count} in {arity.least}..{arity.most}"
        elif arity.least > 0:
            require = f"{count} >= {arity.least}"
        else:
            return  # any number
        yield self._constraint(
            suffix,
            "cardinality",
            f"How many {word} {self.entry.title} has: {arity}",
            f"n = {self._ops()}(...)",
            require,
            self.entry.place,
        )

    # --- of which types ----------------------------------------------------------------------

    def types(self) -> Iterator[MinedConstraint]:
        first: dict[str, tuple[Part, int]] = {}
        for part in (Part.INPUTS, Part.OUTPUTS):
            if part in self.entry.damaged:
                return  # an input lost would make every later place wrong
            parameters = self.entry.inputs if part is Part.INPUTS else self.entry.outputs
            for place, parameter in enumerate(parameters):
                known = first.get(parameter.type)
                if known is None:
                    if self._certain(part, place) and self._uniform(parameter):
                        first[parameter.type] = part, place
                    yield from self._allowed(part, place, parameter)
                elif known is not None:
                    yield from self._same(known, (part, place), parameter)
                if parameter.option is Option.VARIADIC and self._uniform(parameter):
                    yield from self._all_same(part, place, parameter)

    def _uniform(self, parameter: Parameter) -> bool:
        return parameter.option is not Option.VARIADIC or parameter.homogeneous

    def _certain(self, part: Part, place: int) -> bool:
        """Whether the operand or result is there in every node. A node may leave out any result
        but the first."""
        return self.guard.certain[place] if part is Part.INPUTS else place == 0

    def _allowed(self, part: Part, place: int, parameter: Parameter) -> Iterator[MinedConstraint]:
        types = self.entry.allowed(parameter)
        dtypes = dtypes_of(types)
        if not dtypes:
            return
        name = self.names[part][place]
        lines, tensor = self._lines({(part, place)})
        lines += _tensors_only(types, tensor[part, place])
        require = (
            f"{tensor[part, place]}.dtype == {dtypes[0]}"
            if len(dtypes) == 1
            else f"{tensor[part, place]}.dtype in {{{', '.join(dtypes)}}}"
        )
        constraint = self.entry.constraint(parameter.type)
        yield self._constraint(
            f"{name}_type",
            "data_representation",
            f"The element types of `{parameter.name}` of {self.entry.title}{_nameless(types)}",
            lines,
            require,
            parameter.place if constraint is None else constraint.place,
        )

    def _same(
        self, known: tuple[Part, int], here: tuple[Part, int], parameter: Parameter
    ) -> Iterator[MinedConstraint]:
        if self.entry.constraint(parameter.type) is None:
            yield from self._allowed(*here, parameter)
            return
        types = self.entry.allowed(parameter)
        if not dtypes_of(types) or not self._uniform(parameter):
            return
        lines, tensor = self._lines({known, here})
        lines += _tensors_only(types, tensor[known], tensor[here])
        other = self.entry.inputs if known[0] is Part.INPUTS else self.entry.outputs
        yield self._constraint(
            f"{self.names[here[0]][here[1]]}_same",
            "data_representation",
            f"`{parameter.name}` of {self.entry.title} has the type of `{other[known[1]].name}`",
            lines,
            f"{tensor[here]}.dtype == {tensor[known]}.dtype",
            parameter.place,
        )

    def _all_same(self, part: Part, place: int, parameter: Parameter) -> Iterator[MinedConstraint]:
        if part is Part.OUTPUTS or not dtypes_of(self.entry.allowed(parameter)):
            return
        lines, tensor = self._lines({(part, place)})
        name = tensor[part, place]
        position = f"P >= {place}, " if place else ""
        yield self._constraint(
            f"{self.names[part][place]}_all_same",
            "data_representation",
            f"All of `{parameter.name}` of {self.entry.title} have one type",
            lines,
            f"count{{ P : input(n, P, X), {position}X.dtype != {name}.dtype }} == 0",
            parameter.place,
        )

    # --- text ----------------------------------------------------------------------------------

    def _ops(self) -> str:
        return "|".join(self.guard.names)

    def _lines(self, wanted: set[tuple[Part, int]]) -> tuple[str, dict[tuple[Part, int], str]]:
        """A line that matches where all of ``wanted`` are present, and what it calls them."""
        tensors = {(part, place): self.names[part][place] for part, place in wanted}
        inputs = [place for part, place in wanted if part is Part.INPUTS]
        operands = []
        for place in range(max(inputs, default=-1) + 1):
            if place in inputs:
                operands.append(tensors[Part.INPUTS, place])
            else:
                operands.append("_" if self.guard.certain[place] else "_?")
        outputs = [place for part, place in wanted if part is Part.OUTPUTS]
        results = ["n"]
        for place in range(1, max(outputs, default=0) + 1):
            results.append(self.names[Part.OUTPUTS][place])
        if 0 in outputs:
            tensors[Part.OUTPUTS, 0] = "n"
        operands.append("...")
        return f"{', '.join(results)} = {self._ops()}({', '.join(operands)})", tensors

    def _constraint(
        self, suffix: str, klass: str, doc: str, line: str, require: str, place: Place
    ) -> MinedConstraint:
        name = f"{self.slug}_{suffix}"
        agrees = [f"    agrees: {quoted(self.cite(other))}" for other in self.again]
        lines = [
            f"/// {printable(doc)}",
            f"constraint {name} : {klass} on {{",
            f"    from: {quoted(self.cite(place))}",
            *agrees,
            "    template: docs",
            f"    {line}",
            f"}} require {require}",
        ]
        return MinedConstraint(name, klass, "\n".join(lines), place)


def _tensors_only(types: Sequence[str], *tensors: str) -> str:
    """A condition that keeps sequences and optionals out, where the types allow them."""
    if all(type_.startswith("tensor(") for type_ in types):
        return ""
    return f"\n    where {', '.join(f'not kind({tensor}, _)' for tensor in tensors)}"


def _nameless(types: Sequence[str]) -> str:
    """What of ``types`` the rule language has no name for, in words."""
    missing = nameless(types)
    return f", and {', '.join(missing)}" if missing else ""
