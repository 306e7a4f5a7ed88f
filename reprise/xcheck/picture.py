"""Behaviour classes as a picture: which classes each signal tells apart, as bands that split.

Three columns: pass/fail, pass coverage, behaviour. A block is a class, as high as it has models; a
band between two blocks is the models that are in both, so that a signal that refines the one before
it splits blocks and never joins bands. Below, on the page, classes against the conditions of which
they differ. The page needs no network and no script.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from reprise import __version__
from reprise.campaign.report.markup import Markup, join, tag
from reprise.lang.display import counted
from reprise.xcheck.behaviour import Seen, Vector
from reprise.xcheck.classes import BehaviourClass, Classes, compiled
from reprise.xcheck.classes_report import WORDS, name_of, told_apart
from reprise.xcheck.partition import Comparison, Partition
from reprise.xcheck.store import ModelRow

MOST = 40
"""Classes that are drawn; of the others, those of one pass coverage are one block."""
_CONDITIONS = 60
"""Conditions that are columns."""
_WIDTH, _BLOCK, _HEAD = 1000.0, 14.0, 30.0
_COLUMNS = (10.0, 330.0, 660.0)
"""Where the columns of blocks begin."""
_HEIGHT, _GAP, _LEAST = 420.0, 6.0, 13.0
"""Of all models together, between blocks, and of a block at least (a line of text)."""
_TEXT = 44
"""Characters of a block's label."""
_CELL, _LABEL, _TOP = 15, 170, 170


_Labelling = Callable[[int, Sequence[int]], tuple[str, str, str]]
"""From a class's number and models to its label, what is told of it on pointing at it, its kind."""


@dataclass(frozen=True)
class _Block:
    """A class in a column: its models (by place in the order of drawing), where it is."""

    label: str
    title: str
    kind: str
    models: tuple[int, ...]
    y: float
    height: float

    def span(self, models: Sequence[int]) -> Iterator[tuple[float, float]]:
        """Where in the block its models are, each as high as the others."""
        share = self.height / len(self.models)
        place = {model: i for i, model in enumerate(self.models)}
        for model in models:
            yield self.y + share * place[model], share


def drawing(found: Classes) -> str:
    """The bands, as an SVG file."""
    return f'<?xml version="1.0" encoding="utf-8"?>\n{_Bands(found).svg(style=True)}\n'


