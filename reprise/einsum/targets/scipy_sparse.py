"""scipy.sparse: matrices; products of two tensors that are made matrices."""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shared"))

import scipy.sparse  # noqa: F401  (if it is not there, the worker must say so)
from kernel_runner import KernelRunner  # type: ignore[import-not-found]

NAME = "scipy-sparse"
LOWERING = "einsum"
MODES = ("reference",)
DEVICES = ("cpu",)


class Runner(KernelRunner):  # type: ignore[misc]
    """Multiplies, adds and sums matrices."""

    packages = ("scipy",)
    unsupported = ("NotImplementedError",)
