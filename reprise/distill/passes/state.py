"""What a pass sees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from reprise.distill.flow import Flow, Source
from reprise.distill.forms import Form
from reprise.distill.rederive import Rederiver
from reprise.uir.graph import TensorType


@dataclass(frozen=True, eq=False)
class State:
    """The best program so far. ``rederive`` is there if the form knows types well enough to change
    them. ``careful``: values matter, so more than one choice of them is worth a try."""

    flow: Flow
    form: Form
    rederive: Rederiver | None = None
    careful: bool = False

    @cached_property
    def types(self) -> Mapping[str, TensorType]:
        return self.form.types(self.flow)

    @cached_property
    def values(self) -> Mapping[str, Source]:
        return self.form.values(self.flow)


Place = tuple[int, ...]
Proposals = Iterator[tuple[Place, Flow | None]]
Pass = Callable[[State, Place], Proposals]
