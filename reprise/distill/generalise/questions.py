"""What conditions are about, and wishes that make what they are about something else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from reprise.distill.conditions import Condition, Distinct, Holds, Near, Place, Related, Term
from reprise.distill.sampling import Wish
from reprise.solve.sampling import DRAWN

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 16, 33)

RANKS = (0, 1, 2, 3, 4, 5)

ALL_DTYPES = (
    "float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip

Accept = Callable[[Place], bool]
Learn = Callable[[Condition], bool]


def other_wishes(term: Term) -> list[tuple[Wish, ...]]:
    """Wishes that may make a term something else."""
    match term.kind:
        case "dtype":
            return [(Wish("dtype", term.of, "", dtype),) for dtype in ALL_DTYPES]
        case "rank":
            return [(Wish("rank", term.of, "", rank),) for rank in RANKS]
        case "dim":
            return [(Wish("dim", term.of, term.index, extent),) for extent in (0, *EXTENTS)]
        case "numel":
            return [(Wish("dim", term.of, axis, extent),) for axis in range(4) for extent in (0, 1)]
        case "attr" | "item" | "len":
            return [(Wish("attr", term.of, term.key, DRAWN),)] * 6
        case _:
            return [()] * 6


def violates(condition: Condition) -> Accept:
    """Accepts places of which a condition does not hold."""
    return lambda place: not condition.holds(place)


def mentions(term: Term) -> Callable[[Condition], bool]:
    """Learns conditions about one term."""
    return lambda condition: term in terms_of(condition)


def is_extent_of(tensor: str) -> Learn:
    """Learns conditions about a tensor's extents."""
    return lambda condition: any(
        t.kind in ("dim", "axis") and t.of == tensor for t in terms_of(condition)
    )


def is_near(tensor: str) -> Learn:
    """Learns conditions about what reads or makes a tensor."""
    return lambda condition: isinstance(condition, Near) and condition.of == tensor


def is_about_values_of(tensor: str) -> Callable[[Condition], bool]:
    """Learns conditions about what a tensor holds."""
    return lambda condition: is_about_values(condition) and tensor in condition.names


def is_plain(condition: Condition) -> bool:
    """Whether it is about single tensors and attributes, not about what is around them."""
    return not isinstance(condition, Near | Distinct | Related)


def terms_of(condition: Condition) -> set[Term]:
    """The terms that a condition is about."""
    match condition:
        case Related(left, _, right):
            return {left, right}
        case Holds() | Near() | Distinct():
            return set()
        case _:
            return {condition.term}


def is_about_types(condition: Condition) -> bool:
    """Whether it is about element types, shapes or attributes, which signatures relate."""
    if isinstance(condition, Holds) and condition.relation == "output":
        return False
    kinds = {t.kind for t in terms_of(condition)}
    return bool(kinds & {"dtype", "rank", "dim", "axis", "numel", "attr", "item", "len"}) or (
        isinstance(condition, Holds) and bool(condition.key)
    )


def is_rank_of(condition: Condition, tensors: Collection[str]) -> bool:
    """Whether it is about the rank of one of some tensors."""
    return any(t.kind == "rank" and t.of in tensors for t in terms_of(condition))


def is_about_values(condition: Condition) -> bool:
    """Whether it is about what a tensor holds."""
    if isinstance(condition, Holds):
        return condition.relation in ("has_nan", "has_inf", "has_negzero", "integral")
    return bool({t.kind for t in terms_of(condition)} & {"value", "min", "max", "at"})


def is_about_role(condition: Condition) -> bool:
    """Whether it is about where a tensor comes from."""
    return isinstance(condition, Holds) and condition.relation in (
        "initializer", "constant", "derived_constant", "graph_input", "varies",
    )  # fmt: skip


def is_about_context(condition: Condition, tensors: Iterable[str]) -> bool:
    """Whether it is about who reads one of some tensors."""
    if not condition.names & set(tensors):
        return False
    if isinstance(condition, Holds):
        return condition.relation == "graph_output"
    return any(t.kind == "fanout" for t in terms_of(condition))


def attribute_of(condition: Condition) -> tuple[str, str] | None:
    """The one attribute that a condition is about."""
    found = attributes_in(condition)
    return next(iter(found)) if len(found) == 1 else None


def attributes_in(condition: Condition) -> set[tuple[str, str]]:
    """The attributes, each as its line and name, that a condition is about."""
    if isinstance(condition, Holds):
        is_one = condition.relation in ("attr", "identity")
        return {(condition.of, condition.key)} if is_one else set()
    found = {(t.of, t.key) for t in terms_of(condition) if t.kind in ("attr", "item", "len")}
    named = (t.key.partition(".") for t in terms_of(condition) if t.kind == "axis")
    return found | {(node, attribute) for node, _, attribute in named}
