"""Column types of relations that are defined by rules alone, found from the rules.

Two passes use the same idea (a head variable has the type of a column that it is read from):
:func:`infer_declared` works on the syntax tree, before lowering, so that names in arguments
resolve to the right sort; :func:`infer_auxiliary` works on core rules, for relations that lowering
invented.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reprise.lang import ast, core
from reprise.lang.symbols import COLUMN_SCALARS, TENSOR_FIELDS, Report, Symbols

Clause = ast.RuleDecl | ast.DenyDecl


def infer_declared(clauses: Sequence[Clause], symbols: Symbols, report: Report) -> None:
    """Enter undeclared head relations into ``symbols`` with their inferred column types."""
    heads: dict[str, list[Clause]] = {}
    for clause in clauses:
        if clause.head.relation.text not in symbols.relations:
            heads.setdefault(clause.head.relation.text, []).append(clause)
    types: dict[str, list[str | None]] = {
        name: [None] * len(group[0].head.args) for name, group in heads.items()
    }
    for name in types:
        symbols.column_types[name] = ("any",) * len(types[name])
    changed = True
    while changed:
        changed = False
        for name, group in heads.items():
            for clause in group:
                for i, arg in enumerate(clause.head.args[: len(types[name])]):
                    if types[name][i] is None:
                        found = _type_of(arg, clause.body, symbols, types)
                        if found is not None:
                            types[name][i] = found
                            changed = True
    for name, group in heads.items():
        _enter(name, group[0], types[name], symbols, report)


def _enter(
    name: str, clause: Clause, types: list[str | None], symbols: Symbols, report: Report
) -> None:
    columns: list[core.Column] = []
    for i, (kind, arg) in enumerate(zip(types, clause.head.args, strict=True)):
        if kind is None:
            report.error(
                "unknown-type",
                f"cannot tell the type of column {i + 1} of `{name}`",
                arg.span,
                f"declare it: `relation {name}(…)`",
            )
        label = arg.name.lower() if isinstance(arg, ast.Variable) else f"c{i}"
        label = label if label not in {c.name for c in columns} else f"{label}{i}"
        columns.append(core.Column(label, COLUMN_SCALARS.get(kind or "sym", kind or "sym")))
    symbols.relations[name] = core.Relation(name, tuple(columns), span=clause.span)
    symbols.column_types[name] = tuple(t or "sym" for t in types)


def _type_of(
    arg: ast.Expr,
    body: Sequence[ast.Condition],
    symbols: Symbols,
    partial: dict[str, list[str | None]],
) -> str | None:
    match arg:
        case ast.Number(value):
            return "float" if isinstance(value, float) else "int"
        case ast.String():
            return "sym"
        case ast.Name(text):
            kind = symbols.kind_of_symbol(text)
            return kind if kind in ("op", "dtype") else "sym"
        case ast.Boolean():
            return "bool"
        case ast.Binary(_, left, right):
            sides = (_type_of(side, body, symbols, partial) for side in (left, right))
            return "float" if "float" in sides else "int"
        case ast.Negate(operand):
            return _type_of(operand, body, symbols, partial) or "int"
        case ast.AggregateExpr(kind, value):
            inner = None if value is None else _type_of(value, arg.body, symbols, partial)
            return "float" if inner == "float" and kind != "count" else "int"
        case ast.Variable(name):
            for condition in _positive(body):
                found = _read_from(name, condition, body, symbols, partial)
                if found is not None:
                    return found
    return None


def _positive(body: Sequence[ast.Condition]) -> Iterator[ast.Condition]:
    for condition in body:
        if isinstance(condition, ast.And | ast.Or):
            yield from _positive(condition.parts)
        elif isinstance(condition, ast.Exists):
            yield from _positive(condition.conditions)
        else:
            yield condition


def _read_from(
    name: str,
    condition: ast.Condition,
    body: Sequence[ast.Condition],
    symbols: Symbols,
    partial: dict[str, list[str | None]],
) -> str | None:
    match condition:
        case ast.AtomCond(relation, args):
            columns: Sequence[str | None] = partial.get(relation.text) or symbols.column_types.get(
                relation.text, ()
            )
            for arg, kind in zip(args, columns, strict=False):
                if isinstance(arg, ast.Variable) and arg.name == name and kind not in (None, "any"):
                    return kind
        case ast.Comparison(operands, ops):
            for i, op in enumerate(ops):
                sides = operands[i], operands[i + 1]
                for side, other in (sides, sides[::-1]):
                    if op == "==" and isinstance(side, ast.Variable) and side.name == name:
                        if isinstance(other, ast.Member):
                            return TENSOR_FIELDS.get(other.name.text, ("", "int"))[1]
                        if not isinstance(other, ast.Variable | ast.Wildcard):
                            return _type_of(other, body, symbols, partial) or "int"
        case ast.Membership(ast.Variable(variable), domain, False) if variable == name:
            if isinstance(domain, ast.RangeDomain):
                return "int"
            if isinstance(domain, ast.NamedDomain):
                named = symbols.members(domain.name.text)
                kinds = {"number": "int", "symbol": "sym"}
                return kinds.get(named.kind, named.kind) if named else None
            return _type_of(domain.items[0], (), symbols, partial) if domain.items else None
    return None


def infer_auxiliary(rules: Sequence[core.Rule], relations: dict[str, core.Relation]) -> None:
    """Fill in the ``""`` column types of invented relations, in place, from their core rules."""
    pending = {n for n, r in relations.items() if any(not c.type for c in r.columns)}
    changed = True
    while changed:
        changed = False
        for rule in rules:
            name = rule.head.relation
            if name not in pending:
                continue
            columns = list(relations[name].columns)
            for i, term in enumerate(rule.head.terms):
                if not columns[i].type:
                    kind = _core_type(term, rule.body, relations)
                    if kind:
                        columns[i] = core.Column(columns[i].name, kind)
                        changed = True
            relations[name] = core.Relation(name, tuple(columns))
    for name in pending:
        columns = [c if c.type else core.Column(c.name, "int") for c in relations[name].columns]
        relations[name] = core.Relation(name, tuple(columns))


def _core_type(
    term: core.Expr, body: Sequence[core.Literal], relations: dict[str, core.Relation]
) -> str | None:
    best: str | None = None
    for literal in body:
        if isinstance(literal, core.Atom) and not literal.negated:
            for column, other in zip(
                relations[literal.relation].columns, literal.terms, strict=False
            ):
                if other == term and column.type:
                    if column.type != "any":
                        return column.type
                    best = "any"
    return best
