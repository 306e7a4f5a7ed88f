"""Other engines on the growing-graph workload, each behind the same four methods.

``add`` brings one node's facts and leaves every match that they complete derived; ``matches``
counts all matches. What an engine lacks its adapter does by hand, in its favour: egglog gets
``isconst`` from Python, and pyDatalog is asked for matches at the newest node only, so that it
misses those that a node completes further up.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import Protocol

from benchmarks.workload import CLASSES, Fact, Pattern, program
from reprise.datalog import Database
from reprise.lang.core import Atom, Compare, Const, Expr, Literal, Member, Program, Rule, Var


class Competitor(Protocol):
    """An engine with the patterns loaded."""

    complete: bool

    def add(self, facts: list[Fact]) -> None: ...

    def matches(self) -> int: ...


class Ours:
    """The incremental database, one accepted proposal per node."""

    complete = True

    def __init__(self, patterns: list[Pattern]) -> None:
        self.database = Database(program(patterns))
        self._names = [pattern.name for pattern in patterns]

    def add(self, facts: list[Fact]) -> None:
        with self.database.propose(facts) as proposal:
            proposal.accept()

    def matches(self) -> int:
        return sum(self.database.count(name) for name in self._names)


class Clingo:
    """Grounding and solving from scratch after each node."""

    complete = True

    def __init__(self, patterns: list[Pattern]) -> None:
        from reprise.datalog.clingo_engine import ClingoEngine

        self._engine = ClingoEngine(program(patterns))
        self._names = [pattern.name for pattern in patterns]

    def add(self, facts: list[Fact]) -> None:
        self._engine.commit(facts)
        self._engine.count("isconst")

    def matches(self) -> int:
        return sum(self._engine.count(name) for name in self._names)


class PyDatalog:
    """Top-down: every pattern is asked for with its sink bound to the newest node."""

    complete = False

    def __init__(self, patterns: list[Pattern]) -> None:
        from reprise.datalog.pydatalog_engine import PyDatalogEngine

        self._engine = PyDatalogEngine(program(patterns))
        self._patterns = patterns
        self._found = 0

    def add(self, facts: list[Fact]) -> None:
        self._engine.commit(facts)
        newest = facts[0][1][0]
        for pattern in self._patterns:
            free = [None] * (len(pattern.nodes) - 1)
            self._found += len(self._engine.ask(pattern.name, *free, newest))

    def matches(self) -> int:
        return self._found


class Egglog:
    """Saturation after each node; facts and rules in egglog's own syntax."""

    complete = True

    def __init__(self, patterns: list[Pattern]) -> None:
        from egglog.bindings import EGraph

        self._graph = EGraph()
        self._names = [pattern.name for pattern in patterns]
        self._nonconst: set[object] = set()
        self._run(_egglog_program(program(patterns)))

    def _run(self, text: str) -> list[object]:
        return list(self._graph.run_program(*self._graph.parse_program(text)))

    def add(self, facts: list[Fact]) -> None:
        newest = facts[0][1][0]
        if facts[0][1][1] == "input" or any(
            name == "edge" and row[0] in self._nonconst for name, row in facts
        ):
            self._nonconst.add(newest)
        else:
            facts = [*facts, ("isconst", (newest,))]
        lines = [f"({name} {' '.join(_egglog_term(Const(v)) for v in row)})" for name, row in facts]
        self._run("\n".join([*lines, "(run-schedule (saturate (run)))"]))

    def matches(self) -> int:
        outputs = self._run("\n".join(f"(print-size {name})" for name in self._names))
        return sum(int(re.sub(r"\D", "", str(output))) for output in outputs)


def _egglog_program(core: Program) -> str:
    lines = []
    for relation in core.relations.values():
        sorts = ["String" if column.type == "sym" else "i64" for column in relation.columns]
        lines.append(f"(relation {relation.name} ({' '.join(sorts)}))")
    for rule in core.rules:
        if rule.head.relation != "isconst":
            lines += _egglog_rules(rule)
    return "\n".join(lines)


def _egglog_rules(rule: Rule) -> list[str]:
    """One rule per combination of values of its ``in`` literals."""
    for i, literal in enumerate(rule.body):
        if isinstance(literal, Member):
            rest = (*rule.body[:i], *rule.body[i + 1 :])
            return [
                text
                for value in literal.values
                for text in _egglog_rules(Rule(rule.head, (*rest, _equal(literal, value))))
            ]
    body = " ".join(_egglog_literal(literal) for literal in rule.body)
    return [f"(rule ({body}) (({_egglog_atom(rule.head)})))"]


def _equal(member: Member, value: object) -> Compare:
    assert isinstance(value, str)
    return Compare("==", member.expr, Const(value))


def _egglog_literal(literal: Literal) -> str:
    if isinstance(literal, Atom):
        return f"({_egglog_atom(literal)})"
    assert isinstance(literal, Compare)
    op = {"==": "="}.get(literal.op, literal.op)
    return f"({op} {_egglog_term(literal.left)} {_egglog_term(literal.right)})"


def _egglog_atom(atom: Atom) -> str:
    return " ".join([atom.relation, *map(_egglog_term, atom.terms)])


def _egglog_term(term: Expr) -> str:
    if isinstance(term, Var):
        return term.name.replace("_", "any")
    assert isinstance(term, Const)
    return f'"{term.value}"' if isinstance(term.value, str) else str(term.value)


