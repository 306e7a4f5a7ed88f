"""A finding told in the rule author's own lines: which facts met, left open or broke each line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reprise.lang import core
from reprise.lang.coretext import format_literal
from reprise.lang.diagnostics import Span
from reprise.lang.display import shown
from reprise.patterns.match import Finding, Match, node_name
from reprise.patterns.truth import UNKNOWN, Answer, Known, Step, Truth, Unknown
from reprise.uir.graph import Graph

MAX_GROUNDS = 8
"""Facts shown under one derived fact."""


@dataclass(frozen=True, slots=True)
class ExplainedLine:
    """A line of a rule and what the graph says to it."""

    file: str
    line: int
    text: str
    truth: Truth
    facts: tuple[str, ...]


def explain(
    finding: Finding, match: Match, program: core.Program, sources: Mapping[str, str]
) -> list[ExplainedLine]:
    """The finding's steps, grouped by the rule's source lines, in source order.

    Derived facts (``constant(x)``, reachability) are followed to the facts that they rest on.
    """
    teller = _Teller(match, program)
    grouped: dict[tuple[str, int], list[tuple[Span, Step]]] = {}
    for step in finding.answer.steps:
        span = step.literal.span
        if span is not None and span.line > 0:
            grouped.setdefault((span.file, span.line), []).append((span, step))
    lines = []
    for (file, number), steps in sorted(grouped.items()):
        truths = {s.truth for _, s in steps}
        truth = next(t for t in (Truth.NO, Truth.UNKNOWN, Truth.YES) if t in truths)
        facts = [text for _, step in steps for text in teller.tell(step)]
        text = _source_line(sources.get(file, ""), number)
        lines.append(ExplainedLine(file, number, text, truth, tuple(dict.fromkeys(facts))))
    return lines


def reason(
    finding: Finding, match: Match, program: core.Program, sources: Mapping[str, str]
) -> str:
    """One sentence: the condition that failed (near miss) or that nothing decides (possible)."""
    teller = _Teller(match, program)
    if finding.answer.failed is None:
        return "; ".join(_open_conditions(finding.answer, teller, sources))
    told = []
    for step in [finding.answer.failed]:
        text = teller.tell(step)
        source = _snippet(sources, step.literal.span)
        told.append(f"`{source}`: {text[0]}" if source and text else (text or [source or ""])[0])
    return "; ".join(dict.fromkeys(told))


def _open_conditions(answer: Answer, teller: _Teller, sources: Mapping[str, str]) -> Iterable[str]:
    """The conditions that nothing decides, each with the look-ups that have no known value."""
    origin: dict[str, list[str]] = {}
    told: dict[str, None] = {}
    pending: list[tuple[str, str]] = []
    for step in answer.open_steps:
        literal = step.literal
        names = set(core.variables(literal))
        if isinstance(literal, core.Atom):
            text = teller.open_fact(literal.relation, step.row or ())
            fresh = [n for n in names if isinstance(answer.bindings.get(n), Unknown)]
            for name in fresh:
                origin.setdefault(name, []).append(text)
            pending.append((_snippet(sources, literal.span), text))
            continue
        why = dict.fromkeys(t for n in sorted(names) for t in origin.get(n, ()))
        source = _snippet(sources, literal.span)
        told[f"`{source}`: {' and '.join(why) or 'a value'} is not known"] = None
    mentioned = " ".join(told)
    for source, text in pending:
        if text not in mentioned:
            told[f"`{source}`: {text} is not known"] = None
    return told


class _Teller:
    """Writes steps with the graph's names in place of ids."""

    def __init__(self, match: Match, program: core.Program) -> None:
        self._match = match
        self._program = program
        self._names = entity_names(match.graph)

    def tell(self, step: Step) -> list[str]:
        """What a step says, as short texts (the first is the step's own)."""
        match step.literal:
            case core.Atom(relation, _, negated):
                if step.row is None:
                    return []
                fact = self.fact(relation, step.row)
                if step.truth is Truth.UNKNOWN:
                    return [f"{fact}: the model does not say"]
                if negated and "__" in relation:  # made for a `not exists`
                    return ["there is none" if step.truth is Truth.YES else "there is one"]
                if negated:
                    return [f"not {fact}" if step.truth is Truth.YES else f"{fact} holds"]
                if step.truth is Truth.NO and step.right is not None:
                    known = self.open_fact(relation, step.row)
                    return [f"{known} is {self.value(step.right)}, not {self.value(step.row[-1])}"]
                if step.truth is Truth.NO:
                    return [f"{fact} does not hold"]
                return [fact, *self._grounds(relation, step.row)]
            case core.Compare(op):
                if step.left is None or step.right is None:
                    return [f"no value for `{op}`"]
                if step.truth is Truth.YES and op == "==":
                    return []  # the look-up above shows the value
                text = f"{self.value(step.left)} {op} {self.value(step.right)}"
                return [self._verdict(text, step.truth)]
            case core.Member(_, values, negated):
                word = "not in" if negated else "in"
                shown = ", ".join(self.value(v) for v in values[:6])
                shown += ", …" if len(values) > 6 else ""
                left = "?" if step.left is None else self.value(step.left)
                return [self._verdict(f"{left} {word} {{{shown}}}", step.truth)]
            case core.Aggregate(_, kind):
                total = "none" if step.right is None else self.value(step.right)
                return [self._verdict(f"{kind} = {total}", step.truth)]

    def _verdict(self, text: str, truth: Truth) -> str:
        ending = {Truth.YES: "", Truth.NO: " is false", Truth.UNKNOWN: ": cannot tell"}
        return text + ending[truth]

    def _grounds(self, relation: str, row: Sequence[Known]) -> list[str]:
        """The facts under a derived one, down to what the model itself says."""
        if relation not in self._program.derived():
            return []
        known = [v for v in row if not isinstance(v, Unknown)]
        if len(known) < len(row):
            return []
        lines: list[str] = []
        pending = [self._match.grounds.why(relation, *known)]
        while pending and len(lines) < MAX_GROUNDS:
            derivation = pending.pop(0)
            lines += [f"  since {self.fact(p.relation, p.row)}" for p in derivation.premises]
            told = filter(None, map(self._condition, derivation.conditions))
            lines += [f"  since {text}" for text in told]
            pending += [p for p in derivation.premises if p.rule is not None]
        return lines[:MAX_GROUNDS]

    def _condition(self, literal: core.Literal) -> str:
        """A condition of a derivation, if it says more than its row."""
        match literal:
            case core.Atom(relation, terms, negated):
                row = [t.value if isinstance(t, core.Const) else UNKNOWN for t in terms]
                return f"{'not ' if negated else ''}{self.fact(relation, row)}"
            case core.Member():
                return format_literal(literal)
            case core.Compare() | core.Aggregate():
                return ""

    def fact(self, relation: str, row: Sequence[Known]) -> str:
        """``relation(args)`` with names for ids."""
        declared = self._program.relations.get(relation)
        types = [c.type for c in declared.columns] if declared else ["any"] * len(row)
        shown = (self.value(v, t) for v, t in zip(row, types, strict=False))
        return f"{relation}({', '.join(shown)})"

    def open_fact(self, relation: str, row: Sequence[Known]) -> str:
        """A look-up without its value: ``dim(x, 0)``."""
        declared = self._program.relations.get(relation)
        keys = [c.key for c in declared.columns] if declared else []
        keyed = any(keys) and not all(keys)
        kept = [v for v, key in zip(row, keys, strict=False) if key] if keyed else list(row)
        return self.fact(relation, kept)

    def value(self, value: Known, kind: str = "any") -> str:
        """A value as people read it."""
        if isinstance(value, int) and kind in ("node", "tensor"):
            return self._names.get(value, f"#{value}")
        return str(value) if isinstance(value, Unknown) else shown(value)


def entity_names(graph: Graph) -> dict[int, str]:
    """Ids to names, for nodes and tensors."""
    names = {t.id: t.name or f"%{t.id}" for t in graph.tensors}
    names.update({n.id: node_name(graph, n) for n in graph.nodes})
    return names


def _source_line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _snippet(sources: Mapping[str, str], span: Span | None) -> str:
    """The source text of a span, if it lies on one line."""
    if span is None:
        return ""
    lines = sources.get(span.file, "").splitlines()
    if not 0 < span.line <= len(lines):
        return ""
    end = span.end_column - 1 if span.end_line == span.line else None
    return lines[span.line - 1][span.column - 1 : end].strip()
