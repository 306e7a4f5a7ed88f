"""From accepted applications to a hypothesis, and from a hypothesis to a better one.

First everything is taken over that held in every accepted application: ranks, what attributes may
be, equations between extents. What is left too weak by that shows when applications are drawn from
the signature itself: where ONNX refuses some, the condition that tells the accepted ones best from
the refused ones is added (or the attribute that spoils them left out), and drawn again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from reprise.mining.signatures.hypothesis import (
    MOST_RANK,
    Condition,
    Domain,
    Hypothesis,
    Layout,
    Term,
    Values,
    spelled,
    variable,
)
from reprise.mining.signatures.reading import Raw, RawAttribute
from reprise.mining.signatures.search import Found
from reprise.mining.signatures.trial import ORDINARY, Oracle, Trial
from reprise.uir.graph import TensorType

_LETTERS = "NMKPQRSUVWYZABCDEFGHIJLO"
_PART = 0.05
"""What share of the applications an optional operand must occur in to be learned from."""
_LEAST = 8
"""So many applications must agree before something is believed of all."""


def first_hypothesis(raw: Raw, found: Found, oracle: Oracle) -> Hypothesis:
    """What held in all accepted applications."""
    made = Hypothesis(raw, tied=found.tied)
    accepted = found.accepted
    letters = _names(raw)
    ranks: list[Condition] = []
    for i, operand in enumerate(raw.operands):
        shapes = [t.shapes[i] for t in accepted]
        present = [s for s in shapes if s is not None]
        pairs = [(t, v) for t in accepted if (v := t.attribute(operand.name)) is not None]
        if operand.optional and len(pairs) > max(len(present), _PART * len(accepted)):
            _store(made, operand.name, pairs, found, required=False)
        elif operand.name in found.stored:
            _store(made, operand.name, pairs, found, required=True)
        elif present and (not operand.optional or len(present) >= _PART * len(accepted)):
            ranks += _lay_out(made, i, [len(s) for s in present], letters)
        elif operand.optional:
            made.left_out[operand.name] = "too few applications with it were accepted"
    for attribute in raw.attributes:
        _attribute(made, attribute, accepted, found, oracle)
    made.conditions = ranks
    known = [values for t in accepted if (values := made.values(t)) is not None]
    made.conditions += equations(made, known)
    made.kinds = _kinds(raw, made, accepted, oracle)
    return made


def _names(raw: Raw) -> Iterator[str]:
    taken = {*raw.dtypes, *(variable(a.name) for a in raw.attributes)}
    taken |= {variable(o.name) for o in raw.operands}
    yield from (c for c in _LETTERS if c not in taken)
    yield from (f"{c}{n}" for n in range(2, 9) for c in _LETTERS)


def _lay_out(
    made: Hypothesis, operand: int, ranks: Sequence[int], letters: Iterator[str]
) -> Iterator[Condition]:
    """Name the operand's extents; yields what its rank must be."""
    counts = {rank: ranks.count(rank) for rank in sorted(set(ranks))}
    if len(counts) == 1:
        made.layouts[operand] = Layout(tuple(next(letters) for _ in range(ranks[0])), False)
        return
    name = next(letters)
    made.layouts[operand] = Layout((name,), True)
    low, high = min(counts), max(counts)
    if low > 0:
        yield Condition(f"rank({name}) >= {low}", lambda v: len(v[name]) >= low, of=name)
    if high < MOST_RANK:
        yield Condition(f"rank({name}) <= {high}", lambda v: len(v[name]) <= high, of=name)


