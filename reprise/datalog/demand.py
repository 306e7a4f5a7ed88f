"""Programs that derive only what is asked for: the magic-set transformation, structure first.

In come a program and its *roots*, the relations whose rows are wanted; out comes a program that
derives the same rows for them. Of the other relations it derives only rows that some rule would
look at (Beeri & Ramakrishnan, *On the power of magic*, 1991). A graph grows by hundreds of nodes
for each place where a pattern's conditions matter, so what they need (how often a tensor is read,
what is constant, what lies downstream) costs nothing elsewhere.

How. The literals of a rule that base relations decide alone are its *structure*. A root's rule
becomes two: a hidden relation of the *places* where its structure occurs, and the rule itself,
which starts from them. A derived relation ``r`` that is always looked up with certain columns
known gets a hidden relation ``r$asked`` of the values that are looked up; its rules start from
those. Who asks: places, and whatever is asked for and has ``r`` in a rule. An aggregate's solutions
are restricted in the same way, to the groups that are asked for.

Why it is right. A row of ``r`` that is derived now was derived before, and one that was derived
before is derived now if it is asked for: by induction over strata, then over derivations, as a
negated atom or an aggregate is only evaluated where its answer was asked for. What is asked depends
on places, on base relations and on what is asked, always positively, so the result is stratified
if the program was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reprise.datalog.clauses import renamed
from reprise.lang.core import (
    Aggregate,
    Arith,
    Atom,
    Column,
    Compare,
    Const,
    Expr,
    Literal,
    Member,
    Program,
    Relation,
    Rule,
    Var,
    relations_in,
    variables,
)
from reprise.lang.safety import bound_by, group_variables, variable_types

Columns = tuple[int, ...]


def on_demand(program: Program, roots: Iterable[str]) -> Program:
    """A program with the same rows for ``roots``, and for other derived relations only those that
    matter. Names of new relations contain ``$``."""
    return _Demand(program.restricted_to(roots), frozenset(roots)).program()


def renamed_relations(program: Program, names: Mapping[str, str]) -> Program:
    """``program`` with other names for some of its relations."""

    def literal(part: Literal) -> Literal:
        match part:
            case Atom(relation):
                return replace(part, relation=names.get(relation, relation))
            case Aggregate(body=body):
                return replace(part, body=tuple(map(literal, body)))
            case _:
                return part

    def rule(old: Rule) -> Rule:
        head = replace(old.head, relation=names.get(old.head.relation, old.head.relation))
        return replace(old, head=head, body=tuple(map(literal, old.body)))

    relations = {
        names.get(name, name): replace(relation, name=names.get(name, name))
        for name, relation in program.relations.items()
    }
    return Program(relations, tuple(map(rule, program.rules)))


@dataclass(frozen=True, slots=True)
class _Context:
    """Literals that hang together by their variables: where a rule's look-ups get values from."""

    literals: tuple[Literal, ...]
    binds: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Body:
    """A rule's body: contexts made of what base relations (and ``start``) decide, and the rest."""

    contexts: tuple[_Context, ...]
    rest: tuple[Literal, ...]

    def best(self, wanted: Sequence[str]) -> _Context | None:
        """The context that binds most of some variables; of equals, the one that binds the earlier
        ones, then the first. None if no context binds any."""

        def worth(context: _Context) -> tuple[int, tuple[bool, ...]]:
            hits = tuple([name in context.binds for name in wanted])
            return sum(hits), hits

        best = max(self.contexts, key=worth, default=None)
        return best if best is not None and worth(best)[0] else None


@dataclass
class _Place:
    """A hidden relation of the places where a structure occurs, and the variables that its users
    want of it. Rules that differ in variables' names only share one."""

    name: str
    structure: tuple[Literal, ...]
    wanted: dict[str, None] = field(default_factory=dict)


