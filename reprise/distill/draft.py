"""A pattern that is being worked on: lines and conditions, each a value that can be dropped.

A :class:`Draft` is less than the rule language can say and more than a text: it can be matched
against a program natively and quickly, its conditions can be evaluated one by one, and
:meth:`Draft.text` writes it as a ``.rules`` pattern. What a draft and its text match is the same
(the tests compare the two). :func:`draft_of` makes the lines of a draft from a program;
:func:`conditions_of` lists what holds of a place, to choose from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from reprise.distill.conditions import (
    Among,
    Condition,
    Distinct,
    Divisible,
    Holds,
    Near,
    Number,
    Place,
    Related,
    Surroundings,
    Term,
    Within,
    holds_all,
    is_number,
    literal,
    same,
)
from reprise.lang.display import counted
from reprise.lang.format import format_text
from reprise.lang.symbols import TENSOR_FIELDS, TENSOR_LISTS
from reprise.uir.graph import Graph, Node, Role, Tensor
from reprise.uir.program import Program

ANYTHING = "_?"
"""An operand that may be any tensor, or be left out."""


@dataclass(frozen=True, slots=True)
class DraftNode:
    """A line: ``name = ops(operands)``.

    ``ops``: one of these operators, sorted; none of them: any operator. ``label``: the set or
    category that they are, printed in their place. ``operands``: names of tensors, None for one
    that is left out, :data:`ANYTHING`; with ``more``, further operands may follow; ``unordered``:
    the first two come in either order. ``name`` (without ``_``) is the name of the first result
    too; the second is called ``name_1``.
    """

    name: str
    ops: tuple[str, ...]
    operands: tuple[str | None, ...]
    label: str = ""
    more: bool = False
    unordered: bool = False

    def takes(self, op: str) -> bool:
        return not self.ops or op in self.ops

    @property
    def reads(self) -> tuple[str, ...]:
        """The names of the tensors that it reads."""
        return tuple(t for t in self.operands if t is not None and t != ANYTHING)


@dataclass(frozen=True, slots=True)
class Draft:
    """Lines in the order of data flow, and conditions in the order in which they are printed.
    ``meta``: pairs of key and value, as printed; ``doc``: lines of documentation."""

    nodes: tuple[DraftNode, ...]
    conditions: tuple[Condition, ...] = ()
    name: str = "draft"
    title: str = "a draft"
    meta: tuple[tuple[str, str], ...] = ()
    doc: tuple[str, ...] = ()

    @property
    def noun(self) -> str:
        """What it is about."""
        return "program"

    @property
    def parts(self) -> str:
        """What that is made of."""
        return "nodes"

    @property
    def left(self) -> str:
        """What there is still, for progress."""
        return (
            f"{counted(len(self.nodes), 'node')} and {counted(len(self.conditions), 'condition')}"
        )

    # --- changes -------------------------------------------------------------------------------

    def without(self, *dropped: Condition) -> Draft:
        """The draft without some conditions."""
        return replace(self, conditions=tuple(c for c in self.conditions if c not in dropped))

    def with_(self, *added: Condition) -> Draft:
        """The draft with some more conditions."""
        return replace(self, conditions=tuple(dict.fromkeys((*self.conditions, *added))))

    def exchanged(self, old: Condition, *new: Condition) -> Draft:
        """The draft with a condition replaced by others, at its place."""
        conditions: list[Condition] = []
        for condition in self.conditions:
            conditions += new if condition == old else (condition,)
        return replace(self, conditions=tuple(dict.fromkeys(conditions)))

    def with_node(self, node: DraftNode) -> Draft:
        """The draft with the line of that name replaced."""
        return replace(self, nodes=tuple(node if n.name == node.name else n for n in self.nodes))

    def without_node(self, name: str) -> Draft:
        """The draft without a line: what it made is any tensor then, and conditions that no other
        line gives a meaning to go with it."""
        nodes = tuple(n for n in self.nodes if n.name != name)
        lines = {n.name for n in nodes}
        read = {t for n in nodes for t in n.reads}
        kept = tuple(
            c
            for c in self.conditions
            if all(t in read or maker(t) in lines or not t for t in c.names)
            and _about_nodes(c) <= lines
        )
        return replace(self, nodes=nodes, conditions=kept)

    def node(self, name: str) -> DraftNode:
        return next(n for n in self.nodes if n.name == name)

    # --- what it is about ----------------------------------------------------------------------

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of all tensors, in the order of data flow."""
        names: dict[str, None] = {}
        for node in self.nodes:
            names |= dict.fromkeys((*node.reads, node.name))
        return tuple(names)

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the tensors that no line makes."""
        lines = {node.name for node in self.nodes}
        return tuple(t for t in self.tensors if maker(t) not in lines)

    def about(self, name: str) -> tuple[Condition, ...]:
        """The conditions that mention a node or tensor."""
        return tuple(c for c in self.conditions if name in c.names)

    # --- matching ------------------------------------------------------------------------------

    def places(self, graph: Graph | Surroundings) -> Iterator[Place]:
        """Where in a graph the lines occur and all conditions hold."""
        for place in self.occurrences(graph):
            if holds_all(self.conditions, place):
                yield place

    def matches(self, graph: Graph | Surroundings) -> bool:
        """Whether it matches anywhere."""
        return next(self.places(graph), None) is not None

    def occurrences(self, graph: Graph | Surroundings) -> Iterator[Place]:
        """Where in a graph the lines occur, whatever the conditions say."""
        around = graph if isinstance(graph, Surroundings) else Surroundings(graph)
        yield from _occurrences(self.nodes[::-1], around, {}, {})

    def place_at(self, graph: Graph | Surroundings, nodes: Mapping[str, int]) -> Place | None:
        """The place whose nodes have these ids (``Finding.nodes`` of a match); one where all
        conditions hold, if operands can be taken in several orders."""
        first = None
        for place in self.occurrences(graph):
            if place.ids == nodes:
                if holds_all(self.conditions, place):
                    return place
                first = first or place
        return first

    # --- text ----------------------------------------------------------------------------------

    def text(self, tests: str = "") -> str:
        """The pattern in the rule language, in its canonical layout, and ``tests``, if any."""
        inline, rest = self._divided()
        used = self._used(rest)
        lines = [f"/// {line}".rstrip() for line in self.doc]
        lines.append(f"pattern {self.name} {literal(self.title)} {{")
        lines += [f"    {key}: {value}" for key, value in self.meta]
        lines += [f"    {_line(node, used, inline.get(node.name, []))}" for node in self.nodes]
        lines += _clauses("where", [c for c in rest if not _is_context(c)])
        lines += _clauses("graph", [c for c in rest if _is_context(c)])
        lines.append("}")
        return format_text("\n".join(lines) + "\n" + tests)

    def _divided(self) -> tuple[dict[str, list[Condition]], list[Condition]]:
        """Conditions on attributes, by node, that are printed in its line; and the others."""
        inline: dict[str, list[Condition]] = {}
        rest: list[Condition] = []
        seen: set[tuple[str, str]] = set()
        for condition in self.conditions:
            named = _in_line(condition)
            if named is None or named in seen:
                rest.append(condition)
            else:
                seen.add(named)
                inline.setdefault(named[0], []).append(condition)
        return inline, rest

    def _used(self, rest: Sequence[Condition]) -> set[str]:
        """Names that must be written: of lines, and of tensors that are mentioned elsewhere."""
        used = {name for condition in rest for name in condition.names}
        lines = {node.name for node in self.nodes}
        reads = [t for node in self.nodes for t in node.reads]
        return used | lines | {t for t in reads if maker(t) in lines or reads.count(t) > 1}


def maker(tensor: str) -> str:
    """The name of the line that makes a tensor of this name, if any does."""
    return tensor.partition("_")[0]


def _about_nodes(condition: Condition) -> set[str]:
    """The names that a condition takes for nodes: whose attributes it reads."""
    terms: tuple[Term, ...] = ()
    match condition:
        case Holds(_, of, key):
            return {of} if key else set()
        case Related(left, _, right):
            terms = (left, right)
        case Within(term) | Among(term) | Divisible(term):
            terms = (term,)
        case _:
            pass
    named = {t.key.partition(".")[0] for t in terms if t.kind == "axis"}
    return named | {t.of for t in terms if t.kind in ("attr", "item", "len")}


def _in_line(condition: Condition) -> tuple[str, str] | None:
    """The node and attribute of a condition that can stand in the node's line."""
    match condition:
        case Within(Term("attr", of, key)):
            return of, key
        case Among(Term("attr", of, key), negated=False, label=""):
            return of, key
        case Holds("attr", of, key, False):
            return of, key
        case _:
            return None


