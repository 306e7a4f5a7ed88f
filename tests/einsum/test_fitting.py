"""Data that do not fit their tensor are refused however they are written, and where they are."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from reprise.data import data_path
from reprise.einsum import schema
from reprise.einsum.check import check_text
from reprise.einsum.data import materialise
from reprise.einsum.fitting import LARGEST_HELD, MOST, MOST_EXPONENT, MOST_INDICES, MOST_OPERANDS
from reprise.einsum.json_form import from_json, to_json
from reprise.einsum.kernel import KernelError, rebuilt
from reprise.einsum.settings import PERMISSIONS, Settings
from reprise.einsum.text import KernelSyntaxError, parse
from reprise.einsum.validity import Validity, load_kernel_rules

ANY = Validity(load_kernel_rules(), Settings(allowed=frozenset(PERMISSIONS)))
MISFITS = {
    "ds {(9,9): 1}": "coordinate (9, 9) is not in shape (3, 4)",
    "ds {(3,2): 1}": "coordinate (3, 2) is not in shape (3, 4)",
    "ds {(0): 1}": "coordinate (0,) is not in shape (3, 4)",
    "ds {(2,3): 1} | transposed(1,0)": "coordinate (2, 3) is not in shape (4, 3)",
    "ds {(0,0): 1e999}": "float64 does not hold inf",
    "ds {(0,0): 1.5}, int64": "int64 does not hold 1.5",
    "ds {(0,0): 2147483648}, int32": "int32 does not hold 2147483648",
    "ds {(0,0): 1e39}, float32": "float32 does not hold 1e+39",
    f"ds {{(0,0): {10**400}}}": "float64 does not hold 1000",
    "ds uniform(reals), int32": "int32 does not hold reals",
    f"ds uniform(seed={MOST + 1})": "a seed is from 0",
    "ds full | transposed(0,0)": "(0, 0) is no order of 2 axes",
    "ds full | transposed(0)": "(0,) is no order of 2 axes",
    "ds full | permuted(2,1)": "there is no axis 2 of 2",
    "ds full | kept(2,0,1)": "there is no axis 2 of 2",
    "ds full | kept(0,-1,1)": "from 0 to",
    "ds full | part(0,0)": "there is no part 0 of 0",
    "ds full | zeros(-1,0)": "from 0 to",
    "ds full | scaled(1001)": "2 to the power of 1001",
    f"ds full | reordered({MOST + 1})": "from 0 to",
}


@pytest.mark.parametrize(("data", "message"), MISFITS.items())
def test_a_text_is_refused_at_the_tensor(data: str, message: str) -> None:
    text = f"ij,jk->ik where i=3, B: {data}"
    (found,) = check_text(text, ANY)
    assert message in found.message
    assert text[found.span.column - 1 : found.span.end_column - 1] == "B"
    with pytest.raises(KernelError, match="tensor B: "):
        parse(text).kernel()


@pytest.mark.parametrize("data", MISFITS)
def test_json_is_refused_for_the_same(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:  # what no reading lets through
        patched.setattr("reprise.einsum.text.fitted", lambda kernel: kernel)
        misfit = parse(f"ij,jk->ik where i=3, B: {data}").kernel()
    with pytest.raises(KernelError):
        from_json(to_json(misfit))
    with pytest.raises(KernelError, match="tensor B: "):
        materialise(misfit)


@pytest.mark.parametrize("text", ["i->i where i={}", "i->i where B: d[{}]"])
def test_an_extent_has_a_limit(text: str) -> None:
    assert check_text(text.format(MOST), ANY) == []
    (found,) = check_text(text.format(MOST + 1), ANY)
    assert "an extent is from 0 to" in found.message


def test_limits_are_the_schemas_and_numpys() -> None:
    parts = json.loads(data_path(schema.FILE).read_text(encoding="utf-8"))["$defs"]
    assert parts["count"]["maximum"] == parts["seed"]["maximum"] == MOST
    edits = [edit["properties"] for edit in parts["edits"]["items"]["oneOf"]]
    (scaled,) = [edit["exponent"] for edit in edits if "exponent" in edit]
    assert (scaled["minimum"], scaled["maximum"]) == (-MOST_EXPONENT, MOST_EXPONENT)
    for dtype, largest in LARGEST_HELD.items():
        limits = np.finfo(dtype) if dtype.startswith("float") else np.iinfo(dtype)
        assert largest == limits.max


def test_what_overflows_by_its_edits_is_no_data() -> None:
    for text in (
        "i->i where B: d full | scaled(1000) | scaled(1000)",
        "i->i where B: d full | scaled(40), int32",
    ):
        with pytest.raises(KernelError, match="does not hold the values times 2"):
            materialise(parse(text).kernel())


def test_a_changed_kernel_is_asked_again() -> None:
    kernel = parse("A(i) = B(i) where i=3, B: d {(2): 1}").kernel()
    with pytest.raises(KernelError, match=r"coordinate \(2,\) is not in shape \(2,\)"):
        materialise(rebuilt(kernel, extents={"i": 2}))


def test_a_text_that_does_not_fit_still_has_its_violations() -> None:
    strict = Validity(load_kernel_rules(), Settings())
    codes = [d.code for d in check_text("ij->i where B: ds {(9,9): 1}", strict)]
    assert codes == ["lonely-index"]


def _many(count: int, name: str = "{}") -> list[str]:
    return [name.format(f"x{number}") for number in range(count)]


SIZES = [
    (lambda n: f"A(i) = {' * '.join(_many(n, 'B(i,{})'))}", MOST_INDICES - 1),
    (lambda n: f"A(i) = {' + '.join(_many(n, '{}(i)'))}", MOST_OPERANDS),
    (lambda n: f"A = B({','.join(_many(n))}) * C({','.join(_many(n))})", MOST_INDICES),
    (lambda n: f"A(i) = B({','.join('i' * n)})", MOST_INDICES),
    (lambda n: f"A({','.join(_many(n))}) = {' * '.join(_many(n, 'T{0}({0})'))}", MOST_INDICES),
]


@pytest.mark.parametrize(("text", "most"), SIZES)
def test_what_is_too_large_is_refused_before_any_rule_is_asked(
    text: Callable[[int], str], most: int
) -> None:
    parse(text(most)).kernel()
    with pytest.raises(KernelSyntaxError, match="at most 256"):
        parse(text(most + 1))


def test_json_has_the_same_limits() -> None:
    document = to_json(parse("i->i").kernel())
    document["terms"] *= MOST_OPERANDS
    from_json(document)
    document["terms"] *= 2
    with pytest.raises(KernelError, match="at most 256 operands, not 512"):
        from_json(document)


def test_a_format_is_refused_for_its_length() -> None:
    (found,) = check_text(f"i->i where B: {'s' * (MOST_INDICES + 1)}", ANY)
    assert "at most 256 levels" in found.message
