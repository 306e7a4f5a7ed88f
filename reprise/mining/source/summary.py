"""What mining came to, as lines for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from reprise.lang.display import counted, printable, shortened
from reprise.mining.source.bounds import AttributeBound, SizeBound
from reprise.mining.source.mine import Mined

_MOST = 5
"""Files and keywords told one by one."""


def summary(mined: Mined) -> list[str]:
    """A table of templates and classes, and what was read."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for found in mined.derived.found:
        row = rows.setdefault((found.template, found.klass), Counter())
        row["sites"] += 1
        row["monitors"] += bool(found.asserted)
        row["assertions"] += len(found.asserted)
        row[found.confidence] += 1
    constraints: Counter[tuple[str, str]] = Counter()
    pairs = {(f.template, f.klass, pair) for f in mined.derived.found for pair in f.agreeing}
    constraints.update((template, klass) for template, klass, _ in pairs)
    unused = Counter(u.template for u in mined.derived.unused)
    heads = ["template", "class", "sites", "monitors", "assertions", "constraints"]
    levels = ["high", "medium", "low"]
    table = [[*heads, *levels]]
    for key, row in sorted(rows.items()):
        numbers = [row["sites"], row["monitors"], row["assertions"], constraints[key]]
        table.append([*key, *(str(n) for n in [*numbers, *(row[level] for level in levels)])])
    return [
        *_aligned(table),
        *mined.derived.beyond.summary(),
        *(
            f"{template}: {counted(n, 'assertion')} of values that the sites have not, as comments"
            for template, n in sorted(_elsewhere(mined).items())
        ),
        *(
            f"{template}: {counted(n, 'condition')} gave nothing (--unused lists them)"
            for template, n in sorted(unused.items())
        ),
        _read(mined),
    ]


def declarations(mined: Mined) -> int:
    """How many monitors and constraints were written."""
    found = mined.derived.found
    agreeing = {(f.template, f.klass, pair) for f in found for pair in f.agreeing}
    monitors = sum(bool(f.asserted) for f in found)
    return monitors + len(agreeing) + mined.derived.beyond.constraints


def _elsewhere(mined: Mined) -> Counter[str]:
    """By template: assertions that are written as comments."""
    found: Counter[str] = Counter()
    for each in mined.derived.found:
        found[each.template] += len(each.elsewhere)
    return +found


def as_json(mined: Mined) -> dict[str, Any]:
    """The same for tools: counts by template and class, findings, and what is wrong."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for found in mined.derived.found:
        row = rows.setdefault((found.template, found.klass), Counter())
        row.update({"sites": 1, "assertions": len(found.asserted), found.confidence: 1})
    beyond = mined.derived.beyond
    bounds: list[AttributeBound | SizeBound] = [*beyond.attributes, *beyond.sizes]
    return {
        "files": len(mined.files),
        "lines": sum(read.lines for read in mined.files.values()),
        "templates": [
            {"template": template, "class": klass, **row}
            for (template, klass), row in sorted(rows.items())
        ],
        "bounds": dict(sorted(Counter(bound.template for bound in bounds).items())),
        "findings": [
            {"template": f.template, "from": f"{f.place.file}:{f.place.line}", "text": f.text}
            for f in beyond.findings
        ],
        "comments": dict(sorted(_elsewhere(mined).items())),
        "unused": dict(sorted(Counter(u.template for u in mined.derived.unused).items())),
        "skipped": [{"path": s.path, "why": s.why} for s in mined.skipped],
        "unparsed": {path: read.errors for path, read in mined.files.items() if read.errors},
        "missing": {keyword: list(near) for keyword, near in mined.missing.items()},
    }


def _aligned(table: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        words = [cell.ljust(w) for cell, w in zip(row[:2], widths[:2], strict=True)]
        numbers = [cell.rjust(w) for cell, w in zip(row[2:], widths[2:], strict=True)]
        yield "  ".join([*words, *numbers]).rstrip()


def _read(mined: Mined) -> str:
    lines = sum(facts.lines for facts in mined.files.values())
    return (
        f"{counted(len(mined.files), 'file')}, {lines:,} lines, "
        f"{counted(mined.parsed, 'file')} parsed now, {mined.seconds:.1f} s"
    )


def notes(mined: Mined) -> Iterator[str]:
    """What somebody should know about the input: files that were skipped or do not parse, keywords
    that occur nowhere."""
    for skipped in mined.skipped[:_MOST]:
        yield printable(f"skipped {skipped.path}: {skipped.why}")
    if len(mined.skipped) > _MOST:
        yield f"skipped {counted(len(mined.skipped) - _MOST, 'further file')}"
    faulty = {path: facts.errors for path, facts in mined.files.items() if facts.errors}
    if faulty:
        worst = sorted(faulty, key=lambda path: (-faulty[path], path))[:_MOST]
        told = ", ".join(f"{path} ({faulty[path]})" for path in worst)
        more = ", …" if len(faulty) > _MOST else ""
        yield printable(
            f"{counted(len(faulty), 'file')} with places that do not parse, which lowers the "
            f"confidence: {told}{more}"
        )
    for path, facts in mined.files.items():
        if facts.left:
            yield printable(f"{path}: {counted(facts.left, 'further site')} not looked at")
    if mined.better is not None and mined.files:
        yield printable(
            f"most of this extractor's keywords ({len(mined.missing)}; --format json lists them) "
            f"occur nowhere: {mined.better.hint}"
        )
        return
    for keyword, near in mined.missing.items():
        if keyword in near:
            yield printable(f"keyword `{keyword}` occurs, but nowhere where it is looked for")
            continue
        hint = f"; there is {', '.join(f'`{name}`' for name in near)}" if near else ""
        yield printable(f"keyword `{keyword}` occurs nowhere{hint}")


def unused_lines(mined: Mined) -> Iterator[str]:
    """The sites that templates could make nothing of."""
    for unused in mined.derived.unused:
        text = shortened(" ".join(unused.text.split()), 100)
        place = f"{unused.place.file}:{unused.place.line}"
        yield printable(f"{place}: {unused.template}: {unused.why}: {text}")
