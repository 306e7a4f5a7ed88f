"""TACO, by its command line: a ``taco`` on the PATH, and a C compiler for what it generates."""

from __future__ import annotations

import os
import shutil
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shared"))

from kernel_runner import KernelRunner  # type: ignore[import-not-found]

NAME = "taco"
LOWERING = "einsum"
MODES = ("reference",)
DEVICES = ("cpu",)


class Runner(KernelRunner):  # type: ignore[misc]
    """Runs ``taco`` once for each kernel."""

    unsupported = ("Rejected",)

    def versions(self) -> dict[str, str]:
        """Its command line does not tell: the program's path. Raises RuntimeError without one."""
        path = shutil.which("taco")
        if path is None:
            raise RuntimeError("there is no program taco on the PATH")
        return {"taco": path, **super().versions()}
