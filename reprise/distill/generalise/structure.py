"""Dimensions of a pattern's form: its lines, their operands and results, their operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reprise.distill.asking import Answer, Asked
from reprise.distill.conditions import Distinct, Holds, Place
from reprise.distill.draft import ANYTHING, Draft, DraftNode, maker
from reprise.distill.generalise.questions import attributes_in, is_about_context, is_plain
from reprise.distill.generalise.specific import source_conditions
from reprise.distill.generalise.trying import Trying
from reprise.distill.sampling import Wish
from reprise.synth.vocabulary import LEFT_OUT
from reprise.uir.graph import Attribute


def lines(work: Trying) -> None:
    """Is each line needed? Sinks first: what they read becomes an output."""
    for line in reversed(work.draft.nodes):
        if len(work.draft.nodes) == 1:
            return
        dimension = f"line {line.name} ({'|'.join(line.ops)})"
        smaller = _smaller(work, line.name)
        asked = work.ask(
            [
                *work.draw(dimension, smaller, [()]),
                *work.draw(dimension, smaller, [()] * (work.effort.samples // 2), stray=0.2),
            ],
            stop=1,
        )
        yes = [a for a in asked if a.answer is Answer.YES]
        no = [a for a in asked if a.answer is Answer.NO]
        kept = bool(yes) and not no
        why = "all trigger without it" if kept else "without it, some do not trigger"
        if not yes and not no:
            why = "the target takes no program without it"
        work.record.add(dimension, "there", "not there", asked, kept, why)
        if kept:
            work.draft = smaller
        else:
            work.remember(f"without {'|'.join(line.ops)}", [], no)


def _smaller(work: Trying, name: str) -> Draft:
    """The draft without a line. What the line made and others read is a source now, as it is in
    the program; of what it alone read nothing is said any more."""
    line = work.draft.node(name)
    smaller = work.draft.without_node(name)
    read = {t for n in smaller.nodes for t in n.reads}
    freed = [t for t in smaller.sources if maker(t) == name]
    gone = {t for n in work.draft.nodes for t in n.reads} - read - {n.name for n in smaller.nodes}
    smaller = smaller.without(*(c for t in gone for c in smaller.about(t)))
    smaller = smaller.without(
        *(c for c in smaller.conditions if is_about_context(c, (*line.reads, *freed)))
    )
    return smaller.with_(*(c for t in freed for c in source_conditions(t, work.place)))


def results(work: Trying) -> None:
    """Results after the first: must they be asked for, or not?"""
    for line in work.draft.nodes:
        for condition in work.draft.about(line.name):
            if isinstance(condition, Holds) and condition.relation == "output":
                wish = Wish("result", line.name, int(condition.key), condition.negated)
                title = f"result {condition.key} of {line.name}"
                title += " asked for" if condition.negated else " not asked for"
                work.relax(title, [condition], [(wish,)] * max(2, work.effort.samples // 2))


def operands(work: Trying) -> None:
    """Operands that may be left out, or added."""
    for line in work.draft.nodes:
        if len(line.ops) == 1:
            _optional_operands(work, line)


def orders(work: Trying) -> None:
    """Do the first two operands of a line come in this order only?"""
    for line in work.draft.nodes:
        _order(work, line)


def splits(work: Trying) -> None:
    """Must a source that is read twice be the same tensor in both places?"""
    for tensor in work.draft.sources:
        _split(work, tensor)


def _split(work: Trying, tensor: str) -> None:
    """Must a source that is read twice be the same tensor in both places?"""
    uses = [
        (line.name, position)
        for line in work.draft.nodes
        for position, name in enumerate(line.operands)
        if name == tensor
    ]
    for number, (name, position) in enumerate(uses[1:], 2):
        line = work.draft.node(name)
        other = f"{tensor}{chr(ord('a') + number - 1)}"
        operands = list(line.operands)
        operands[position] = other
        relaxed = work.draft.with_node(replace(line, operands=tuple(operands)))
        place, work.place = work.place, _with_tensor(work.place, other, tensor)
        relaxed = relaxed.with_(*source_conditions(other, work.place))
        relaxed = relaxed.without(*(c for c in relaxed.conditions if is_about_context(c, [tensor])))
        title = f"{tensor} in line {name}: another tensor"
        wishes: list[Sequence[Wish]] = [()] * work.effort.samples
        distinct = Distinct(tensor, other)
        if not work.attempt(title, relaxed, wishes, distinct.holds, "the same", "any"):
            work.place = place


def _optional_operands(work: Trying, line: DraftNode) -> None:
    ports = work.sampling.signatures[line.ops[0]].plan.decl.params
    many = work.sampling.signatures[line.ops[0]].variadic
    for position, port in enumerate(ports):
        now = line.operands[position] if position < len(line.operands) else None
        if not port.optional or many:
            continue
        if now is not None and sum(now in n.reads for n in work.draft.nodes) > 1:
            continue
        if now is not None and maker(now) in {n.name for n in work.draft.nodes}:
            continue
        dimension = f"operand `{port.name}` of {line.name} {'left out' if now else 'given'}"
        operands = list(line.operands)
        operands += [None] * (position + 1 - len(operands))
        operands[position] = ANYTHING
        relaxed = work.draft.with_node(replace(line, operands=tuple(operands)))
        if now is not None:
            relaxed = relaxed.without(*(c for c in relaxed.conditions if now in c.names))
        wish = Wish("operand", line.name, position, None if now else f"o{position}")
        wishes = [(wish,)] * work.effort.samples
        if work.attempt(dimension, relaxed, wishes, None, "as it is", "either", is_plain):
            line = work.draft.node(line.name)


def _order(work: Trying, line: DraftNode) -> None:
    reads = [t for t in line.operands if t is not None and t != ANYTHING]
    if len(line.operands) < 2 or len(reads) < 2 or reads[0] == reads[1]:
        return
    if line.operands[:2] != tuple(reads[:2]):
        return
    dimension = f"operands of {line.name} in the other order"
    relaxed = work.draft.with_node(replace(line, unordered=True))
    wishes = [(Wish("swap", line.name, 0),)] * max(2, work.effort.samples // 2)
    work.attempt(dimension, relaxed, wishes, None, "this order", "any order")


def operators(work: Trying) -> None:
    """Operators that may stand in a line's place: of the same category or form."""
    for line in work.draft.nodes:
        if len(line.ops) != 1:
            continue
        op = line.ops[0]
        asked_for = {
            name for c in work.draft.conditions for of, name in attributes_in(c) if of == line.name
        }
        kin = _kin(work, op, line, asked_for)
        if not kin:
            continue
        dimension = f"operator of {line.name}"
        relaxed = work.draft.with_node(replace(line, ops=()))
        options: list[tuple[Attribute, Sequence[Wish]]] = [
            (other, (Wish("op", line.name, "", other),)) for other in kin
        ]
        taken, refused, asked = work.choose(dimension, relaxed, options)
        apart = [o for o in taken if _needs_no_more(work, line, str(o), asked)]
        taken = [o for o in taken if o not in apart]
        why = f"{op} only" if not taken else f"also {', '.join(map(str, taken))}"
        if apart:
            why += f"; {', '.join(map(str, apart))} triggers without the other lines"
        members = tuple(sorted({op, *map(str, taken)}))
        label = _category(work, members, {str(r) for r in refused})
        after = label or "|".join(members)
        work.record.add(dimension, op, after, asked, bool(taken), why)
        if taken:
            work.draft = work.draft.with_node(replace(line, ops=members, label=label))


