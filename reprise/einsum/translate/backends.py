"""What is known of each target for kernels: how it is spoken to, and what suits it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, cast

from reprise.einsum.translate.script import Translator


@dataclass(frozen=True, slots=True)
class Backend:
    """A target for kernels. ``limits``: its name in ``rules/einsum/targets``, whose limits kernels
    keep to; "" if it does not refuse what it does not do, so that this is among its known bugs.
    ``mutants``: variants of each kernel; ``tries``: how many smaller kernels are run to reduce a
    wrong one; both by how long the target takes for one. ``options``: which kernels suit it, by the
    names of :class:`reprise.einsum.options.Options`."""

    module: str
    limits: str
    mutants: int = 6
    tries: int = 150
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def aims(self) -> tuple[str, ...]:
        """What kernels are for, to rules."""
        return (self.limits,) if self.limits else ()

    @property
    def translator(self) -> Translator:
        return cast(Translator, import_module(f"reprise.einsum.translate.{self.module}"))


_TWO = {"operands": (1, 2), "terms": (2, 2), "diagonals": 0.0, "scalars": 0.0}
"""Libraries of matrices: a product of two, or a sum."""

BACKENDS = {
    "tensora": Backend("tensora", "tensora", options={"diagonals": 0.0}),
    "finch": Backend(
        "finch", "finch", mutants=3, tries=12, options={"diagonals": 0.0, "sums": 0.0}
    ),
    "finch-julia": Backend("finch_julia", "finch", options={"diagonals": 0.0, "sums": 0.0}),
    "pydata-sparse": Backend("pydata_sparse", "pydata"),
    "scipy-sparse": Backend("scipy_sparse", "scipy", options=_TWO),
    "torch-sparse": Backend("torch_sparse", "torch", options=_TWO),
    "mlir-sparse": Backend(
        "mlir_sparse",
        "mlir",
        mutants=4,
        tries=60,
        options={"diagonals": 0.0, "sums": 0.0, "scalars": 0.0},
    ),
    "taco": Backend(
        "taco",
        "",
        mutants=4,
        tries=100,
        options={"diagonals": 0.0, "scalars": 0.0, "empty": 0.0},
    ),
}
"""By the target's name."""


def rule_names(targets: Iterable[str]) -> tuple[str, ...]:
    """The names that rules have for targets, which may be called either way, each once."""
    limits = {name: backend.limits or name for name, backend in BACKENDS.items()}
    return tuple(dict.fromkeys(limits.get(name, name) for name in targets))
