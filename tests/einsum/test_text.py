"""Kernels as text: what is written can be read, and what cannot is said."""

from __future__ import annotations

import pytest
from hypothesis import given

from reprise.einsum.kernel import (
    Access,
    Drawn,
    Format,
    Kernel,
    KernelError,
    Level,
    Structure,
    Term,
    assemble,
)
from reprise.einsum.text import KernelSyntaxError, parse, print_text
from tests.einsum.kernels import kernels

D, S = Level.DENSE, Level.COMPRESSED


@pytest.mark.slow
@given(kernels())
def test_what_is_written_can_be_read(kernel: Kernel) -> None:
    assert parse(print_text(kernel)).kernel() == kernel


@pytest.mark.slow
@given(kernels(("row", "col", "k1", "_x")))
def test_names_may_be_longer_than_a_letter(kernel: Kernel) -> None:
    assert parse(print_text(kernel)).kernel() == kernel


def test_both_notations_say_the_same() -> None:
    where = "where i=3, j=4, k=5, B: ds, C: ds:1,0"
    ours = parse(f"A(i,k) = B(i,j) * C(j,k) + D(i,k) {where}").kernel()
    assert parse(f"ij,jk+ik->ik {where}").kernel() == ours
    assert ours.subscripts == "ij,jk+ik->ik"
    assert ours.statement == "A(i,k) = B(i,j) * C(j,k) + D(i,k)"


def test_a_kernel_is_what_was_written() -> None:
    kernel = parse("a = B(i,i) * c where i=7, B: us:1,0 banded(density=0.5, unsorted)").kernel()
    expected = assemble(
        Access("a", ()),
        [Term((Access("B", ("i", "i")), Access("c", ())))],
        {"i": 7},
        {"B": Format((Level.NONUNIQUE, S), (1, 0))},
        {"B": Drawn(Structure.BANDED, 0.5, 0, unsorted=True)},
    )
    assert kernel == expected


def test_tensoras_notation_of_formats_is_read_too() -> None:
    assert parse("ij->ij where B: d1s0").kernel().tensor("B").format == Format((D, S), (1, 0))


def test_scalars_have_no_letters() -> None:
    kernel = parse(",i->i").kernel()
    assert [access.indices for access in kernel.accesses] == [(), ("i",)]
    assert parse("i,i->").kernel().output.indices == ()


def test_extents_come_from_shapes_or_are_four() -> None:
    assert parse("ij,jk->ik where B: ds[2,7]").kernel().extent == {"i": 2, "j": 7, "k": 4}


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("", 1, "there is no kernel", "A(i,k)"),
        ("ij,jk", 6, "does not say what is computed", "->ik"),
        ("...ij->ij", 1, "`...` is not used", "bij,bjk->bik"),
        ("ij,j1->i", 5, "`1` is no index", "letters"),
        ("ij*jk->ik", 3, "expected `,` between operands", ""),
        ("ij->i,j", 6, "a kernel has one output", ""),
        ("A(i) = B(i,)", 12, "expected an index, found `)`", ""),
        ("A(i) = B(i", 11, "expected `)`, found the end", ""),
        ("A(i) = B(i) - C(i)", 13, "kernels have no `-`", "data"),
        ("A(i) += B(i)", 6, "expected `=`, found `+`", "sums already"),
        ("A(i) = (B(i)+C(i))*D(i)", 8, "expected a tensor", "a sum of products"),
        ("A(i) = 2*B(i)", 8, "expected a tensor, found `2`", "c * B(i)"),
        ("A(i) = B[i]", 9, "expected `(`, found `[`", "B(i,j)"),
        ("ij->ij where B: csc", 17, "neither a format nor", "csc is `ds:1,0`"),
        ("A(i) = B(i) where x=3", 19, "there is no index `x`", "indices are i"),
        ("A(i) = B(i) where i=-3", 21, "an extent is not negative", ""),
        ("A(i) = B(i) where i=3, i=4", 24, "already has an extent", ""),
        ("A(i) = B(i) where D: s", 19, "there is no tensor `D`", "tensors are A, B"),
        ("A(i) = B(i) where B: z", 22, "neither a format nor a structure", "d dense"),
        ("A(i) = B(i) where B: ds:1,1", 22, "1,1 is no order of 2 levels", "ds:1,0"),
        ("A(i) = B(i) where A: s full", 19, "A is the output", ""),
        ("A(i) = B(i) where B: s full(size=3)", 29, "data have no `size`", "density"),
        ("A(i) = B(i) where B: s full(density=3)", 29, "between 0 and 1", ""),
        ("A(i) = B(i) where B: s full | part(1)", 31, "takes 2 numbers, not 1", ""),
        ("A(i) = B(i) where B: s full | bend(1)", 31, "no edit `bend`", "transposed"),
        ("A(i) = B(i) where B: s full(seed=3, seed=4)", 37, "`seed` is there twice", ""),
        ("A(i) = B(i) where B: s[-3]", 24, "an extent is not negative", ""),
        ("A(i) = B(i) where i=\uff11", 21, "expected an extent", ""),
        ("A(i) = B(i) where float32, int32", 28, "the element type is float32 already", ""),
        ("A(i) = B(i) where float16", 19, "an element type after `where`", "float32"),
        ("A(i) = B(i) ; x", 13, "expected `where` or the end", ""),
    ],
)
def test_what_cannot_be_read_is_said(text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(KernelSyntaxError) as caught:
        parse(text)
    diagnostic = caught.value.diagnostic
    assert diagnostic.span.column == column
    assert message in diagnostic.message
    assert hint in (diagnostic.hint or "")


def test_positions_count_lines() -> None:
    with pytest.raises(KernelSyntaxError) as caught:
        parse("A(i) =\n  B(i)\n  where B: z")
    span = caught.value.diagnostic.span
    assert (span.line, span.column) == (3, 12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A(i) = A(i)", "is the output, and is also read"),
        ("A(i) = B(i) * B(i,i)", "used with 1 and 2 indices"),
        ("A(i,j) = B(i,j) * B(j,i) where i=2, j=3", "used with shapes"),
        ("A(i) = B(i) where B: ss", "has 1 indices, its format ss 2 levels"),
    ],
)
def test_a_kernel_hangs_together(text: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        parse(text).kernel()
