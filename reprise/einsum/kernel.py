"""Kernels: one einsum statement, how each tensor is stored, and what data it holds.

A :class:`Kernel` says ``A(i,k) = B(i,j) * C(j,k) + D(i,k)`` together with the extent of every
index, one element type, and for every tensor a :class:`Format` and a description of its data. It
is plain data: nothing is run here, and nothing here decides whether a kernel is *valid*; that is
what ``rules/einsum/validity.rules`` is for. What a constructor of this module guarantees is only
that a kernel hangs together (see :func:`assemble`), so that it can be written down and asked about.

A term is summed over the indices that the output does not have, each term by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

INTEGERS, REALS = "integers", "reals"
"""Kinds of values: small integers held in the element type, or numbers between -1 and 1."""


class KernelError(ValueError):
    """A kernel that does not hang together, or cannot be read; the message says what and where."""


class Level(StrEnum):
    """How one level of a tensor's coordinate tree is stored."""

    DENSE = "dense"
    COMPRESSED = "compressed"
    NONUNIQUE = "nonunique"  # compressed, and coordinates may repeat (the first level of COO)
    SINGLETON = "singleton"  # one coordinate below each parent (the other levels of COO)

    @property
    def letter(self) -> str:
        """As TACO and tensora write it: ``d``, ``s``, ``u``, ``q``."""
        return _LETTERS[self]


_LETTERS = {
    Level.DENSE: "d",
    Level.COMPRESSED: "s",
    Level.NONUNIQUE: "u",
    Level.SINGLETON: "q",
}
LEVEL_OF = {letter: level for level, letter in _LETTERS.items()}
"""Levels by their letters."""


@dataclass(frozen=True, slots=True)
class Format:
    """How a tensor is stored: ``levels`` from the outside in, of which level ``l`` stores the
    tensor's position ``order[l]``. ``ds:1,0`` is CSC, ``ds`` is CSR."""

    levels: tuple[Level, ...]
    order: tuple[int, ...]

    @classmethod
    def dense(cls, rank: int) -> Format:
        """Row-major and dense."""
        return cls((Level.DENSE,) * rank, tuple(range(rank)))

    @property
    def rank(self) -> int:
        return len(self.levels)

    @property
    def is_dense(self) -> bool:
        """Whether every level is dense, whatever their order."""
        return all(level is Level.DENSE for level in self.levels)

    @property
    def is_ordered(self) -> bool:
        """Whether levels store positions in their order."""
        return self.order == tuple(range(len(self.order)))

    def __str__(self) -> str:
        letters = "".join(level.letter for level in self.levels)
        return letters if self.is_ordered else f"{letters}:{','.join(map(str, self.order))}"


# --- data ----------------------------------------------------------------------------------------


class Structure(StrEnum):
    """Where a tensor's stored entries lie."""

    UNIFORM = "uniform"  # anywhere, each place with the same probability
    EMPTY = "empty"  # nowhere
    FULL = "full"  # everywhere
    BANDED = "banded"  # where the first two coordinates differ by at most one
    ROW = "row"  # at one coordinate of one axis, and there as if uniform


@dataclass(frozen=True, slots=True)
class Transposed:
    """Axis ``n`` of the edited tensor is axis ``axes[n]`` of the one before."""

    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scaled:
    """Values are multiplied by 2 to the power of ``exponent``."""

    exponent: int


@dataclass(frozen=True, slots=True)
class Permuted:
    """Coordinate ``c`` of ``axis`` becomes ``permutation(seed, extent)[c]``."""

    axis: int
    seed: int


@dataclass(frozen=True, slots=True)
class Zeros:
    """Up to ``count`` zeros more are stored, at places that have no entry."""

    count: int
    seed: int


@dataclass(frozen=True, slots=True)
class Part:
    """Of the stored entries, those whose number is ``number`` modulo ``of``."""

    number: int
    of: int


@dataclass(frozen=True, slots=True)
class Kept:
    """Of the stored entries, those from ``start`` up to before ``stop`` along ``axis``."""

    axis: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Reordered:
    """The same entries, listed in another order."""

    seed: int


Edit = Transposed | Scaled | Permuted | Zeros | Part | Kept | Reordered


@dataclass(frozen=True, slots=True)
class Drawn:
    """Data that follow from a seed: see :func:`reprise.einsum.data.materialise`.

    ``density``: the share of places that have an entry, where the structure leaves it open.
    ``duplicates``: so many entries are stored twice, as two values that add up to theirs.
    ``zeros``: so many zeros are stored besides. ``unsorted``: entries are listed in any order.
    ``edits`` are applied one after the other to what was drawn.
    """

    structure: Structure
    density: float
    seed: int
    values: str = INTEGERS
    duplicates: int = 0
    zeros: int = 0
    unsorted: bool = False
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Entries:
    """Data written out: the stored coordinates in order, each with its value."""

    coordinates: tuple[tuple[int, ...], ...]
    values: tuple[float, ...]
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Computed:
    """Data that an earlier kernel of the same program computes: its output, by name."""

    output: str


Data = Drawn | Entries | Computed

UNSAID = Drawn(Structure.UNIFORM, 0.3, 0)
"""The data of a tensor of which nothing is said, up to the seed: its number among the operands."""


# --- kernels -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Access:
    """``B(i,j)``: a tensor, and an index for each of its positions."""

    tensor: str
    indices: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.tensor}({','.join(self.indices)})"


