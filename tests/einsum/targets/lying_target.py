"""A target for tests that says that it is torch-sparse, and computes nothing but zeros."""

from __future__ import annotations

import numpy as np

NAME = "torch-sparse"
LOWERING = "einsum"
MODES = ("reference",)
DEVICES = ("cpu",)


class Runner:
    def __init__(self, device, announce):
        self.announce = announce

    def versions(self):
        return {"lies": "1"}

    def run(self, model, inputs, mode, disabled):
        return [np.zeros((0, 2), "int64"), np.zeros(0)]

    def passes(self, model):
        return ()

    def is_unsupported(self, error):
        return False
