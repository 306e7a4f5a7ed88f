"""Scripts that compute kernels: what the worker runs, and what a bug report shows.

A variant becomes a function without parameters: its operands are written out, each kernel is
computed, and what each computes is returned as two arrays, the *coordinates* (int64, entries by
rank) and the *values*; a dense result has coordinates of one dimension, without any, and its
values as an array of the output's shape. Entries of a sparse result are as the target lists them:
also if they are out of order, or listed twice.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Protocol

from reprise.einsum.data import Stored, materialise
from reprise.einsum.kernel import Computed, Kernel, Tensor

HELPERS = ("entries", "stored", "unravelled", "dense")
"""The names of the functions that scripts define to pack operands and to read results."""

_INDENT = "    "


class Untranslatable(Exception):
    """A kernel that cannot be said in what a target reads; the message says why."""


class Translator(Protocol):
    """How kernels are said to one target."""

    imports: str
    """What a script imports besides numpy."""
    helpers: str
    """Functions that a script uses; it defines them itself."""

    def operand(self, kernel: Kernel, tensor: Tensor, stored: Stored) -> list[str]:
        """Lines that make an operand of what is stored. Raises Untranslatable."""
        ...

    def computed(self, kernel: Kernel, tensor: Tensor) -> list[str]:
        """Lines that make an operand of an earlier kernel's output, which has its name.
        Raises Untranslatable."""
        ...

    def compute(self, kernel: Kernel) -> list[str]:
        """Lines that compute the output from operands that are there. Raises Untranslatable."""
        ...

    def result(self, kernel: Kernel) -> str:
        """What is returned of the output, as two values with a comma between."""
        ...


def script(translator: Translator, variants: Mapping[str, Sequence[Kernel]]) -> bytes:
    """The script with these variants by name, each a list of kernels that are computed in order.
    Raises Untranslatable."""
    functions = [function(translator, name, kernels) for name, kernels in variants.items()]
    table = "".join(f"    {name!r}: {_identifier(name)},\n" for name in variants)
    parts = [preamble(translator), *functions, f"VARIANTS = {{\n{table}}}\n"]
    return "\n\n".join(parts).encode()


def preamble(translator: Translator) -> str:
    """The head of a script: imports, and the functions that the variants use."""
    imports = f"import numpy as np\n{translator.imports}"
    helpers = textwrap.dedent(translator.helpers).strip("\n")
    return f"{imports}\n\n\n{helpers}\n" if helpers else f"{imports}\n"


def function(translator: Translator, name: str, kernels: Sequence[Kernel]) -> str:
    """A variant's function. Raises Untranslatable."""
    lines = [f"def {_identifier(name)}():"]
    results = []
    for number, kernel in enumerate(kernels):
        lines += [_INDENT + line for line in statements(translator, kernel)]
        lines.append(f"{_INDENT}result{number} = {translator.result(kernel)}")
        results.append(f"*result{number}")
    lines.append(f"{_INDENT}return [{', '.join(results)}]")
    return "\n".join(lines) + "\n"


def statements(translator: Translator, kernel: Kernel) -> list[str]:
    """The lines that compute one kernel."""
    given = {t.name: t for t in kernel.operands if not isinstance(t.data, Computed)}
    lines: list[str] = []
    stored = _entries(kernel)
    for tensor in kernel.operands:
        if tensor.name in given:
            lines += translator.operand(kernel, tensor, stored[tensor.name])
        else:
            lines += translator.computed(kernel, tensor)
    return lines + translator.compute(kernel)


def _entries(kernel: Kernel) -> dict[str, Stored]:
    """The entries of the operands that are given; nothing for those that are computed."""
    import numpy as np

    empty = {
        t.data.output: np.zeros(kernel.shapes[t.name], kernel.dtype)
        for t in kernel.operands
        if isinstance(t.data, Computed)
    }
    return materialise(kernel, empty)


def _identifier(name: str) -> str:
    return name.replace("-", "_")


def entry_list(stored: Stored) -> str:
    """``{(0, 1): 2.0, ...}``."""
    return "{" + ", ".join(f"{c}: {v}" for c, v in pairs(stored)) + "}"


def pairs(stored: Stored) -> list[tuple[tuple[int, ...], str]]:
    """Every entry: its coordinate, and its value as Python writes it."""
    return [
        (tuple(int(i) for i in coordinate), repr(value.item()))
        for coordinate, value in zip(stored.coordinates, stored.values, strict=True)
    ]


def axes_of(stored: Stored) -> list[list[int]]:
    """The coordinates, axis by axis."""
    return [[int(i) for i in axis] for axis in stored.coordinates.T]


def values_of(stored: Stored) -> str:
    """The values as a list that Python reads."""
    return f"[{', '.join(repr(value.item()) for value in stored.values)}]"


def array(stored: Stored, dtype: str) -> str:
    """An expression for the tensor as a numpy array."""
    dense = stored.dense()
    if dense.size == 0:
        return f'np.zeros({dense.shape}, "{dtype}")'
    return f'np.array({dense.tolist()}, "{dtype}")'