def _store(
    made: Hypothesis, name: str, pairs: Sequence[tuple[Trial, Any]], found: Found, *, required: bool
) -> None:
    """An operand that is stored: a number, or a list of them, whichever is accepted oftener."""
    lists = [v for _, v in pairs if isinstance(v, tuple)]
    if 2 * len(lists) >= len(pairs):
        made.stored[name] = "ints"
        made.attributes[name] = Domain(_range([item for value in lists for item in value]))
    else:
        made.stored[name] = "int"
        plain = RawAttribute(name, "int", required, None)
        numbers = [(t, v) for t, v in pairs if not isinstance(v, tuple)]
        refused = found.refused.get(name, set())
        made.attributes[name] = _int_domain(plain, numbers, refused, _first_operand(made))
    if required:
        made.required.add(name)


def _range(items: Sequence[int]) -> str:
    seen = {i for i in items if abs(i) <= 16}
    if not seen:
        return ""
    if set(range(min(seen), max(seen) + 1)) <= seen:
        return f"{min(seen)}..{max(seen)}" if len(seen) > 1 else f"{{{min(seen)}}}"
    return f"{{{', '.join(map(str, sorted(seen)))}}}"


def _attribute(
    made: Hypothesis,
    attribute: RawAttribute,
    accepted: Sequence[Trial],
    found: Found,
    oracle: Oracle,
) -> None:
    """What an attribute may be, or that it is left out."""
    name = attribute.name
    pairs = [(t, v) for t in accepted if (v := t.attribute(name)) is not None]
    if len(pairs) < 3 and not attribute.required:
        made.left_out[name] = "too few applications with it were accepted"
        return
    values = [v for _, v in pairs]
    if attribute.required or len(pairs) == len(accepted):
        made.required.add(name)
    refused = found.refused.get(name, set())
    match attribute.type:
        case "int":
            operand = _first_operand(made)
            made.attributes[name] = _int_domain(attribute, pairs, refused, operand)
        case "ints":
            items = [i for v in values if isinstance(v, tuple) for i in v if isinstance(i, int)]
            made.attributes[name] = Domain(_range(items))
        case "sym":
            words = _words(attribute, values, accepted, oracle)
            made.attributes[name] = Domain(f"{{{', '.join(spelled(w, 'sym') for w in words)}}}")
        case "dtype":
            types = sorted({str(v) for v in values})
            made.attributes[name] = Domain(f"{{{', '.join(types)}}}")
        case "float" | "floats":
            made.attributes[name] = Domain()
        case _:
            made.left_out[name] = f"attributes of type {attribute.type} are not probed"


def _first_operand(made: Hypothesis) -> str:
    """The first operand's name."""
    return made.raw.operands[0].name if made.raw.operands else ""


def _int_domain(
    attribute: RawAttribute, pairs: Sequence[tuple[Trial, Any]], refused: set[Any], operand: str
) -> Domain:
    """An axis, a flag, or a few numbers. A flag is what is 0 or 1 by default and was never
    refused for being something else (or just as 1 is): what other numbers mean, nobody says. Nor
    what negative ones do that count no axes."""
    first = [(len(t.shapes[0]), v) for t, v in pairs if t.shapes and t.shapes[0] is not None]
    beyond = {v for v in refused if isinstance(v, int) and v not in (0, 1)}
    inside = bool(first) and all(-rank <= v < rank for rank, v in first)
    if inside and beyond and min(v for _, v in first) < 0:
        return Domain(axis=f"axis({{}}, {operand}.rank)")
    seen = sorted({v for _, v in pairs if abs(v) <= 8})
    alike = not beyond or (attribute.default == 0 and 1 in refused)
    if attribute.default in (0, 1) and alike and set(seen) - {0, 1}:
        return Domain(_range([v for v in seen if v in (0, 1)] or [1]))
    return Domain(_range([v for v in seen if v >= 0] or seen))


def _words(
    attribute: RawAttribute, values: Sequence[Any], accepted: Sequence[Trial], oracle: Oracle
) -> list[str]:
    """The words that are accepted; if nonsense is too, those of the documentation that are
    quoted, or the default."""
    base = next(t for t in accepted if t.attribute(attribute.name) is not None)
    words = [w for w in attribute.choices if w in set(values)]
    if oracle.results(base.with_attribute(attribute.name, "no_such_word")) is None:
        return words
    sure = [w for w in attribute.sure if w in words or w == attribute.default]
    return sure or [w for w in words if w == attribute.default] or words[:1]