def _argument(condition: Condition) -> str:
    match condition:
        case Within(term, low, high):
            if low is not None and high is not None and same(low, high):
                return f"{term.key}={literal(low)}"
            start = "-inf" if low is None else literal(low)
            return f"{term.key}=in {start}..{'inf' if high is None else literal(high)}"
        case Among(term, values):
            if len(values) == 1:
                return f"{term.key}={literal(values[0])}"
            return f"{term.key}=in {{{', '.join(map(literal, values))}}}"
        case Holds(_, _, key):
            return f"{key}=_"
        case _:
            raise ValueError(condition)


def _line(node: DraftNode, used: set[str], inline: Sequence[Condition]) -> str:
    op = node.label or "|".join(node.ops) or "any"
    arguments = list(map(_argument, inline))
    if node.more:
        arguments.append("...")
    orders = [node.operands]
    start, end = "(", ")"
    if node.unordered and len(node.operands) == 2 and not node.more:
        start, end = "{", "}"
    elif node.unordered:
        orders.append(_swapped(node.operands))
    calls = []
    for order in orders:
        operands = ["none" if t is None else t if t in {ANYTHING, *used} else "_" for t in order]
        calls.append(f"{op}{start}{', '.join([*operands, *arguments])}{end}")
    further = [int(t.partition("_")[2] or 0) for t in used if maker(t) == node.name]
    results = [node.name, *(f"{node.name}_{i}" for i in range(1, max(further, default=0) + 1))]
    return f"{', '.join(results)} = {' or '.join(calls)}"


