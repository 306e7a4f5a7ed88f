"""What rules make of the facts: the Datalog of ``rules/mining/``, run over all files' sites.

The rules are a folder's, so a file more there is a template more. What this module adds to the
sites' facts is known beforehand: the extractor's names, the operators, a hardware description,
documents."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from reprise.cache import cache_folder
from reprise.data import data_path
from reprise.datalog import Database
from reprise.facts.hardware import facts_of_devices
from reprise.lang import ast, core
from reprise.lang.diagnostics import Span
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.mining.source.bounds import Beyond, collect
from reprise.mining.source.extractor import Extractor
from reprise.mining.source.facts import FileFacts, Row
from reprise.mining.source.refutable import decided
from reprise.mining.source.schemas import documented_attributes, installed_attributes

LEVELS = ("high", "medium", "low")
"""Of confidence."""


_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"')
_RELATIONS = {"equal": "==", "at_least": ">=", "at_most": "<="}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a site is. ``statement``: how it begins."""

    number: int
    kind: str
    file: str
    line: int
    pass_name: str
    statement: str


@dataclass(frozen=True)
class Found:
    """What one template gives at one site: ``asserted`` as (left, relation, right), or
    ``agreeing`` as (producer, consumer, what). ``elsewhere``: what is asserted, as text, of values
    that the site has not, so that no monitor can ask it there. ``reasons``: why ``confidence`` is
    not higher, and what else to know."""

    place: Place
    template: str
    klass: str
    asserted: tuple[tuple[str, str, str], ...]
    agreeing: tuple[tuple[str, str, str], ...]
    confidence: str
    agrees: tuple[str, ...]
    clashes: tuple[str, ...]
    elsewhere: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Unused:
    """A site that a template asks for and can make nothing of, and why."""

    place: Place
    template: str
    text: str
    why: str


@dataclass(frozen=True)
class Derived:
    """All that the rules give, in the order of places; ``sites`` by kind."""

    found: tuple[Found, ...]
    unused: tuple[Unused, ...]
    sites: Mapping[str, int]
    beyond: Beyond = Beyond()


@dataclass(frozen=True)
class Given:
    """What a hardware description and documents say, as facts, with the files that they are
    from."""

    facts: tuple[tuple[str, Row], ...] = ()


def given(hardware: Sequence[Path], docs: Sequence[Path]) -> Given:
    """Read ``.rules`` files of ``reprise mine hardware`` and ``reprise mine docs``. Raises
    RulesError."""
    facts: list[tuple[str, Row]] = []
    for path in hardware:
        rules = load_rules([path])
        facts += [
            ("hardware", (said.key, _plain(said.value), _where(said.span, rules.sources)))
            for said in facts_of_devices(rules)
            if said.span is not None
        ]
    documents = [load_rules([path]) for path in docs]
    for path, rules in zip(docs, documents, strict=True):
        facts += _documented(rules, path)
    facts += documented_attributes(documents)
    return Given(tuple(facts))


def _plain(value: core.Value) -> int | str:
    return value if isinstance(value, int) else str(value)


def _where(span: Span, sources: Mapping[str, str]) -> str:
    """What the comment beside a fact says it is from; else its line."""
    line = sources[span.file].splitlines()[span.line - 1]
    comment = line.partition("//")[2].partition(";")[0].strip()
    return comment or f"{Path(span.file).name}:{span.line}"


def _documented(rules: RuleSet, path: Path) -> Iterator[tuple[str, Row]]:
    for file in rules.files:
        if file.path not in rules.own:
            continue
        for decl in file.decls:
            if isinstance(decl, ast.ConstraintDecl):
                said = next((e.value for e in decl.meta if e.key.text == "from"), None)
                where = str(said or f"{path.name}:{decl.span.line}")
                for line in decl.lines:
                    for call in line.calls:
                        for op in call.ops:
                            yield "documented", (op.text, where)


def derive(
    files: Mapping[str, FileFacts], extractor: Extractor, known: Given, rules: Path | None = None
) -> Derived:
    """Run the rules of a folder (``rules/mining``) over the facts of all files.

    Raises RulesError if the rules are wrong.
    """
    loaded = load_rules(template_files(rules or data_path("rules/mining")), library=False)
    database = Database(loaded.program, cache=cache_folder() / "mine-plans", checked=True)
    database.commit(_facts(files, extractor, known))
    derived = _collect(database)
    database.save()
    return derived


