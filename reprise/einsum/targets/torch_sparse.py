"""torch.sparse: matrices in COO, CSR, CSC, BSR and BSC; products of two tensors as matrices."""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shared"))

import torch
from kernel_runner import KernelRunner  # type: ignore[import-not-found]

NAME = "torch-sparse"
LOWERING = "einsum"
MODES = ("reference",)
DEVICES = ("cpu",)


class Runner(KernelRunner):  # type: ignore[misc]
    """Multiplies, adds and sums matrices."""

    packages = ("torch",)

    def is_unsupported(self, error: Exception) -> bool:
        """Torch refuses combinations of layouts by a RuntimeError like any other; what fails inside
        says so."""
        return isinstance(error, RuntimeError) and "INTERNAL ASSERT" not in str(error)


torch.set_num_threads(1)
