"""Kernels as text, in two notations, and reading them with positions.

::

    A(i,k) = B(i,j) * C(j,k) + D(i,k) where i=3, j=4, k=2, B: ds, C: ds:1,0 banded(seed=7)
    ij,jk+ik->ik where i=3, j=4, k=2, B: ds

In the first, TACO's, tensors have names; in the second, einsum's, the output is ``A`` and operands
are ``B``, ``C``, … in their order. After ``where``, in any order and all of it optional:

========================  =====================================================================
``i=3``                   the extent of an index (default: 4)
``B: ds:1,0``             a tensor's format: a letter for each level (``d`` dense, ``s``
                          compressed, ``u`` compressed with repeated coordinates, ``q``
                          singleton), then the position that each stores, if not in order;
                          ``d1s0`` says the same (default: all dense)
``B: ds[3,4]``            its shape besides, to be compared with the extents
``B: ds uniform(…)``      its data: ``uniform``, ``empty``, ``full``, ``banded`` or ``row``, with
                          ``density=0.3, seed=7, zeros=2, duplicates=1, unsorted, reals``
``B: ds {(0,1): 2}``      its data, written out
``B: ds computed(T)``     its data: the output ``T`` of an earlier kernel
``… | scaled(3)``         edits of the data: ``transposed(1,0)``, ``scaled(e)``,
                          ``permuted(axis, seed)``, ``zeros(count, seed)``, ``part(n, of)``,
                          ``kept(axis, start, stop)``, ``reordered(seed)``
``float32``               the element type (default: float64)
========================  =====================================================================

:func:`print_text` writes everything, so that ``parse(print_text(kernel)).kernel() == kernel``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NoReturn

from reprise.einsum.fitting import MOST_INDICES, SizeError, expect_size, fitted
from reprise.einsum.kernel import (
    INTEGERS,
    LEVEL_OF,
    REALS,
    UNSAID,
    Access,
    Computed,
    Data,
    Drawn,
    Edit,
    Entries,
    Format,
    Kept,
    Kernel,
    KernelError,
    Level,
    Part,
    Permuted,
    Reordered,
    Scaled,
    Structure,
    Tensor,
    Term,
    Transposed,
    Zeros,
    assemble,
)
from reprise.lang.diagnostics import Diagnostic, Span

FILE = "<kernel>"
"""What positions in a kernel's text call their file."""
EXTENT = 4
"""The extent of an index of which none is given."""
DTYPES = ("float64", "float32", "int64", "int32")


class KernelSyntaxError(KernelError):
    """A text that is no kernel; carries where and why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(f"{diagnostic.span}: {diagnostic.message}")
        self.diagnostic = diagnostic


@dataclass(frozen=True, slots=True)
class Written:
    """An access as written: where it is, and where each of its indices is."""

    access: Access
    span: Span
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """What is said of a tensor after ``where``."""

    span: Span
    format: Format | None = None
    shape: tuple[int, ...] | None = None
    data: Data | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel as written, which need not be valid, nor even hang together."""

    text: str
    output: Written
    terms: tuple[tuple[Written, ...], ...]
    extents: dict[str, tuple[int, Span]] = field(default_factory=dict)
    tensors: dict[str, Declared] = field(default_factory=dict)
    dtype: str = "float64"

    @property
    def operands(self) -> tuple[Written, ...]:
        """The operands, term by term."""
        return tuple(written for term in self.terms for written in term)

    @property
    def products(self) -> tuple[Term, ...]:
        """The terms, without positions."""
        return tuple(Term(tuple(written.access for written in term)) for term in self.terms)

    def known_extents(self) -> dict[str, int]:
        """The extent of every index: as given, else as a shape has it, else :data:`EXTENT`."""
        found = {index: extent for index, (extent, _) in self.extents.items()}
        for written in (self.output, *self.operands):
            declared = self.tensors.get(written.access.tensor)
            shape = None if declared is None else declared.shape
            for index, extent in zip(written.access.indices, shape or (), strict=False):
                found.setdefault(index, extent)
        for written in (self.output, *self.operands):
            for index in written.access.indices:
                found.setdefault(index, EXTENT)
        return found

    def kernel(self) -> Kernel:
        """The kernel. Raises KernelError if it does not hang together."""
        declared = self.tensors.items()
        kernel = assemble(
            self.output.access,
            self.products,
            self.known_extents(),
            {name: d.format for name, d in declared if d.format is not None},
            {name: d.data for name, d in declared if d.data is not None},
            self.dtype,
        )
        return fitted(kernel)


