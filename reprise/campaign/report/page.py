"""A report as one HTML file: no network, no fonts from elsewhere, readable without scripts.

The page forbids itself every request by its content policy, and allows only the script and style
that are in it, by their hashes. Drawings, programs and scripts of findings are put in, best ranked
first, until :data:`BUDGET` is spent; the findings after that are told without them, with the path
of their folder.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from reprise import __version__
from reprise.campaign.progress import NAMES, clock
from reprise.campaign.records import Defect
from reprise.campaign.report.chart import FINDINGS, chart, legend
from reprise.campaign.report.drawing import MOST, draw, hidden
from reprise.campaign.report.figures import figures
from reprise.campaign.report.highlight import Highlighter
from reprise.campaign.report.markup import Markup, join, tag
from reprise.campaign.report.summary import (
    NO_DEFECT,
    Ranked,
    Report,
    bug_links,
    in_line,
    plain,
    relative,
)
from reprise.lang.declared import Pattern
from reprise.lang.diagnostics import RulesError
from reprise.oracle.verdict import Severity, Verdict
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Graph
from reprise.uir.text import parse_uir, print_uir

BUDGET = 2_500_000
"""Characters that the findings' drawings, programs and scripts may take together."""
_LONG_TITLE = 260
_ROW_TITLE = 130
_SCRIPT = 60_000
"""Characters of a script or program that is put in whole."""
_FEW = 8
"""Elements of a constant that a program's text shows."""
_ROWS = 2000
"""Defects that get a row and a section."""
_ASSETS = Path(__file__).parent


def page(report: Report) -> str:
    """The whole page."""
    return _Page(report).html()


