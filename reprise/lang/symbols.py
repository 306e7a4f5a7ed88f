"""The global names of a set of rule files: operators, categories, sets, relations, dtypes.

Comes in: parsed files. Goes out: one :class:`Symbols` table in which every name has exactly one
meaning; a name declared twice, or a set member that means nothing, is a diagnostic. Local names
(nodes and tensors of a pattern) never enter this table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from reprise.lang import ast, core
from reprise.lang.diagnostics import Diagnostic, Severity, Span
from reprise.lang.display import listed
from reprise.lang.dtypes import DTYPES
from reprise.lang.spelling import MANY, operator_hint, similar

SINGULAR = {
    "axes": "axis",
    "strides": "stride",
    "pads": "pad",
    "dilations": "dilation",
    "kernel": "kernel_size",
}
"""List attributes that also have a scalar form in the facts, present when the list is uniform
(or, for ``axes``, when it has one member)."""

TENSOR_FIELDS = {
    "dtype": ("dtype", "dtype"),
    "rank": ("rank", "int"),
    "numel": ("elems", "int"),
    "shape": ("shape", "sym"),
    "value": ("value_all", "any"),
    "min": ("value_min", "any"),
    "max": ("value_max", "any"),
}
"""``x.field`` -> (relation keyed by the tensor, type of its value)."""

TENSOR_LISTS = {"dim": "dim", "at": "value_at"}
"""``x.field[i]`` -> relation keyed by the tensor and the position."""

COLUMN_SCALARS = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "sym": "sym",
    "any": "any",
    "op": "sym",
    "dtype": "sym",
    "word": "sym",
}
"""Column types of the language and the core scalar that each is stored as; any other type name
is an entity sort. ``op`` and ``dtype`` are symbols whose spelling is checked against what is
declared; a ``word`` is any name (a device's key, say)."""


MAX_SET_DEPTH = 50
"""How deep sets may lie within sets."""


@dataclass(slots=True)
class Report:
    """Collects diagnostics; nothing is raised until everything has been looked at."""

    diagnostics: list[Diagnostic] = field(default_factory=list)

    def error(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Record an error."""
        self.diagnostics.append(Diagnostic(code, message, span, hint))

    def warning(self, code: str, message: str, span: Span, hint: str | None = None) -> None:
        """Record a warning, which does not keep a file from loading."""
        self.diagnostics.append(Diagnostic(code, message, span, hint, Severity.WARNING))

    @property
    def failed(self) -> bool:
        return any(d.severity is Severity.ERROR for d in self.diagnostics)


@dataclass(frozen=True, slots=True)
class Operator:
    """What the checker knows of an operator: operand counts, attributes and flags."""

    name: str
    least: int  # operands that must be present
    most: int | None  # None: variadic
    attributes: dict[str, str]  # name -> declared type
    category: str | None
    commutative: bool
    results: int
    decl: ast.OpDecl


@dataclass(frozen=True, slots=True)
class NamedSet:
    """A declared set, flattened. ``kind``: op, dtype, number or symbol."""

    name: str
    kind: str
    values: tuple[core.Value, ...]


def suggest(word: str, known: Iterable[str]) -> str | None:
    """A "did you mean" hint, or None if nothing known is close to ``word``."""
    words = tuple(known)
    few = words if len(words) <= MANY else ()
    longer = sorted(w for w in few if w.startswith(word) and len(w) <= len(word) + 4)
    if len(word) >= 3 and 1 < len(longer) <= 4:
        return f"did you mean {listed([f'`{w}`' for w in longer])}?"
    close = similar(word, words, 0.6)
    return f"did you mean `{close}`?" if close else None


@dataclass(slots=True)
class Symbols:
    """Every global name, by kind."""

    operators: dict[str, Operator] = field(default_factory=dict)
    categories: dict[str, list[str]] = field(default_factory=dict)
    sets: dict[str, NamedSet] = field(default_factory=dict)
    relations: dict[str, core.Relation] = field(default_factory=dict)
    column_types: dict[str, tuple[str, ...]] = field(default_factory=dict)
    vocabulary: set[str] = field(default_factory=set)
    attributes: dict[str, str] = field(default_factory=dict)
    spans: dict[tuple[str, str], Span] = field(default_factory=dict)

    def is_operator(self, name: str) -> bool:
        """Whether ``name`` may stand as an operator: declared, or qualified (``onnx.Foo``)."""
        return name in self.operators or "." in name

    def members(self, name: str) -> NamedSet | None:
        """The set or operator category called ``name``."""
        if name in self.sets:
            return self.sets[name]
        if name in self.categories:
            return NamedSet(name, "op", tuple(self.categories[name]))
        return None

    def known_symbols(self) -> set[str]:
        """Every lowercase word that may stand for itself as a symbol."""
        return {*self.operators, *DTYPES, *self.vocabulary, *self.attributes}

    def kind_of_symbol(self, name: str) -> str | None:
        """``op``, ``dtype`` or ``symbol``, or None if the word means nothing."""
        if name in DTYPES:
            return "dtype"
        if self.is_operator(name):
            return "op"
        if name in self.vocabulary or name in self.attributes:
            return "symbol"
        return None


def collect_symbols(files: Sequence[ast.RuleFile], report: Report) -> Symbols:
    """Build the table; reports names declared twice and set members that mean nothing."""
    table = Symbols()
    decls = [decl for file in files for decl in file.decls]
    for decl in decls:
        match decl:
            case ast.OpDecl():
                if _claim(table, decl.name, "operator", report):
                    _add_operator(table, decl)
            case ast.RelationDecl():
                if _claim(table, decl.name, "relation", report):
                    _add_relation(table, decl, report)
            case ast.PatternDecl() | ast.ConstraintDecl() | ast.MonitorDecl():
                _claim(table, decl.name, "declaration", report)
            case ast.SetDecl():
                _claim(table, decl.name, "set", report)
    _check_categories(table, report)
    _add_sets(table, [d for d in decls if isinstance(d, ast.SetDecl)], report)
    return table


def _claim(table: Symbols, name: ast.Ident, what: str, report: Report) -> bool:
    """Enter a name, once per namespace: what stands in lines (operators, sets), and what stands
    in conditions (relations, patterns and constraints)."""
    namespace = "lines" if what in ("operator", "set") else "conditions"
    earlier = table.spans.get((namespace, name.text))
    if earlier is not None:
        report.error(
            "shadowed",
            f"`{name.text}` is declared twice",
            name.span,
            f"the first declaration is at {earlier}; rename one of the two",
        )
        return False
    if name.text in DTYPES:
        report.error(
            "shadowed", f"{what} `{name.text}` would hide the dtype of that name", name.span
        )
    table.spans[(namespace, name.text)] = name.span
    return True


def _add_operator(table: Symbols, decl: ast.OpDecl) -> None:
    least = sum(1 for p in decl.params if not p.optional)
    most = None if any(p.variadic for p in decl.params) else len(decl.params)
    attributes = {a.name.text: a.type.text for a in decl.attributes}
    for plural, singular in SINGULAR.items():
        if attributes.get(plural) == "ints" and singular not in attributes:
            attributes[singular] = "int"
    category = decl.category.text if decl.category else None
    flags = {flag.text for flag in decl.flags}
    name = decl.name.text
    table.operators[name] = Operator(
        name, least, most, attributes, category, "commutative" in flags, len(decl.results), decl
    )
    table.attributes.update(attributes)
    if category is not None:
        table.categories.setdefault(category, []).append(name)


def _add_relation(table: Symbols, decl: ast.RelationDecl, report: Report) -> None:
    columns = tuple(
        core.Column(c.name.text, COLUMN_SCALARS.get(c.type.text, c.type.text), c.key)
        for c in decl.columns
    )
    names = [c.name for c in columns]
    flags: dict[str, tuple[str, ...]] = {}
    for flag in decl.flags:
        if flag.name.text not in ("entity", "older", "same", "unknown"):
            report.error(
                "unknown-flag",
                f"`@{flag.name.text}` is not a flag of relations",
                flag.span,
                suggest(flag.name.text, ("entity", "older", "same", "unknown")),
            )
            continue
        if flag.name.text in ("older", "same"):
            for arg in flag.args:
                if arg.text not in names:
                    report.error(
                        "unknown-column",
                        f"`{decl.name.text}` has no column `{arg.text}`",
                        arg.span,
                        suggest(arg.text, names),
                    )
        flags[flag.name.text] = tuple(arg.text for arg in flag.args)
    for column, declared in zip(columns, decl.columns, strict=True):
        if names.count(column.name) > 1:
            report.error(
                "duplicate-column", f"two columns are called `{column.name}`", declared.span
            )
    table.relations[decl.name.text] = core.Relation(
        decl.name.text,
        columns,
        entity="entity" in flags,
        older=flags.get("older", ()),
        same=flags.get("same", ()),
        unknown=("always",) if flags.get("unknown") == () else flags.get("unknown", ()),
        span=decl.span,
        doc="\n".join(decl.doc),
    )
    table.column_types[decl.name.text] = tuple(c.type.text for c in decl.columns)


def _check_categories(table: Symbols, report: Report) -> None:
    """A category stands where an operator may stand, so it needs a name of its own."""
    for operator in table.operators.values():
        category = operator.decl.category
        if category is not None and category.text in table.operators:
            report.error(
                "shadowed",
                f"category `{category.text}` has the name of an operator",
                category.span,
            )


def _add_sets(table: Symbols, decls: Sequence[ast.SetDecl], report: Report) -> None:
    """Flatten the sets. One whose words are all new declares a vocabulary of its own; one that
    mixes known and unknown words has a misspelt member."""
    by_name = {d.name.text: d for d in decls}
    for decl in decls:
        if _is_vocabulary(table, decl, by_name):
            table.vocabulary.update(i.text for i in decl.items if isinstance(i, ast.Name))
            table.vocabulary.update(i.value for i in decl.items if isinstance(i, ast.String))
    done: dict[str, list[core.Value]] = {}
    for decl in decls:
        values = _flatten(table, decl, by_name, report, (), done)
        kinds = {_kind(table, v) for v in values}
        kind = kinds.pop() if len(kinds) == 1 else "symbol"
        table.sets[decl.name.text] = NamedSet(decl.name.text, kind, tuple(dict.fromkeys(values)))


def _is_vocabulary(table: Symbols, decl: ast.SetDecl, by_name: dict[str, ast.SetDecl]) -> bool:
    words = [item for item in decl.items if isinstance(item, ast.Name | ast.String)]
    return bool(words) and not any(
        isinstance(w, ast.Name)
        and (table.kind_of_symbol(w.text) or w.text in by_name or w.text in table.categories)
        for w in words
    )


def _kind(table: Symbols, value: core.Value) -> str:
    if not isinstance(value, str):
        return "number"
    return table.kind_of_symbol(value) or "symbol"


def _flatten(
    table: Symbols,
    decl: ast.SetDecl,
    by_name: dict[str, ast.SetDecl],
    report: Report,
    path: tuple[str, ...],
    done: dict[str, list[core.Value]],
) -> list[core.Value]:
    if decl.name.text in done:
        return done[decl.name.text]
    if len(path) > MAX_SET_DEPTH:
        report.error("too-deeply-nested", "sets within sets, too deep", decl.span)
        return []
    if decl.name.text in path:
        report.error(
            "cyclic-set", f"set `{decl.name.text}` contains itself: {' -> '.join(path)}", decl.span
        )
        return []
    values: list[core.Value] = []
    for item in decl.items:
        match item:
            case ast.Number(value) | ast.String(value):
                values.append(value)
            case ast.Boolean(value):
                values.append("true" if value else "false")
            case ast.Name(text) if text in by_name:
                below = (*path, decl.name.text)
                values += _flatten(table, by_name[text], by_name, report, below, done)
                values = list(dict.fromkeys(values))
            case ast.Name(text) if table.kind_of_symbol(text):
                values.append(text)
            case ast.Name(text) if text in table.categories:
                values += table.categories[text]
            case ast.Name(text):
                known = {*table.known_symbols(), *by_name, *table.categories}
                report.error(
                    "unknown-name",
                    f"`{text}` is no operator, dtype, set or category",
                    item.span,
                    operator_hint(text, table.operators)
                    or suggest(text, known)
                    or "a set of new words must contain new words only",
                )
            case _:
                report.error(
                    "bad-set-member",
                    "a set holds names, numbers and strings",
                    item.span,
                    operator_hint(item.name, table.operators)
                    if isinstance(item, ast.Variable)
                    else None,
                )
    done[decl.name.text] = values
    return values