def page(found: Classes) -> str:
    """The whole page."""
    title = f"{found.run.asked.target}: behaviour classes"
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(_STYLE)),
    )
    versions = ", ".join(f"{name} {number}" for name, number in found.run.versions.items())
    models = counted(found.behaviour.members, "model")
    body = tag(
        "body",
        tag("h1", title),
        tag("p", f"{models} compiled by {versions}; seed {found.run.asked.seed}", class_="soft"),
        _signals(found.signals),
        tag("div", _Bands(found).svg(style=False), class_="card wide"),
        tag("h2", "How they compare"),
        _comparisons(found.comparisons),
        tag("h2", "Classes and the conditions of which they differ"),
        tag("div", _matrix(found), class_="card wide"),
        tag("h2", "Classes"),
        _classes(found.classes),
        tag("p", f"Reprise {__version__}, {found.run.path.resolve()}", class_="soft"),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


# --- bands ----


class _Bands:
    def __init__(self, found: Classes) -> None:
        self.found = found
        self.rows = {row.number: row for row in found.run.models}
        self.fate, self.coverage = (found.signals[i].place for i in (0, 1))
        self.behaviour = {  # those from MOST on are one block for each coverage
            model: i if i < MOST else MOST + self.coverage[model]
            for model, i in found.behaviour.place.items()
        }

    @cached_property
    def order(self) -> list[int]:
        """Models from top to bottom: those that compiled first, then by coverage, then by class, as
        classes will stand when each is where its models are on average."""
        before = sorted(self.behaviour, key=lambda m: (*self.plainly(m), self.behaviour[m], m))
        where = _middles(self.behaviour, before)
        return sorted(
            before, key=lambda m: (*self.plainly(m), where[self.behaviour[m]], self.behaviour[m], m)
        )

    def plainly(self, model: int) -> tuple[bool, int]:
        """What the first two signals say of a model."""
        return not self.compiled(model), self.coverage[model]

    def compiled(self, model: int) -> bool:
        """Whether the model compiled."""
        return compiled(self.rows[model])

    def kind(self, models: Sequence[int]) -> str:
        """Whether models compiled: their block's class in the style sheet."""
        fates = {self.compiled(model) for model in models}
        return "mixed" if len(fates) > 1 else "compiled" if fates == {True} else "failed"

    def columns(self) -> list[list[_Block]]:
        return [
            self.column(self.fate, self.fate_label),
            self.column(self.coverage, self.coverage_label),
            self.column(self.behaviour, self.behaviour_label),
        ]

    def column(self, place: Mapping[int, int], label: _Labelling) -> list[_Block]:
        """The classes of one signal, each where most of its models come from."""
        members: dict[int, list[int]] = {}
        for model in self.order:
            members.setdefault(place[model], []).append(model)
        where = _middles(place, self.order)
        middle = sorted(members, key=lambda number: (where[number], number))
        unit = _HEIGHT / len(self.order)
        blocks, y = [], _HEAD
        for number in middle:
            models = tuple(members[number])
            height = max(_LEAST, unit * len(models))
            text, title, kind = label(number, models)
            blocks.append(_Block(text, title, kind, models, y, height))
            y += height + _GAP
        return blocks

    def fate_label(self, number: int, models: Sequence[int]) -> tuple[str, str, str]:
        kind = self.kind(models)
        text = "compiled" if kind == "compiled" else "did not compile"
        fates = Counter(self.rows[m].verdict for m in models)
        title = ", ".join(f"{n}: {verdict.words}" for verdict, n in fates.most_common())
        return f"{text} ({len(models)})", title, kind

    def coverage_label(self, number: int, models: Sequence[int]) -> tuple[str, str, str]:
        row = self.rows[models[0]]
        text = f"{row.stage}; completed {row.passes} ({len(models)})"
        return text, text, self.kind(models)

    def behaviour_label(self, number: int, models: Sequence[int]) -> tuple[str, str, str]:
        kind = self.kind(models)
        if number >= MOST:
            more = len({self.found.behaviour.place[m] for m in models})
            return f"{counted(more, 'class')} more ({len(models)})", "small ones", kind
        said = _summary(self.found.vectors[models[0]])
        text = f"{name_of(number)}: {said} ({len(models)})"
        return text, text, kind

    def svg(self, *, style: bool) -> Markup:
        columns = self.columns()
        height = max(column[-1].y + column[-1].height for column in columns) + 10
        heads = [
            tag("text", signal.name, x=x, y=16, class_="head")
            for x, signal in zip(_COLUMNS, self.shown, strict=True)
        ]
        bands = [
            band
            for i in (0, 1)
            for band in self.bands(columns[i], columns[i + 1], _COLUMNS[i], _COLUMNS[i + 1])
        ]
        blocks = [
            self.block(block, x) for x, column in zip(_COLUMNS, columns, strict=True)
            for block in column
        ]  # fmt: skip
        counts = ", ".join(f"{len(s)} by {s.name}" for s in self.shown)
        return tag(
            "svg",
            tag("title", f"Classes of {counted(len(self.order), 'model')}: {counts}"),
            tag("style", Markup(_STYLE)) if style else None,
            *bands, *blocks, *heads,
            xmlns="http://www.w3.org/2000/svg", role="img", class_="bands",
            viewBox=f"0 0 {_WIDTH:g} {height:.0f}", width=_WIDTH, height=round(height),
        )  # fmt: skip

    @property
    def shown(self) -> list[Partition]:
        return [self.found.signals[0], self.found.signals[1], self.found.behaviour]

    def bands(
        self, left: Sequence[_Block], right: Sequence[_Block], x: float, end: float
    ) -> Iterator[Markup]:
        for block in left:
            for other in right:
                both = set(block.models) & set(other.models)
                for kind in ("compiled", "failed"):
                    models = [m for m in block.models if m in both]
                    models = [m for m in models if self.compiled(m) == (kind == "compiled")]
                    if models:
                        title = f"{len(models)}: {block.label} / {other.label}"
                        yield self.band(block, other, models, (x + _BLOCK, end), kind, title)

    def band(
        self,
        block: _Block,
        other: _Block,
        models: Sequence[int],
        ends: tuple[float, float],
        kind: str,
        title: str,
    ) -> Markup:
        starts, stops = list(block.span(models)), list(other.span(models))
        (x, end), mid = ends, sum(ends) / 2
        top, low = min(y for y, _ in starts), max(y + h for y, h in starts)
        above, below = min(y for y, _ in stops), max(y + h for y, h in stops)
        path = (
            f"M{x:g} {top:.1f}C{mid:g} {top:.1f} {mid:g} {above:.1f} {end:g} {above:.1f}"
            f"V{below:.1f}C{mid:g} {below:.1f} {mid:g} {low:.1f} {x:g} {low:.1f}Z"
        )
        return tag("path", tag("title", title), d=path, class_=f"band {kind}")

    def block(self, block: _Block, x: float) -> Markup:
        return tag(
            "g",
            tag("title", block.title),
            tag("rect", x=x, y=round(block.y, 1), width=_BLOCK, height=round(block.height, 1),
                rx=2, class_=f"block {block.kind}"),
            tag("text", _short(block.label), x=x + _BLOCK + 5,
                y=round(block.y + block.height / 2 + 4, 1), class_="label"),
        )  # fmt: skip


def _middles(place: Mapping[int, int], order: Sequence[int]) -> dict[int, float]:
    """Where the models of each class stand on average."""
    found: dict[int, list[int]] = {}
    for i, model in enumerate(order):
        found.setdefault(place[model], []).append(i)
    return {number: sum(places) / len(places) for number, places in found.items()}


def _summary(vector: Vector) -> str:
    """A vector in a few words: the worst that was seen, and of what."""
    for worst in (Seen.VIOLATED, Seen.ERROR, Seen.UNKNOWN):
        names = [name for name, seen in vector if seen is worst]
        if names:
            return f"{', '.join(names)} {WORDS[worst]}"
    return f"{counted(len(vector), 'condition')} satisfied" if vector else "no condition reached"


def _short(text: str) -> str:
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 1]}…"