def _is_context(condition: Condition) -> bool:
    match condition:
        case Near():
            return True
        case Holds(relation):
            return relation in ("graph_output", "output")
        case Within(Term(kind)):
            return kind in ("fanout", "opset")
        case _:
            return False


def _clauses(word: str, conditions: Iterable[Condition]) -> list[str]:
    """A clause for each thing that is spoken of."""
    groups: dict[str, list[str]] = {}
    for condition in conditions:
        groups.setdefault(min(condition.names), []).append(str(condition))
    return [f"    {word} {', '.join(group)}" for group in groups.values()]


def _occurrences(
    nodes: Sequence[DraftNode],
    around: Surroundings,
    bound: Mapping[str, Node],
    tensors: Mapping[str, Tensor],
) -> Iterator[Place]:
    """Ways to find ``nodes``, the last of a draft first, given what is found already."""
    if not nodes:
        yield Place(around, dict(reversed(list(bound.items()))), tensors)
        return
    line, *rest = nodes
    makers = {t.producer for name, t in tensors.items() if maker(name) == line.name}
    if len(makers) > 1:
        return
    candidates = [n for n in makers if n is not None] if makers else around.graph.nodes
    taken = {node.id for node in bound.values()}
    for node in candidates:
        if node.id in taken or not line.takes(node.op):
            continue
        for found in _bindings(line, node, tensors):
            yield from _occurrences(rest, around, {**bound, line.name: node}, found)


def _bindings(
    line: DraftNode, node: Node, tensors: Mapping[str, Tensor]
) -> Iterator[dict[str, Tensor]]:
    """Ways to give a line's names to a node's operands and results."""
    count = len(node.inputs)
    wanted = line.operands
    least = max((i + 1 for i, t in enumerate(wanted) if t not in (None, ANYTHING)), default=0)
    if count < least or (count > len(wanted) and not line.more):
        return
    orders: Iterable[tuple[str | None, ...]] = (wanted,)
    if line.unordered:
        orders = dict.fromkeys((wanted, _swapped(wanted)))
    for order in orders:
        found = dict(tensors)
        pairs: list[tuple[str | None, Tensor | None]] = [
            (name, node.inputs[i] if i < count else None) for i, name in enumerate(order)
        ]
        pairs += [
            (f"{line.name}_{i}" if i else line.name, t)
            for i, t in enumerate(node.outputs)
            if t is not None
        ]
        if all(_bind(found, name, tensor) for name, tensor in pairs):
            yield found


