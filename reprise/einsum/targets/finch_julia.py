"""Finch.jl, in Julia, by the interface that finch-tensor has for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shared"))

import finch  # noqa: F401  (if it is not there, the worker must say so)
from finch.compile_jl import julia
from kernel_runner import KernelRunner  # type: ignore[import-not-found]

NAME = "finch-julia"
LOWERING = "einsum"
MODES = ("reference",)
DEVICES = ("cpu",)


class Runner(KernelRunner):  # type: ignore[misc]
    """Evaluates with ``finch.einsum``, compiled by Finch.jl."""

    packages = ("finch-tensor", "juliacall")

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        """Start Julia. Raises RuntimeError if Python's packages for that are not there."""
        super().__init__(device, announce)
        if not julia.julia_available():
            raise RuntimeError("there is no juliacall: pip install 'finch-tensor[julia]'")
        julia.init_julia()

    def versions(self) -> dict[str, str]:
        """Of Finch.jl and Julia as well."""
        told = {"Finch.jl": "pkgversion(Finch)", "Julia": "VERSION"}
        main = julia.get_jl()
        found = {name: str(main.seval(f"string({what})")) for name, what in told.items()}
        return {**found, **super().versions()}
