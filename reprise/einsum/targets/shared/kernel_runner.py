"""What the targets for kernels have in common, in the worker: they run Python.

A kernel is lowered to a script that calls the compiler (``reprise.einsum.translate``), so that what
was run is what a bug report shows. The script holds a function for each variant, by name in its
table ``VARIANTS``; a mode of a job is the name of one. Standard library and numpy only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

_FILE = "einsum_script.py"
"""What tracebacks call the script: a name that the oracle knows (``SCRIPT``)."""


class KernelRunner:
    """A runner whose compiler is what the script imports. ``packages``: distributions whose
    versions are told, the compiler's first; ``unsupported``: names of the exceptions, and texts in
    the messages of others, that say that the compiler does not do this."""

    packages: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    unsupported_texts: tuple[str, ...] = ()

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        self.announce = announce
        self._model = b""
        self._variants: dict[str, Callable[[], Sequence[Any]]] = {}

    def versions(self) -> dict[str, str]:
        found = {}
        for name in (*self.packages, "numpy"):
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                continue
        return found

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        self.announce("load")
        if model != self._model:
            scope: dict[str, Any] = {"__name__": "kernel"}
            exec(compile(model.decode(), _FILE, "exec"), scope)
            self._model, self._variants = model, scope["VARIANTS"]
        self.announce("run")
        return [np.asarray(array) for array in self._variants[mode]()]

    def passes(self, model: bytes) -> Sequence[str]:
        return ()

    def is_unsupported(self, error: Exception) -> bool:
        named = any(kind.__name__ in self.unsupported for kind in type(error).__mro__)
        return named or any(text in str(error) for text in self.unsupported_texts)
