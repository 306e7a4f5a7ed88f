"""What kind of programs to generate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reprise.lang.dtypes import DTYPES

DTYPE_WEIGHTS: Mapping[str, int] = {
    "float32": 10,
    "float64": 3,
    "float16": 2,
    "int64": 3,
    "int32": 3,
    "int16": 1,
    "int8": 2,
    "uint8": 1,
    "bool": 2,
    "string": 0,
}
"""How often an element type is drawn where there is a choice: all those that the targets share,
float32 first, as in the paper (§3.2). One of weight 0 is used where an operand can be nothing
else."""


ON_REQUEST = frozenset({"random", "data_dependent"})
"""Flags of operators that are generated if they are asked for."""


class OptionsError(ValueError):
    """Options that no program can meet; the message says which."""


@dataclass(frozen=True)
class Options:
    """The generator's options. Shares are probabilities.

    ``nodes``: operators in a program. ``attempts``: R of Algorithm 1. ``key``: what a rejection
    excludes, ``exact`` or as in the ``paper`` (``reprise.synth.keys``). ``weights``: by operator
    or category, 1 where nothing is said; 0 leaves out. ``include``/``exclude`` name operators and
    categories. ``initializers``: the share of sources that are stored in the model.
    ``no_inputs``: the share of programs without any input. ``empty``: the share of programs that
    may have extents of 0. ``special``: the share of sources with special floats among their values.
    ``results``: how often a result other than the first is asked for.
    ``expose``: the share of tensors that are graph outputs though something reads them.
    ``join``: how often a second operand is looked for in the graph before one is drawn; ``recent``:
    how often an operand is one of the youngest tensors, which makes programs deep, not wide.
    ``backward``: how often a node is made backwards, so that its result is what an operand of the
    next one must be (reshape to (1, 1024) from (1, 32, 32)).
    ``also``: flags of operators that are left out otherwise: ``random`` (results that differ from
    run to run), ``data_dependent`` (extents that depend on values; nothing reads such results).
    ``signatures``: files with operators besides those that ship (``reprise mine signatures``).
    """

    nodes: int = 10
    attempts: int = 8
    key: str = "exact"
    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    weights: Mapping[str, float] = field(default_factory=dict)
    dtypes: Mapping[str, int] = field(default_factory=lambda: dict(DTYPE_WEIGHTS))
    min_rank: int = 0
    max_rank: int = 4
    max_extent: int = 32
    max_elements: int = 4096
    initializers: float = 0.35
    no_inputs: float = 0.05
    empty: float = 0.02
    special: float = 0.04
    results: float = 0.4
    expose: float = 0.08
    join: float = 0.5
    recent: float = 0.6
    backward: float = 0.1
    also: frozenset[str] = frozenset()
    signatures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises OptionsError for what makes no sense."""
        for name in (
            "initializers",
            "no_inputs",
            "empty",
            "special",
            "results",
            "expose",
            "join",
            "recent",
        ):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise OptionsError(f"{name} must be a share between 0 and 1")
        for name in ("nodes", "attempts", "max_extent", "max_elements"):
            if getattr(self, name) < 1:
                raise OptionsError(f"{name} must be at least 1")
        if not 0 <= self.min_rank <= self.max_rank <= 5:
            raise OptionsError("ranks must satisfy 0 <= min_rank <= max_rank <= 5")
        if self.key not in ("exact", "paper"):
            raise OptionsError("key must be `exact` or `paper`")
        if unknown := sorted(self.also - ON_REQUEST):
            raise OptionsError(f"also: not {' or '.join(sorted(ON_REQUEST))}: {', '.join(unknown)}")
        unknown = sorted(set(self.dtypes) - set(DTYPES))
        if unknown:
            raise OptionsError(f"no such element type: {', '.join(unknown)}")
        if not any(self.dtypes.values()):
            raise OptionsError("no element type is left")
