"""A finding told in the rule author's own lines: which facts met, left open or broke each line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import dedent

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
    """A line of a rule (or a condition of several), and what the graph says to it."""

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
    lines = []
    for file, first, last, steps in _by_line(finding.answer.steps):
        truths = {step.truth for step in steps}
        truth = next(t for t in (Truth.NO, Truth.UNKNOWN, Truth.YES) if t in truths)
        facts = [text for step in steps for text in teller.tell(step)]
        text = _source_lines(sources.get(file, ""), first, last)
        lines.append(ExplainedLine(file, first, text, truth, tuple(dict.fromkeys(facts))))
    return lines


def _by_line(steps: Iterable[Step]) -> list[tuple[str, int, int, list[Step]]]:
    """Steps by the source lines of their conditions: file, first line, last line, steps. What
    shares a line, or lies within a condition of several lines, is one entry."""
    spans = [(step.literal.span, step) for step in steps]
    placed = [(span, step) for span, step in spans if span is not None and span.line > 0]
    entries: list[tuple[str, int, int, list[Step]]] = []
    for span, step in sorted(placed, key=lambda item: (item[0].file, item[0].line)):
        end = max(span.line, span.end_line)
        if entries and entries[-1][0] == span.file and span.line <= entries[-1][2]:
            file, first, last, together = entries[-1]
            entries[-1] = (file, first, max(last, end), [*together, step])
        else:
            entries.append((span.file, span.line, end, [step]))
    return entries


def reason(
    finding: Finding, match: Match, program: core.Program, sources: Mapping[str, str]
) -> str:
    """One sentence: the condition that failed (near miss) or that nothing decides (possible)."""
    teller = _Teller(match, program)
    failed = finding.answer.failed
    if failed is None:
        return "; ".join(_open_conditions(finding.answer, teller, sources))
    told = teller.tell(failed)
    text = _too_many_operands(finding.answer) or (told[0] if told else "")
    source = _said(sources, failed.literal)
    return f"`{source}`: {text}" if source and text else text or source


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
            if teller.invented(literal.relation):
                text = "what it asks"
            fresh = [n for n in names if isinstance(answer.bindings.get(n), Unknown)]
            for name in fresh:
                origin.setdefault(name, []).append(text)
            pending.append((_said(sources, literal), text))
            continue
        why = dict.fromkeys(t for n in sorted(names) for t in origin.get(n, ()))
        source = _said(sources, literal)
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
                if self.invented(relation):
                    return self._tell_invented(step, relation, step.row)
                fact = self.fact(relation, step.row)
                if step.truth is Truth.UNKNOWN:
                    return [f"{fact}: the model does not say"]
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

    def invented(self, relation: str) -> bool:
        """Whether lowering made the relation for a condition: its name says nothing to people."""
        declared = self._program.relations.get(relation)
        return declared is not None and declared.span is None

    def _tell_invented(self, step: Step, relation: str, row: Sequence[Known]) -> list[str]:
        """What a condition that became a relation comes to: ``not exists``, ``upstream``, …"""
        assert isinstance(step.literal, core.Atom)
        match step.truth, step.literal.negated:
            case Truth.UNKNOWN, _:
                return ["the model does not say"]
            case (Truth.YES, True) | (Truth.NO, False):
                return ["there is none"]
            case Truth.NO, True:
                return ["there is one", *self._grounds(relation, row)]
            case _:
                return self._grounds(relation, row) or ["there is one"]

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
            lines += [
                f"  since {self.fact(p.relation, p.row)}"
                for p in derivation.premises
                if not self.invented(p.relation)
            ]
            told = filter(None, map(self._condition, derivation.conditions))
            lines += [f"  since {text}" for text in told]
            pending += [p for p in derivation.premises if p.rule is not None]
        return lines[:MAX_GROUNDS]

    def _condition(self, literal: core.Literal) -> str:
        """A condition of a derivation, if it says more than its row."""
        match literal:
            case core.Atom(relation) if self.invented(relation):
                return ""
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


def _too_many_operands(answer: Answer) -> str:
    """What to say where a node has more operands than its line names; empty where it has not."""
    match answer.failed:
        case Step(core.Compare("==", core.Var(name)), left=int(actual), right=int(named)):
            is_arity = any(
                isinstance(step.literal, core.Atom)
                and step.literal.relation == "arity"
                and step.literal.terms[-1] == core.Var(name)
                for step in answer.steps
            )
            if is_arity and actual > named:
                return f"it has {actual} operands, not {named}; `...` after them allows more"
    return ""


def entity_names(graph: Graph) -> dict[int, str]:
    """Ids to names, for nodes and tensors."""
    names = {t.id: t.name or f"%{t.id}" for t in graph.tensors}
    names.update({n.id: node_name(graph, n) for n in graph.nodes})
    return names


def _source_lines(text: str, first: int, last: int) -> str:
    """Lines of a source, as far to the left as they go together."""
    lines = text.splitlines()[first - 1 : last] if first > 0 else []
    return dedent("\n".join(lines)).strip()


def _said(sources: Mapping[str, str], literal: core.Literal) -> str:
    """The source text of a condition, with the ``not`` that stands before it."""
    source = _snippet(sources, literal.span)
    negated = isinstance(literal, core.Atom) and literal.negated
    return f"not {source}" if source and negated and not source.startswith("not ") else source


def _snippet(sources: Mapping[str, str], span: Span | None) -> str:
    """The source text of a span, on one line: without its comments and line breaks."""
    if span is None or span.line <= 0:
        return ""
    last = max(span.line, span.end_line)
    lines = sources.get(span.file, "").splitlines()[span.line - 1 : last]
    if not lines:
        return ""
    if span.end_line == last:
        lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    kept = (line for line in map(str.strip, lines) if not line.startswith("//"))
    return " ".join(filter(None, kept))
