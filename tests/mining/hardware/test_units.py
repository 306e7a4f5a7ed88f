"""Sizes are exact and converted once; a size is never taken for a count."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.mining.hardware.expressions import ExpressionError, evaluate, parse
from reprise.mining.hardware.units import Quantity, UnitError, in_unit, quantity, written


@pytest.mark.parametrize(
    ("text", "bits"),
    [("1 byte", 8), ("1.5 KiB", 12288), ("2 kB", 16000), ("3 GiB", 3 << 33), ("0x10 b", 16)],
)
def test_sizes_as_people_write_them(text: str, bits: int) -> None:
    number = written(text)
    assert number is not None
    assert in_unit(quantity(*number), "bits") == bits


@given(st.integers(1, 10**40))
def test_no_size_is_rounded(size: int) -> None:
    assert in_unit(quantity(size, "bytes"), "bits") == 8 * size
    assert in_unit(Quantity(Fraction(8 * size), 1), "bytes") == size


def test_a_part_of_a_byte_is_no_number_of_bytes() -> None:
    with pytest.raises(UnitError, match="not a whole number of bytes"):
        in_unit(quantity(12, "bits"), "bytes")


def test_a_size_and_a_count_do_not_add() -> None:
    with pytest.raises(UnitError):
        evaluate(parse("a + 1"), lambda name: quantity(4, "bytes"))


@pytest.mark.parametrize("text", ["2 ** 9999", "2 ** 200 * 2 ** 200", "__import__('os')", "1 / 0"])
def test_an_expression_is_arithmetic_of_ordinary_size(text: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(parse(text), lambda name: Quantity(Fraction(1)))
