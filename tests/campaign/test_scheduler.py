"""Results in the order of the items, each once, whatever becomes of the processes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from reprise.campaign.scheduler import InProcess, LocalProcesses, SchedulerError
from reprise.targets.discover import TargetError


@dataclass(frozen=True)
class Squares:
    """Squares numbers; some take long, some kill the process, some fail, some sets of them."""

    slow: frozenset[int] = frozenset()
    deadly: frozenset[int] = frozenset()
    failing: frozenset[int] = frozenset()
    stillborn: bool = False

    def open(self) -> Bench:
        if self.stillborn:
            os._exit(4)
        return Bench(self)

    def abandoned(self, item: int, /) -> int:
        return -item


class Bench:
    def __init__(self, work: Squares) -> None:
        self.work = work

    def run(self, batch: Sequence[int], /) -> Iterator[int]:
        for item in batch:
            if item in self.work.deadly:
                os._exit(5)
            if item in self.work.failing:
                raise TargetError(f"no target for {item}")
            time.sleep(0.2 if item in self.work.slow else 0)
            yield item * item

    def close(self) -> None: ...


def batches(stop: int, size: int) -> Iterator[range]:
    for start in range(0, stop, size):
        yield range(start, min(start + size, stop))


@pytest.mark.slow
def test_one_process_and_several_give_the_same() -> None:
    expected = [n * n for n in range(40)]
    assert list(InProcess(Bench(Squares())).run(batches(40, 7))) == expected
    work = Squares(slow=frozenset({0, 11}))
    scheduler = LocalProcesses(work, 3)
    try:
        assert list(scheduler.run(batches(40, 4))) == expected
    finally:
        scheduler.close()


@pytest.mark.slow
def test_a_deadly_item_is_abandoned_and_the_others_are_done() -> None:
    scheduler = LocalProcesses(Squares(deadly=frozenset({0, 5, 6, 19})), 2)
    try:
        found = list(scheduler.run(batches(20, 6)))
    finally:
        scheduler.close()
    assert found == [-n if n in (0, 5, 6, 19) else n * n for n in range(20)]


@pytest.mark.slow
def test_what_a_bench_raises_comes_out() -> None:
    scheduler = LocalProcesses(Squares(failing=frozenset({9})), 2)
    try:
        with pytest.raises(TargetError, match="no target for 9"):
            list(scheduler.run(batches(20, 3)))
    finally:
        scheduler.close()


@pytest.mark.slow
def test_processes_that_cannot_start_are_given_up() -> None:
    scheduler = LocalProcesses(Squares(stillborn=True), 1)
    try:
        with pytest.raises(SchedulerError, match=r"die when they start \(exit 4\)"):
            list(scheduler.run(batches(3, 1)))
    finally:
        scheduler.close()


@pytest.mark.slow
def test_batches_are_asked_for_when_they_can_be_started() -> None:
    asked = []

    def endless() -> Iterator[range]:
        start = 0
        while True:
            asked.append(start)
            yield range(start, start + 2)
            start += 2

    scheduler = LocalProcesses(Squares(slow=frozenset({0})), 2)
    try:
        results = scheduler.run(endless())
        assert next(results) == 0
        assert len(asked) <= 2 * 64 + 2
    finally:
        scheduler.close()
