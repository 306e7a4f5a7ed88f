"""NNSmith's side of the generation benchmark, run by its own interpreter.

``PYTHON benchmarks/nnsmith_peer.py NODES COUNT`` prints one JSON object: how many models of NODES
operators it made, in how much CPU time of the process. A model is made as ``nnsmith.model_gen``
makes it (its default method, symbolic shapes with concrete insertion), up to and including
``make_concrete``: no weights, no torch module, no ONNX file. The probe of which operators take
which element types is not counted. Needs nnsmith 0.1.0 and torch, nothing of ours.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    from nnsmith import __version__
    from nnsmith.abstract.extension import activate_ext
    from nnsmith.graph_gen import model_gen
    from nnsmith.materialize import Model
    from nnsmith.narrow_spec import auto_opset

    nodes, count = map(int, sys.argv[1:])
    opset = auto_opset(Model.init("torch", backend_target="cpu"), None)
    activate_ext(opset=opset, factory=None)
    made = operators = 0
    start = time.process_time()
    for seed in range(1000, 1000 + count):
        generator = model_gen(
            opset=opset,
            method="symbolic-cinit",
            seed=seed,
            max_nodes=nodes,
            timeout_ms=10_000,
            max_elem_per_tensor=65_536,
        )
        operators += generator.make_concrete().n_compute_inst()
        made += 1
    seconds = time.process_time() - start
    print(
        json.dumps(
            {
                "version": __version__,
                "nodes": nodes,
                "programs": made,
                "operators": operators,
                "seconds": seconds,
                "vocabulary": len(opset),
            }
        )
    )


if __name__ == "__main__":
    main()