def template_files(folder: Path) -> list[Path]:
    """The files of a folder that say something of sites: they import what declares their facts.
    Beside them lie signatures of operators, mined from documents, which say nothing of sites."""
    return [
        path
        for path in sorted(folder.glob("*.rules"))
        if re.search(r'^import "', path.read_text(encoding="utf-8"), re.MULTILINE)
    ]


def _facts(
    files: Mapping[str, FileFacts], extractor: Extractor, known: Given
) -> Iterator[tuple[str, Row]]:
    offset = 0
    spelled: set[str] = set()
    for path, facts in files.items():
        if facts.errors:
            yield "faulty", (path, facts.errors)
        for relation, rows in facts.rows.items():
            if relation == "occurs":
                yield from (("occurs", (name, path, line)) for name, line in rows)
                continue
            for row in rows:
                moved = (int(row[0]) + offset, *row[1:])
                if relation == "within":
                    moved = (moved[0], int(row[1]) + offset)
                elif relation == "argument_site":
                    moved = (*moved[:2], int(row[2]) + offset)
                elif relation == "captured" and row[1] in ("operator", "consumer"):
                    spelled.add(str(row[3]))
                yield relation, moved
                if relation == "site":
                    yield "place", (moved[0], f"{path}:{row[3]}")
        offset += facts.sites
    for group, names in extractor.keywords.items():
        for name in names:
            yield "keyword", (name, group)
    for name, meaning in extractor.device.items():
        yield "stands_for", (name, meaning)
        keys = re.findall(r"device\((\w+)\)", meaning)
        for key in keys:
            yield "speaks_of", (meaning, key)
        if keys and meaning == f"device({keys[0]})":
            yield "names_key", (meaning, keys[0])
    yield from _operators(spelled, extractor)
    yield from known.facts
    if extractor.keywords.get("converter_table") and all(r != "in_schema" for r, _ in known.facts):
        yield from installed_attributes()


def _operators(spelled: Iterable[str], extractor: Extractor) -> Iterator[tuple[str, Row]]:
    """Names of operators as compilers spell them, and ours: by the extractor's table, by ONNX's, or
    by a part of a dotted name (``relax.nn.conv2d``, ``aten.mm.default``)."""
    symbols = _symbols() if spelled else {}
    named: set[str] = set()
    for name in sorted(spelled):
        for candidate in _candidates(name, extractor.operators):
            if candidate in symbols:
                yield "operator", (name, candidate)
                named.add(candidate)
                break
    for name in sorted(named):
        decl = symbols[name]
        if decl.category is not None:
            yield "in_category", (name, decl.category.text)
        if len(decl.params) == 1:
            yield "reads_one", (name,)
        for position, param in enumerate(decl.params):
            if decl.results and param.type.dtype == decl.results[0][1].dtype:
                yield "keeps_dtype", (name, position)


def names_operator(text: str) -> bool:
    """Whether a name is an operator's, ONNX's or ours, also as a part of a dotted one."""
    return any(candidate in _symbols() for candidate in _candidates(text, {}))


def _candidates(name: str, operators: Mapping[str, str]) -> Iterator[str]:
    bare = name.strip("\"'")
    parts = [part for part in bare.split(".") if part]
    for written in (bare, *reversed(parts)):
        if written in operators:
            yield operators[written]
    onnx = _onnx_names()
    for part in reversed(parts):
        if part in onnx:
            yield onnx[part]
        yield part.lower()
        yield re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", part).lower()


@cache
def _symbols() -> dict[str, ast.OpDecl]:
    """Our operators."""
    return load_rules([data_path("rules/ops")]).ops


@cache
def _onnx_names() -> dict[str, str]:
    import tomllib

    table = tomllib.loads(data_path("rules/ops/spellings.toml").read_text(encoding="utf-8"))
    return {name: ours[0] for name, ours in table["onnx"].items() if len(ours) == 1}


