"""Sets, ranges and operators: what may stand after ``in`` and before ``(``."""

from __future__ import annotations

from collections.abc import Sequence

from reprise.lang import ast, core
from reprise.lang.diagnostics import Span
from reprise.lang.lower.auxiliary import Ops, label
from reprise.lang.lower.expressions import NUMERIC, SYMBOLIC, Expressions, article
from reprise.lang.spelling import operator_hint, operators_meant
from reprise.lang.symbols import suggest


class Domains(Expressions):
    """Membership in sets and ranges; sets of operators."""

    def operators(self, idents: Sequence[ast.Ident]) -> Ops:
        """``relu|tanh``, a set, a category or ``any``."""
        if len(idents) == 1 and idents[0].text == "any" and "any" not in self.symbols.operators:
            return Ops((), "any", any=True)
        values: list[core.Value] = []
        for ident in idents:
            values += self._operator(ident.text, ident.span)
        for ident in idents:
            self._import_turns(ident, values)
        return Ops(tuple(dict.fromkeys(values)), label([i.text for i in idents]))

    def _import_turns(self, ident: ast.Ident, beside: Sequence[core.Value]) -> None:
        """Warn of ``onnx.Relu`` alone: an import makes nearly all of them ``relu``."""
        text = ident.text
        meant = operators_meant(text, self.symbols.operators) if "." in text else []
        if meant and not any(name in beside for name in meant):
            self.report.warning(
                "foreign-operator",
                f"`{text}` becomes an operator of UIR on import, wherever it can",
                ident.span,
                f"write `{meant[0]}`, or `{meant[0]}|{text}` for those that cannot, too",
            )

    def _operator(self, text: str, span: Span) -> list[core.Value]:
        if self.symbols.is_operator(text):
            return [text]
        named = self.symbols.members(text)
        if named is not None:
            if named.kind != "op":
                self.report.error("type-mismatch", f"set `{text}` holds no operators", span)
            return list(named.values)
        known = [*self.symbols.operators, *self.symbols.sets, *self.symbols.categories]
        self.report.error(
            "unknown-operator",
            f"no operator, set or category is called `{text}`",
            span,
            operator_hint(text, self.symbols.operators)
            or suggest(text, known)
            or "an ONNX operator without a signature is written `onnx.Name`",
        )
        return []

    def op_domain(self, domain: ast.Domain) -> Ops:
        """A domain that must hold operators (contexts, ``via``)."""
        match domain:
            case ast.NamedDomain(name):
                return Ops(
                    tuple(dict.fromkeys(self._operator(name.text, name.span))), label([name.text])
                )
            case ast.SetDomain(items):
                values: list[core.Value] = []
                names: list[str] = []
                for item in items:
                    if isinstance(item, ast.Name | ast.String):
                        text = item.text if isinstance(item, ast.Name) else item.value
                        values += self._operator(text, item.span)
                        names.append(text)
                    else:
                        hint = None
                        if isinstance(item, ast.Variable):
                            hint = operator_hint(item.name, self.symbols.operators)
                        message = "expected operators here"
                        self.report.error("type-mismatch", message, item.span, hint)
                return Ops(tuple(dict.fromkeys(values)), label(names))
            case ast.RangeDomain():
                self.report.error("type-mismatch", "expected a set of operators", domain.span)
                return Ops((), "none")

    def membership(
        self, expr: core.Expr, kind: str, domain: ast.Domain, negated: bool, span: Span
    ) -> None:
        """Add ``expr in domain``."""
        if isinstance(domain, ast.RangeDomain):
            self._range(expr, kind, domain, negated, span)
            return
        values = self._values(domain, kind)
        if not values and not negated and not self.report.failed:
            self.report.error("never-matches", "the set is empty: nothing is in it", span)
        self.emit(core.Member(self.flat(expr, span), tuple(values), negated, span))

    def _range(
        self, expr: core.Expr, kind: str, domain: ast.RangeDomain, negated: bool, span: Span
    ) -> None:
        self._comparable(kind, "int", "<=", span, "the left side")
        low, high = self._number(domain.low), self._number(domain.high)
        if isinstance(low, core.Const) and isinstance(high, core.Const):
            a, b = low.value, high.value
            if isinstance(a, int | float) and isinstance(b, int | float) and a > b:
                self.report.error("never-matches", f"{a}..{b} is empty: its ends are swapped", span)
            whole = isinstance(a, int) and isinstance(b, int)
            if whole and kind in ("int", "any") and int(b) - int(a) < 64:
                values = tuple(range(int(a), int(b) + 1))
                self.emit(core.Member(self.flat(expr, span), values, negated, span))
                return
        if negated:
            self.report.error(
                "unsupported",
                "`not in` needs a range of at most 64 known numbers",
                span,
                "write `e < low or e > high`",
            )
            return
        self.emit(core.Compare("<=", low, expr, span))
        self.emit(core.Compare("<=", expr, high, span))

    def _values(self, domain: ast.SetDomain | ast.NamedDomain, kind: str) -> list[core.Value]:
        if isinstance(domain, ast.NamedDomain):
            named = self.symbols.members(domain.name.text)
            if named is None:
                known = [*self.symbols.sets, *self.symbols.categories]
                self.report.error(
                    "unknown-set",
                    f"no set or category is called `{domain.name.text}`",
                    domain.span,
                    suggest(domain.name.text, known),
                )
                return []
            self._set_kind(kind, named.kind, domain.span)
            return list(named.values)
        values: list[core.Value] = []
        for item in domain.items:
            named = self.symbols.members(item.text) if isinstance(item, ast.Name) else None
            if named is not None:
                values += named.values
                continue
            lowered, found = self.expr(item, kind)
            if not isinstance(lowered, core.Const):
                self.report.error("bad-set-member", "a set holds constants only", item.span)
                continue
            self._comparable(kind, found, "==", item.span, "the left side")
            values.append(lowered.value)
        return list(dict.fromkeys(values))

    def _set_kind(self, kind: str, set_kind: str, span: Span) -> None:
        wanted = {"number": NUMERIC, "symbol": SYMBOLIC, "op": {"op", "sym", "any"}}
        allowed = wanted.get(set_kind, {"dtype", "sym", "any"})
        if kind not in allowed:
            self.report.error(
                "type-mismatch", f"{article(kind)} is never in a set of {set_kind}s", span
            )
