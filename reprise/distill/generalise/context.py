"""Dimensions of what is around a pattern: the opset, outputs, readers, where sources come from."""

from __future__ import annotations

from collections.abc import Sequence

from reprise.distill.asking import Answer
from reprise.distill.conditions import Condition, Holds, Near, Term, Within, is_number
from reprise.distill.generalise.questions import (
    is_about_role,
    is_about_values,
    is_about_values_of,
    is_near,
    mentions,
    terms_of,
)
from reprise.distill.generalise.trying import Trying
from reprise.distill.sampling import ROLES, Wish
from reprise.synth.witness import OPSETS
from reprise.uir.graph import Attribute, Role


def opset(work: Trying) -> None:
    """The version of the operator set that the program was written for."""
    said = [c for c in work.draft.conditions if getattr(c, "term", None) == Term("opset")]
    if said:
        now = work.place.graph.opsets.get("", OPSETS[0])
        wishes = [(Wish("opset", "", "", v),) for v in OPSETS if v != now]
        work.relax("opset", said, wishes, learn=mentions(Term("opset")))


def context(work: Trying) -> None:
    """Outputs, and readers besides the lines."""
    n = max(2, work.effort.samples // 2)
    for tensor in work.draft.tensors:
        for condition in work.draft.about(tensor):
            if isinstance(condition, Holds) and condition.relation == "graph_output":
                wish = Wish("output", tensor, "", True) if condition.negated else None
                wish = wish or Wish("reader", tensor, "", True)
                title = "also an output" if condition.negated else "not an output"
                fan = Within(Term("fanout", tensor), 0, 0)
                name = f"{tensor} {title}"
                work.relax(name, [condition, fan], [(wish,)] * n, learn=is_near(tensor))
            elif terms_of(condition) == {Term("fanout", tensor)}:
                title = f"{tensor} read once more"
                wishes = [(Wish("reader", tensor, "", True),)] * n
                kept = condition not in work.draft.conditions or work.relax(
                    title, [condition], wishes
                )
                if not kept and work.record.experiments[-1].count(Answer.YES):
                    _readers(work, tensor, condition)


def _readers(work: Trying, tensor: str, condition: Condition) -> None:
    """Some readers besides the lines do no harm, others do: which? Those that do are mostly
    rewritten together with a line (two equal nodes become one)."""
    ops = list(work.sampling.unary(work.place.tensors[tensor].type))
    lines = {n.ops[0] for n in work.draft.nodes if n.ops and tensor in n.reads}
    few = max(4, work.effort.kin // 4)
    chosen = sorted({*ops[:: max(1, len(ops) // few)], *(lines & set(ops))})
    dimension = f"operators that read {tensor} besides"
    relaxed = work.draft.without(condition)
    options: list[tuple[Attribute, Sequence[Wish]]] = [
        (op, (Wish("reader", tensor, "", op),)) for op in chosen
    ]
    taken, refused, asked = work.choose(dimension, relaxed, options)
    kept = len(taken) >= 2 * len(refused)
    why = f"{len(taken)} of {len(taken) + len(refused)} do no harm"
    if refused:
        why += f", but {', '.join(map(str, refused))}"
    # a condition on users cannot tell a second node from the line's own
    harmful = tuple(sorted(str(op) for op in refused if op not in lines))
    after = Near("user", tensor, harmful, negated=True)
    said = str(after) if harmful else "anything"
    work.record.add(dimension, str(condition), said, asked, kept, why)
    if kept:
        work.draft = relaxed.with_(after) if harmful else relaxed
        work.record.reasons[after] = f"{dimension}: {why}"


def values(work: Trying) -> None:
    """What stored sources hold."""
    for tensor in work.draft.sources:
        said = [c for c in work.draft.about(tensor) if is_about_values(c)]
        if not said:
            continue
        tries: list[Attribute] = ["drawn", "drawn", "special", "drawn"]
        tries += [0.0, 1.0, -1.0, 2.0, 0.5, "special"]
        now = Term("value", tensor).read(work.place)
        if is_number(now):
            tries += [float(now) + 1, float(now) / 2, -float(now)]
        work.relax(
            f"values of {tensor}",
            said,
            [(Wish("values", tensor, "", v), Wish("role", tensor, "", "stored")) for v in tries],
            learn=is_about_values_of(tensor),
        )


def roles(work: Trying) -> None:
    """Input, stored, or computed: one set for each source."""
    for tensor in work.draft.sources:
        said = [c for c in work.draft.about(tensor) if is_about_role(c)]
        if not said or any(is_about_values(c) for c in work.draft.about(tensor)):
            continue
        dimension = f"where {tensor} comes from"
        relaxed = work.draft.without(*said)
        now = "stored" if work.place.tensors[tensor].role is Role.INITIALIZER else "input"
        options: list[tuple[Attribute, Sequence[Wish]]] = [
            (role, (Wish("role", tensor, "", role),)) for role in ROLES if role != now
        ]
        taken, refused, asked = work.choose(dimension, relaxed, options)
        new = _role_conditions(tensor, {now, *map(str, taken)}, {str(r) for r in refused})
        after = ", ".join(map(str, new)) or "anything"
        before = ", ".join(map(str, said))
        kept = bool(taken) or set(new) != set(said)
        why = f"triggers if it is {', '.join([now, *map(str, taken)])}"
        if refused:
            why += f"; not if it is {', '.join(map(str, refused))}"
        work.record.add(dimension, before, after, asked, kept, why)
        work.draft = relaxed.with_(*new)
        for condition in new:
            work.record.reasons[condition] = why


def _role_conditions(tensor: str, taken: set[str], refused: set[str]) -> list[Condition]:
    """What says that a tensor comes from one of ``taken`` and from none of ``refused``."""
    choices: list[tuple[Condition | None, set[str]]] = [
        (None, set(ROLES)),
        (Holds("constant", tensor, negated=True), {"input", "computed"}),
        (Holds("constant", tensor), {"stored", "folded"}),
        (Holds("initializer", tensor), {"stored"}),
        (Holds("initializer", tensor, negated=True), {"input", "computed", "folded"}),
        (Holds("graph_input", tensor), {"input"}),
        (Holds("graph_input", tensor, negated=True), {"stored", "computed", "folded"}),
        (Holds("derived_constant", tensor, negated=True), {"input", "computed", "stored"}),
    ]
    for condition, allows in choices:
        if taken <= allows and not refused & allows:
            return [] if condition is None else [condition]
    first = Holds("graph_input", tensor) if "input" in taken else Holds("initializer", tensor)
    return [first]
