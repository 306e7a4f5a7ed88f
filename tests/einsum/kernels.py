"""Kernels for tests: strategies that draw any kernel that can be written, valid or not."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from reprise.einsum.kernel import (
    Access,
    Computed,
    Data,
    Drawn,
    Edit,
    Entries,
    Format,
    Kept,
    Kernel,
    Level,
    Part,
    Permuted,
    Reordered,
    Scaled,
    Structure,
    Term,
    Transposed,
    Zeros,
    assemble,
)

SEEDS = st.integers(0, 2**53 - 1)


def edits(shape: tuple[int, ...], transposing: bool = True) -> st.SearchStrategy[tuple[Edit, ...]]:
    """Edits that fit a tensor of this shape."""
    rank = len(shape)
    kinds: list[st.SearchStrategy[Edit]] = [
        st.builds(Scaled, st.integers(-4, 4)),
        st.builds(Zeros, st.integers(0, 5), SEEDS),
        st.integers(1, 3).flatmap(lambda of: st.builds(Part, st.integers(0, of - 1), st.just(of))),
        st.builds(Reordered, SEEDS),
    ]
    if rank and transposing:
        kinds.append(st.permutations(range(rank)).map(lambda axes: Transposed(tuple(axes))))
    elif rank:
        kinds.append(st.builds(Permuted, st.integers(0, rank - 1), SEEDS))
        kinds.append(st.builds(Kept, st.integers(0, rank - 1), st.just(0), st.integers(0, 3)))
    return st.lists(st.one_of(kinds), max_size=2).map(tuple)


def drawn(shape: tuple[int, ...]) -> st.SearchStrategy[Drawn]:
    return st.builds(
        Drawn,
        st.sampled_from(Structure),
        st.floats(0, 1),
        SEEDS,
        st.sampled_from(["integers", "reals"]),
        st.integers(0, 3),
        st.integers(0, 3),
        st.booleans(),
        st.booleans().flatmap(lambda transposing: edits(shape, transposing)),
    )


def written(shape: tuple[int, ...]) -> st.SearchStrategy[Entries]:
    if 0 in shape:
        return st.just(Entries((), ()))
    places = st.tuples(*(st.integers(0, extent - 1) for extent in shape))
    pairs = st.lists(st.tuples(places, st.integers(-5, 5) | st.floats(-9, 9)), max_size=4)
    return pairs.map(lambda p: Entries(tuple(c for c, _ in p), tuple(v for _, v in p)))


def formats(rank: int, levels: Any = Level) -> st.SearchStrategy[Format]:
    return st.builds(
        Format,
        st.tuples(*[st.sampled_from(list(levels))] * rank),
        st.permutations(range(rank)).map(tuple),
    )


@st.composite
def kernels(draw: st.DrawFn, names: tuple[str, ...] = tuple("ijkl")) -> Kernel:
    """Any kernel that hangs together."""
    indices = st.lists(st.sampled_from(names), max_size=3).map(tuple)
    extents = {name: draw(st.integers(0, 4)) for name in names}
    count = draw(st.integers(1, 4))
    accesses = [Access(chr(ord("B") + n), draw(indices)) for n in range(count)]
    cuts = sorted(draw(st.sets(st.integers(1, count - 1), max_size=2))) if count > 1 else []
    terms = [Term(tuple(accesses[a:b])) for a, b in zip([0, *cuts], [*cuts, count], strict=True)]
    used = sorted({i for access in accesses for i in access.indices})
    kept = st.lists(st.sampled_from(used), unique=True, max_size=3) if used else st.just([])
    output = Access("A", tuple(draw(kept)))
    data: dict[str, Data] = {}
    for access in accesses:
        shape = tuple(extents[i] for i in access.indices)
        data[access.tensor] = draw(drawn(shape) | written(shape) | st.just(Computed("T")))
    stored = {a.tensor: draw(formats(len(a.indices))) for a in (output, *accesses)}
    dtype = draw(st.sampled_from(["float64", "float32"]))
    return assemble(output, terms, extents, stored, data, dtype)
