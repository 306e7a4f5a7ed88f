"""tensora: a tensor algebra compiler in Python, by LLVM; formats by level, in any order."""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shared"))

import tensora  # noqa: F401  (if it is not there, the worker must say so)
from kernel_runner import KernelRunner  # type: ignore[import-not-found]

NAME = "tensora"
LOWERING = "einsum"
MODES = ("reference",)
DEVICES = ("cpu",)


class Runner(KernelRunner):  # type: ignore[misc]
    """Evaluates with ``tensora.evaluate``."""

    packages = ("tensora", "llvmlite")
    unsupported = ("NoKernelFoundError", "DiagonalAccessError", "BroadcastTargetIndexError")
