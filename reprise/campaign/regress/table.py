"""The matrix for people: rule x version, as text rows and as Markdown, and what to look into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from reprise.campaign.regress.cell import Cell, State
from reprise.lang.display import counted

SIGNS = {
    State.FIRES: "fires",
    State.DIFFERS: "fires differently",
    State.FIXED: "fixed",
    State.UNDECIDED: "undecided",
    State.UNSUPPORTED: "unsupported",
    State.NO_WITNESS: "no witness",
}


def columns(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """The targets that were measured, with their versions, in order."""
    return list(dict.fromkeys((c.target, c.version) for c in cells))


def heading(target: str, version: str) -> str:
    """``onnxruntime 1.27.0``."""
    return f"{target.partition('@')[0]} {version}"


def rows(cells: Sequence[Cell]) -> Iterator[list[str]]:
    """The matrix with its header; an asterisk where a cell contradicts the rule's ``affects``."""
    across = columns(cells)
    by_place = {(c.rule, c.target, c.version): c for c in cells}
    yield ["rule", *(heading(*column) for column in across)]
    for rule in sorted({c.rule for c in cells}):
        row = [rule]
        for column in across:
            cell = by_place.get((rule, *column))
            row.append("" if cell is None else _sign(cell))
        yield row


def _sign(cell: Cell) -> str:
    fired, taken = cell.fired
    count = f" {fired}/{taken}" if cell.state is State.FIRES else ""
    return f"{SIGNS[cell.state]}{count}{' *' if cell.contradicts else ''}"


def totals(cells: Sequence[Cell]) -> Iterator[str]:
    """One line a target: how many rules came to what."""
    for target, version in columns(cells):
        own = [c for c in cells if (c.target, c.version) == (target, version)]
        states = Counter(c.state for c in own)
        said = ", ".join(f"{SIGNS[s]} {states[s]}" for s in State if states[s])
        yield f"{heading(target, version)}: {counted(len(own), 'rule')}: {said}"


def remarks(cells: Sequence[Cell]) -> Iterator[str]:
    """What a person should look into, a line each."""
    for cell in cells:
        where = f"{cell.rule}, {heading(cell.target, cell.version)}"
        if cell.contradicts:
            says = "includes it" if cell.expected else "leaves it out"
            yield f'{where}: {SIGNS[cell.state]}, but affects "{cell.affects}" {says}'
        if cell.state is State.DIFFERS:
            shown = next(t for t in cell.tried if t.is_witness and t.seen.symptoms)
            yield f"{where}: {', '.join(shown.seen.symptoms)} ({shown.label}): {shown.seen.title}"
        if cell.state is State.UNDECIDED:
            shown = next(t for t in cell.tried if t.is_witness)
            yield f"{where}: undecided ({shown.label}): {shown.seen.title}"
        if cell.state is State.UNSUPPORTED:
            shown = next(t for t in cell.tried if t.is_witness)
            yield f"{where}: not taken ({shown.label}): {shown.seen.title}"
        if cell.state is State.NO_WITNESS:
            yield f"{where}: no witness: {'; '.join(cell.left_out) or 'the rule has no tests'}"
        if cell.other_pass:
            yield (
                f"{where}: ablation blames {', '.join(cell.cures)}, the rule "
                f"{', '.join(cell.stated)}"
            )
        for label in cell.too_narrow:
            yield f"{where}: the rule may be too narrow: {label} shows the symptom"


def markdown(cells: Sequence[Cell]) -> str:
    """The matrix as a table."""
    lines = []
    for number, row in enumerate(rows(cells)):
        shown = [f"`{row[0]}`" if number else row[0], *(_strong(cell) for cell in row[1:])]
        lines.append("| " + " | ".join(shown) + " |")
        if number == 0:
            lines.append("|" + "---|" * len(row))
    return "\n".join(lines) + "\n"


def _strong(text: str) -> str:
    return f"**{text.removesuffix(' *')}**" if text.endswith(" *") else text
