"""Kernels that grow under rules: of targets, and of whoever adds some."""

from __future__ import annotations

from math import prod
from pathlib import Path
from random import Random

import pytest

from reprise.einsum.extents import Stuck
from reprise.einsum.generate import Request, Source
from reprise.einsum.grow import Grower
from reprise.einsum.kernel import Kernel, Level
from reprise.einsum.options import Budget, Options
from reprise.einsum.validity import Validity, load_kernel_rules

WIDE = {
    "operands": (1, 4),
    "terms": (2, 3),
    "ranks": (1, 3),
    "sums": 0.3,
    "diagonals": 0.2,
    "scalars": 0.1,
    "outer_products": 0.0,
    "repeated_tensors": 0.3,
    "empty": 0.1,
    "units": 0.1,
}


def grown(options: Options, count: int, *rules: Path) -> list[Kernel]:
    loaded = load_kernel_rules(rules)
    grower = Grower(options, Validity(loaded, options.settings))
    rng = Random(1)
    kernels = [grower.kernel(rng) for _ in range(count)]
    again = Validity(loaded, options.settings)
    assert not [v for kernel in kernels for v in again.of(kernel)]
    return kernels


@pytest.mark.parametrize("target", ["taco", "finch", "tensora"])
def test_what_grows_for_a_target_keeps_to_its_limits(target: str) -> None:
    options = Options(**WIDE, levels=tuple(Level), targets=(target,))  # type: ignore[arg-type]
    kernels = grown(options, 60)
    assert len({kernel.statement for kernel in kernels}) > 40
    stored = [tensor.format for kernel in kernels for tensor in kernel.tensors]
    assert any(not format.is_dense for format in stored)


def test_all_that_options_permit_grows() -> None:
    kernels = grown(Options(**WIDE), 150)  # type: ignore[arg-type]
    assert {len(kernel.terms) for kernel in kernels} == {1, 2, 3}
    accesses = [access for kernel in kernels for access in kernel.accesses]
    assert any(len(set(a.indices)) < len(a.indices) for a in accesses)
    assert any(not a.indices for a in accesses)
    assert any(len(kernel.operands) < len(kernel.accesses) for kernel in kernels)


def test_a_known_bug_is_steered_around(tmp_path: Path) -> None:
    """A rule over formats and roles of indices, as distilling a finding gives one."""
    known = tmp_path / "known.rules"
    known.write_text(
        'deny compressed_inside(T, L) "level {L} of {T} is compressed, and summed over" :-\n'
        "    level(T, L, compressed, P), operand(O, _, T), operand_index(O, P, I),\n"
        "    not output_index(_, I).\n"
    )
    options = Options(operands=(2, 3), sums=0, scalars=0)
    kernels = grown(options, 60, known)

    def has_it(kernel: Kernel) -> bool:
        return any(
            level is Level.COMPRESSED and access.indices[position] not in kernel.output.indices
            for access in kernel.accesses
            for stored in [kernel.tensor(access.tensor).format]
            for level, position in zip(stored.levels, stored.order, strict=True)
        )

    assert not any(map(has_it, kernels))
    assert sum(map(has_it, grown(options, 60))) > 30
    assert Source(Request(1, 0, options, (known,))).request.is_guided


def test_extents_that_a_rule_changes_keep_to_the_budget(tmp_path: Path) -> None:
    square = tmp_path / "square.rules"
    square.write_text(
        'deny not_square(I, J) "{I} and {J} differ" :- extent(I, N), extent(J, M), N < M.\n'
    )
    options = Options(budget=Budget(elements=(5, 30)), scalars=0, empty=0, units=0)
    for kernel in grown(options, 40, square):
        assert len(set(kernel.extent.values())) == 1
        assert all(5 <= prod(shape) <= 30 for shape in kernel.shapes.values())


def test_rules_that_leave_nothing_are_said(tmp_path: Path) -> None:
    harsh = tmp_path / "harsh.rules"
    harsh.write_text('deny no_operand(O) "operand {O}" :- operand(O, _, _).\n')
    with pytest.raises(Stuck, match="keeps to the rules"):
        grown(Options(), 1, harsh)
