"""Check reports for people, on a terminal or in a log (colour only where it is wanted)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reprise.lang.display import printable, shown
from reprise.patterns.check import MatchReport, ModelReport
from reprise.patterns.explain import ExplainedLine
from reprise.patterns.truth import Truth

PLACES_SHOWN = 3
"""Places of one rule that are shown unless all are asked for."""

Style = Callable[[str, str], str]
"""``style(text, name)`` with names bold, red, yellow, green, dim; identity where colour is off."""


def plain(text: str, _name: str) -> str:
    """No colour."""
    return text


def model_text(report: ModelReport, style: Style = plain, *, every: bool = False) -> str:
    """Everything about one model, ending in a newline; empty if nothing was found.

    The places of one rule are told together; of many, the first few, unless ``every`` one is asked
    for.
    """
    path = printable(report.path)
    blocks = [
        f"{style(path, 'bold')}: {style('error', 'red')}: {printable(m)}"
        + (f"\n  hint: {printable(h)}" if h else "")
        for m, h in report.errors
    ]
    if report.matches or report.near:
        head = f"{style(path, 'bold')}: {_count(report)}"
        groups = [*by_rule(report.matches), *by_rule(report.near)]
        blocks.append("\n\n".join([head, *(places_text(g, style, every=every) for g in groups)]))
    if report.hidden_near:
        blocks.append(f"  ({report.hidden_near} further near misses of the same rules not shown)")
    return "\n".join(blocks) + "\n" if blocks else ""


def by_rule(matches: Sequence[MatchReport]) -> list[tuple[MatchReport, ...]]:
    """Matches of the same rule and certainty together, in the order of the first of each."""
    groups: dict[tuple[str, str], list[MatchReport]] = {}
    for match in matches:
        groups.setdefault((match.rule, match.certainty), []).append(match)
    return [tuple(group) for group in groups.values()]


def _count(report: ModelReport) -> str:
    broken = [m for m in report.matches if m.kind != "pattern"]
    sure = [m for m in report.matches if m.certainty == "yes" and m.kind == "pattern"]
    possible = [m for m in report.matches if m.certainty != "yes" and m.kind == "pattern"]
    parts = []
    if sure:
        rules = len(by_rule(sure))
        places = f" in {len(sure)} places" if len(sure) > rules else ""
        parts.append(f"{rules} known bug{'s' if rules > 1 else ''}{places}")
    if possible:
        rules = len(by_rule(possible))
        places = f" in {len(possible)} places" if len(possible) > rules else ""
        parts.append(f"{rules} possible{places}")
    if broken:
        open_ones = sum(m.certainty != "yes" for m in broken)
        told = f"{len(broken)} violation{'s' if len(broken) > 1 else ''}"
        parts.append(told + (f" ({open_ones} possible)" if open_ones else ""))
    if report.near:
        parts.append(f"{len(report.near)} near miss{'es' if len(report.near) > 1 else ''}")
    return ", ".join(parts)


def places_text(places: Sequence[MatchReport], style: Style = plain, *, every: bool = False) -> str:
    """One rule's finding as a block of lines: what the rule says once, then where it matched."""
    first = places[0]
    heads = {
        "yes": ("match", "red"),
        "possible": ("possible", "yellow"),
        "no": ("near miss", "dim"),
    }
    word, colour = heads[first.certainty]
    if first.kind != "pattern":
        word = "violation" if word == "match" else f"{word} violation"
    head = f"  {style(word, colour)} {style(first.rule, 'bold')}: {printable(first.title)}"
    lines = [head + (f", in {len(places)} places" if len(places) > 1 else "")]

    def row(label: str, text: str) -> None:
        if text:
            lines.append(f"    {label + ':' if label else '':<9} {printable(text)}")

    target = " ".join([*first.meta.get("target", ()), *first.meta.get("affects", ())])
    row("affects" if first.kind == "pattern" else "target", target)
    row("symptom", _join(first, "symptom"))
    verdict = _join(first, "verdict")
    row("verdict", "" if verdict in ("", "bug") else _since(verdict, first))
    klass = _join(first, "class")
    row("class", "" if klass == first.title else klass)
    same_values = all(p.values == first.values for p in places)
    same_reason = all(p.reason == first.reason for p in places)
    shown_places = places if every or len(places) <= PLACES_SHOWN + 1 else places[:PLACES_SHOWN]
    for place in shown_places:
        values = "" if same_values or not place.values else f"({_values(place)})"
        nodes = ", ".join(f"{k} = {v}" for k, v in place.nodes.items())
        row("nodes" if place is first else "", f"{nodes} {values}".strip())
        if not same_reason:
            row("", f"  because {place.reason}")
        if len(places) > 1:
            lines += [text for line in place.explanation for text in _explained(line, style)]
    if len(shown_places) < len(places):
        row("", f"… and {len(places) - len(shown_places)} more (--all shows them)")
    row("values", _values(first) if same_values else "")
    row("because", first.reason if same_reason else "")
    row("do", _join(first, "advice"))
    row("see", _join(first, "bug"))
    row("from", _join(first, "from"))
    if len(places) == 1:
        lines += [text for line in first.explanation for text in _explained(line, style)]
    return "\n".join(lines)


def _since(verdict: str, match: MatchReport) -> str:
    """``fixed in 1.32``, by what ``affects`` leaves out: a reader's version may be older."""
    if verdict != "fixed":
        return verdict
    for bound in ",".join(match.meta.get("affects", ())).split(","):
        operator, version = bound.strip()[:2], bound.strip().lstrip("<=> ")
        if operator == "<=" or operator == "==":
            return f"fixed after {version}"
        if operator.startswith("<"):
            return f"fixed in {version}"
    return "fixed in a later version"


def _values(match: MatchReport) -> str:
    return ", ".join(f"{k} = {shown(v)}" for k, v in match.values.items())


def _join(match: MatchReport, key: str) -> str:
    return ", ".join(match.meta.get(key, ()))


def _explained(line: ExplainedLine, style: Style) -> Sequence[str]:
    marks = {Truth.YES: ("+", "green"), Truth.UNKNOWN: ("?", "yellow"), Truth.NO: ("-", "red")}
    mark, colour = marks[line.truth]
    first, *rest = line.text.splitlines() or [""]
    head = f"    {style(mark, colour)} {line.line:>4} | {first}"
    return [
        head,
        *(f"           | {text}" for text in rest),
        *(f"           {style(printable(f), 'dim')}" for f in line.facts),
    ]


def summary(reports: Sequence[ModelReport], rules: int) -> str:
    """The closing line of a run."""
    matched = [r for r in reports if r.matches]
    failed = [r for r in reports if r.errors]
    total = sum(len(r.matches) for r in reports)
    if not rules:
        return "Nothing was looked for: no rule is about this version of the target."
    checked = len(reports) - len(failed)
    models = f"{checked} model{'s' if checked != 1 else ''}"
    parts = [f"{models} checked against {rules} rule{'s' if rules != 1 else ''}"]
    parts.append(
        f"{total} match{'es' if total != 1 else ''} in {len(matched)}" if total else "no match"
    )
    if failed:
        parts.append(f"{len(failed)} could not be checked")
    return ", ".join(parts) + "."
