"""A target for tests: its models are Python programs, run in the worker with `inputs`, `mode`,
`disabled` and `stage`; what they leave in `outputs` is the answer."""

from __future__ import annotations

NAME = "obedient"
LOWERING = "onnx"
MODES = ("fast", "slow")
DEVICES = ("cpu", "toaster")


class Runner:
    def __init__(self, device, announce):
        self.device = device
        self.announce = announce
        self.kept = []

    def versions(self):
        return {"obedient": "1.5", "device": self.device}

    def run(self, model, inputs, mode, disabled):
        names = {
            "inputs": inputs,
            "mode": mode,
            "disabled": disabled,
            "stage": self.announce,
            "kept": self.kept,
            "outputs": list(inputs.values()),
        }
        exec(model, names)
        return names["outputs"]

    def passes(self, model):
        names = {"passes": ()}
        exec(model, names)
        return names["passes"]

    def is_unsupported(self, error):
        return isinstance(error, NotImplementedError)
