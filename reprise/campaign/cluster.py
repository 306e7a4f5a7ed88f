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
        """Results in the order of the items. If workers die of a batch, its items are tried one by
        one while nothing else runs, so that none is blamed for another's worker; those that are
        deadly alone are abandoned."""
        from distributed import KilledWorker

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
                batch, future = under_way.popleft()
                try:
                    found: list[Result] = future.result()
                except KilledWorker:
                    waiting = [other for other, _ in under_way]
                    self._client.cancel([future for _, future in under_way])
                    under_way.clear()
                    yield from self._one_by_one(batch)
                    under_way.extend((other, self._submit(other)) for other in waiting)
                else:
                    yield from found
        finally:
            self._client.cancel([future for _, future in under_way])

    def _threads(self) -> int:
        threads: dict[str, int] = self._client.nthreads()
        return max(1, sum(threads.values()))

    def _submit(self, batch: Sequence[Item]) -> Any:
        return self._client.submit(_run, self._key, self._work, list(batch), pure=False, retries=0)

    def _one_by_one(self, batch: Sequence[Item]) -> Iterator[Result]:
        from distributed import KilledWorker

        for item in batch:
            try:
                yield from self._submit([item]).result()
            except KilledWorker:
                yield self._work.abandoned(item)

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
