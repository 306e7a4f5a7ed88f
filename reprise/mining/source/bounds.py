"""What the rules beyond the paper's give: bounds on attributes and sizes, and findings, as values
and as declarations. Their relations are declared in ``rules/mining/findings.rules``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from reprise.data import data_path
from reprise.datalog import Database
from reprise.lang import ast
from reprise.lang.display import counted, printable
from reprise.lang.format import quoted, show
from reprise.lang.ruleset import load_rules

if TYPE_CHECKING:
    from reprise.mining.source.derive import Place

_SIZES = {
    "bytes": ("n = any(x, ...)", "x.bytes"),
    "numel": ("n = any(x, ...)", "x.numel"),
    "rank": ("n = any(x, ...)", "x.rank"),
    "extent": ("n = any(x, ...) where dim(x, _, E)", "E"),
}
"""What a bound on every tensor is a bound on: what is matched, and what is bounded."""


@dataclass(frozen=True)
class AttributeBound:
    """An operator's attribute must be ``must``: ``absent``, ``present``, or a value's text.
    ``ours`` are the operator's names in UIR."""

    place: Place
    template: str
    op: str
    ours: tuple[str, ...]
    attribute: str
    must: str
    confidence: str
    agrees: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class SizeBound:
    """A property of every tensor is at most ``most``."""

    place: Place
    template: str
    name: str
    property: str
    most: int
    confidence: str
    agrees: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """Something for people to look at."""

    place: Place
    template: str
    text: str


