"""NNSmith's models as ONNX files, made by its own interpreter (see ``other_models.py``).

``PYTHON experiments/nnsmith_models.py COUNT FOLDER [FIRST_SEED]`` writes ``nnsmith-SEED.onnx`` and
its inputs beside it. Needs nnsmith 0.1.0, torch and onnxscript, nothing of ours.
"""

from __future__ import annotations

import contextlib
import io
import random
import sys
from pathlib import Path


def main() -> None:
    import numpy as np
    import torch
    from nnsmith.abstract.extension import activate_ext
    from nnsmith.graph_gen import model_gen
    from nnsmith.materialize import Model
    from nnsmith.narrow_spec import auto_opset

    count, folder = int(sys.argv[1]), Path(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 5000
    folder.mkdir(parents=True, exist_ok=True)
    kind = Model.init("torch", backend_target="cpu")
    opset = auto_opset(kind, None)
    activate_ext(opset=opset, factory=None)
    failed = 0
    for seed in range(first, first + count):
        try:
            generator = model_gen(
                opset=opset,
                method="symbolic-cinit",
                seed=seed,
                max_nodes=10,
                timeout_ms=10_000,
                max_elem_per_tensor=65_536,
            )
            torch.manual_seed(seed)
            random.seed(seed)
            np.random.seed(seed)
            network = kind.from_gir(generator.make_concrete()).torch_model.eval()
            inputs = network.get_random_inps()
            names = list(network.input_like)
            buffer = io.BytesIO()
            with contextlib.redirect_stdout(io.StringIO()):
                torch.onnx.export(
                    network,
                    tuple(inputs[name] for name in names),
                    buffer,
                    input_names=names,
                    opset_version=17,
                    dynamo=False,
                )
        except Exception as error:
            failed += 1
            print(f"{seed}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            continue
        (folder / f"nnsmith-{seed}.onnx").write_bytes(buffer.getvalue())
        values = {name: inputs[name].detach().numpy() for name in names}
        np.savez(folder / f"nnsmith-{seed}.npz", **values)
    print(f"{count - failed} models, {failed} that could not be made or exported")


if __name__ == "__main__":
    main()