def _kinds(raw: Raw, made: Hypothesis, accepted: Sequence[Trial], oracle: Oracle) -> dict[int, str]:
    """For each integer operand, the most liberal kind of values that was accepted always."""
    from reprise.mining.signatures.trial import KINDS

    kinds: dict[int, str] = {}
    sample = accepted[:: max(1, len(accepted) // 40)]
    for i, operand in enumerate(raw.operands):
        if i not in made.layouts or not raw.dtype_choices(operand)[0].startswith("int"):
            continue
        fit = [t for t in sample if t.shapes[i] is not None]
        for kind in (ORDINARY, "index", "channel_index", "last_index", "batch_index", "zero"):
            assert kind == ORDINARY or kind in KINDS
            if fit and all(oracle.accepts_values(t, {i: kind}) for t in fit):
                if kind != ORDINARY:
                    kinds[i] = kind
                break
    return kinds


# --- equations -----------------------------------------------------------------------------------


def equations(made: Hypothesis, known: Sequence[Values]) -> list[Condition]:
    """Equations that held in all applications: for each variable the simplest, in terms of what
    comes before it."""
    found: list[Condition] = []
    for target, terms in _candidates(made):
        here = [v for v in known if target in v]
        if len(here) < _LEAST:
            continue
        for condition in sorted(_equal(target, terms), key=lambda c: c.size):
            sure = [v for v in here if condition.is_certain(v)]
            if len(sure) == len(here) and _varies(target, here, condition):
                found.append(replace(condition, evidence=f"{len(here)} of {len(here)}"))
                break
    return found


def _varies(target: str, known: Sequence[Values], condition: Condition) -> bool:
    """Whether equality says something: a constant may be constant, all else must vary."""
    return condition.size == 0 or len({str(v[target]) for v in known}) >= 3


def _equal(target: str, terms: Sequence[Term]) -> Iterator[Condition]:
    for term in terms:
        yield _equation(target, term)


def _equation(target: str, term: Term) -> Condition:
    text = f"{target} == {term.text}"
    if target.startswith("len("):
        name = target[4:-1]
        return Condition(text, lambda v: len(v[name]) == term.value(v), of=target, size=term.size)
    return Condition(text, lambda v: v[target] == term.value(v), of=target, size=term.size)


def _candidates(made: Hypothesis) -> Iterator[tuple[str, list[Term]]]:
    """Each variable with the terms that it may be equal to."""
    extents: list[Term] = []
    splats: list[Term] = []
    integers = [
        Term(variable(a.name), 1, _reader(variable(a.name)))
        for a in made.raw.attributes
        if a.type == "int" and a.name in made.attributes and not made.attributes[a.name].axis
    ]
    integers += [
        Term(variable(n), 1, _reader(variable(n))) for n, t in made.stored.items() if t == "int"
    ]
    lists = [variable(n) for n, t in made.stored.items() if t == "ints"]
    items = [Term(f"{n}[{k}]", 2, _item(n, k)) for n in lists for k in (0, 1, 2, -1, -2)]
    for layout in made.layouts.values():
        if layout.splat:
            (name,) = layout.variables
            yield name, _shapes(splats)
            splats.append(Term(name, 1, _reader(name)))
            continue
        for name in layout.variables:
            base = [*extents, *items, *(t for s in splats for t in _extents_of(s))]
            terms = [*_constants(), *base, *_combined(base, integers)]
            yield name, [*terms, *integers, *_tied(base, integers)] if made.tied else terms
            extents.append(Term(name, 1, _reader(name)))
    fixed = [len(layout.variables) for layout in made.layouts.values() if not layout.splat][:1]
    for name in [
        *lists,
        *(
            variable(a.name)
            for a in made.raw.attributes
            if a.name in made.attributes and a.type in ("ints", "floats")
        ),
    ]:
        yield f"len({name})", _lengths(name, lists, splats, extents, fixed)


def _reader(name: str) -> Any:
    return lambda v: v[name]


def _item(name: str, k: int) -> Any:
    return lambda v: v[name][k]


def _constants() -> list[Term]:
    return [Term(str(n), 0, lambda v, n=n: n) for n in range(1, 6)]  # type: ignore[misc]


def _extents_of(splat: Term) -> list[Term]:
    return [
        Term(f"{splat.text}[{k}]", 2, lambda v, k=k: splat.value(v)[k])  # type: ignore[misc]
        for k in (0, 1, 2, -1, -2)
    ]


def _shapes(splats: Sequence[Term]) -> list[Term]:
    made: list[Term] = []
    for s in splats:
        made.append(s)
        for k in (0, 1, -1, -2):
            made.append(
                Term(f"drop({s.text}, {k})", 2, lambda v, s=s, k=k: _dropped(s.value(v), k))  # type: ignore[misc]
            )
        for k in (1, 2):
            made.append(Term(f"part({s.text}, 0, {k})", 3, lambda v, s=s, k=k: s.value(v)[:k]))  # type: ignore[misc]
            end = f"rank({s.text})"
            made.append(
                Term(f"part({s.text}, {k}, {end})", 3, lambda v, s=s, k=k: s.value(v)[k:])  # type: ignore[misc]
            )
    return made


def _dropped(shape: tuple[int, ...], k: int) -> tuple[int, ...]:
    if not -len(shape) <= k < len(shape):
        raise IndexError
    k %= len(shape)
    return (*shape[:k], *shape[k + 1 :])


def _combined(base: Sequence[Term], integers: Sequence[Term]) -> Iterator[Term]:
    """Products, quotients and differences of two or three."""
    for a in base:
        for g in integers:
            yield Term(f"{a.text} / {g.text}", 3, lambda v, a=a, g=g: _quotient(a, g, v))  # type: ignore[misc]
            yield Term(f"{a.text} * {g.text}", 3, lambda v, a=a, g=g: a.value(v) * g.value(v))  # type: ignore[misc]
    for a, b in combinations(base, 2):
        yield Term(f"{a.text} * {b.text}", 4, lambda v, a=a, b=b: a.value(v) * b.value(v))  # type: ignore[misc]
        for x, y in ((a, b), (b, a)):
            text = f"{x.text} - {y.text} + 1"
            yield Term(text, 5, lambda v, x=x, y=y: x.value(v) - y.value(v) + 1)  # type: ignore[misc]
        for k in (2, 3):
            yield Term(
                f"{k} * {a.text} * {b.text}",
                5,
                lambda v, a=a, b=b, k=k: k * a.value(v) * b.value(v),  # type: ignore[misc]
            )
            for g in integers:
                yield Term(
                    f"{k} * {g.text} * {a.text} * {b.text}",
                    6,
                    lambda v, a=a, b=b, k=k, g=g: k * g.value(v) * a.value(v) * b.value(v),  # type: ignore[misc]
                )


def _tied(base: Sequence[Term], integers: Sequence[Term]) -> Iterator[Term]:
    """What numbers of heads and groups make of extents."""
    for g in integers:
        for a in base:
            for h in integers:
                if h is not g:
                    yield Term(
                        f"{a.text} * {g.text} / {h.text}",
                        5,
                        lambda v, a=a, g=g, h=h: _shared(a.value(v) * g.value(v), h.value(v)),  # type: ignore[misc]
                    )
        for a, b in combinations(base, 2):
            yield Term(
                f"{g.text} * {a.text} * {b.text}",
                5,
                lambda v, a=a, b=b, g=g: g.value(v) * a.value(v) * b.value(v),  # type: ignore[misc]
            )


def _shared(value: int, by: int) -> int:
    if by == 0 or value % by:
        raise ZeroDivisionError
    return value // by


def _quotient(a: Term, g: Term, v: Values) -> int:
    return _shared(a.value(v), g.value(v))


def _lengths(
    name: str,
    lists: Sequence[str],
    splats: Sequence[Term],
    extents: Sequence[Term],
    fixed: Sequence[int],
) -> list[Term]:
    made = [Term(str(n), 0, lambda v, n=n: n) for n in range(1, 9)]  # type: ignore[misc]
    for other in lists:
        if other != name:
            made.append(Term(f"len({other})", 1, lambda v, o=other: len(v[o])))  # type: ignore[misc]
            made.append(Term(f"2 * len({other})", 2, lambda v, o=other: 2 * len(v[o])))  # type: ignore[misc]
    for s in splats:
        made.append(Term(f"rank({s.text})", 1, lambda v, s=s: len(s.value(v))))  # type: ignore[misc]
        made.append(Term(f"{s.text}[-1]", 2, lambda v, s=s: s.value(v)[-1]))  # type: ignore[misc]
        for c in (1, 2):
            made.append(Term(f"rank({s.text}) - {c}", 2, lambda v, s=s, c=c: len(s.value(v)) - c))  # type: ignore[misc]
            made.append(
                Term(
                    f"2 * (rank({s.text}) - {c})",
                    3,
                    lambda v, s=s, c=c: 2 * (len(s.value(v)) - c),  # type: ignore[misc]
                )
            )
    made += extents
    return made


def conditions(made: Hypothesis) -> Iterator[Condition]:
    """Everything that might be added: equations, bounds, single ranks, lists of ones."""
    for target, terms in _candidates(made):
        yield from _equal(target, terms)
        if not target.startswith("len(") and not _is_splat(made, target):
            for term in terms:
                if 0 < term.size <= 2:
                    yield _bound(target, term)
                    yield _divides(target, term)
    for layout in made.layouts.values():
        if layout.splat:
            (name,) = layout.variables
            for rank in range(MOST_RANK):
                yield _rank_is(name, rank)
                yield _rank_at_least(name, rank)
            for axis in (0, 1, -1, -2):
                yield from _extent_of(name, axis)
    for name, type in made.stored.items():
        if type == "ints":
            yield from _ones(variable(name))
    extents = [v for layout in made.layouts.values() if not layout.splat for v in layout.variables]
    for attribute in made.raw.attributes:
        if attribute.name in made.attributes and attribute.type == "int":
            yield from _bounds_of(variable(attribute.name))
            if made.tied and not made.attributes[attribute.name].axis:
                yield from (_divided(extent, variable(attribute.name)) for extent in extents)
        elif made.tied and attribute.name in made.attributes and attribute.type == "sym":
            yield from (_word_is(variable(attribute.name), word) for word in attribute.choices)


def _is_splat(made: Hypothesis, name: str) -> bool:
    return any(layout.splat and name in layout.variables for layout in made.layouts.values())


def _bound(target: str, term: Term) -> Condition:
    text = f"{target} <= {term.text}"
    return Condition(text, lambda v: v[target] <= term.value(v), of=target, size=term.size + 1)


def _divides(target: str, term: Term) -> Condition:
    """The earlier extent is a multiple of the later one."""
    text = f"{term.text} % {target} == 0"
    return Condition(text, lambda v: term.value(v) % v[target] == 0, of=text, size=term.size + 2)


def _word_is(name: str, word: str) -> Condition:
    text = f'{name} == "{word}"'
    return Condition(text, lambda v: v[name] == word, of=text)


def _divided(extent: str, number: str) -> Condition:
    """The extent is a multiple of an attribute: of a number of groups or heads."""
    text = f"{extent} % {number} == 0"
    return Condition(text, lambda v: v[extent] % v[number] == 0, of=text, size=3)


def _rank_is(name: str, rank: int) -> Condition:
    return Condition(f"rank({name}) == {rank}", lambda v: len(v[name]) == rank, of=name)


def _rank_at_least(name: str, rank: int) -> Condition:
    return Condition(f"rank({name}) >= {rank}", lambda v: len(v[name]) >= rank, of=name)


def _extent_of(name: str, axis: int) -> Iterator[Condition]:
    """Bounds of one extent of a whole shape."""
    for number in (1, 2):
        text = f"{name}[{axis}] == {number}"
        yield Condition(text, lambda v, n=number: v[name][axis] == n, of=text)  # type: ignore[misc]
    for least in (2, 3):
        text = f"{name}[{axis}] >= {least}"
        yield Condition(text, lambda v, n=least: v[name][axis] >= n, of=text)  # type: ignore[misc]
    yield Condition(f"{name}[{axis}] <= 2", lambda v: v[name][axis] <= 2, of=f"{name}[{axis}] <= 2")


def _ones(name: str) -> Iterator[Condition]:
    text = f"{name} == fill(len({name}), 1)"
    yield Condition(text, lambda v: all(item == 1 for item in v[name]), of=name)


def _bounds_of(name: str) -> Iterator[Condition]:
    for least in (0, 1, 2):
        text = f"{name} >= {least}"
        yield Condition(text, lambda v, least=least: v[name] >= least, of=name)  # type: ignore[misc]
    for most in (0, 1):
        text = f"{name} <= {most}"
        yield Condition(text, lambda v, most=most: v[name] <= most, of=name)  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class ResultShape:
    """A way to write a result's shape, and its value."""

    text: str
    value: Callable[[Values], Any]

    def is_right(self, values: Values, actual: Any) -> bool:
        """Whether it says what the result's shape was."""
        return _same(self.value, values, actual)


def result_shapes(
    made: Hypothesis, seen: Sequence[tuple[Values, Sequence[TensorType]]]
) -> list[ResultShape] | None:
    """The results' shapes in terms of the operands, where ONNX has no inference: the way of writing
    each that was right most often (the simplest of them); None if none was right a third of the
    time."""
    written = []
    for number in range(len(made.raw.decl.results)):
        actual = [(values, results[number].shape) for values, results in seen]
        ways = [ResultShape(text, shape) for text, shape in _ways(made)]
        right = [sum(way.is_right(v, a) for v, a in actual) for way in ways]
        most = max(right, default=0)
        if not actual or 3 * most < len(actual):
            return None
        written.append(ways[right.index(most)])
    return written


def _same(shape: Any, values: Values, actual: Any) -> bool:
    try:
        return bool(shape(values) == actual)
    except (KeyError, IndexError, ZeroDivisionError):
        return False


def _ways(made: Hypothesis) -> Iterator[tuple[str, Any]]:
    """Ways to write a result's shape, the simplest first."""
    extents: list[Term] = [Term("1", 0, lambda v: 1)]
    for layout in made.layouts.values():
        if layout.splat:
            (name,) = layout.variables
            yield f"*{name}", _reader(name)
            extents += [Term(f"{name}[{k}]", 2, _item(name, k)) for k in (0, -1)]
        else:
            names = layout.variables
            yield ", ".join(names), lambda v, names=names: tuple(v[n] for n in names)
            extents += [Term(n, 1, _reader(n)) for n in names]
    extents += [
        Term(variable(a.name), 1, _reader(variable(a.name)))
        for a in made.raw.attributes
        if a.type == "int" and a.name in made.attributes
    ]
    for term in extents:
        yield term.text, lambda v, t=term: (t.value(v),)
    for a in extents:
        for b in extents:
            yield f"{a.text}, {b.text}", lambda v, a=a, b=b: (a.value(v), b.value(v))
