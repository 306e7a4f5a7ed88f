"""Einsum kernels: how many a second, and how many are valid, beside a grammar's.

``python -m benchmarks.einsum [--count N] [--quick] [--json] [--python VENV/bin/python]`` generates
N kernels with each of ours and strings with Grammarinator from grammars, all in one run, and holds
every one against the same validator (``tests/einsum/validator.py``, which shares no code with
either).

Seconds are of CPU, of one process. Ours are whole JSON kernels, with extents, formats and data; a
grammar's are the bare statement (``ij,jk->ik``), so that its share of the work is smaller. *Valid*
means for both: output indices are there and distinct, no index twice in an operand, no index that
is summed over and in one operand only, and two or more operands. Ours are told to keep to that;
other columns give the grammar the benefit of looser definitions.

Grammarinator is a peer, not a requirement. Into a virtual environment of its own::

    python3 -m venv /tmp/peer && /tmp/peer/bin/pip install grammarinator==26.1
    python -m benchmarks.einsum --python /tmp/peer/bin/python
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from reprise.einsum.data import materialise
from reprise.einsum.generate import BLOCK, Request, Source
from reprise.einsum.json_form import loads
from reprise.einsum.kernel import KernelError, Level
from reprise.einsum.options import Options
from reprise.einsum.reference import reference
from reprise.einsum.text import DTYPES, parse
from tests.einsum.validator import problems

_EVERYTHING = Options(
    operands=(1, 4), terms=(2, 3), ranks=(1, 5), indices=8, sums=0.3, diagonals=0.1, scalars=0.1,
    reductions=0.3, broadcasts=0.3, repeated_tensors=0.2, empty=0.05, units=0.1,
    levels=tuple(Level), zeros=0.2, duplicates=0.1, unsorted=0.1, dtypes=DTYPES,
)  # fmt: skip
"""Nothing that a kernel may have has a share of 0."""
STRICT = frozenset({"outer_products", "scalars", "units", "empty"})
LOOSE = STRICT | {"diagonals"}
NUMPY = LOOSE | {"reductions"}

GRAMMAR = """\
grammar Einsum;
start: operand (',' operand)* '->' operand EOF;
operand: {alternatives};
INDEX: [{letters}];
"""


@dataclass
class Row:
    """One generator's result. Shares are of what was made; ``valid_per_second`` is by ``valid``."""

    name: str
    made: int
    seconds: float
    valid: float
    diagonals_allowed: float
    as_numpy: float

    @property
    def valid_per_second(self) -> float:
        return self.made * self.valid / self.seconds


