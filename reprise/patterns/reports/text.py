"""Check reports for people, on a terminal or in a log (colour only where it is wanted)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reprise.lang.display import printable, shown
from reprise.patterns.check import MatchReport, ModelReport
from reprise.patterns.explain import ExplainedLine
from reprise.patterns.truth import Truth

Style = Callable[[str, str], str]
"""``style(text, name)`` with names bold, red, yellow, green, dim; identity where colour is off."""


def plain(text: str, _name: str) -> str:
    """No colour."""
    return text


def model_text(report: ModelReport, style: Style = plain) -> str:
    """Everything about one model, ending in a newline; empty if nothing was found."""
    path = printable(report.path)
    blocks = [
        f"{style(path, 'bold')}: {style('error', 'red')}: {printable(m)}"
        + (f"\n  hint: {printable(h)}" if h else "")
        for m, h in report.errors
    ]
    if report.matches or report.near:
        head = f"{style(path, 'bold')}: {_count(report)}"
        blocks.append(
            "\n\n".join([head, *(match_text(m, style) for m in (*report.matches, *report.near))])
        )
    if report.hidden_near:
        blocks.append(f"  ({report.hidden_near} further near misses of the same rules not shown)")
    return "\n".join(blocks) + "\n" if blocks else ""


def _count(report: ModelReport) -> str:
    sure = sum(m.certainty == "yes" for m in report.matches)
    possible = len(report.matches) - sure
    parts = []
    if sure:
        parts.append(f"{sure} known bug{'s' if sure > 1 else ''}")
    if possible:
        parts.append(f"{possible} possible")
    if report.near:
        parts.append(f"{len(report.near)} near miss{'es' if len(report.near) > 1 else ''}")
    return ", ".join(parts)


def match_text(match: MatchReport, style: Style = plain) -> str:
    """One finding as a block of lines."""
    heads = {
        "yes": ("match", "red"),
        "possible": ("possible", "yellow"),
        "no": ("near miss", "dim"),
    }
    word, colour = heads[match.certainty]
    lines = [f"  {style(word, colour)} {style(match.rule, 'bold')}: {printable(match.title)}"]

    def row(label: str, text: str) -> None:
        if text:
            lines.append(f"    {label + ':':<9} {printable(text)}")

    target = " ".join([*match.meta.get("target", ()), *match.meta.get("affects", ())])
    row("affects", target)
    row("symptom", _join(match, "symptom"))
    verdict = _join(match, "verdict")
    row("verdict", "" if verdict in ("", "bug") else verdict)
    row("nodes", ", ".join(f"{k} = {v}" for k, v in match.nodes.items()))
    row("values", ", ".join(f"{k} = {shown(v)}" for k, v in match.values.items()))
    row("because", match.reason)
    row("do", _join(match, "advice"))
    row("see", _join(match, "bug"))
    lines += [text for line in match.explanation for text in _explained(line, style)]
    return "\n".join(lines)


def _join(match: MatchReport, key: str) -> str:
    return ", ".join(match.meta.get(key, ()))


def _explained(line: ExplainedLine, style: Style) -> Sequence[str]:
    marks = {Truth.YES: ("+", "green"), Truth.UNKNOWN: ("?", "yellow"), Truth.NO: ("-", "red")}
    mark, colour = marks[line.truth]
    head = f"    {style(mark, colour)} {line.line:>4} | {line.text}"
    return [head, *(f"           {style(printable(f), 'dim')}" for f in line.facts)]


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