def _needs_no_more(work: Trying, line: DraftNode, op: str, asked: list[Asked]) -> bool:
    """Whether another operator in a line's place triggers without some other line: then that is
    another pattern of the same defect."""
    for other in work.draft.nodes:
        if other.name == line.name:
            continue
        smaller = _smaller(work, other.name).with_node(replace(line, ops=(op,)))
        dimension = f"operator of {line.name}/{op} without {other.name}"
        wish = Wish("op", line.name, "", op)
        answers = work.ask(work.draw(dimension, smaller, [(wish,)] * 2))
        asked += answers
        if any(a.answer is Answer.YES for a in answers):
            return True
    return False


def _kin(work: Trying, op: str, line: DraftNode, attributes: set[str]) -> list[str]:
    """Operators that may do the same: of the same category first, then of the same form."""
    signatures = work.sampling.signatures
    mine = signatures[op]
    form = [(p.optional, p.variadic) for p in mine.plan.decl.params]
    found: list[tuple[int, str]] = []
    for name in signatures:
        other = signatures[name]
        if name == op or other.flags & LEFT_OUT or len(line.operands) > other.ports:
            continue
        if not attributes <= {a.name for a in other.plan.attributes}:
            continue
        if len(other.plan.decl.results) != len(mine.plan.decl.results):
            continue
        if other.category == mine.category:
            found.append((0, name))
        elif [(p.optional, p.variadic) for p in other.plan.decl.params] == form:
            found.append((1, name))
    return [name for _, name in sorted(found)][: work.effort.kin]


def _category(work: Trying, members: Sequence[str], refused: set[str]) -> str:
    """The category that the members are all of, as far as could be tried."""
    signatures = work.sampling.signatures
    names = {signatures[m].category for m in members}
    if len(names) != 1 or len(members) < 3:
        return ""
    category = names.pop()
    everyone = {n for n in signatures if signatures[n].category == category}
    return category if category and not everyone & refused else ""


def _with_tensor(place: Place, name: str, like: str) -> Place:
    """The place with another name for one of its tensors."""
    return Place(place.around, place.nodes, {**place.tensors, name: place.tensors[like]})
