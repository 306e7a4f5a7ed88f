"""Where GeneSys puts a model's values in DRAM, and whether DRAM is that large.

Run it with the interpreter that `environment.sh` made: `VENV/bin/python memory.py [SIDE]` compiles
Add, Relu on (1, 16, SIDE, SIDE) for the 16 x 16 array (default 3600, which does not fit).
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

RUNNER = Path(__file__).resolve().parents[2] / "reprise" / "xcheck" / "passes" / "genesys.py"
"""By its path: it needs nothing else of Reprise, which this interpreter need not have."""


class _Silent:
    """Nobody counts passes here."""

    def __call__(self, stage: str) -> None: ...
    def begin(self, name: str) -> None: ...
    def end(self, name: str) -> None: ...


def main(side: int) -> None:
    """Compile, and print the relocation table's activations."""
    from onnx import helper

    shape = (1, 16, side, side)
    values = [helper.make_tensor_value_info(name, 1, shape) for name in ("xa", "xb", "vb")]
    nodes = [
        helper.make_node("Add", ["xa", "xb"], ["va"]),
        helper.make_node("Relu", ["va"], ["vb"]),
    ]
    graph = helper.make_graph(nodes, "model", values[:2], values[2:])
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    runner = runpy.run_path(str(RUNNER))["Runner"]("benchmark_16x16", _Silent())
    program = runner.compile(model.SerializeToString())
    table = program.relocatables
    capacity = table.storage_node.size
    print(f"DRAM: {capacity:,} bits")
    for name, fragment in table.relocatables["ACTIVATION"].bases.items():
        beyond = "" if fragment.end <= capacity else "  beyond the end of DRAM"
        print(f"  {name}: {fragment.start:,} to {fragment.end:,}{beyond}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3600)