def parse(text: str) -> Source:
    """Read a kernel in either notation. Raises KernelSyntaxError."""
    return _Parser(text).source()


# --- writing -------------------------------------------------------------------------------------


def print_text(kernel: Kernel) -> str:
    """The kernel in TACO's notation, with everything that is known about it."""
    said = [f"{index}={extent}" for index, extent in kernel.extents]
    said += [clause for tensor in kernel.tensors if (clause := _clause(tensor))]
    said.append(kernel.dtype)
    return f"{kernel.statement} where {', '.join(said)}"


def _clause(tensor: Tensor) -> str:
    parts = [str(tensor.format)] if tensor.format.rank else []
    if tensor.data is not None:
        parts.append(print_data(tensor.data))
    return f"{tensor.name}: {' '.join(parts)}" if parts else ""


def print_data(data: Data) -> str:
    """A description of data as text."""
    match data:
        case Computed(output):
            return f"computed({output})"
        case Entries(coordinates, values, edits):
            pairs = zip(coordinates, values, strict=True)
            entries = (f"({','.join(map(str, c))}): {_number(v)}" for c, v in pairs)
            return f"{{{', '.join(entries)}}}{''.join(map(_edit, edits))}"
        case Drawn():
            words = [f"density={data.density!r}", f"seed={data.seed}"]
            words += [f"duplicates={data.duplicates}"] if data.duplicates else []
            words += [f"zeros={data.zeros}"] if data.zeros else []
            words += ["unsorted"] if data.unsorted else []
            words += [data.values] if data.values != INTEGERS else []
            changes = "".join(map(_edit, data.edits))
            return f"{data.structure.value}({', '.join(words)}){changes}"


def _number(value: float) -> str:
    return repr(value)


def _edit(edit: Edit) -> str:
    name = type(edit).__name__.lower()
    if isinstance(edit, Transposed):
        return f" | {name}({','.join(map(str, edit.axes))})"
    return f" | {name}({', '.join(str(getattr(edit, f)) for f in edit.__slots__)})"


# --- reading -------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[^\W\d]\w*)|(?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<mark>->|\.\.\.|[-(),=+*:\[\]{}|])|(?P<other>\S))"
)
_EINSUM = "`ij,jk->ik`"
_STATEMENT = "`A(i,k) = B(i,j) * C(j,k)`"
_SUM_OF_PRODUCTS = (
    "a kernel is a sum of products of tensors; a constant is a tensor without indices: `c * B(i)`"
)
_TENSORA = re.compile(r"(?:[dsuq]\d+)+")
_LEVELS = re.compile(r"[dsuq]+")
_COMMON = {"csr": "ds", "csc": "ds:1,0", "coo": "uq", "dcsr": "ss", "csf": "sss"}
"""Formats of matrices (CSF: of three indices) by the names that libraries have for them."""
_EDITS: dict[str, tuple[Callable[..., Edit], int]] = {
    "scaled": (Scaled, 1),
    "permuted": (Permuted, 2),
    "zeros": (Zeros, 2),
    "part": (Part, 2),
    "kept": (Kept, 3),
    "reordered": (Reordered, 1),
}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # name, number, mark, other or end
    text: str
    line: int
    column: int

    @property
    def span(self) -> Span:
        end = self.column + max(1, len(self.text))
        return Span(FILE, self.line, self.column, self.line, end)

    def letter(self, number: int) -> Span:
        """The position of one of its characters."""
        column = self.column + number
        return Span(FILE, self.line, column, self.line, column + 1)

    def __str__(self) -> str:
        return f"`{self.text}`" if self.kind != "end" else "the end"


def _tokens(text: str) -> Iterator[_Token]:
    line, begins, at = 1, 0, 0
    while (found := _TOKEN.match(text, at)) is not None:
        kind = found.lastgroup or "other"
        start = found.start(kind)
        newlines = text.count("\n", at, start)
        if newlines:
            line, begins = line + newlines, text.rindex("\n", at, start) + 1
        yield _Token(kind, found.group(kind), line, start - begins + 1)
        at = found.end()
    end = len(text.rstrip())
    yield _Token("end", "", line, end - begins + 1)


