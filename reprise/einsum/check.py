"""What is wrong with a kernel, where it is written, and what to do about it.

A violation of a deny rule points at the fact in its derivation that was written last: an index, a
tensor, or a clause after ``where``. A kernel that comes as JSON is shown in TACO's notation.
"""

from __future__ import annotations

from collections.abc import Mapping

from reprise.datalog import Derivation
from reprise.einsum.facts import Position, facts_as_written
from reprise.einsum.fitting import DataError, Shape, expect_computed
from reprise.einsum.kernel import Kernel, KernelError
from reprise.einsum.text import FILE, KernelSyntaxError, Source, parse, print_text
from reprise.einsum.validity import Validity, Violation
from reprise.lang.diagnostics import Diagnostic, Span


def check_text(
    text: str, validity: Validity, computed: Mapping[str, Shape] | None = None
) -> list[Diagnostic]:
    """All that is wrong with a kernel as written, in the order of the text. Empty if it is valid.

    ``computed``: the shapes of the outputs of the kernels before it, which it may read.
    ``validity`` is left with the kernel's facts.
    """
    try:
        source = parse(text)
    except KernelSyntaxError as error:
        return [error.diagnostic]
    return check_source(source, validity, computed)


def check_kernel(
    kernel: Kernel, validity: Validity, computed: Mapping[str, Shape] | None = None
) -> tuple[str, list[Diagnostic]]:
    """The kernel in TACO's notation, and what is wrong with it, with positions in that."""
    text = print_text(kernel)
    return text, check_text(text, validity, computed)


def check_source(
    source: Source, validity: Validity, computed: Mapping[str, Shape] | None = None
) -> list[Diagnostic]:
    """The same for a kernel that was read already."""
    where = facts_as_written(source)
    validity.restart()
    validity.add(where)
    found = [_diagnostic(v, where, source, validity) for v in validity.violations()]
    found.sort(key=lambda d: (d.span.line, d.span.column))
    if not found:
        try:
            expect_computed(source.kernel(), computed or {})
        except DataError as error:  # what rules do not speak of
            found.append(Diagnostic("data", str(error), _described(source, error.name)))
        except KernelError as error:
            found.append(Diagnostic("kernel", str(error), source.output.span))
    return found


def _described(source: Source, name: str) -> Span:
    """Where a tensor is described, or an index's extent is given."""
    if name in source.tensors:
        return source.tensors[name].span
    return source.extents[name][1] if name in source.extents else source.output.span


def _diagnostic(
    violation: Violation, where: Position, source: Source, validity: Validity
) -> Diagnostic:
    facts = list(_facts(validity.why(violation), where))
    span = facts[-1] if facts else source.output.span
    code = violation.rule.replace("_", "-")
    return Diagnostic(code, violation.message, span, validity.rules.advice(violation.rule))


def _facts(derivation: Derivation, where: Position) -> list[Span]:
    """The positions of the facts that a derivation rests on, in its order."""
    fact = (derivation.relation, derivation.row)
    if derivation.rule is None:
        return [where[fact]] if fact in where else []
    return [span for premise in derivation.premises for span in _facts(premise, where)]


__all__ = ["FILE", "check_kernel", "check_source", "check_text"]