class _Demand:
    """One transformation: ``asked`` says which columns of a relation are known at every look-up."""

    def __init__(self, program: Program, roots: frozenset[str]) -> None:
        self._given = program
        self._derived = program.derived()
        self._roots = roots
        self._relations: dict[str, Relation] = dict(program.relations)
        self._rules: dict[Rule, None] = {}
        self._places: dict[tuple[Literal, ...], _Place] = {}
        self._groups = 0
        self._bodies_of: dict[int, tuple[tuple[Atom, ...], tuple[_Body, ...]]] = {}
        self._asked = {
            name: tuple(range(program.relations[name].arity))
            for name in program.relations
            if name in self._derived and name not in roots
        }
        for rule in program.rules:  # arithmetic is no argument that can be looked up
            known = tuple(i for i, t in enumerate(rule.head.terms) if not isinstance(t, Arith))
            self._restrict(rule.head.relation, known)
        changed = True
        while changed:
            changed = False
            for rule in program.rules:
                changed |= self._settle(rule)

    def program(self) -> Program:
        """The transformed program."""
        for name, columns in self._asked.items():
            if columns:
                relation = self._given.relations[name]
                found = tuple(
                    Column(relation.columns[i].name, relation.columns[i].type) for i in columns
                )
                self._relations[f"{name}$asked"] = Relation(f"{name}$asked", found)
        for rule in self._given.rules:  # a place's columns depend on all who share it
            self._want_places(rule)
        for place in self._places.values():
            self._declare(place)
        for rule in self._given.rules:
            self._rewrite(rule)
        return Program(self._relations, tuple(self._rules))

    # --- which columns are known ---

    def _restrict(self, name: str, known: Columns) -> bool:
        before = self._asked.get(name, ())
        after = self._asked[name] = tuple(i for i in before if i in known)
        if not before:
            del self._asked[name]
        return after != before

    def _settle(self, rule: Rule) -> bool:
        """Drop columns that a look-up in ``rule`` does not know; say whether there were any."""
        changed = False
        for body in self._bodies(rule):
            for atom in body.rest:
                if isinstance(atom, Atom) and self._asked.get(atom.relation):
                    changed |= self._restrict(atom.relation, self._known(atom, body))
        return changed

    def _known(self, atom: Atom, body: _Body) -> Columns:
        """Of the columns that may be asked for, those that constants or one context give."""
        columns = self._asked[atom.relation]
        names = [t.name for i in columns if isinstance(t := atom.terms[i], Var)]
        context = body.best(names)
        binds = frozenset() if context is None else context.binds
        return tuple(
            i
            for i in columns
            if isinstance(t := atom.terms[i], Const) or (isinstance(t, Var) and t.name in binds)
        )

    # --- bodies ---

    def _start(self, rule: Rule) -> tuple[Atom, ...]:
        """The atom of what is asked of the rule's head, if it is derived on demand."""
        columns = self._asked.get(rule.head.relation, ())
        if not columns:
            return ()
        return (Atom(f"{rule.head.relation}$asked", tuple(rule.head.terms[i] for i in columns)),)

    def _bodies(self, rule: Rule) -> tuple[_Body, ...]:
        """The rule's body and its aggregates' bodies."""
        start = self._start(rule)
        known = self._bodies_of.get(id(rule))
        if known is not None and known[0] == start:
            return known[1]
        body = self._split(start, rule.body, variables(rule.head))
        inner = [self._inside(rule, x, body) for x in body.rest if isinstance(x, Aggregate)]
        self._bodies_of[id(rule)] = start, (body, *inner)
        return (body, *inner)

    def _inside(self, rule: Rule, aggregate: Aggregate, body: _Body) -> _Body:
        """An aggregate's body, after an atom (of any name) that knows its group."""
        group = self._group(rule, aggregate)
        known = (Atom("", tuple(map(Var, group))),) if self._knows(body, group) else ()
        return self._split(known, aggregate.body, (*group, *_value(aggregate)))

    @staticmethod
    def _group(rule: Rule, aggregate: Aggregate) -> list[str]:
        others = {v for x in rule.body if x is not aggregate for v in variables(x)}
        names = group_variables(aggregate, {*others, *variables(rule.head)})
        return [name for name in names if name != aggregate.result.name]

    @staticmethod
    def _knows(body: _Body, group: Sequence[str]) -> bool:
        """Whether one context gives all of an aggregate's group, so that it can be asked for."""
        best = body.best(group)
        return best is not None and best.binds.issuperset(group)

    def _split(
        self, start: tuple[Atom, ...], literals: Sequence[Literal], outside: Iterable[str]
    ) -> _Body:
        """Contexts, which are ``start`` and what base relations decide, and what is left."""
        atoms = [x for x in literals if self._is_base(x) and not x.negated]  # type: ignore[union-attr]
        taken = set(map(id, atoms))
        left = [x for x in literals if id(x) not in taken]
        uses = Counter(v for x in literals for v in set(variables(x)))
        uses.update(set(outside))
        bound = {v for x in literals if not isinstance(x, Compare) for v in _binding(x)}
        contexts = []
        for found in _connected([*start, *atoms]):
            binds = {v for x in found for v in variables(x)}
            grown = True
            while grown:
                grown = False
                for literal in list(left):
                    if self._belongs(literal, binds, uses, bound):
                        found.append(literal)
                        left.remove(literal)
                        if not isinstance(literal, Atom):
                            binds.update(variables(literal))
                        grown = True
            contexts.append(_Context(tuple(found), frozenset(binds)))
        return _Body(tuple(contexts), tuple(left))

    def _belongs(
        self, literal: Literal, binds: set[str], uses: Counter[str], bound: set[str]
    ) -> bool:
        """Whether a context that gives the variables in ``binds`` decides a literal, and decides it
        as the whole body does: a variable that is free in it must be free there, too, and what an
        ``==`` assigns must not be bound by anything that would compare it more strictly."""
        names = set(variables(literal))
        if names.isdisjoint(binds):
            return False
        match literal:
            case Atom(relation, _, negated):
                free = names - binds
                entity = self._is_base(literal) and self._relations[relation].entity
                return negated and entity and all(uses[name] == 1 for name in free)
            case Compare("=="):
                free = names - binds
                return not free or (free.isdisjoint(bound) and names <= bound_by([literal], binds))
            case Compare() | Member():
                return names <= binds
        return False

    def _is_base(self, literal: Literal) -> bool:
        return isinstance(literal, Atom) and literal.relation not in self._derived

    # --- rewriting ---

    def _needs_places(self, rule: Rule, body: _Body) -> bool:
        """Whether the rule of a root (or of what is derived in full) asks for anything."""
        return not self._start(rule) and any(self._asks(rule, x, body) for x in body.rest)

    def _asks(self, rule: Rule, literal: Literal, body: _Body) -> bool:
        if isinstance(literal, Aggregate):
            group = self._group(rule, literal)
            return self._knows(body, group) or any(map(self._asked.get, relations_in((literal,))))
        return isinstance(literal, Atom) and bool(self._asked.get(literal.relation))

    def _want_places(self, rule: Rule) -> None:
        body = self._body(rule)
        if self._needs_places(rule, body):
            rest = {v for x in body.rest for v in variables(x)} | {*variables(rule.head)}
            for context in body.contexts:
                names, structure = _canonical(context.literals)
                place = self._places.get(structure)
                if place is None:
                    name = f"{rule.head.relation}$place{len(self._places)}"
                    place = self._places[structure] = _Place(name, structure)
                for name, shared in names.items():
                    if name in rest and name in context.binds:
                        place.wanted[shared] = None

    def _body(self, rule: Rule) -> _Body:
        return self._bodies(rule)[0]

    def _declare(self, place: _Place) -> None:
        self._add(place.name, tuple(map(Var, place.wanted)), place.structure)

    def _add(self, name: str, terms: tuple[Expr, ...], body: tuple[Literal, ...]) -> None:
        """Add a rule for a hidden relation, and the relation, if it is new."""
        if name not in self._relations:
            probe = Rule(Atom("", ()), body)
            types = variable_types(probe, {**self._relations, "": Relation("", ())})
            columns = tuple(
                Column(f"c{i}", types[t.name] if isinstance(t, Var) else "any")
                for i, t in enumerate(terms)
            )
            self._relations[name] = Relation(name, columns)
        head = Atom(name, terms)
        if body != (head,):
            self._rules[Rule(head, body, name)] = None

    def _rewrite(self, rule: Rule) -> None:
        body = self._body(rule)
        start = self._start(rule)
        if not start and not self._needs_places(rule, body):
            self._rules[rule] = None
            return
        contexts = list(body.contexts)
        if not start:
            contexts = [self._at(context) for context in contexts]
        now = _Body(tuple(contexts), body.rest)
        rest = tuple(
            self._restricted(rule, x, now) if isinstance(x, Aggregate) else x for x in body.rest
        )
        for literal in body.rest:
            self._ask(literal, now)
        found = tuple(dict.fromkeys(x for context in contexts for x in context.literals))
        self._rules[replace(rule, body=(*found, *rest))] = None

    def _at(self, context: _Context) -> _Context:
        """A context as the rows of its place."""
        names, structure = _canonical(context.literals)
        place = self._places[structure]
        back = {shared: name for name, shared in names.items()}
        atom = Atom(place.name, tuple(Var(back[shared]) for shared in place.wanted))
        return _Context((atom,), frozenset(variables(atom)))

    def _ask(self, literal: Literal, body: _Body) -> None:
        """Have a context ask for what a look-up needs."""
        if not isinstance(literal, Atom):
            return
        columns = self._asked.get(literal.relation, ())
        if columns:
            terms = tuple(literal.terms[i] for i in columns)
            context = body.best([t.name for t in terms if isinstance(t, Var)])
            found = () if context is None else context.literals
            self._add(f"{literal.relation}$asked", terms, found)

    def _restricted(self, rule: Rule, aggregate: Aggregate, body: _Body) -> Aggregate:
        """An aggregate whose solutions are those of the groups that are asked for."""
        group = self._group(rule, aggregate)
        context = body.best(group)
        inner = aggregate.body
        if context is not None and self._knows(body, group):
            atom = self._asking(group, context, rule)
            inner = (atom, *inner)
            inside = self._split((atom,), aggregate.body, (*group, *_value(aggregate)))
        else:
            inside = self._split((), aggregate.body, (*group, *_value(aggregate)))
        for literal in inside.rest:
            self._ask(literal, inside)
        return replace(aggregate, body=inner)

    def _asking(self, group: Sequence[str], context: _Context, rule: Rule) -> Atom:
        """An atom of the groups that are asked for: one that is there, or a new one."""
        for literal in context.literals:
            hidden = isinstance(literal, Atom) and "$" in literal.relation
            if hidden and sorted(variables(literal)) == sorted(group):
                assert isinstance(literal, Atom)
                return literal
        self._groups += 1
        terms = tuple(map(Var, group))
        name = f"{rule.head.relation}$group{self._groups}"
        self._add(name, terms, context.literals)
        return Atom(name, terms)