class _Page:
    def __init__(self, report: Report) -> None:
        self.report, self.run = report, report.run
        self._left = BUDGET
        self._highlighter = Highlighter(report.rules)

    @cached_property
    def _signatures(self) -> Signatures:
        return Signatures.load()

    def html(self) -> str:
        style = (_ASSETS / "page.css").read_text("utf-8")
        script = (_ASSETS / "page.js").read_text("utf-8")
        policy = (
            f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "base-uri 'none'; form-action 'none'"
        )
        title = f"{self._name}: Reprise report"
        head = tag(
            "head",
            tag("meta", charset="utf-8"),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="referrer", content="no-referrer"),
            tag("title", title),
            tag("style", Markup(style)),
        )
        body = tag("body", self._header(), self._main(), self._footer(),
                   tag("script", Markup(script)))  # fmt: skip
        return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"

    @property
    def _name(self) -> str:
        info = self.run.info
        return f"{info.target}, seed {info.seed}, {'guided' if info.guided else 'unguided'}"

    # --- the whole run ----------------------------------------------------------------------------

    def _header(self) -> Markup:
        run = self.run
        found = run.redundancy
        new = sum(1 for ranked in self.report.defects if ranked.rule is None)
        rejected = sum(row[1] for row in self.report.suppressed)
        tiles = [
            (f"{run.tests:,}", "tests"),
            ("-" if self.report.rate is None else f"{self.report.rate:,.1f}", "tests a second"),
            (clock(run.seconds), "of fuzzing"),
            (f"{found.reports:,}", "reports (B)"),
            (f"{found.defects:,}", f"defects (U), {new:,} new"),
            (f"{rejected:,}", "candidates suppressed"),
        ]
        return tag(
            "header",
            tag("h1", self._name),
            tag("p", f"{self.report.versions}; run begun {_moment(run.info.started)}; "
                f"{self.report.state}", class_="soft"),
            tag("ul", *(tag("li", tag("b", n), tag("span", what)) for n, what in tiles),
                class_="tiles"),
            class_="top",
        )  # fmt: skip

    def _main(self) -> Markup:
        return tag(
            "main",
            self._verdicts(),
            self._defects(),
            self._findings(),
            self._ours(),
            self._figures(),
            self._suppressed(),
            self._environment(),
        )

    def _verdicts(self) -> Markup:
        run = self.run
        if not run.tests:
            return _section("Verdicts over time", tag("p", "No test has ended yet.", class_="soft"))
        slices = run.timeline(60)
        second = (
            chart("Findings (a dot: a defect met for the first time)", slices, FINDINGS, marks=True)
            if run.defects
            else tag("p", "No test came to a finding.", class_="soft")
        )
        charts = tag("div", chart("Tests", slices, tuple(Verdict)), second, class_="charts")
        return _section("Verdicts over time", charts, legend(run.verdicts))

    def _figures(self) -> Markup:
        crashes = figures(self.run.redundancy_of(Verdict.CRASH))
        rows = [
            tag("tr", tag("th", f.symbol, scope="row"), tag("td", f.value, class_="n"),
                tag("td", c.value, class_="n"), tag("td", f.meaning))
            for f, c in zip(figures(self.run.redundancy), crashes, strict=True)
        ]  # fmt: skip
        note = tag("p", "With one defect left, C is 100 % and ²D is 1 whatever the number of "
                   "reports: compare runs by B and B−U.", class_="soft small")  # fmt: skip
        heads = ("figure", "all findings", "crashes", "what it says")
        return _section("Redundancy", _table(heads, rows, right=(1, 2), id="figures"), note)

    def _suppressed(self) -> Markup:
        if not self.run.info.guided:
            said = "The run was not guided: no candidate was taken back."
            return _section("Suppressed by rule", tag("p", said, class_="soft"))
        if not self.report.suppressed:
            said = "No candidate completed a known bug."
            return _section("Suppressed by rule", tag("p", said, class_="soft"))
        rows = []
        for rule, rejected, completed in self.report.suppressed:
            pattern = self.report.pattern(rule)
            rows.append(
                tag("tr", tag("td", tag("code", rule), class_="keep"),
                    tag("td", f"{rejected:,}", class_="n", data_value=rejected),
                    tag("td", f"{completed:,}", class_="n", data_value=completed),
                    tag("td", _bugs(pattern), class_="keep"),
                    tag("td", "" if pattern is None else pattern.title))
            )  # fmt: skip
        heads = ("rule", "candidates", "accepted all the same", "bug", "what it is")
        note = tag("p", "A candidate that completes a known bug is taken back before anything is "
                   "compiled; after too many attempts at a place the last one is accepted.",
                   class_="soft small")  # fmt: skip
        return _section(
            "Suppressed by rule", _table(heads, rows, right=(1, 2), class_="sortable"), note
        )

    def _environment(self) -> Markup:
        info = self.run.info
        sessions = [
            tag("tr", tag("td", _moment(s.started), class_="keep"),
                tag("td", f"{s.next - s.first:,}", class_="n"),
                tag("td", clock(s.seconds), class_="n"), tag("td", s.jobs, class_="n"),
                tag("td", s.end.value))
            for s in self.run.sessions
        ]  # fmt: skip
        facts: list[tuple[str, Any]] = [*info.versions.items(), ("target", info.target)]
        facts += [("seed", info.seed), *_flat(info.options)]
        facts += [("rules", f"{len(info.rules)} about this target ({info.rules_hash})")]
        facts += [("folder", str(self.run.path.resolve()))]
        heads = ("session", "tests", "time", "jobs", "end")
        return _section(
            "Environment",
            _facts(facts),
            tag("h4", "Sessions"),
            _table(heads, sessions, right=(1, 2, 3)),
        )

    def _footer(self) -> Markup:
        return tag("footer", f"Made by Reprise {__version__} from ",
                   tag("code", str(self.run.path)), ".")  # fmt: skip

    # --- defects ----------------------------------------------------------------------------------

    def _defects(self) -> Markup:
        if not self.report.defects:
            return _section("Defects", tag("p", "None was found.", class_="soft"))
        shown = self.report.defects[:_ROWS]
        filters = tag(
            "div",
            tag("input", type="search", placeholder="Filter by words", aria_label="Filter"),
            tag("select", tag("option", "All", value="all"), tag("option", "New", value="new"),
                tag("option", "Known", value="known"), aria_label="New or known"),
            tag("output", class_="soft small"),
            class_="filters", hidden=True,
        )  # fmt: skip
        rows = [self._row(ranked) for ranked in shown]
        heads = ("defect", "reports", "what", "known as", "first test", "what happened")
        table = _table(heads, rows, right=(1, 4), class_="sortable", id="defects")
        more = len(self.report.defects) - len(shown)
        rest = (
            tag("p", f"{more:,} more, less often reported, are in the JSON form.") if more else ""
        )
        return _section("Defects", filters, table, rest)

    def _row(self, ranked: Ranked) -> Markup:
        defect = ranked.defect
        known = (
            tag("code", ranked.rule)
            if ranked.rule
            else tag("span", ranked.known_as, class_="badge new")
        )
        return tag(
            "tr",
            tag("td", tag("a", defect.id, href=f"#{defect.id}"), class_="keep",
                data_value=f"{int(defect.id[1:]):06d}"),
            tag("td", f"{defect.count:,}", class_="n", data_value=defect.count),
            tag("td", tag("i", class_=f"dot v-{defect.verdicts[0].value}"), _what(defect),
                class_="keep"),
            tag("td", known, class_="keep"),
            tag("td", f"{defect.first_index:,}", class_="n", data_value=defect.first_index),
            tag("td", tag("span", in_line(ranked.headline, _ROW_TITLE)), class_="title"),
            data_kind="known" if ranked.rule else "new", data_id=defect.id,
        )  # fmt: skip

    def _findings(self) -> Markup | None:
        shown = self.report.defects[:_ROWS]
        if not shown:
            return None
        return tag("section", tag("h2", "Findings"), *(self._finding(ranked) for ranked in shown))

    def _finding(self, ranked: Ranked) -> Markup:
        defect, detail, folder = ranked.defect, ranked.detail, ranked.folder
        parts: list[Markup | None] = [
            tag("header", tag("span", defect.id, class_="id"),
                tag("h3", in_line(ranked.headline, _LONG_TITLE))),
            self._badges(ranked),
        ]  # fmt: skip
        if ranked.pattern is not None:
            parts.append(_known(ranked.pattern))
        if folder is not None:
            parts += self._again(ranked, folder)
        if detail is not None and folder is not None:
            graph, problem = self._graph(folder)
            parts.append(self._drawing(ranked, graph))
            parts += [tag("h4", "Evidence"), _evidence(detail.evidence, detail.raw)]
            parts += self._texts(defect.id, folder, graph, problem)
        elif ranked.problem:
            parts.append(tag("p", ranked.problem, class_="soft"))
        elif folder is None:
            parts.append(tag("p", "No folder was kept for this defect.", class_="soft"))
        signatures = [
            (f"{s.count:,} × {NAMES[s.verdict]}", tag("code", _cut(s.signature, 2000)))
            for s in defect.signatures[:20]
        ]
        parts += [tag("h4", "Signatures"), _facts(signatures)]
        return tag("article", *parts, class_="card", id=defect.id)

    def _badges(self, ranked: Ranked) -> Markup:
        defect, finding = ranked.defect, ranked.finding
        words = [
            tag("span", tag("i", class_=f"dot v-{defect.verdicts[0].value}"), _what(defect),
                class_="badge"),
            tag("span", f"known: {ranked.rule}", class_="badge") if ranked.rule
            else tag("span", ranked.known_as, class_="badge new"),
            tag("span", f"{defect.count:,} report{'s' if defect.count != 1 else ''}",
                class_="badge"),
            tag("span", f"first in test {defect.first_index:,} at {clock(defect.first_at)}",
                class_="badge"),
        ]  # fmt: skip
        confirmation = None if finding is None else finding.confirmation
        if confirmation is not None:
            said = f"{confirmation.agreed} of {confirmation.runs} runs again agree"
            kind = "badge warn" if confirmation.flaky else "badge"
            words.append(tag("span", said, class_=kind))
        return tag("div", *words, class_="badges")

    def _again(self, ranked: Ranked, folder: Path) -> list[Markup]:
        command = self.report.command(folder)
        if command is None:
            return [tag("p", "In ", tag("code", relative(folder, self.run)), class_="small")]
        name = f"{ranked.defect.id}-command"
        return [
            tag("h4", "See it fail again"),
            tag("div", tag("code", command, id=name), tag("span", data_copies=name),
                class_="command"),
        ]  # fmt: skip

    def _graph(self, folder: Path) -> tuple[Graph | None, str]:
        """The finding's program, while there is room for it; else why not."""
        if self._left <= 0:
            return None, f"Left out to keep this page small: see {relative(folder, self.run)}."
        path = folder / "program.uir"
        if _kernel(folder).is_file():  # there is no graph to draw
            return None, ""
        try:
            return parse_uir(path.read_text("utf-8"), str(path), self._signatures), ""
        except (OSError, ValueError) as error:
            return None, f"The program cannot be read: {error}"
        except RulesError as error:
            first = error.diagnostics[0].message if error.diagnostics else "damaged"
            return None, f"The program cannot be read: {first}"

    def _drawing(self, ranked: Ranked, graph: Graph | None) -> Markup | None:
        if graph is None or ranked.detail is None or not graph.nodes:
            return None
        highlight = self._highlighter.look(graph, ranked.detail, ranked.pattern)
        said = f"Highlighted: {highlight.why}." if highlight.nodes else ""
        if hidden(graph):
            said += f" The {MOST} nodes around them are drawn, {hidden(graph)} are not."
        return join(
            tag("h4", "Program"),
            tag("div", self._spent(draw(graph, highlight)), class_="drawing"),
            tag("p", said.strip(), class_="soft small") if said else None,
        )

    def _texts(self, id_: str, folder: Path, graph: Graph | None, problem: str) -> list[Markup]:
        """The program's text and the reproducer, closed, while there is room for them."""
        found = [tag("p", problem, class_="soft small")] if problem else []
        if self._left <= 0:
            return found
        if graph is not None:
            program = print_uir(graph, limit=_FEW)
        else:
            kernel = _kernel(folder)
            program = _text(kernel if kernel.is_file() else folder / "program.uir")
        for title, name, text in (
            ("Program text", "program", program),
            ("Reproducer", "repro", _text(folder / "repro.py")),
        ):
            if len(text) > _SCRIPT:
                said = f"{title}: too long for this page; see {relative(folder, self.run)}."
                found.append(tag("p", said, class_="soft small"))
            elif text:
                found.append(self._spent(_block(title, f"{id_}-{name}", text)))
        return found

    def _spent(self, markup: Markup) -> Markup:
        self._left -= len(markup)
        return markup

    def _ours(self) -> Markup | None:
        if not self.report.ours:
            return None
        rows = [
            tag("tr", tag("td", tag("i", class_=f"dot v-{o.signature.verdict.value}"),
                          NAMES[o.signature.verdict], class_="keep"),
                tag("td", f"{o.signature.count:,}", class_="n"),
                tag("td", in_line(plain(o.signature.title), _ROW_TITLE), class_="title"),
                tag("td", None if o.folder is None
                    else tag("code", relative(o.folder, self.run)), class_="keep"))
            for o in self.report.ours[:100]
        ]  # fmt: skip
        note = tag("p", "Invalid programs are faults of the generator or the lowering; where the "
                   "target's modes agree and the reference does not, one of the two is wrong.",
                   class_="soft small")  # fmt: skip
        heads = ("what", "tests", "title", "folder")
        return _section(NO_DEFECT, _table(heads, rows, right=(1,)), note)


