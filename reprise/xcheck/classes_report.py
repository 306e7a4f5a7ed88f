"""Behaviour classes as text for a terminal, and as a document for tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from reprise.campaign.report.text import plain_table, put
from reprise.lang.display import counted, printable, shortened
from reprise.xcheck.behaviour import Seen
from reprise.xcheck.classes import BehaviourClass, Classes, Difference
from reprise.xcheck.partition import Comparison, Partition

SHOWN = 25
"""Classes that are listed."""
_FEW = 3
"""Differences and models that are named in a line."""
_LEAST = 30
"""Characters of the last column, however narrow the terminal: as many as its table leaves it."""
_TELLING = (Seen.VIOLATED, Seen.ERROR, Seen.UNKNOWN, Seen.SATISFIED, Seen.NOT_REACHED)
"""The most telling first."""
WORDS = {seen: seen.value.replace("_", " ") for seen in Seen}


def name_of(number: int) -> str:
    """What people call the class at a place in the list: c1, c2, …"""
    return f"c{number + 1}"


def number_of(name: str, found: Classes) -> int:
    """The place of the class that is called so. Raises ValueError."""
    if name.startswith("c") and name[1:].isdecimal() and 0 < int(name[1:]) <= len(found.behaviour):
        return int(name[1:]) - 1
    raise ValueError(f"there is no class `{name}`: there are c1 to c{len(found.behaviour)}")


# --- text ----


def show(found: Classes, to: Console, every: bool = False) -> None:
    """The signals, how they compare, and the classes (the largest, unless ``every``)."""
    run = found.run
    models = counted(found.behaviour.members, "model")
    left = f"; {counted(found.left_out, 'model')} that it was not asked about left out"
    to.print(Text(printable(f"{models} of {run.asked.target}{left if found.left_out else ''}")))
    if found.unmonitored:
        missing = counted(found.unmonitored, "model")
        to.print(Text(f"no monitor's record of {missing}: they count as if none was reached"))
    to.print()
    rows = [[Text(s.name), *map(Text, _figures(s))] for s in found.signals]
    put(plain_table(("by", "classes", "largest", "alone", "bits"), rows, range(1, 5)), to)
    to.print()
    told = [[Text(c.first.name), Text(c.second.name), *_compared(c)] for c in found.comparisons]
    heads = ("this", "compared with", "refines it", "cuts", "into up to", "bits more", "bits less")
    put(plain_table((*heads, "Rand"), told, range(3, 8)), to)
    to.print()
    sizes = [len(members) for members in found.behaviour.classes]
    listed = len(sizes) if every else min(len(sizes), SHOWN)
    classes = [found.described(number) for number in range(listed)]
    rows = [_row(i, c) for i, c in enumerate(classes)]
    columns = ("class", "models", "passes", "what became of them", "tells it apart")
    used = sum(max(len(h), *(r[i].cell_len for r in rows)) + 2 for i, h in enumerate(columns[:4]))
    for line, behaviour in zip(rows, classes, strict=True):
        line.append(Text(shortened(told_apart(behaviour), max(_LEAST, to.width - used - 2))))
    put(plain_table(columns, rows, (1, 2)), to)
    if listed < len(sizes):
        rest = counted(len(sizes) - listed, "class"), counted(sum(sizes[listed:]), "model")
        to.print(Text(f"and {rest[0]} of {rest[1]}"))


def show_differences(found: Classes, first: int, second: int, to: Console) -> None:
    """What tells two classes apart, and models of each."""
    names = name_of(first), name_of(second)
    rows = [
        [Text(printable(d.condition)), _seen(d.here), _seen(d.there)]
        for d in found.differences(first, second)
    ]
    put(plain_table(("condition", *names), rows), to)
    for number, name in zip((first, second), names, strict=True):
        to.print()
        behaviour = found.described(number)
        to.print(Text(f"{name}: {counted(len(behaviour.models), 'model')}"))
        for row in behaviour.models[:_FEW]:
            line = f"  {row.number}: {row.program}; {row.verdict.value}, {row.stage}"
            to.print(Text(printable(line), style="dim"), soft_wrap=True)


def _figures(signal: Partition) -> tuple[str, str, str, str]:
    alone = sum(len(members) == 1 for members in signal.classes)
    return str(len(signal)), str(len(signal.classes[0])), str(alone), f"{signal.entropy:.2f}"


def _compared(found: Comparison) -> list[Text]:
    pieces = found.pieces
    cut = sum(n > 1 for n in pieces)
    refines = "yes" if found.refines else "no"
    if found.refines and found.refined:
        refines = "the same"
    figures = (f"{cut} of {len(pieces)}", str(max(pieces)), f"{found.told:.2f}")
    return [
        Text(refines, style="" if found.refines else "yellow"),
        *map(Text, (*figures, f"{found.missed:.2f}", f"{found.adjusted_rand:.2f}")),
    ]


def _row(number: int, behaviour: BehaviourClass) -> list[Text]:
    fates = ", ".join(f"{n} {v.value.replace('_', ' ')}" for v, n in behaviour.verdicts.items())
    least, most = behaviour.passes
    return [
        Text(name_of(number), style="bold"),
        Text(str(len(behaviour.models))),
        Text(str(most) if least == most else f"{least}-{most}"),
        Text(fates),
    ]


def told_apart(behaviour: BehaviourClass) -> str:
    """How a class differs from its nearest, in a line; violations first."""
    if behaviour.nearest is None:
        return "-"
    ranked = sorted(
        behaviour.differences, key=lambda d: min(map(_TELLING.index, (d.here, d.there)))
    )
    parts = [_difference(d) for d in ranked[:_FEW]]
    more = len(behaviour.differences) - len(parts)
    rest = f" and {more} more" if more else ""
    return printable(f"from {name_of(behaviour.nearest)}: {'; '.join(parts)}{rest}")


def _difference(found: Difference) -> str:
    if found.there is Seen.NOT_REACHED:
        return f"{found.condition} {WORDS[found.here]}"
    return f"{found.condition} {WORDS[found.here]}, there {WORDS[found.there]}"


def _seen(seen: Seen) -> Text:
    style = {Seen.VIOLATED: "red", Seen.SATISFIED: "green", Seen.ERROR: "yellow"}.get(seen, "dim")
    return Text(WORDS[seen], style=style)


# --- for tools ----


def document(found: Classes) -> dict[str, Any]:
    """Everything that is shown and more; a stable form."""
    run = found.run
    return {
        "run": str(run.path),
        "target": run.asked.target,
        "versions": run.versions,
        "models": found.behaviour.members,
        "left_out": found.left_out,
        "unmonitored": found.unmonitored,
        "signals": [
            {
                "name": signal.name,
                "classes": len(signal),
                "sizes": [len(members) for members in signal.classes],
                "bits": round(signal.entropy, 6),
            }
            for signal in found.signals
        ],
        "comparisons": [_comparison(c) for c in found.comparisons],
        "conditions": list(found.conditions),
        "classes": [_class(i, c) for i, c in enumerate(found.classes)],
    }


def _comparison(found: Comparison) -> dict[str, Any]:
    return {
        "first": found.first.name,
        "second": found.second.name,
        "refines": found.refines,
        "refined": found.refined,
        "pieces": list(found.pieces),
        "bits_more": round(found.told, 6),
        "bits_less": round(found.missed, 6),
        "adjusted_rand": round(found.adjusted_rand, 6),
        "table": [[i, j, n] for (i, j), n in found.table.items()],
    }


def _class(number: int, behaviour: BehaviourClass) -> dict[str, Any]:
    nearest = None
    if behaviour.nearest is not None:
        nearest = {
            "class": name_of(behaviour.nearest),
            "differences": _differences(behaviour.differences),
        }
    return {
        "name": name_of(number),
        "models": [row.number for row in behaviour.models],
        "constraints": sorted({row.constraint for row in behaviour.models}),
        "verdicts": {v.value: n for v, n in behaviour.verdicts.items()},
        "passes": list(behaviour.passes),
        "seen": {name: seen.value for name, seen in behaviour.vector},
        "nearest": nearest,
    }


def _differences(found: Sequence[Difference]) -> list[dict[str, str]]:
    return [{"condition": d.condition, "here": d.here.value, "there": d.there.value} for d in found]


def differences_document(found: Classes, first: int, second: int) -> dict[str, Any]:
    """What tells two classes apart."""
    names = name_of(first), name_of(second)
    return {
        "between": list(names),
        "differences": _differences(found.differences(first, second)),
    }