# --- tables ----


def _signals(signals: Sequence[Partition]) -> Markup:
    tiles = [tag("li", tag("b", len(s)), tag("span", f"by {s.name}")) for s in signals]
    return tag("ul", *tiles, class_="tiles")


def _comparisons(comparisons: Sequence[Comparison]) -> Markup:
    heads = ("this", "compared with", "refines it", "classes cut", "into up to", "bits more",
             "bits less", "adjusted Rand index")  # fmt: skip
    rows = []
    for c in comparisons:
        cut = sum(n > 1 for n in c.pieces)
        cells = (
            c.first.name,
            c.second.name,
            "yes" if c.refines else "no",
            f"{cut} of {len(c.pieces)}",
            max(c.pieces),
            f"{c.told:.2f}",
            f"{c.missed:.2f}",
            f"{c.adjusted_rand:.2f}",
        )
        rows.append(tag("tr", *(tag("td", cell) for cell in cells)))
    return _table(heads, rows)


def _classes(classes: Sequence[BehaviourClass]) -> Markup:
    rows = []
    for number, behaviour in enumerate(classes):
        fates = ", ".join(f"{n}: {v.words}" for v, n in behaviour.verdicts.items())
        shown = [_model(row) for row in behaviour.models[:5]]
        more = len(behaviour.models) - len(shown)
        rest = tag("div", f"and {more} more", class_="soft") if more else None
        rows.append(
            tag("tr", tag("td", tag("b", name_of(number))), tag("td", len(behaviour.models)),
                tag("td", fates), tag("td", told_apart(behaviour)), tag("td", *shown, rest))
        )  # fmt: skip
    return _table(("class", "models", "what became of them", "tells it apart", "its models"), rows)


def _model(row: ModelRow) -> Markup:
    text = row.program if len(row.program) <= 160 else f"{row.program[:159]}…"
    return tag("div", f"{row.number}: ", tag("code", text))


def _table(heads: Sequence[str], rows: Sequence[Markup]) -> Markup:
    head = tag("tr", *(tag("th", text) for text in heads))
    return tag("div", tag("table", head, *rows), class_="card wide")