def main() -> int:
    options = _arguments()
    rows = [
        _ours("sampler, ranks 1 to 3, 5 indices", options.count, _ranks(1, 3, 5), options.seed),
        _ours("sampler, ranks 2 to 6, 6 indices", options.count, _ranks(2, 6, 6), options.seed),
        _ours("sampler, all it can", options.count, _EVERYTHING, options.seed, usual=True),
        _ours("under rules, for taco", options.guided, _ranks(1, 3, 5, "taco"), options.seed),
    ]
    accepted = _accepted(options.accept, options.seed)
    if options.python is not None:
        rows += [
            _grammar("Grammarinator, ranks 1 to 3, 5 letters", options, 1, 3, "i-m"),
            _grammar("Grammarinator, ranks 2 to 6, 6 letters", options, 2, 6, "i-n"),
        ]
    if options.json:
        shown = [{**asdict(row), "valid_per_second": row.valid_per_second} for row in rows]
        print(json.dumps({"rows": shown, "accepted_by": accepted}, indent=2))
    else:
        _print(rows, accepted)
    ours = [row for row in rows if not row.name.startswith("Grammarinator")]
    return 0 if all(row.valid == 1 for row in ours) and _all_accepted(accepted) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.einsum")
    parser.add_argument("--count", type=int, default=100_000, help="kernels of each sampler")
    parser.add_argument("--guided", type=int, default=2_000, help="kernels grown under rules")
    parser.add_argument("--samples", type=int, default=20_000, help="strings of each grammar")
    parser.add_argument("--accept", type=int, default=2_000, help="kernels that numpy computes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a twentieth of each")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--python", type=Path, help="an interpreter that has Grammarinator")
    given = parser.parse_args()
    if given.quick:
        for name in ("count", "guided", "samples", "accept"):
            setattr(given, name, max(getattr(given, name) // 20, 1))
    return given


def _ranks(low: int, high: int, indices: int, *targets: str) -> Options:
    return Options(
        operands=(2, 4), ranks=(low, high), indices=indices, sums=0, diagonals=0, scalars=0,
        repeated_tensors=0, targets=targets,
    )  # fmt: skip


def _ours(name: str, count: int, options: Options, seed: int, *, usual: bool = False) -> Row:
    """Kernels block by block: generating is timed, checking is not."""
    source = Source(Request(count, seed, options))
    source.block(0)  # compiles what the engine needs
    allowed = options.settings.allowed if usual else STRICT
    seconds, good = 0.0, [0, 0, 0]
    for number in range(source.request.blocks):
        start = time.process_time()
        block = source.block(number)
        seconds += time.process_time() - start
        for line in block.splitlines():
            document = json.loads(line)
            for place, definition in enumerate((allowed, LOOSE | allowed, NUMPY | allowed)):
                if not problems(document, definition, options.ranks[1]):
                    good[place:] = [number + 1 for number in good[place:]]  # looser ones follow
                    break
    return Row(name, count, seconds, *(number / count for number in good))


def _accepted(count: int, seed: int) -> dict[str, Any]:
    """How many of ``count`` kernels with one term numpy and opt_einsum compute as the reference."""
    import numpy as np

    try:
        import opt_einsum
    except ImportError:
        opt_einsum = None
    found = {"kernels": count, "numpy": 0, "opt_einsum": 0 if opt_einsum else None}
    source = Source(Request(count, seed, Options(operands=(1, 4), sums=0)))
    for line in islice(_lines(source), count):
        kernel = loads(line)
        stored = materialise(kernel)
        expected = reference(kernel, stored)
        operands = [stored[access.tensor].dense() for access in kernel.accesses]
        found["numpy"] += bool((np.einsum(kernel.subscripts, *operands) == expected).all())
        if opt_einsum is not None:
            result = opt_einsum.contract(kernel.subscripts, *operands)
            found["opt_einsum"] += bool((result == expected).all())
    return found


def _all_accepted(accepted: dict[str, Any]) -> bool:
    return all(n is None or n == accepted["kernels"] for n in accepted.values())


def _lines(source: Source) -> Iterator[str]:
    for number in range(-(-source.request.count // BLOCK)):
        yield from source.block(number).splitlines()


def _grammar(name: str, options: argparse.Namespace, low: int, high: int, letters: str) -> Row:
    """Strings from a grammar whose operands have ``low`` to ``high`` letters."""
    words = [" ".join(["INDEX"] * rank) for rank in range(low, high + 1)]
    text = GRAMMAR.format(alternatives=" | ".join(words), letters=letters)
    tools = options.python.parent
    with tempfile.TemporaryDirectory() as folder:
        grammar = Path(folder, "Einsum.g4")
        grammar.write_text(text)
        process = [tools / "grammarinator-process", grammar, "--no-actions", "-o", folder]
        subprocess.run(process, check=True, stdout=subprocess.DEVNULL)

        def generate(count: int) -> tuple[list[str], float]:
            command = [
                tools / "grammarinator-generate", "EinsumGenerator.EinsumGenerator",
                "--sys-path", folder, "-j", "1", "-d", "20", "-n", str(count), "--stdout",
                "--random-seed", str(options.seed),
            ]  # fmt: skip
            before = _children()
            ran = subprocess.run(command, check=True, capture_output=True, text=True)
            return ran.stdout.split(), _children() - before

        _, start = generate(1)  # of the tool itself, which ours are not charged with either
        samples, seconds = generate(options.samples)
        seconds -= start
    counts = [
        sum(_is_valid(sample, definition, high) for sample in samples)
        for definition in (STRICT, LOOSE, NUMPY)
    ]
    return Row(name, len(samples), seconds, *(count / len(samples) for count in counts))


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _is_valid(text: str, allowed: frozenset[str], most_indices: int) -> bool:
    """Whether a statement is, by the validator; with two or more operands, as ours have."""
    from reprise.einsum.json_form import to_json

    try:
        kernel = parse(text).kernel()
    except KernelError:
        return False
    return len(kernel.accesses) > 1 and not problems(to_json(kernel), allowed, most_indices)


def _print(rows: list[Row], accepted: dict[str, Any]) -> None:
    print(f"{'':42}{'made':>9}{'a second':>11}{'valid':>9}{'+diag.':>9}{'numpy':>9}{'valid/s':>10}")
    for row in rows:
        print(
            f"{row.name:42}{row.made:>9,}{row.made / row.seconds:>11,.0f}{row.valid:>9.2%}"
            f"{row.diagonals_allowed:>9.2%}{row.as_numpy:>9.2%}{row.valid_per_second:>10,.0f}"
        )
    peers = [row for row in rows if row.name.startswith("Grammarinator")]
    for peer, ours in zip(peers, rows, strict=False):
        times = ours.valid_per_second / max(peer.valid_per_second, 1e-9)
        print(f"{ours.name}: {times:,.0f} times the valid kernels a second of {peer.name}")
    print(
        f"of {accepted['kernels']:,} kernels numpy computes {accepted['numpy']:,} as the reference"
        + ("" if accepted["opt_einsum"] is None else f", opt_einsum {accepted['opt_einsum']:,}")
    )


if __name__ == "__main__":
    sys.exit(main())
