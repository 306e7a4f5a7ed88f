"""TACO, by its command line: a ``taco`` on the PATH, and a C compiler for what it generates."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
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
        """As it tells it, with the commit if that was known when it was built. Raises RuntimeError
        if there is no such program."""
        path = shutil.which("taco")
        if path is None:
            raise RuntimeError(
                "there is no program taco on the PATH (docs/einsum-targets.md builds it)"
            )
        compiler = os.environ.get("TACO_CC", "").split()
        if compiler and shutil.which(compiler[0]) is None:
            raise RuntimeError(f"there is no C compiler {compiler[0]}, which TACO_CC names")
        told = subprocess.run([path, "-version"], capture_output=True, text=True).stdout
        version = re.search(r"TACO version: (\S+)", told)
        commit = re.search(r"\b([0-9a-f]{7,40})\b", told)
        found = " ".join(match[1] for match in (version, commit) if match)
        return {"taco": found or path, **super().versions()}
