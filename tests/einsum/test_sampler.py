"""Generated kernels are valid, all that are valid can come, and they come again."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from itertools import permutations, product
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reprise.einsum.data import materialise
from reprise.einsum.extents import Stuck
from reprise.einsum.generate import BLOCK, Request, Source, generate
from reprise.einsum.json_form import dumps, loads
from reprise.einsum.kernel import Kernel, KernelError, Level, Structure
from reprise.einsum.options import Budget, Options
from reprise.einsum.reference import evaluate, is_exact
from reprise.einsum.text import parse
from reprise.einsum.validity import Validity, load_kernel_rules
from tests.einsum.validator import problems

RULES = load_kernel_rules()
WIDE = Options(
    operands=(1, 4), terms=(2, 3), ranks=(1, 4), sums=0.3, diagonals=0.2, scalars=0.1,
    reductions=0.2, broadcasts=0.3, outer_products=0.6, repeated_tensors=0.2, empty=0.1,
    units=0.1, zeros=0.3, duplicates=0.3, unsorted=0.3,
    levels=tuple(Level), dtypes=("float64", "float32"),
)  # fmt: skip


def lines(options: Options, count: int, seed: int = 0) -> list[str]:
    return "".join(generate(Request(count, seed, options))).splitlines()


def drawn(options: Options, count: int, seed: int = 0) -> list[Kernel]:
    return [loads(line) for line in lines(options, count, seed)]


@st.composite
def options(draw: st.DrawFn) -> Options:
    share = st.sampled_from([0.0, 0.0, 0.2, 1.0])
    low, rank = draw(st.integers(1, 3)), draw(st.integers(1, 2))
    several = draw(st.integers(2, 3))
    return Options(
        operands=(low, draw(st.integers(max(low, several), 4))),
        terms=(2, several),
        ranks=(rank, draw(st.integers(rank, 3))),
        indices=draw(st.integers(2, 5)),
        keep=draw(st.sampled_from([0.2, 0.5, 0.8])),
        sums=draw(share),
        diagonals=draw(share),
        scalars=draw(st.sampled_from([0.0, 0.2])),
        reductions=draw(share),
        broadcasts=draw(share),
        outer_products=draw(share),
        repeated_tensors=draw(share),
        empty=draw(st.sampled_from([0.0, 0.2])),
        units=draw(st.sampled_from([0.0, 0.2])),
        levels=draw(st.sampled_from([(Level.DENSE,), tuple(Level), (Level.COMPRESSED,)])),
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(options(), st.integers(0, 1000))
def test_rules_and_an_independent_validator_object_to_nothing(options: Options, seed: int) -> None:
    kept = options.settings
    validity = Validity(RULES, kept)
    for line in lines(options, 40, seed):
        assert not problems(json.loads(line), kept.allowed, options.ranks[1])
        assert not validity.of(loads(line))


@pytest.mark.parametrize("options", [Options(), WIDE])
def test_lines_are_as_kernels_are_written(options: Options) -> None:
    for line in lines(options, 1000):
        assert dumps(loads(line)) == line


def test_numpy_and_opt_einsum_accept_them() -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    for kernel in drawn(Options(sums=0, operands=(2, 4)), 300):
        stored = materialise(kernel)
        assert is_exact(kernel, stored)
        operands = [stored[access.tensor].dense() for access in kernel.accesses]
        expected = np.einsum(kernel.subscripts, *operands)
        assert (opt_einsum.contract(kernel.subscripts, *operands) == expected).all()
        dense = {name: entries.dense() for name, entries in stored.items()}
        assert (evaluate(kernel, dense) == expected).all()


@pytest.mark.slow
def test_all_valid_kernels_of_a_small_space_can_come() -> None:
    """The sampler against the rules: what they permit, exhaustively, is what it draws."""
    small = Options(
        operands=(2, 2), ranks=(1, 2), indices=2, sums=0, diagonals=0.5, scalars=0.0,
        repeated_tensors=0, reductions=0.5, outer_products=0.5, empty=0, units=0,
    )  # fmt: skip
    validity = Validity(RULES, small.settings)
    words = ["".join(w) for n in (1, 2) for w in product("ij", repeat=n)]
    outputs = ["".join(w) for n in (0, 1, 2) for w in permutations("ij", n)]
    permitted = {
        text
        for text in (f"{b},{c}->{a}" for b, c, a in product(words, words, outputs))
        if not validity.of(parse(text).kernel())
    }
    assert 40 < len(permitted) < len(words) ** 2 * len(outputs)
    assert {kernel.subscripts for kernel in drawn(small, 6000)} == permitted


@pytest.mark.slow
def test_a_share_of_nothing_is_never_there() -> None:
    plain = Options(
        sums=0, diagonals=0, scalars=0, repeated_tensors=0, outer_products=0, empty=0, units=0,
        orders=0, zeros=0, duplicates=0, unsorted=0, dense_outputs=1,
        structures=((Structure.BANDED, 1),), densities=(0.5,),
    )  # fmt: skip
    for kernel in drawn(plain, 2000):
        document = json.loads(dumps(kernel))
        assert not problems(document, frozenset(), 3)
        assert kernel.is_product and all(t.format.is_ordered for t in kernel.tensors)
        assert kernel.tensors[0].format.is_dense
        assert {t["data"]["structure"] for t in document["tensors"][1:]} == {"banded"}
        assert not re.search("zeros|duplicates|unsorted", dumps(kernel))


@pytest.mark.slow
def test_everything_that_has_a_share_comes() -> None:
    kernels = drawn(WIDE, 4000)
    text = "\n".join(map(dumps, kernels))
    for word in ("zeros", "duplicates", "unsorted", "nonunique", "singleton", "float32",
                 *(s.value for s in Structure)):  # fmt: skip
        assert f'"{word}"' in text
    extents = Counter(extent for kernel in kernels for _, extent in kernel.extents)
    assert {0, 1, 2, 3, 4, 5} == set(extents)
    accesses = [access for kernel in kernels for access in kernel.accesses]
    assert any(len(set(a.indices)) < len(a.indices) for a in accesses)
    assert any(not a.indices for a in accesses) and any(not k.output.indices for k in kernels)
    assert {len(kernel.terms) for kernel in kernels} == {1, 2, 3}
    assert {len(kernel.accesses) for kernel in kernels} == {1, 2, 3, 4}
    assert any(len(kernel.operands) < len(kernel.accesses) for kernel in kernels)
    for permission in ("reductions", "broadcasts", "outer_products"):
        strict = WIDE.settings.allowed - {permission}
        assert any(problems(json.loads(dumps(k)), strict, 4) for k in kernels)


@pytest.mark.slow
def test_most_kernels_are_different() -> None:
    found = {(k.statement, k.extents, tuple(t.format for t in k.tensors))
             for k in drawn(Options(), 5000)}  # fmt: skip
    assert len(found) > 4500


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_processes() -> None:
    def digest(jobs: int, seed: int = 3) -> str:
        request = Request(3 * BLOCK + 7, seed)
        return hashlib.sha256("".join(generate(request, jobs)).encode()).hexdigest()

    assert digest(1) == digest(2) == digest(5)
    assert digest(1) != digest(1, seed=4)


def test_a_kernel_depends_on_its_place_alone() -> None:
    few, many = (Source(Request(count, 9)).block(1) for count in (BLOCK + 3, 5 * BLOCK))
    assert many.startswith(few)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"operands": (3, 2)}, "3 to 2 is no range"),
        ({"operands": (0, 2)}, "from 1 to 25"),
        ({"ranks": (1, 7)}, "from 1 to 6"),
        ({"ranks": (0, 2)}, "from 1 to 6"),
        ({"ranks": (1, 6), "indices": 26}, "26 are too many for operands of up to 6"),
        ({"ranks": (3, 3), "indices": 2, "diagonals": 0}, "need as many indices"),
        ({"keep": 1.5}, "a share is between 0 and 1"),
        ({"operands": (1, 1)}, "a sum of 2 terms needs as many"),
        ({"dtypes": ("int32",), "values": "reals"}, "integers cannot hold reals"),
        ({"extents": (0, 3)}, "says how often"),
        ({"levels": ()}, "at least one of each"),
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        Options(**wrong)  # type: ignore[arg-type]


# --- extents -------------------------------------------------------------------------------------


def test_upper_bounds_are_kept() -> None:
    budget = Budget(elements=(0, 30), iterations=(0, 100))
    for kernel in drawn(Options(extents=(2, 9), budget=budget), 1000):
        assert all(np.prod(shape) <= 30 for shape in kernel.shapes.values())
        assert np.prod([extent for _, extent in kernel.extents]) <= 100


@pytest.mark.slow
def test_extents_that_are_tied_together_are_solved() -> None:
    """All tensors of 24 elements: drawing finds such extents too rarely."""
    tied = Options(
        ranks=(1, 3), extents=(2, 24), scalars=0, empty=0, units=0,
        budget=Budget(elements=(24, 24)),
    )  # fmt: skip
    kernels = drawn(tied, 15)
    assert all(np.prod(shape) == 24 for k in kernels for shape in k.shapes.values())
    assert len({kernel.extents for kernel in kernels}) > 8
    assert drawn(tied, 15) == kernels


@pytest.mark.slow
def test_memory_and_entries_are_bounded() -> None:
    budget = Budget(memory=2000, entries=(5, 40))
    for kernel in drawn(Options(extents=(2, 9), budget=budget), 40):
        sizes = {name: np.prod(shape) for name, shape in kernel.shapes.items()}
        used = [sizes[access.tensor] for access in (kernel.output, *kernel.accesses)]
        assert 8 * sum(used) <= 2000
        document = json.loads(dumps(kernel))
        density = {
            t["name"]: {"empty": 0.0, "full": 1.0}.get(t["data"]["structure"], t["data"]["density"])
            for t in document["tensors"][1:]
        }
        if len(kernel.operands) == len(kernel.accesses):
            assert 5 <= sum(density[n] * sizes[n] for n in density) <= 40 + 1e-9


def test_a_budget_that_nothing_keeps_to_is_said() -> None:
    impossible = Options(ranks=(2, 2), extents=(5, 6), units=0, budget=Budget(elements=(7, 7)))
    with pytest.raises(Stuck, match=r"no extents keep to the budget; in the way are: .*7"):
        lines(impossible, 10)


def test_options_that_leave_no_kernel_are_said() -> None:
    lonely = Options(operands=(1, 1), sums=0, keep=0, ranks=(1, 1), scalars=0, indices=1)
    assert {kernel.subscripts for kernel in drawn(lonely, 20)} == {"i->i"}
    sampler = Source(Request(1, 0, Options(ranks=(3, 3), sums=1, terms=(3, 3), operands=(3, 3),
                                           outer_products=0, indices=3, scalars=0)))  # fmt: skip
    assert sampler.maker.line(Random(0))  # type: ignore[union-attr]


def test_kernels_that_no_budget_allows_do_not_add_up() -> None:
    """Scalars have one element, so that one kernel in twenty is drawn in vain; blocks may be made
    anywhere, so that it must not matter which were made before."""
    options = Options(budget=Budget(elements=(2, 300)), sums=0)
    source = Source(Request(4 * BLOCK, 7, options))
    blocks = [source.block(number) for number in range(4)]
    alone = Source(Request(4 * BLOCK, 7, options)).block(3)
    assert alone == blocks[3]


@pytest.mark.parametrize("weights", [(0.0,), (-1.0, 3.0), (float("nan"),), (float("inf"), 1.0)])
def test_structures_have_weights_that_mean_something(weights: tuple[float, ...]) -> None:
    with pytest.raises(KernelError, match="structures: how often"):
        Options(structures=tuple(zip(Structure, weights, strict=False)))