def _collect(database: Database) -> Derived:
    places = _places(database)
    lost: list[Unused] = []
    levels: dict[tuple[int, str], str] = {}
    reasons: dict[tuple[int, str], list[str]] = defaultdict(list)
    for site, template, level, why in database.rows("doubt"):
        key = (int(site), str(template))
        reasons[key].append(str(why))
        worst = max(LEVELS.index(levels.get(key, "high")), LEVELS.index(str(level)))
        levels[key] = LEVELS[worst]
    cross = {name: _grouped(database.rows(name)) for name in ("agrees", "clashes")}
    asserted: dict[tuple[int, str, str], list[tuple[str, str, str]]] = defaultdict(list)
    elsewhere: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    rows = [(r, assertion(str(r[3]), str(r[4]), str(r[5]))) for r in database.rows("monitored")]
    empty = decided(said for _, said in rows)
    acting = {(row[0], row[1]): row[2] for row in database.rows("acts")}
    for (site, template, klass, left, relation, right), text in rows:
        if text in empty:
            lost.append(Unused(places[int(site)], str(template), text, "always true, or never"))
            continue
        if relation != "holds" and {left, right} & {"true", "false"}:  # a flag among the arguments
            lost.append(Unused(places[int(site)], str(template), text, "a boolean is no factor"))
            continue
        function = acting.get((site, left)) or acting.get((site, right))
        if function is not None:
            why = f"`{function}` may change something"
            lost.append(Unused(places[int(site)], str(template), text, why))
            continue
        where = (int(site), str(template), str(klass))
        if "tensor(" in _QUOTED.sub("", text):
            elsewhere[where].append(text)
        else:
            asserted[where].append((str(left), str(relation), str(right)))
    agreeing: dict[tuple[int, str, str], list[tuple[str, str, str]]] = defaultdict(list)
    for site, template, klass, producer, consumer, what in database.rows("constrained"):
        agreeing[int(site), str(template), str(klass)].append(
            (str(producer), str(consumer), str(what))
        )
    found = [
        Found(
            places[site],
            template,
            klass,
            tuple(asserted.get((site, template, klass), ())),
            tuple(agreeing.get((site, template, klass), ())),
            levels.get((site, template), "high"),
            cross["agrees"].get((site, template), ()),
            cross["clashes"].get((site, template), ()),
            tuple(elsewhere.get((site, template, klass), ())),
            tuple(sorted(reasons.get((site, template), ()))),
        )
        for site, template, klass in sorted({*asserted, *agreeing, *elsewhere})
    ]
    unused = lost + [
        Unused(places[int(site)], str(template), str(text), str(why))
        for site, template, text, why in database.rows("unused")
    ]
    kinds: dict[str, int] = defaultdict(int)
    for place in places.values():
        kinds[place.kind] += 1
    beyond = collect(database, places, levels, cross["agrees"], reasons)
    return Derived(tuple(found), tuple(unused), dict(sorted(kinds.items())), beyond)


def _places(database: Database) -> dict[int, Place]:
    passes = {row[0]: row[1] for row in database.rows("in_pass")}
    statements = {row[0]: row[1] for row in database.rows("statement")}
    return {
        int(s): Place(int(s), str(kind), str(file), int(line), str(passes[s]), str(statements[s]))
        for s, kind, file, line in database.rows("site")
    }


def _grouped(rows: Iterable[core.Row]) -> dict[tuple[int, str], tuple[str, ...]]:
    found: dict[tuple[int, str], tuple[str, ...]] = {}
    for site, template, where in rows:
        key = (int(site), str(template))
        found[key] = (*found.get(key, ()), str(where))
    return found


def assertion(left: str, relation: str, right: str) -> str:
    """A row of ``monitored`` as a condition."""
    match relation:
        case "holds":
            return left
        case "divisible":
            return f"{_operand(left, False)} % {_operand(right, True)} == 0"
    return f"{left} {_RELATIONS[relation]} {right}"


def _operand(expression: str, right: bool) -> str:
    """An operand of ``%``: in parentheses where it is a sum, or on the right a product."""
    depth, before = 0, ""
    for found in re.finditer(r'"(?:\\.|[^"\\])*"|[()\[\]]|[-+*/%]|\w+', expression):
        token = found[0]
        if token in "([":
            depth += 1
        elif token in ")]":
            depth -= 1
        elif (
            depth == 0
            and token in ("+-*/%" if right else "+-")
            and before not in ("", "+", "-", "*", "/", "%")
        ):
            return f"({expression})"
        before = token
    return expression
