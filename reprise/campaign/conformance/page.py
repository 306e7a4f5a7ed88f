"""The page of the manual, ``docs/conformance.md``, out of the matrix and the explanations.

``python -m reprise.campaign.conformance.page > docs/conformance.md`` writes it; a test sees that it
is up to date.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from reprise.campaign.conformance.cases import MAIN
from reprise.campaign.conformance.differences import (
    Explained,
    Explanation,
    Verdict,
    explained,
    load_explanations,
)
from reprise.campaign.conformance.matrix import Cell, Column, Matrix, Row, State
from reprise.data import data_path

MATRIX = "rules/conformance/matrix.json"

SIGNS = {
    State.AGREE: "+",
    State.DIFFER: "D",
    State.FAILS: "F",
    State.FRAGILE: "~",
    State.DECLINED: "n",
    State.UNSUPPORTED: "-",
}
"""One character for each state, for tables."""
EMPTY_ONLY = {State.DIFFER: "d", State.FAILS: "f"}
"""The same where only empty tensors do."""
NOTHING = "."
"""The operator has no such element type."""
LEGEND = {
    "+": "agree",
    "D": "differ",
    "d": "differ on empty tensors only",
    "F": "fail",
    "f": "fail on empty tensors only",
    "~": "implementation-defined",
    "n": "declined by the target itself",
    "-": "unsupported: our lowering or rules/targets say so",
    NOTHING: "the operator has no such type",
}

_WORDS = {
    State.AGREE: "agree",
    State.DIFFER: "differ",
    State.FAILS: "fail",
    State.FRAGILE: "implementation-defined",
    State.DECLINED: "declined",
    State.UNSUPPORTED: "unsupported",
}
_VERDICTS = {
    Verdict.BUG: "Bugs of the target",
    Verdict.LIMIT: "What the target does not do",
    Verdict.CHOICE: "Where either is right",
    Verdict.LOWERING: "What the lowering cannot keep",
}
_HEAD = """# Conformance

<!-- Made by `python -m reprise.campaign.conformance.page > docs/conformance.md` out of
rules/conformance/; edit those instead. -->

Every operator in every main element type, one node at a time: what our [reference
semantics](semantics.md) compute, and what other implementations do in their least optimised mode.
A compiler that already differs there differs from the meaning of the program, not from its own
unoptimised self; and a reference that nobody agrees with is no reference.

```text
reprise conformance --target tvm@/opt/venvs/tvm     measure a column
reprise conformance --check rules/conformance/matrix.json
```

A cell stands for a few random applications: one with ordinary values; one with zeros of both signs,
denormals and the extremes of integers among them; one with infinities and NaN too; one with empty
tensors. All targets get the same ones, unless a target declares that it has no such application.
Results agree within 64 units in the last place (16 in half precision) times what a sum of so many
terms may lose; zeros must have the same sign, integers and bools must be equal.
Implementation-defined values are not compared. A row's main element type is that of the first
operand that leaves a choice, else that of the result.
"""


def page(matrix: Matrix, explanations: list[Explanation]) -> str:
    """The whole page."""
    cells = list(explained(matrix, explanations))
    return "\n".join([_HEAD, *_totals(matrix, cells), *_table(matrix), *_differences(cells)])


def _totals(matrix: Matrix, cells: list[Explained]) -> Iterator[str]:
    yield "## Totals\n"
    yield f"Seed {matrix.seed}, {matrix.instances} applications a cell.\n"
    heads = ["cells", *_WORDS.values()]
    yield f"| | version | {' | '.join(heads)} | unexplained |"
    yield "|---|---|" + "--:|" * (len(heads) + 1)
    for name, column in matrix.columns.items():
        totals = column.totals
        on_empty = Counter(cell.state for _, _, cell in column.cells() if cell.only_empty)
        numbers = [str(totals.total())]
        for state in _WORDS:
            of_these = f" ({on_empty[state]} on empty tensors only)" if on_empty[state] else ""
            numbers.append(f"{totals[state]}{of_these}")
        open_ = sum(c.explanation is None for c in cells if c.column == name)
        yield f"| `{name}` | {column.version} | {' | '.join([*numbers, str(open_)])} |"
    yield ""


def _table(matrix: Matrix) -> Iterator[str]:
    yield "## The matrix\n"
    yield f"In each cell, from left to right: {', '.join(f'`{d}`' for d in MAIN)}.\n"
    yield "; ".join(f"`{sign}` {meaning}" for sign, meaning in LEGEND.items()) + ".\n"
    yield "| operator | " + " | ".join(f"`{name}`" for name in matrix.columns) + " |"
    yield "|---|" + "---|" * len(matrix.columns)
    for op in matrix.operators:
        signs = [f"`{signs_of(c.rows.get(op, {}))}`" for c in matrix.columns.values()]
        yield f"| `{op}` | {' | '.join(signs)} |"
    yield ""


def signs_of(row: Row) -> str:
    """A row of cells as characters, in groups: floats, integers, unsigned, bool."""
    text = "".join(sign_of(row[d]) if d in row else NOTHING for d in MAIN)
    return f"{text[:3]} {text[3:7]} {text[7]} {text[8]}"


def sign_of(cell: Cell) -> str:
    """A cell as a character."""
    if cell.state in EMPTY_ONLY and cell.only_empty:
        return EMPTY_ONLY[cell.state]
    return SIGNS[cell.state]


def _differences(cells: list[Explained]) -> Iterator[str]:
    yield "## Differences\n"
    yield "Each cell that differs or fails, why, and the smallest example that was found."
    by_target: dict[str, dict[Explanation | None, list[Explained]]] = {}
    for cell in cells:
        by_target.setdefault(cell.column, {}).setdefault(cell.explanation, []).append(cell)
    for target, groups in by_target.items():
        yield f"\n### `{target}`\n"
        for verdict, title in _VERDICTS.items():
            listed = [(e, g) for e, g in groups.items() if e is not None and e.verdict is verdict]
            if listed:
                yield f"**{title}**\n"
                yield from (_entry(e, group) for e, group in listed)
                yield ""
        if None in groups:
            yield "**Unexplained**\n"
            yield from (_example(cell) for cell in groups[None])
            yield ""


def _entry(explanation: Explanation, group: list[Explained]) -> str:
    ops: dict[str, list[str]] = {}
    for cell in group:
        ops.setdefault(cell.op, []).append(cell.dtype)
    where = ", ".join(f"`{op}` ({', '.join(dtypes)})" for op, dtypes in ops.items())
    issue = f" [{explanation.issue}]" if explanation.issue else ""
    least = min(group, key=lambda c: len(c.cell.example))
    return f"- {explanation.reason}{issue}: {where}\n{_example(least)}"


def _example(cell: Explained) -> str:
    text = " ".join(cell.cell.example.replace("`", "'").split())
    return f"    - {cell.dtype}: `{text}`"


def version_line(name: str, column: Column) -> str:
    """A column in a few words."""
    totals = column.totals
    parts = [f"{totals[state]} {word}" for state, word in _WORDS.items() if totals[state]]
    return f"{name} ({column.version}, {column.mode}): {', '.join(parts)}"


if __name__ == "__main__":
    print(page(Matrix.load(data_path(MATRIX)), load_explanations()), end="")