class Sqlite:
    """What one would write without an engine: SQL, and by hand which query can have new answers.

    Patterns are looked up by their sink's operator; ``hasdown`` and ``nonconst`` are propagated
    in Python, with one query per step.
    """

    complete = True

    def __init__(self, patterns: list[Pattern]) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.executescript(_SCHEMA)
        self._by_sink: dict[str, list[str]] = {}
        self._by_class: dict[str, list[str]] = {}
        self._by_presence: dict[str, list[str]] = {}
        self._present: set[str] = set()
        self._classes: dict[str, list[str]] = {}
        for name, members in CLASSES.items():
            for op in members:
                self._classes.setdefault(op, []).append(name)
        for pattern in patterns:
            query = _sql(pattern)
            self._by_sink.setdefault(pattern.nodes[-1], []).append(query)
            if pattern.downstream:
                self._by_class.setdefault(pattern.downstream, []).append(query)
            if pattern.present:
                self._by_presence.setdefault(pattern.present, []).append(query)

    def add(self, facts: list[Fact]) -> None:
        execute = self._db.execute
        for name, row in facts:
            execute(f"insert into {name} values ({','.join('?' * len(row))})", row)
        newest, op = facts[0][1]
        if op == "input":
            execute("insert into nonconst values (?)", (newest,))
        else:
            execute(
                "insert or ignore into nonconst select ? from edge join nonconst on src = v "
                "where dst = ?",
                (newest, newest),
            )
        execute(
            "insert into isconst select ? where not exists (select 1 from nonconst where v = ?)",
            (newest, newest),
        )
        for query in self._by_sink.get(str(op), ()):
            execute(query, {"sink": newest})
        for name in self._classes.get(str(op), ()):
            self._spread(newest, name)
            if name not in self._present:
                self._present.add(name)
                execute("insert into present values (?)", (name,))
                for query in self._by_presence.get(name, ()):
                    execute(query.replace("= :sink", "is not null"))

    def _spread(self, node: object, name: str) -> None:
        """Mark everything upstream of ``node``, and look for patterns that this completes."""
        execute = self._db.execute
        pending = [node]
        while pending:
            below = pending.pop()
            for (source,) in execute("select src from edge where dst = ?", (below,)).fetchall():
                if execute("insert or ignore into hasdown values (?, ?)", (source, name)).rowcount:
                    pending.append(source)
                    for query in self._by_class.get(name, ()):
                        execute(query, {"sink": source})

    def matches(self) -> int:
        count: int = self._db.execute("select count(*) from matches").fetchone()[0]
        return count


_SCHEMA = """
create table node(v integer primary key, op text);
create table edge(src int, dst int, pos int, primary key(dst, pos)) without rowid;
create table attr(v int, name text, value, primary key(v, name)) without rowid;
create table dim(v int, axis int, extent int, primary key(v, axis)) without rowid;
create table dtype(v integer primary key, d text);
create table rank(v integer primary key, r int);
create table numel(v integer primary key, n int);
create table nonconst(v integer primary key);
create table isconst(v integer primary key);
create table hasdown(v int, class text, primary key(v, class)) without rowid;
create table present(class text primary key);
create table matches(pattern text, place text, primary key(pattern, place)) without rowid;
create index by_op on node(op);
"""


def _sql(pattern: Pattern) -> str:
    """Insert the pattern's matches whose sink is ``:sink``; joined from the sink upwards."""
    sink = len(pattern.nodes) - 1
    tables = [f"node n{i}" for i in range(sink, -1, -1)]
    where = [f"n{sink}.v = :sink", *(f"n{i}.op = '{op}'" for i, op in enumerate(pattern.nodes))]
    for k, (a, b, pos) in enumerate(pattern.edges):
        tables.append(f"edge e{k}")
        where += [f"e{k}.src = n{a}.v", f"e{k}.dst = n{b}.v", f"e{k}.pos = {pos}"]
    for k, (v, name, value) in enumerate(pattern.attributes):
        tables.append(f"attr a{k}")
        where += [f"a{k}.v = n{v}.v", f"a{k}.name = '{name}'", f"a{k}.value = {value}"]
    for k, (a, b) in enumerate(pattern.equal):
        tables += [f"attr p{k}", f"attr q{k}"]
        where += [f"p{k}.v = n{a}.v", f"q{k}.v = n{b}.v", f"p{k}.value = q{k}.value"]
        where += [f"p{k}.name = 'axis'", f"q{k}.name = 'axis'"]
    for k, (v, least) in enumerate(pattern.large):
        tables.append(f"numel l{k}")
        where += [f"l{k}.v = n{v}.v", f"l{k}.n >= {least}"]
    if pattern.downstream:
        tables.append("hasdown h")
        where += [f"h.v = n{sink}.v", f"h.class = '{pattern.downstream}'"]
    if pattern.present:
        tables.append("present r")
        where.append(f"r.class = '{pattern.present}'")
    if pattern.constant >= 0:
        tables += ["edge c", "isconst k"]
        where += [f"c.dst = n{pattern.constant}.v", "c.pos = 0", "k.v = c.src"]
    place = "||','||".join(f"n{i}.v" for i in range(len(pattern.nodes)))
    return (
        f"insert or ignore into matches select '{pattern.name}', {place} "
        f"from {', '.join(tables)} where {' and '.join(where)}"
    )


COMPETITORS: dict[str, Callable[[list[Pattern]], Competitor]] = {
    "reprise": Ours,
    "sqlite": Sqlite,
    "egglog": Egglog,
    "clingo": Clingo,
    "pyDatalog": PyDatalog,
}
