"""The signatures that models are made by, and which operators constraints ask for.

Comes in: loaded rules, and the constraints of a run. Goes out: the signatures that the rules
declare, and for operators that the constraints name and the rules do not declare, the mined ones
that ship (``rules/mining/onnx*.rules``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from reprise.data import data_path
from reprise.lang import core
from reprise.lang.declared import Constraint
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.solve.signatures import Signatures


def signatures_for(rules: RuleSet, constraints: Iterable[Constraint]) -> Signatures:
    """The signatures. Raises RulesError."""
    symbols = rules.symbols
    lacking = without_signature(rules, constraints)
    if lacking:
        mined = load_rules(mined_files()).symbols
        more = {name: op for name, op in mined.operators.items() if name in lacking}
        sets = {name: s for name, s in mined.sets.items() if name not in symbols.sets}
        symbols = replace(
            symbols, operators={**symbols.operators, **more}, sets={**symbols.sets, **sets}
        )
    return Signatures.of_symbols(symbols)


def mined_files() -> list[Path]:
    """The mined signatures that ship."""
    return sorted(data_path("rules/mining").glob("onnx*.rules"))


def without_signature(rules: RuleSet, constraints: Iterable[Constraint]) -> set[str]:
    """ONNX's own operators that guards name and the rules do not declare."""
    declared = rules.symbols.operators
    return {
        op
        for constraint in constraints
        for op in guard_operators(rules.program.by_head.get(constraint.guard, ()))
        if "." in op and op not in declared
    }


def guard_operators(rules: Iterable[core.Rule]) -> list[str]:
    """The operators that a guard's rules ask for, in the order of its nodes."""
    return list(dict.fromkeys(op for r in rules for ops in operators_in(r, r.body) for op in ops))


def operators_in(rule: core.Rule, literals: Iterable[core.Literal]) -> Iterator[tuple[str, ...]]:
    """The operators that each node may have, of those among the rule's ``literals`` of which it
    says so."""
    sets = {x.expr: x.values for x in rule.body if isinstance(x, core.Member) and not x.negated}
    for atom in literals:
        if isinstance(atom, core.Atom) and atom.relation == "node" and not atom.negated:
            op = atom.terms[1]
            known = (op.value,) if isinstance(op, core.Const) else sets.get(op, ())
            if known:
                yield tuple(map(str, known))


def interleaved(rules: RuleSet, constraints: Iterable[Constraint]) -> list[Constraint]:
    """Constraints going round the operators: within each file first those that are the first about
    their operator (the first that the guard names), then the second, and so on, otherwise as
    declared. A run that cannot violate them all has violated some of many operators then."""
    files: dict[str, None] = {}
    seen: dict[tuple[str, str], int] = {}
    places: list[tuple[int, int]] = []
    asked = list(constraints)
    for constraint in asked:
        file = constraint.span.file
        files.setdefault(file)
        named = guard_operators(rules.program.by_head.get(constraint.guard, ()))
        key = file, named[0] if named else ""
        seen[key] = seen.get(key, 0) + 1
        places.append((list(files).index(file), seen[key]))
    return [c for _, c in sorted(zip(places, asked, strict=True), key=lambda pair: pair[0])]