def _swapped(operands: tuple[str | None, ...]) -> tuple[str | None, ...]:
    return (*operands[1::-1], *operands[2:])


def _bind(found: dict[str, Tensor], name: str | None, tensor: Tensor | None) -> bool:
    if name is None:
        return tensor is None
    if name == ANYTHING:
        return True
    if tensor is None:
        return False
    return found.setdefault(name, tensor) is tensor


# --- drafts of programs --------------------------------------------------------------------------


def draft_of(program: Program, name: str = "draft") -> tuple[Draft, Place]:
    """A draft whose lines are all nodes of a program, without conditions; and the place."""
    graph = program.graph
    names: dict[int, str] = {}
    nodes: list[DraftNode] = []
    sources = 0
    for number, node in enumerate(graph.nodes, 1):
        operands: list[str | None] = []
        for tensor in node.inputs:
            if tensor is not None and tensor.id not in names:
                sources += 1
                names[tensor.id] = f"x{sources}"
            operands.append(None if tensor is None else names[tensor.id])
        for i, tensor in enumerate(node.outputs):
            if tensor is not None:
                names[tensor.id] = f"n{number}_{i}" if i else f"n{number}"
        # An operator by ONNX's own name may have as operands, in a model, what a program tells as
        # attributes: the pattern is to match both.
        more = "." in node.op
        nodes.append(DraftNode(f"n{number}", (node.op,), tuple(operands), more=more))
    draft = Draft(tuple(nodes), name=name)
    by_name = dict(zip((n.name for n in nodes), graph.nodes, strict=True))
    tensors = {names[t.id]: t for t in graph.tensors if t.id in names}
    return draft, Place(Surroundings(graph), by_name, tensors)


FIELDS = frozenset(TENSOR_FIELDS) | frozenset(TENSOR_LISTS)
"""Fields of tensors: attributes of such a name can be spoken of in a node's line only."""

POWERS_OF_TWO = tuple(1 << power for power in range(17))
"""The library's set of that name."""

CUTS = (0, 1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 1024)
"""Where ranges of extents and the like are offered to begin and end, besides the value itself."""


def conditions_of(place: Place, draft: Draft, *, weak: bool = True) -> list[Condition]:
    """Every condition that holds at a place, about what the draft names, sorted by text.

    With ``weak``, also what is less than the most that can be said: ranges, exclusions, relations
    between terms. These are what separates two programs that a draft matches. They are hundreds:
    a pattern has room for some ninety.
    """
    found: set[Condition] = set()
    for node in draft.nodes:
        found |= set(_of_attributes(node, place.nodes[node.name], place, weak))
    names = [t for t in draft.tensors if t in place.tensors]
    for name in names:
        found |= set(_of_tensor(name, place, weak))
    for left, right in combinations(names, 2) if weak else ():
        found |= set(_of_pair(left, right, place))
    opset = Term("opset").read(place)
    if isinstance(opset, int) and weak:
        found |= set(_ranges(Term("opset"), opset, (opset,)))
    return sorted((c for c in found if c.holds(place)), key=str)


def _ranges(term: Term, value: Number, cuts: Iterable[Number]) -> Iterator[Condition]:
    for cut in (*cuts, value):
        if isinstance(cut, int) == isinstance(value, int):
            if value >= cut:
                yield Within(term, cut, None)
            if value <= cut:
                yield Within(term, None, cut)
            if value != cut:
                yield Among(term, (cut,), negated=True)


