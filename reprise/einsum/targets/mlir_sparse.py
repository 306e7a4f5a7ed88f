"""MLIR's sparsifier, as torch-mlir ships it."""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shared"))

import torch_mlir.ir  # noqa: F401  (if it is not there, the worker must say so)
from kernel_runner import KernelRunner  # type: ignore[import-not-found]

NAME = "mlir-sparse"
LOWERING = "einsum"
MODES = ("reference",)
DEVICES = ("cpu",)


class Runner(KernelRunner):  # type: ignore[misc]
    """Compiles ``linalg.generic`` over sparse tensors, and runs it by LLVM's JIT."""

    packages = ("torch-mlir",)
