"""Patterns that ask for element types which their operators never have.

Signatures say what is usual; models that ONNX allows may have more. So a pattern is refused only
where neither the signature nor any version of the ONNX operators that become it has such types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from reprise.lang import core
from reprise.lang.diagnostics import Diagnostic
from reprise.lang.never_typed import type_clash
from reprise.lang.overloads import Overload, of_signature
from reprise.lang.ruleset import RuleSet


def typed_clash(rules: RuleSet) -> Callable[[core.Rule], Diagnostic | None]:
    """What makes the element types of a body impossible, for the patterns of ``rules`` and the
    guards of its constraints. (What violates a constraint or a deny rule need not be valid.)"""
    symbols = rules.symbols
    asked = {*rules.patterns, *(constraint.guard for constraint in rules.constraints.values())}

    @cache
    def signed(op: str) -> Sequence[Overload] | None:
        operator = symbols.operators.get(op)
        if operator is None:
            return None
        overload = of_signature(operator.decl, symbols)
        return None if overload is None else (overload,)

    @cache
    def everywhere(op: str) -> Sequence[Overload] | None:
        from reprise.facts.onnx_schema import overloads  # onnx: only where it may matter

        own = signed(op)
        return None if own is None else (*own, *overloads(op, own[0]))

    def clash(rule: core.Rule) -> Diagnostic | None:
        if rule.head.relation not in asked or type_clash(rule, signed) is None:
            return None
        return type_clash(rule, everywhere)

    return clash
