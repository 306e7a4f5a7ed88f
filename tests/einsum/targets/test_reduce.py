"""Kernels are made smaller while they fail, and stay kernels."""

from __future__ import annotations

from reprise.einsum.data import materialise
from reprise.einsum.kernel import Kernel, Level
from reprise.einsum.reduce import reduced
from reprise.einsum.reference import reference
from reprise.einsum.shape_class import shape_class
from reprise.einsum.text import parse


def has_sparse_output(kernel: Kernel) -> bool:
    return Level.COMPRESSED in kernel.tensors[0].format.levels


def test_a_failure_of_the_output_alone_becomes_a_copy_of_its_result() -> None:
    kernel = parse(
        "A(i,k) = B(i,j) * C(j,k) + D(i,k) where A: ss, B: ds, C: ds:1,0, D: ss"
    ).kernel()
    small, runs = reduced(kernel, has_sparse_output, 200)
    assert len(small.accesses) == 1
    assert shape_class(small).count("s") == 1
    assert runs <= 200


def two_sparse_operands(kernel: Kernel) -> bool:
    return sum(not t.format.is_dense for t in kernel.operands) >= 2


def test_what_a_failure_needs_is_kept() -> None:
    kernel = parse(
        "A(i,l) = B(i,j,k) * C(j,l) * D(k) where A: ss, B: sss, C: ds:1,0, D: d"
    ).kernel()
    small, _ = reduced(kernel, two_sparse_operands, 200)
    assert two_sparse_operands(small)
    assert small.tensors[0].format.is_dense
    assert all(extent == 1 for _, extent in small.extents)
    assert all(access.indices for access in (small.output, *small.accesses))


def test_entries_move_to_where_extents_can_be_small() -> None:
    kernel = parse(
        "A(i,j) = B(i,k) * C(i,j) where i=3, j=3, k=2, B: sd {(2,0): 1}, C: sd {(2,1): 1}"
    ).kernel()

    def fails(candidate: Kernel) -> bool:
        return two_sparse_operands(candidate) and evaluates_to_more_than_zeros(candidate)

    small, _ = reduced(kernel, fails, 200)
    assert [extent for _, extent in small.extents] == [1] * len(small.extents)


def evaluates_to_more_than_zeros(kernel: Kernel) -> bool:
    return bool(reference(kernel, materialise(kernel)).any())


def test_no_more_kernels_are_tried_than_allowed() -> None:
    kernel = parse("A(i,k) = B(i,j) * C(j,k) where A: ss, B: ss, C: ss").kernel()
    asked: list[Kernel] = []

    def fails(candidate: Kernel) -> bool:
        asked.append(candidate)
        return False

    small, runs = reduced(kernel, fails, 5)
    assert small == kernel
    assert runs == len(asked) == 5


def test_what_fails_nowhere_else_is_left_as_it_is() -> None:
    kernel = parse("A(i,k) = B(i,j) * C(j,k)").kernel()
    assert reduced(kernel, lambda _: False, 1000)[0] == kernel


def test_kernels_of_one_class_differ_in_names_order_and_extents() -> None:
    one = parse("A(i,k) = B(i,j) * C(j,k) where i=2, B: ds, C: ds:1,0").kernel()
    other = parse("X(m,n) = Y(l,n) * Z(m,l) where l=5, Z: ds, Y: ds:1,0").kernel()
    assert shape_class(one) == shape_class(other)
    dense = parse("A(i,k) = B(i,j) * C(j,k) where B: ds").kernel()
    assert shape_class(one) != shape_class(dense)
