"""What monitors in a copy of codelets see while GeneSys compiles some models:
`python examples/genesys/vectors.py PYTHON COPY`, PYTHON from `environment.sh`, COPY from
`reprise instrument CODELETS --rules examples/genesys/figure4.rules`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from cases import cases

from reprise.xcheck.passes.compiler import PassCounter, parse_compiler

SHOWN = {"satisfied": "+", "violated": "-", "unknown": "?", "error": "!", "not_reached": "."}


def main(python: str, copy: str) -> None:
    """Compile the models for the 16 x 16 array, and print a line of verdicts for each."""
    os.environ["REPRISE_GENESYS_CODELETS"] = str(Path(copy).resolve())
    compiler = parse_compiler(f"genesys@{python}")
    chosen = [c for c in cases() if c.platform == compiler.device and " of " not in c.name]
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records.jsonl"
        with PassCounter(compiler, monitors=records) as counter:
            reports = [counter.compile(case.model) for case in chosen]
        lines = [json.loads(line) for line in records.read_text().splitlines()]
    runs = [line["checks"] for line in lines if line["kind"] == "run"]
    for number, key in enumerate(runs[0], 1):
        print(f"{number}  {key}")
    for case, report, run in zip(chosen, reports, runs, strict=True):
        vector = " ".join(SHOWN[check["verdict"]] for check in run.values())
        print(f"{vector}  {case.name}: {report.ending.value} {report.where}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