class _Parser:
    """Recursive descent, one token ahead."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(_tokens(text))
        self.at = 0

    # --- tokens ---

    @property
    def next(self) -> _Token:
        return self.tokens[self.at]

    def sees(self, *marks: str) -> bool:
        return self.next.kind == "mark" and self.next.text in marks

    def take(self) -> _Token:
        token = self.next
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def skip(self, mark: str) -> bool:
        """Whether the next token is ``mark``, which is then taken."""
        found = self.sees(mark)
        if found:
            self.take()
        return found

    def expect(self, mark: str, hint: str | None = None) -> _Token:
        if not self.sees(mark):
            self.fail(f"expected `{mark}`, found {self.next}", hint=hint)
        return self.take()

    def name(self, what: str) -> _Token:
        if self.next.kind != "name":
            self.fail(f"expected {what}, found {self.next}")
        return self.take()

    def integer(self, what: str) -> int:
        negative = self.skip("-")
        token = self.next
        if token.kind != "number" or not token.text.isdigit():
            self.fail(f"expected {what}, found {token}")
        self.take()
        return -int(token.text) if negative else int(token.text)

    def natural(self, what: str) -> int:
        if self.sees("-"):
            self.fail(f"{what} is not negative")
        return self.integer(what)

    def number(self, what: str) -> float:
        negative = self.skip("-")
        if self.next.kind != "number":
            self.fail(f"expected {what}, found {self.next}")
        text = self.take().text
        value = int(text) if text.isdigit() else float(text)
        return -value if negative else value

    def fail(self, message: str, span: Span | None = None, hint: str | None = None) -> NoReturn:
        where = span or self.next.span
        raise KernelSyntaxError(Diagnostic("kernel-syntax", message, where, hint))

    # --- the kernel ---

    def source(self) -> Source:
        statement = [t for t in self.tokens if t.text in ("->", "=", "where")]
        kind = statement[0].text if statement else ""
        for token in self.tokens:
            if token.text == "...":
                self.fail(
                    "`...` is not used in kernels", token.span, "name every index: `bij,bjk->bik`"
                )
        if kind == "->":
            output, terms = self.einsum()
        elif kind == "=":
            output, terms = self.statement()
        else:
            self.no_kernel()
        source = Source(self.text, output, terms)
        try:
            expect_size(output.access, [written.access for written in source.operands])
        except SizeError as error:
            self.fail(str(error), (*source.operands, output)[error.access].span)
        return self.clauses(source)

    def no_kernel(self) -> NoReturn:
        if self.next.kind == "end":
            self.fail("there is no kernel", hint=f"write {_EINSUM} or {_STATEMENT}")
        end = next(t for t in self.tokens if t.kind == "end" or t.text == "where")
        letters = "".join(t.text for t in self.tokens if t.kind == "name" and len(t.text) < 8)
        once = "".join(sorted(i for i in set(letters) if letters.count(i) == 1))
        plain = all(t.kind in ("name", "end") or t.text == "," for t in self.tokens)
        self.fail(
            "this does not say what is computed: there is no `->` and no `=`",
            end.span,
            f"numpy would take `->{once}`" if plain else f"write {_EINSUM} or {_STATEMENT}",
        )

    def einsum(self) -> tuple[Written, tuple[tuple[Written, ...], ...]]:
        names = _names()
        next(names)
        terms = []
        while True:
            term = [self.subscripts(next(names))]
            while self.skip(","):
                term.append(self.subscripts(next(names)))
            terms.append(tuple(term))
            if not self.skip("+"):
                break
        if self.sees("*"):
            self.fail("expected `,` between operands, found `*`")
        self.expect("->", f"operands are separated by `,`, terms by `+`: {_EINSUM}")
        output = self.subscripts("A")
        if self.sees(","):
            self.fail("a kernel has one output")
        return output, tuple(terms)

    def subscripts(self, tensor: str) -> Written:
        """The letters of one operand; none for a scalar."""
        token = self.next
        if token.kind == "other" or token.kind == "number":
            self.fail(f"expected indices, found {token}", hint="indices are letters")
        if token.kind != "name" or token.text == "where":
            return Written(Access(tensor, ()), token.span, ())
        self.take()
        for number, letter in enumerate(token.text):
            if not (letter.isascii() and letter.isalpha()):
                self.fail(f"`{letter}` is no index", token.letter(number), "indices are letters")
        spans = tuple(token.letter(n) for n in range(len(token.text)))
        return Written(Access(tensor, tuple(token.text)), token.span, spans)

    def statement(self) -> tuple[Written, tuple[tuple[Written, ...], ...]]:
        output = self.access()
        if self.sees("+"):
            self.fail(
                "expected `=`, found `+`",
                hint="`=` sums already, over the indices that the output does not have",
            )
        self.expect("=", f"as in {_STATEMENT}")
        terms = []
        while True:
            term = [self.access()]
            while self.skip("*"):
                term.append(self.access())
            terms.append(tuple(term))
            if not self.skip("+"):
                break
        if self.sees("-"):
            self.fail("kernels have no `-`", hint="a negative factor is a matter of the data")
        return output, tuple(terms)

    def access(self) -> Written:
        if self.next.kind == "number" or self.sees("("):
            self.fail(f"expected a tensor, found {self.next}", hint=_SUM_OF_PRODUCTS)
        tensor = self.name("a tensor")
        if self.sees("["):
            self.fail("expected `(`, found `[`", hint=f"as in {_STATEMENT}")
        if tensor.text == "where":
            self.fail("expected a tensor, found `where`", tensor.span)
        indices: list[str] = []
        spans: list[Span] = []
        end = tensor.span
        if self.skip("("):
            while indices or not self.sees(")"):
                index = self.name("an index")
                indices.append(index.text)
                spans.append(index.span)
                if not self.skip(","):
                    break
            end = self.expect(")").span
        span = Span(FILE, tensor.line, tensor.column, end.end_line, end.end_column)
        return Written(Access(tensor.text, tuple(indices)), span, tuple(spans))

    # --- after `where` ---

    def clauses(self, source: Source) -> Source:
        if self.next.kind == "end":
            return source
        if self.next.text != "where":
            self.fail(f"expected `where` or the end, found {self.next}")
        self.take()
        extents: dict[str, tuple[int, Span]] = {}
        tensors: dict[str, Declared] = {}
        dtype: str | None = None
        while self.next.kind != "end":
            name = self.name("a clause")
            if self.skip("="):
                if name.text in extents:
                    self.fail(f"index {name.text} already has an extent", name.span)
                extents[name.text] = (self.natural("an extent"), name.span)
            elif self.skip(":"):
                if name.text in tensors:
                    self.fail(f"tensor {name.text} is described twice", name.span)
                tensors[name.text] = self.tensor(name)
            elif name.text in DTYPES:
                if dtype is not None:
                    self.fail(f"the element type is {dtype} already", name.span)
                dtype = name.text
            else:
                self.fail(
                    f"expected `=`, `:` or an element type after `where`, found `{name.text}`",
                    name.span,
                    "`i=3` gives an extent, `B: ds` a format; types are " + ", ".join(DTYPES),
                )
            if not self.skip(","):
                break
        if self.next.kind != "end":
            self.fail(f"expected `,` or the end, found {self.next}")
        self.known(source, extents, tensors)
        return Source(
            self.text, source.output, source.terms, extents, tensors, dtype or source.dtype
        )

    def known(
        self,
        source: Source,
        extents: dict[str, tuple[int, Span]],
        tensors: dict[str, Declared],
    ) -> None:
        """What is described must occur."""
        written = (source.output, *source.operands)
        indices = {index for w in written for index in w.access.indices}
        names = {w.access.tensor for w in written}
        for index, (_, span) in extents.items():
            if index not in indices:
                known = ", ".join(sorted(indices)) or "none"
                self.fail(f"there is no index `{index}`", span, f"indices are {known}")
        for name, declared in tensors.items():
            if name not in names:
                known = ", ".join(sorted(names))
                self.fail(f"there is no tensor `{name}`", declared.span, f"tensors are {known}")
            if name == source.output.access.tensor and declared.data is not None:
                self.fail(f"{name} is the output: it has no data", declared.span)

    def tensor(self, name: _Token) -> Declared:
        stored = self.format() if self.next.kind == "name" else None
        shape = None
        if self.skip("["):
            shape = self.integers("]", "an extent", self.natural)
        data = None
        if self.sees("{") or self.next.kind == "name":
            data = self.data()
        return Declared(name.span, stored, shape, data)

    def format(self) -> Format | None:
        token = self.next
        if _TENSORA.fullmatch(token.text):
            self.take()
            pairs = re.findall(r"([a-z])(\d+)", token.text)
            levels = tuple(LEVEL_OF[letter] for letter, _ in pairs)
            order = tuple(int(position) for _, position in pairs)
        elif _LEVELS.fullmatch(token.text):
            self.take()
            levels = tuple(LEVEL_OF[letter] for letter in token.text)
            order = self.order() if self.skip(":") else tuple(range(len(levels)))
        else:
            return None
        if len(levels) > MOST_INDICES:
            self.fail(f"a format has at most {MOST_INDICES} levels, not {len(levels)}", token.span)
        if sorted(order) != list(range(len(levels))):
            self.fail(
                f"{','.join(map(str, order))} is no order of {len(levels)} levels",
                token.span,
                "every position once, from 0: `ds:1,0`",
            )
        return Format(levels, order)

    def order(self) -> tuple[int, ...]:
        found = [self.natural("a position")]
        while self.sees(",") and self.tokens[self.at + 1].kind == "number":
            self.take()
            found.append(self.natural("a position"))
        return tuple(found)

    def integers(
        self, end: str, what: str = "a number", read: Callable[[str], int] | None = None
    ) -> tuple[int, ...]:
        """Numbers up to ``end``, which is taken."""
        found: list[int] = []
        while not self.sees(end):
            found.append((read or self.integer)(what))
            if not self.skip(","):
                break
        self.expect(end)
        return tuple(found)

    # --- data ---

    def data(self) -> Data:
        if self.sees("{"):
            return self.entries()
        word = self.take()
        if word.text == "computed":
            self.expect("(")
            output = self.name("an output").text
            self.expect(")")
            return Computed(output)
        if word.text not in [s.value for s in Structure]:
            letters = ", ".join(f"{level.letter} {level.value}" for level in Level)
            known = ", ".join(s.value for s in Structure)
            stored = _COMMON.get(word.text.lower())
            common = f"{word.text} is `{stored}`; " if stored else ""
            self.fail(
                f"`{word.text}` is neither a format nor a structure of data",
                word.span,
                f"{common}levels are {letters}; structures are {known}",
            )
        return self.drawn(Structure(word.text))

    def drawn(self, structure: Structure) -> Drawn:
        density, seed, values, unsorted = UNSAID.density, UNSAID.seed, INTEGERS, False
        counts = {"duplicates": 0, "zeros": 0}
        if self.skip("("):
            said: set[str] = set()
            while not self.sees(")"):
                word = self.name("a property of the data")
                if word.text in said:
                    self.fail(f"`{word.text}` is there twice", word.span)
                said.add(word.text)
                match word.text:
                    case "unsorted":
                        unsorted = True
                    case "integers" | "reals":
                        values = REALS if word.text == REALS else INTEGERS
                    case "density":
                        self.expect("=")
                        density = self.number("a density")
                        if not 0 <= density <= 1:
                            self.fail("a density is between 0 and 1", word.span)
                    case "seed":
                        self.expect("=")
                        seed = self.natural("a seed")
                    case "duplicates" | "zeros":
                        self.expect("=")
                        counts[word.text] = self.natural("a count")
                    case _:
                        self.fail(
                            f"data have no `{word.text}`",
                            word.span,
                            "they have density, seed, duplicates, zeros, unsorted, reals",
                        )
                if not self.skip(","):
                    break
            self.expect(")")
        return Drawn(structure, density, seed, values, **counts, unsorted=unsorted,
                     edits=self.edits())  # fmt: skip

    def entries(self) -> Entries:
        self.expect("{")
        coordinates, values = [], []
        while not self.sees("}"):
            self.expect("(")
            coordinates.append(self.integers(")"))
            self.expect(":")
            values.append(self.number("a value"))
            if not self.skip(","):
                break
        self.expect("}")
        return Entries(tuple(coordinates), tuple(values), self.edits())

    def edits(self) -> tuple[Edit, ...]:
        found: list[Edit] = []
        while self.skip("|"):
            word = self.name("an edit")
            self.expect("(")
            numbers = self.integers(")")
            if word.text == "transposed":
                found.append(Transposed(numbers))
                continue
            if word.text not in _EDITS:
                known = ", ".join(["transposed", *_EDITS])
                self.fail(f"there is no edit `{word.text}`", word.span, f"edits are {known}")
            kind, count = _EDITS[word.text]
            if len(numbers) != count:
                self.fail(f"`{word.text}` takes {count} numbers, not {len(numbers)}", word.span)
            found.append(kind(*numbers))
        return tuple(found)


def _names() -> Iterator[str]:
    """Names of tensors: A to Z, then T26, T27, …"""
    yield from map(chr, range(ord("A"), ord("Z") + 1))
    number = 26
    while True:
        yield f"T{number}"
        number += 1


def tensor_names(count: int) -> tuple[str, ...]:
    """The first names that einsum's notation gives, the output's first."""
    return tuple(islice(_names(), count))