# --- pieces --------------------------------------------------------------------------------------


def _kernel(folder: Path) -> Path:
    """Where a finding about an einsum kernel has it."""
    return folder / "kernel.json"


def _text(file: Path) -> str:
    """What a file holds; nothing, if it cannot be read."""
    try:
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def _section(title: str, *children: Markup | str) -> Markup:
    return tag("section", tag("h2", title), tag("div", *children, class_="card"))


def _table(
    heads: Sequence[str],
    rows: Iterable[Markup],
    right: Sequence[int] = (),
    **attributes: str,
) -> Markup:
    cells = [
        tag("th", head, class_="n" if number in right else None, scope="col")
        for number, head in enumerate(heads)
    ]
    table = tag("table", tag("thead", tag("tr", *cells)), tag("tbody", *rows), **attributes)
    return tag("div", table, class_="scroll")


def _facts(pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Names and values; a value that is no markup is written as text."""
    items = []
    for name, value in pairs:
        shown = value if isinstance(value, Markup) else str(value)
        items += [tag("dt", name), tag("dd", shown)]
    return tag("dl", *items)


def _block(title: str, id_: str, text: str) -> Markup:
    """A long text, closed at first, with a button that copies it."""
    return tag(
        "details",
        tag("summary", title),
        tag("div", data_copies=id_, class_="tools"),
        tag("pre", _cut(text, _SCRIPT), id=id_),
    )


def _known(pattern: Pattern) -> Markup:
    """The rule that the defect is filed under: what it is, where it is reported, what to do."""
    facts: list[tuple[str, Any]] = [("known bug", pattern.title)]
    if pattern.meta.get("bug"):
        facts.append(("reported as", _bugs(pattern)))
    for key in ("affects", "fixed", "pass", "advice"):
        if pattern.meta.get(key):
            facts.append((key, "; ".join(pattern.meta[key])))
    if pattern.doc:
        facts.append(("why", " ".join(pattern.doc.split())))
    return join(tag("h4", "Known rule"), _facts(facts))


def _bugs(pattern: Pattern | None) -> Markup:
    links: list[Markup | str] = []
    for bug, address in [] if pattern is None else bug_links(pattern):
        links.append(", " if links else "")
        links.append(bug if address is None else tag("a", bug, href=address, rel="noreferrer"))
    return join(*links)


_NAMES = {
    "float64_sides_with": "float64 sides with",
    "tested_error_to_float64": "optimised, error to float64",
    "baseline_error_to_float64": "unoptimised, error to float64",
    "noise_of_rounding": "noise that rounding explains",
    "type": "exception",
    "also_fails_in": "also fails in",
    "passes_in": "does not fail in",
}
_OWN_BLOCKS = ("log", "traceback", "frames")


def _evidence(evidence: Mapping[str, Any], raw: Mapping[str, Any]) -> Markup:
    """What the verdict rests on. Of unknown shape as far as this page goes: whatever a key holds
    is shown, the known ones in words."""
    facts: list[tuple[str, Any]] = []
    rest = dict(evidence)
    differences = rest.pop("differences", None)
    for difference in differences if isinstance(differences, list) else []:
        if isinstance(difference, dict):
            facts += _difference(difference)
    ablation = rest.pop("ablation", None)
    if isinstance(ablation, dict):
        facts += _ablation(ablation)
    blocks = []
    for key, value in rest.items():
        if value in (None, "", [], {}):
            continue
        if key in _OWN_BLOCKS:
            lines = value if isinstance(value, list) else str(value).splitlines()
            text = "\n".join(map(str, lines))
            blocks.append(tag("details", tag("summary", key), tag("pre", _cut(text, 8000))))
        else:
            facts.append((_NAMES.get(key, key.replace("_", " ")), _cut(_words(value), 4000)))
    log = raw.get("outcome", {}).get("log") if isinstance(raw.get("outcome"), dict) else None
    if isinstance(log, str) and log.strip() and "log" not in rest:
        blocks.append(tag("details", tag("summary", "log"), tag("pre", _cut(log, 8000))))
    versions = raw.get("versions")
    if isinstance(versions, dict):
        facts.append(("versions", ", ".join(f"{n} {v}" for n, v in versions.items())))
    return join(_facts(facts), *blocks)


def _difference(difference: Mapping[str, Any]) -> list[tuple[str, Any]]:
    output = difference.get("output", "?")
    name = f"output {output}"
    place = difference.get("first_index")
    if not isinstance(place, list):
        kind = difference.get("kind", "differs")
        said = f"{kind}: {difference.get('actual')}, expected {difference.get('expected')}"
        return [(name, said)]
    index = ", ".join(map(str, place))
    return [
        (name, f"{difference.get('count')} of {difference.get('total')} elements differ"),
        ("first at", f"[{index}]: {difference.get('actual')}, expected "
         f"{difference.get('expected')}"),
        ("largest error", f"{_words(difference.get('max_absolute_error'))} absolute, "
         f"{_words(difference.get('max_relative_error'))} relative"),
        ("tolerance", difference.get("tolerance", "none")),
    ]  # fmt: skip


def _ablation(ablation: Mapping[str, Any]) -> list[tuple[str, Any]]:
    cures = ablation.get("cures")
    runs = ablation.get("runs", "?")
    if isinstance(cures, list) and cures:
        said = f"{' + '.join(map(str, cures))} disabled ({runs} runs)"
        return [("cured by", tag("b", said))]
    if ablation.get("stable") is False:
        return [("cured by", "not known: run again as it was, it did not fail every time")]
    rest = "" if ablation.get("complete", True) else ", and not all were tried"
    uncovers = ablation.get("uncovers")
    more = f"; disabled passes uncover {uncovers}" if uncovers else ""
    return [("cured by", f"no pass that can be disabled ({runs} runs{rest}){more}")]


def _words(value: Any) -> str:
    match value:
        case dict():
            return ", ".join(f"{k.replace('_', ' ')} {_words(v)}" for k, v in value.items() if v)
        case list():
            return ", ".join(map(_words, value))
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.6g}"
        case _:
            return str(value)


def _what(defect: Defect) -> str:
    low = ", low" if defect.severity is Severity.LOW else ""
    return "/".join(NAMES[v] for v in defect.verdicts) + low


def _flat(options: Mapping[str, Any], stem: str = "") -> list[tuple[str, str]]:
    """Options that were given, nested ones with their path."""
    found: list[tuple[str, str]] = []
    for key, value in options.items():
        if isinstance(value, dict):
            found += _flat(value, f"{stem}{key} ")
        elif value not in (None, [], ""):
            found.append((f"{stem}{key}".replace("_", " "), _words(value)))
    return found


def _moment(iso: str) -> str:
    return iso.replace("T", " ").partition(".")[0].removesuffix("+00:00") + " UTC"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}… ({len(text) - length:,} more)"


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"
