"""A Dask cluster does a campaign's work as local processes do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reprise.campaign.cluster import DaskCluster
from reprise.campaign.records import End
from reprise.campaign.run import Budget, Campaign
from reprise.campaign.scheduler import SchedulerError
from reprise.campaign.writer import RunWriter
from reprise.targets.discover import TargetError
from tests.campaign.test_scheduler import Squares, batches
from tests.campaign.toy import Silent, contents, fuzz, toy_work

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
    ) as cluster:
        yield cluster.scheduler_address


def results(address: str, work: Squares, count: int, size: int) -> list[int]:
    scheduler = DaskCluster(work, address)
    try:
        return list(scheduler.run(batches(count, size)))
    finally:
        scheduler.close()


def test_results_come_in_order(address: str) -> None:
    work = Squares(slow=frozenset({0, 11}))
    assert results(address, work, 40, 4) == [n * n for n in range(40)]


def test_what_a_bench_raises_comes_out(address: str) -> None:
    with pytest.raises(TargetError, match="no target for 9"):
        results(address, Squares(failing=frozenset({9})), 20, 3)


def test_a_deadly_item_is_abandoned_and_the_others_are_done(address: str) -> None:
    found = results(address, Squares(deadly=frozenset({2})), 4, 4)
    assert found == [0, 1, -2, 9]


def test_a_run_goes_on_on_a_cluster(address: str, tmp_path: Path) -> None:
    fuzz(tmp_path / "local", 60)
    fuzz(tmp_path / "moved", 25)
    writer = RunWriter.resume(tmp_path / "moved", 2)
    work = toy_work()
    campaign = Campaign(
        writer, work, Budget(60), Silent(), jobs=2, scheduler=DaskCluster(work, address)
    )
    assert campaign.run() is End.DONE
    writer.close()
    assert contents(tmp_path / "moved") == contents(tmp_path / "local")


def test_no_cluster_is_a_clear_error() -> None:
    with pytest.raises(SchedulerError, match="no Dask scheduler"):
        DaskCluster(Squares(), "tcp://127.0.0.1:1")
