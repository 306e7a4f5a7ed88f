"""A campaign's work on a Dask cluster, behind the same two methods as local processes.

``reprise fuzz --cluster ADDRESS`` sends batches to the workers of a ``dask-scheduler``; each of
them sets up a bench once, with a target of its own. Workers need Reprise, the target's interpreter
at the same path and, for ``--learn``, the run's folder (a shared file system). Programs depend on
their numbers alone, so a run that began on one machine goes on on a cluster, and back.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar

from reprise.campaign.scheduler import SchedulerError, Work

Item = TypeVar("Item")
Result = TypeVar("Result")

_AHEAD = 2
"""Batches under way for each worker thread: one at work, one waiting."""
_WAIT = 15
"""Seconds in which the scheduler must answer."""


class DaskCluster(Generic[Item, Result]):
    """See the module. Raises SchedulerError if there is no scheduler at ``address`` or it has no
    workers."""

    def __init__(self, work: Work[Item, Result], address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            raise SchedulerError("--cluster needs Dask: pip install 'reprise[cluster]'") from error
        self._work = work
        try:
            client: Any = distributed.Client
            self._client = client(address, timeout=_WAIT, set_as_default=False)
            self._client.wait_for_workers(1, timeout=_WAIT)
        except (OSError, TimeoutError, ValueError) as error:
            raise SchedulerError(f"no Dask scheduler with workers at {address}: {error}") from error
        self._key = f"reprise-{os.getpid()}-{id(self)}"

    def run(self, batches: Iterator[Sequence[Item]], /) -> Iterator[Result]:
        """Results in the order of the items."""
        under_way: deque[tuple[Sequence[Item], Any]] = deque()
        try:
            while True:
                while len(under_way) < _AHEAD * self._threads():
                    batch = next(batches, None)
                    if batch is None:
                        break
                    under_way.append((batch, self._submit(batch)))
                if not under_way:
                    return
                yield from self._collect(*under_way.popleft())
        finally:
            self._client.cancel([future for _, future in under_way])

    def _threads(self) -> int:
        threads: dict[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def _submit(self, batch: Sequence[Item]) -> Any:
        return self._client.submit(_run, self._key, self._work, list(batch), pure=False, retries=0)

    def _collect(self, batch: Sequence[Item], future: Any) -> Iterator[Result]:
        """A batch's results. If workers die of it, its items are tried one by one, and those that
        are deadly alone are abandoned."""
        from distributed import KilledWorker

        try:
            yield from future.result()
        except KilledWorker:
            if len(batch) == 1:
                yield self._work.abandoned(batch[0])
                return
            alone = [([item], self._submit([item])) for item in batch]
            for one, its in alone:
                yield from self._collect(one, its)

    def close(self) -> None:
        """End the work. Benches end with their workers' interest in them."""
        with contextlib.suppress(Exception):  # a cluster that is gone has nothing to forget
            self._client.run(_forget, self._key)
        self._client.close(timeout=_WAIT)


_LOCK = Lock()
_BENCHES: dict[str, Any] = {}


def _run(key: str, work: Work[Any, Any], batch: list[Any]) -> list[Any]:
    """A batch, on the worker, whose threads take turns: a bench does one thing at a time."""
    with _LOCK:
        bench = _BENCHES.get(key)
        if bench is None:
            bench = _BENCHES[key] = work.open()
        return list(bench.run(batch))


def _forget(key: str) -> None:
    with _LOCK:
        bench = _BENCHES.pop(key, None)
        if bench is not None:
            bench.close()
