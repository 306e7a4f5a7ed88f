"""The mining benchmark: what `reprise mine source` finds in checkouts, and how long it takes.

``python -m benchmarks.mining EXTRACTOR=CHECKOUT… [--json FILE] [--turns N]``

Every checkout is mined with an empty cache, then again with nothing changed, each in a process of
its own, as a user would. CPU seconds are of that process, start-up included; the best turn counts,
since other programs on the machine only ever slow one down. Wall seconds are told beside them.

    git clone https://github.com/apache/tvm && git -C tvm checkout 5d4dc87
    python -m benchmarks.mining tvm=tvm
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from reprise.data import data_root

_SUMMARY = re.compile(r"^(\d+) files?, ([\d,]+) lines", re.MULTILINE)
_ROW = re.compile(r"^([a-z_]+) +([a-z_]+) +(\d+) +(\d+) +(\d+) +(\d+) ", re.MULTILINE)


@dataclass
class Time:
    """Seconds of one process."""

    cpu: float
    wall: float


@dataclass
class Result:
    extractor: str
    data_lines: int
    files: int
    lines: int
    fresh: Time
    again: Time
    counts: dict[str, dict[str, int]]


def data_lines(extractor: str) -> int:
    """Lines of data that are the compiler's own (blank lines do not count)."""
    folder = data_root() / "extractors" / extractor
    text = "\n".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
    return len([line for line in text.splitlines() if line.strip()])


def run(extractor: str, checkout: Path, cache: Path) -> tuple[Time, str]:
    """Mine once; the time, and what was said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "reprise", "mine", "source", str(checkout)),
            *("--extractor", extractor, "-o", str(cache / "mined.rules")),
        ],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Time(cpu, wall), done.stdout


def measure(extractor: str, checkout: Path, turns: int) -> Result:
    fresh: list[Time] = []
    again: list[Time] = []
    said = ""
    for _ in range(turns):
        with tempfile.TemporaryDirectory() as folder:
            cache = Path(folder)
            # The rule language's own tables are made once per installation, not per checkout.
            (cache / "empty").mkdir()
            (cache / "empty" / "a.py").write_text("assert a % b == 0\n")
            run("genesys", cache / "empty", cache)
            time_, said = run(extractor, checkout, cache)
            fresh.append(time_)
            again.append(run(extractor, checkout, cache)[0])
    found = _SUMMARY.search(said)
    assert found is not None, said
    counts: dict[str, dict[str, int]] = {}
    for template, klass, sites, monitors, assertions, constraints in _ROW.findall(said):
        counts[f"{template}: {klass}"] = {
            "sites": int(sites),
            "monitors": int(monitors),
            "assertions": int(assertions),
            "constraints": int(constraints),
        }
    return Result(
        extractor,
        data_lines(extractor),
        int(found[1]),
        int(found[2].replace(",", "")),
        min(fresh, key=lambda t: t.cpu),
        min(again, key=lambda t: t.cpu),
        counts,
    )


def table(results: list[Result]) -> None:
    print("extractor    data   files      lines   first run: CPU  wall   again: CPU  wall")
    for r in results:
        first = f"{r.fresh.cpu:>15.1f} s{r.fresh.wall:>5.1f} s"
        again = f"{r.again.cpu:>10.2f} s{r.again.wall:>4.1f} s"
        print(f"{r.extractor:<11}{r.data_lines:>6}{r.files:>8}{r.lines:>11,}{first}{again}")
    for r in results:
        print(f"\n{r.extractor}")
        for what, numbers in r.counts.items():
            told = ", ".join(f"{n} {key}" for key, n in numbers.items() if n)
            print(f"  {what:<38} {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("checkouts", nargs="+", metavar="EXTRACTOR=CHECKOUT")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--turns", type=int, default=1)
    options = parser.parse_args()
    results = []
    for each in options.checkouts:
        extractor, _, checkout = each.partition("=")
        results.append(measure(extractor, Path(checkout), options.turns))
    table(results)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(r) for r in results], indent=2) + "\n")


if __name__ == "__main__":
    main()