def _binding(literal: Literal) -> Iterator[str]:
    """The variables to which a literal gives values of its own."""
    match literal:
        case Atom(negated=False) | Member(negated=False):
            yield from variables(literal)
        case Aggregate(result=result):
            yield result.name


def _value(aggregate: Aggregate) -> tuple[str, ...]:
    return () if aggregate.value is None else tuple(variables(aggregate.value))


def _connected(atoms: Sequence[Literal]) -> list[list[Literal]]:
    """Atoms in groups that share variables; those without any stand alone."""
    groups: list[tuple[set[str], list[Literal]]] = []
    for atom in atoms:
        names, members = set(variables(atom)), [atom]
        apart = []
        for group in groups:
            if group[0] & names:
                names |= group[0]
                members = [*group[1], *members]
            else:
                apart.append(group)
        groups = [*apart, (names, members)]
    order = {id(atom): i for i, atom in enumerate(atoms)}
    found = [sorted(members, key=lambda atom: order[id(atom)]) for _, members in groups]
    return sorted(found, key=lambda members: order[id(members[0])])


def _canonical(literals: tuple[Literal, ...]) -> tuple[dict[str, str], tuple[Literal, ...]]:
    """Literals with variables renamed in order of occurrence, and the new names by the old."""
    names: Mapping[str, None] = dict.fromkeys(v for x in literals for v in variables(x))
    shared = {name: f"_X{i}" if name[0] == "_" else f"X{i}" for i, name in enumerate(names)}
    change = {name: Var(new) for name, new in shared.items()}
    return shared, tuple(renamed(literal, change) for literal in literals)