@dataclass(frozen=True)
class Beyond:
    """All of them, in the order of places."""

    attributes: tuple[AttributeBound, ...] = ()
    sizes: tuple[SizeBound, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def constraints(self) -> int:
        """How many constraints are written."""
        return len(self.attributes) + len(self.sizes)

    def summary(self) -> Iterator[str]:
        """A line for each template, for people."""
        bounds: list[AttributeBound | SizeBound] = [*self.attributes, *self.sizes]
        constraints = Counter(bound.template for bound in bounds)
        findings = Counter(f.template for f in self.findings)
        for template in sorted({*constraints, *findings}):
            parts = [
                counted(n, noun)
                for n, noun in (
                    (constraints[template], "constraint"),
                    (findings[template], "finding"),
                )
                if n
            ]
            yield f"{template}: {', '.join(parts)}"


def collect(
    database: Database,
    places: Mapping[int, Place],
    confidence: Mapping[tuple[int, str], str],
    agrees: Mapping[tuple[int, str], tuple[str, ...]],
    reasons: Mapping[tuple[int, str], Sequence[str]],
) -> Beyond:
    """Read the relations. ``confidence``, ``agrees`` and ``reasons`` are by site and template."""

    def said(site: int, template: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
        key = (site, template)
        known = tuple(sorted(reasons.get(key, ())))
        return confidence.get(key, "high"), agrees.get(key, ()), known

    names: dict[str, tuple[str, ...]] = {}
    for spelt, symbol in sorted(database.rows("operator")):
        names[str(spelt)] = (*names.get(str(spelt), ()), str(symbol))
    attributes = []
    for site, template, op, attribute, must in sorted(database.rows("attribute_bound")):
        ours = _spellings(str(op)) or names.get(str(op), ())
        bound = AttributeBound(
            places[int(site)],
            str(template),
            str(op),
            ours,
            str(attribute),
            str(must),
            *said(int(site), str(template)),
        )
        attributes.append(bound)
    sizes = []
    for site, template, name, property_, most in sorted(database.rows("size_bound")):
        kept = said(int(site), str(template))
        place = places[int(site)]
        sizes.append(SizeBound(place, str(template), str(name), str(property_), int(most), *kept))
    findings = [
        Finding(places[int(s)], str(t), str(text))
        for s, t, text in sorted(database.rows("finding"))
    ]
    return Beyond(tuple(attributes), tuple(sizes), tuple(findings))


def declarations(
    beyond: Beyond,
    target: str,
    name: Callable[[str], str],
    meta: Callable[[AttributeBound | SizeBound], Iterator[str]],
) -> Iterator[str]:
    """Constraints, and findings as comments. ``name`` makes a name unique; ``meta`` says where a
    bound comes from, a line each."""
    for bound in beyond.attributes:
        ops, attribute, must = _guarded(bound)
        doc, lines = _of_attribute(bound, ops, attribute, must)
        yield _constraint(
            name(f"{target}_{_snake(bound.op)}_{bound.attribute}"),
            "parameter_bound",
            [doc, *bound.reasons],
            meta(bound),
            lines,
        )
    for size in beyond.sizes:
        docs = [f"`{size.name}`: a limit that nothing checks.", *size.reasons]
        guard, bounded = _SIZES[size.property]
        lines = [f"    {guard}", f"}} require {bounded} <= {size.most}"]
        yield _constraint(name(f"{target}_{size.name}"), "resource", docs, meta(size), lines)
    if beyond.findings:
        yield "\n".join(
            printable(
                f"// {f.template}: {f.place.file}:{f.place.line}: `{f.place.statement}`: {f.text}"
            )
            for f in beyond.findings
        )


def documented(text: str) -> str:
    """A line of documentation: a sentence."""
    return printable(f"/// {text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '`')) else '.'}")


def _constraint(
    name: str, klass: str, docs: Sequence[str], meta: Iterator[str], lines: Sequence[str]
) -> str:
    head = [*map(documented, docs), f"constraint {name} : {klass} on {{"]
    return "\n".join([*head, *(f"    {entry}" for entry in meta), *lines])


def _of_attribute(
    bound: AttributeBound, ops: str, attribute: str, must: str
) -> tuple[str, list[str]]:
    if must == "present":
        doc = f"The converter of {bound.op} takes `{attribute}`, which the operator does not have."
        return doc, [f"    n = {ops}(...)", f"}} require given(n, {quoted(attribute)})"]
    doc = f"The converter of {bound.op} never reads `{bound.attribute}`."
    if must == "absent":
        return doc, [f"    n = {ops}(...)", f"}} require not given(n, {quoted(attribute)})"]
    return doc, [f"    n = {ops}({attribute}=A, ...)", f"}} require A == {must}"]


def _guarded(bound: AttributeBound) -> tuple[str, str, str]:
    """The operators to guard, the attribute's name there, and the value: as in UIR where the
    operator has the attribute there, else as in ONNX."""
    known = [_attributes().get(op, {}) for op in bound.ours]
    if known and all(bound.attribute in attributes for attributes in known):
        default = known[0][bound.attribute]
        if bound.must in ("absent", "present") or default is None:
            return "|".join(bound.ours), bound.attribute, bound.must
        return "|".join(bound.ours), bound.attribute, default
    return "|".join((*bound.ours, f"onnx.{bound.op}")), bound.attribute, bound.must


@cache
def _attributes() -> Mapping[str, Mapping[str, str | None]]:
    """Our operators' attributes, each with its default as text (None: it has none)."""
    found: dict[str, dict[str, str | None]] = {}
    for file in load_rules([data_path("rules/ops")]).files:
        for decl in file.decls:
            if isinstance(decl, ast.OpDecl):
                found[decl.name.text] = {
                    a.name.text: None if a.default is None else show(a.default)
                    for a in decl.attributes
                }
    return found


@cache
def _table() -> Mapping[str, Sequence[str]]:
    import tomllib

    text = data_path("rules/ops/spellings.toml").read_text(encoding="utf-8")
    table: Mapping[str, Sequence[str]] = tomllib.loads(text)["onnx"]
    return table


def _spellings(op: str) -> tuple[str, ...]:
    """What ONNX's operator is called in UIR: its own names, or none."""
    return tuple(name for name in _table().get(op, ()) if name in _attributes())


def _snake(op: str) -> str:
    """``IsInf`` as ``is_inf``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op).lower()