def _of_attributes(node: DraftNode, at: Node, place: Place, weak: bool) -> Iterator[Condition]:
    whole: list[Term] = []
    for number in range(1, len(at.outputs) + 1):
        yield Holds("output", node.name, str(number))
        yield Holds("output", node.name, str(number), negated=True)
    for key, value in sorted(at.attributes.items()):
        term = Term("attr", node.name, key)
        yield Holds("attr", node.name, key)
        if isinstance(value, tuple):
            yield Among(term, (value,))
            yield Within(Term("len", node.name, key), len(value), len(value))
            yield Holds("identity", node.name, key)
            yield Holds("identity", node.name, key, negated=True)
            whole += [Term("item", node.name, key, i) for i in range(min(len(value), 8))]
        else:
            whole.append(term)
    for term in whole:
        item = term.read(place)
        assert item is not None
        yield Within(term, item, item) if is_number(item) else Among(term, (item,))
        if weak and is_number(item):
            cuts: tuple[Number, ...] = (-1, 0, 1, 2) if isinstance(item, int) else (0.0, 1.0)
            ranges = _ranges(term, item, cuts)
            yield from (c for c in ranges if term.key not in FIELDS or isinstance(c, Within))
    if not weak:
        return
    whole = [term for term in whole if term.key not in FIELDS]
    for left, right in combinations(whole, 2):
        yield from _comparisons(left, right, place)
    for tensor in node.reads[:1]:
        if "axis" in at.attributes:
            named = Term("axis", tensor, f"{node.name}.axis")
            size = named.read(place)
            if isinstance(size, int):
                yield from _ranges(named, size, CUTS)
    for tensor in node.reads[:2]:
        rank = place.tensors[tensor].type.rank or 0
        for term in whole:
            item = term.read(place)
            if isinstance(item, int) and not isinstance(item, bool):
                if "ax" in term.key:
                    yield Related(term, "==", Term("rank", tensor), item - rank)
                for axis in range(rank):
                    yield from _comparisons(term, Term("dim", tensor, "", axis), place)


def _comparisons(left: Term, right: Term, place: Place) -> Iterator[Condition]:
    """What can be said of two terms: by size, if they are numbers."""
    a, b = left.read(place), right.read(place)
    if is_number(a) and is_number(b):
        for op in ("==", "!=", "<", "<=", ">", ">="):
            yield Related(left, op, right)
    elif type(a) is type(b) and (left.kind == "dtype") == (right.kind == "dtype"):
        for op in ("==", "!="):
            yield Related(left, op, right)


def _of_tensor(name: str, place: Place, weak: bool) -> Iterator[Condition]:
    tensor, around = place.tensors[name], place.around
    dtype = tensor.type.dtype
    if dtype is not None:
        yield Among(Term("dtype", name), (dtype,))
    rank = tensor.type.rank
    sized = [Term("rank", name), Term("numel", name), Term("fanout", name)]
    sized += [Term("dim", name, "", axis) for axis in range(rank or 0)]
    if weak:
        sized += [Term("dim", name, "", axis - (rank or 0)) for axis in range(rank or 0)]
    for term in sized:
        size = term.read(place)
        if isinstance(size, int):
            yield Within(term, size, size)
            if weak:
                yield from _ranges(term, size, CUTS)
                if term.kind in ("dim", "numel"):
                    for by in (2, 3, 4, 8, 16):
                        yield Divisible(term, by)
                        yield Divisible(term, by, negated=True)
                    yield Among(term, POWERS_OF_TWO, False, "powers_of_two")
                    yield Among(term, POWERS_OF_TWO, True, "powers_of_two")
    relations = ["graph_output", "initializer", "constant", "derived_constant", "graph_input"]
    if tensor.role is Role.INITIALIZER:
        relations += ["has_nan", "has_inf", "has_negzero", "integral"]
        for kind in ("value", "min", "max"):
            value = Term(kind, name).read(place)
            if is_number(value):
                yield Within(Term(kind, name), value, value)
                if weak and kind != "value":
                    zero = 0 if isinstance(value, int) else 0.0
                    yield from _ranges(Term(kind, name), value, (zero, zero + 1))
            elif value is not None:
                yield Among(Term(kind, name), (value,))
    for relation in relations:
        yield Holds(relation, name)
        yield Holds(relation, name, negated=True)
    for where in ("user", "producer", "downstream", "upstream"):
        for op in sorted(around.near(where, tensor)):
            yield Near(where, name, (op,))


def _of_pair(left: str, right: str, place: Place) -> Iterator[Condition]:
    a, b = place.tensors[left].type, place.tensors[right].type
    yield Distinct(left, right)
    for kind in ("dtype", "rank", "numel"):
        yield from _comparisons(Term(kind, left), Term(kind, right), place)
    for op in ("==", "!="):
        yield Related(Term("shape", left), op, Term("shape", right))
    for axis in range(1, min(a.rank or 0, b.rank or 0) + 1):
        yield from _comparisons(Term("dim", left, "", -axis), Term("dim", right, "", -axis), place)