def _matrix(found: Classes) -> Markup:
    """Classes down, conditions across: a square is what was seen, none what was not reached."""
    classes, names = found.classes[:MOST], found.conditions[:_CONDITIONS]
    across = {name: _LABEL + i * _CELL for i, name in enumerate(names)}
    cells = [
        tag("text", name, transform=f"translate({x + 11} {_TOP - 6}) rotate(-60)", class_="label")
        for name, x in across.items()
    ]
    for number, behaviour in enumerate(classes):
        y = _TOP + number * _CELL
        label = f"{name_of(number)} ({len(behaviour.models)})"
        cells.append(tag("text", label, x=_LABEL - 8, y=y + 11, class_="label end"))
        for name, seen in behaviour.vector:
            if name in across:
                title = tag("title", f"{name_of(number)}: {name} {WORDS[seen]}")
                cells.append(
                    tag("rect", title, x=across[name] + 1, y=y + 1, width=_CELL - 2,
                        height=_CELL - 2, rx=2, class_=f"seen {seen.value}")
                )  # fmt: skip
    width = _LABEL + len(names) * _CELL + 120
    height = _TOP + len(classes) * _CELL + 6
    left = [counted(n, what) for n, what in (
        (len(found.classes) - len(classes), "class"),
        (len(found.conditions) - len(names), "condition"),
    ) if n]  # fmt: skip
    legend = tag(
        "p",
        *(
            join(tag("span", class_=f"key {seen.value}"), f" {WORDS[seen]}  ")
            for seen in Seen
            if seen is not Seen.NOT_REACHED
        ),
        f"; not drawn: {' and '.join(left)}" if left else None,
        class_="soft",
    )
    picture = tag(
        "svg",
        tag("title", "Classes and what was seen of each condition"),
        *cells,
        role="img",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
    )
    return join(legend, picture)


_STYLE = """
:root, svg.bands {
  color-scheme: light dark; --page: #f6f7f9; --card: #fff; --text: #1b1f27; --soft: #586072;
  --line: #dfe3ea; --compiled: #2f9e6e; --failed: #d9480f; --mixed: #7048e8;
  --satisfied: #8fcbaa; --violated: #d6336c; --unknown: #e0b91f; --error: #7048e8;
}
@media (prefers-color-scheme: dark) {
  :root, svg.bands {
    --page: #12151b; --card: #1a1e26; --text: #e6e9ef; --soft: #9aa4b5; --line: #2d3440;
    --compiled: #38b783; --failed: #ff8a4c; --mixed: #9775fa;
    --satisfied: #47705a; --violated: #f06595; --unknown: #e0b91f; --error: #9775fa;
  }
}
body { margin: 0 auto; max-width: 1080px; padding: 24px 20px; background: var(--page);
  color: var(--text); font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 32px 0 10px; }
.soft { color: var(--soft); } code { font-size: .84em; overflow-wrap: anywhere; }
.tiles { display: flex; flex-wrap: wrap; gap: 12px; padding: 0; list-style: none; }
.tiles li, .card { background: var(--card); border: 1px solid var(--line); border-radius: 12px;
  padding: 12px 16px; }
.tiles b { display: block; font-size: 1.5rem; line-height: 1.2; }
.tiles span { color: var(--soft); font-size: .85rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 4px 12px 4px 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
svg { display: block; max-width: none; }
svg.bands { background: var(--card); }
svg text { fill: var(--text); font: 11.5px system-ui, "Segoe UI", Roboto, sans-serif; }
svg text.head { font-weight: 600; font-size: 13px; }
svg text.end { text-anchor: end; }
.band { opacity: .25; } .band:hover { opacity: .55; }
.compiled { fill: var(--compiled); } .failed { fill: var(--failed); } .mixed { fill: var(--mixed); }
.seen.satisfied { fill: var(--satisfied); } .seen.violated { fill: var(--violated); }
.seen.unknown { fill: var(--unknown); } .seen.error { fill: var(--error); }
.key { display: inline-block; width: 11px; height: 11px; border-radius: 2px; margin-left: 10px; }
.key.satisfied { background: var(--satisfied); } .key.violated { background: var(--violated); }
.key.unknown { background: var(--unknown); } .key.error { background: var(--error); }
"""
