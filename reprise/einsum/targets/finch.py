"""finch-tensor: the Finch compiler in Python, by numba."""

from __future__ import annotations

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shared"))

import finch  # noqa: F401  (if it is not there, the worker must say so)
from kernel_runner import KernelRunner  # type: ignore[import-not-found]

NAME = "finch"
LOWERING = "einsum"
MODES = ("reference",)
DEVICES = ("cpu",)


class Runner(KernelRunner):  # type: ignore[misc]
    """Evaluates with ``finch.einsum``, compiled by numba."""

    packages = ("finch-tensor", "numba")
