"""PyData sparse: n-dimensional arrays in COO, GCXS and DOK, by numba."""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shared"))

import sparse  # noqa: F401  (if it is not there, the worker must say so)
from kernel_runner import KernelRunner  # type: ignore[import-not-found]

NAME = "pydata-sparse"
LOWERING = "einsum"
MODES = ("reference",)
DEVICES = ("cpu",)


class Runner(KernelRunner):  # type: ignore[misc]
    """Evaluates with ``sparse.einsum``."""

    packages = ("sparse", "numba", "scipy")
    unsupported_texts = ("requires zero fill values",)
