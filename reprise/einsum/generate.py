"""Files of kernels: the same bytes for the same seed and options, whatever the number of processes.

Kernels are made in blocks; each block has a generator of its own that follows from the seed and the
block's number, so that blocks can be made anywhere, and are joined in their order.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from reprise.einsum.grow import Grower
from reprise.einsum.json_form import dumps
from reprise.einsum.options import Options
from reprise.einsum.sampler import Sampler
from reprise.einsum.tables import make_tables
from reprise.einsum.validity import Validity, load_kernel_rules

BLOCK = 500
"""Kernels in a block."""


@dataclass(frozen=True, slots=True)
class Request:
    """Which kernels to make. ``rules`` are further files of deny rules that kernels keep to."""

    count: int
    seed: int = 0
    options: Options = Options()
    rules: tuple[Path, ...] = ()

    @property
    def is_guided(self) -> bool:
        """Whether there are rules besides those of validity: kernels then grow under them."""
        return bool(self.rules or self.options.targets)

    @property
    def blocks(self) -> int:
        return -(-self.count // BLOCK)


class Source:
    """Makes the blocks of a request, in one process."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.validity = Validity(load_kernel_rules(request.rules), request.options.settings)
        self.maker: Grower | Sampler
        if request.is_guided:
            self.maker = Grower(request.options, self.validity)
        else:
            self.maker = Sampler(request.options, make_tables(request.options, self.validity))

    def block(self, number: int) -> str:
        """The lines of a block. Raises Stuck."""
        rng = Random(f"{self.request.seed}/{number}")
        count = min(BLOCK, self.request.count - number * BLOCK)
        maker = self.maker
        if isinstance(maker, Sampler):
            lines = [maker.line(rng) for _ in range(count)]
        else:
            lines = [dumps(maker.kernel(rng)) for _ in range(count)]
        return "\n".join(lines) + "\n"


def generate(request: Request, jobs: int = 1) -> Iterator[str]:
    """The blocks of a request, in order. Raises Stuck, RulesError or KernelError."""
    source = Source(request)
    if jobs <= 1 or request.blocks <= 1:
        yield from map(source.block, range(request.blocks))
        return
    # Processes are forked, so that each has the tables without making them again.
    context = multiprocessing.get_context("fork")
    with context.Pool(min(jobs, request.blocks), _begin, (source,)) as pool:
        yield from pool.imap(_block, range(request.blocks), chunksize=4)


_source: Source | None = None
"""In a process of :func:`generate`: what makes its blocks."""


def _begin(source: Source) -> None:
    """Before the first block. Ctrl-C is the parent's, which ends its processes itself."""
    global _source
    _source = source
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _block(number: int) -> str:
    assert _source is not None
    return _source.block(number)