@dataclass(frozen=True, slots=True)
class Term:
    """A product of accesses."""

    factors: tuple[Access, ...]

    @property
    def indices(self) -> tuple[str, ...]:
        """The indices that occur in it, each once, in order."""
        return tuple(dict.fromkeys(i for factor in self.factors for i in factor.indices))

    def __str__(self) -> str:
        return " * ".join(map(str, self.factors))


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a kernel. ``data`` is None for the output, and for nothing else."""

    name: str
    format: Format
    data: Data | None


@dataclass(frozen=True, slots=True)
class Kernel:
    """``output = terms[0] + terms[1] + …``. ``tensors`` holds the output, then the operands in the
    order of their first use; ``extents`` every index, the output's first, then in order of use."""

    output: Access
    terms: tuple[Term, ...]
    tensors: tuple[Tensor, ...]
    extents: tuple[tuple[str, int], ...]
    dtype: str = "float64"

    @property
    def accesses(self) -> tuple[Access, ...]:
        """The operands, term by term."""
        return tuple(factor for term in self.terms for factor in term.factors)

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The tensors that are read."""
        return self.tensors[1:]

    @property
    def extent(self) -> dict[str, int]:
        """The extent of every index."""
        return dict(self.extents)

    @property
    def is_product(self) -> bool:
        """Whether there is one term only."""
        return len(self.terms) == 1

    def tensor(self, name: str) -> Tensor:
        """The tensor of a name; KeyError if there is none."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)

    def shape(self, access: Access) -> tuple[int, ...]:
        """The shape of what is accessed."""
        extents = self.extent
        return tuple(extents[index] for index in access.indices)

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every tensor, the output's first."""
        extents = self.extent
        shapes: dict[str, tuple[int, ...]] = {}
        for access in (self.output, *self.accesses):
            shapes.setdefault(access.tensor, tuple(extents[i] for i in access.indices))
        return shapes

    @property
    def statement(self) -> str:
        """``A(i,k) = B(i,j) * C(j,k)``."""
        return f"{self.output} = {' + '.join(map(str, self.terms))}"

    @property
    def subscripts(self) -> str:
        """``ij,jk->ik``; of several terms ``ij,jk+ik->ik``. Needs indices of one letter."""
        terms = "+".join(
            ",".join("".join(factor.indices) for factor in term.factors) for term in self.terms
        )
        return f"{terms}->{''.join(self.output.indices)}"


def indices_in_order(output: Access, terms: Iterable[Term]) -> tuple[str, ...]:
    """Every index once: the output's, then the others in the order of their use."""
    found = dict.fromkeys(output.indices)
    for term in terms:
        for factor in term.factors:
            found.update(dict.fromkeys(factor.indices))
    return tuple(found)


def assemble(
    output: Access,
    terms: Sequence[Term],
    extents: Mapping[str, int],
    formats: Mapping[str, Format],
    data: Mapping[str, Data],
    dtype: str = "float64",
) -> Kernel:
    """A kernel from its parts, in canonical order. A tensor without a format is dense; an operand
    without data has :data:`UNSAID`.

    Raises KernelError where the parts do not fit: no term, a tensor that is read and written, or
    accessed with different numbers of indices, a format of another rank, an index without extent,
    one tensor with two shapes.
    """
    if not terms or not all(term.factors for term in terms):
        raise KernelError("a kernel has at least one operand")
    extents_here: dict[str, int] = {}
    for index in indices_in_order(output, terms):
        if index not in extents:
            raise KernelError(f"index {index} has no extent")
        extents_here[index] = extents[index]
    shapes: dict[str, tuple[int, ...]] = {}
    for access in (output, *(factor for term in terms for factor in term.factors)):
        shape = tuple(extents_here[index] for index in access.indices)
        known = shapes.setdefault(access.tensor, shape)
        if access is not output and access.tensor == output.tensor:
            raise KernelError(f"tensor {output.tensor} is the output, and is also read")
        if len(known) != len(shape):
            raise KernelError(f"tensor {access.tensor} is used with {len(known)} and {len(shape)} "
                              "indices")  # fmt: skip
        if known != shape:
            raise KernelError(f"tensor {access.tensor} is used with shapes {known} and {shape}")
    tensors: list[Tensor] = []
    for name, shape in shapes.items():
        stored = formats.get(name) or Format.dense(len(shape))
        if stored.rank != len(shape):
            raise KernelError(
                f"tensor {name} has {len(shape)} indices, its format {stored} {stored.rank} levels"
            )
        if sorted(stored.order) != list(range(stored.rank)):
            raise KernelError(f"tensor {name}: {stored.order} is no order of {stored.rank} levels")
        unsaid = replace(UNSAID, seed=max(0, len(tensors) - 1))
        tensors.append(Tensor(name, stored, data.get(name, unsaid) if tensors else None))
    return Kernel(output, tuple(terms), tuple(tensors), tuple(extents_here.items()), dtype)


def rebuilt(
    kernel: Kernel,
    *,
    output: Access | None = None,
    terms: Sequence[Term] | None = None,
    extents: Mapping[str, int] | None = None,
    formats: Mapping[str, Format] | None = None,
    data: Mapping[str, Data] | None = None,
) -> Kernel:
    """A kernel with other parts: what is not given stays, ``formats`` and ``data`` by tensor."""
    return assemble(
        output or kernel.output,
        kernel.terms if terms is None else terms,
        {**kernel.extent, **(extents or {})},
        {**{t.name: t.format for t in kernel.tensors}, **(formats or {})},
        {**{t.name: t.data for t in kernel.operands if t.data is not None}, **(data or {})},
        kernel.dtype,
    )
