"""Shows a reduction of a kernel while it runs: a line that changes, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reprise.einsum.distill.reducing import Watch, silent
from reprise.einsum.kernel import Kernel
from reprise.lang.display import counted


@contextmanager
def watching(live: bool) -> Iterator[Watch]:
    """Somebody to be told; nothing is shown unless ``live``."""
    if not live:
        yield silent
        return
    from rich.console import Console

    with Console(stderr=True).status("reducing") as status:

        def watch(step: str, tried: int, kernel: Kernel) -> None:
            operands = counted(len(kernel.accesses), "operand")
            status.update(f"{step}: {counted(tried, 'kernel')} tried, {operands} left")

        yield watch
