"""What ONNX's documents call things, in the words of the rule language.

An operator that keeps its ONNX name is ``onnx.Foo`` (or ``domain.Foo``) in rules; element types
have UIR's names; names of parameters become names that the language can write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from reprise.lang.dtypes import DTYPES
from reprise.mining.docs.model import Entry

_RENAMED = {"float": "float32", "double": "float64"}


def dtype_of(written: str) -> str | None:
    """The element type of ``tensor(float)``; None if ``written`` is no tensor's type."""
    match = re.fullmatch(r"tensor\(([a-z0-9_]+)\)", written)
    if match is None:
        return None
    name = _RENAMED.get(match[1], match[1])
    return name if name in DTYPES else None


def dtypes_of(types: Iterable[str]) -> tuple[str, ...]:
    """The element types of the tensors among ``types``."""
    return tuple(name for name in map(dtype_of, types) if name is not None)


def nameless(types: Iterable[str]) -> tuple[str, ...]:
    """The tensors among ``types`` whose element type the rule language has no name for."""
    return tuple(t for t in types if t.startswith("tensor(") and dtype_of(t) is None)


def operator_name(entry: Entry) -> str:
    """How rules name the operator where it keeps its ONNX name."""
    return f"{entry.domain or 'onnx'}.{entry.name}"


def written_name(name: str, taken: set[str]) -> str:
    """``name`` as a lower-case name of the rule language, different from all that are ``taken``;
    it is added to them."""
    base = _NOT_WRITTEN.sub("_", name).strip("_").lower()
    if not base or base[0].isdigit():
        base = f"x{base}"
    candidate = base
    while candidate in taken or candidate in _CLAIMED:
        candidate += "_"
    taken.add(candidate)
    return candidate


_NOT_WRITTEN = re.compile("[^A-Za-z0-9_]+")
_CLAIMED = frozenset(("inf", "nan", "true", "false", "none", "not", "or", "and", "in"))
"""Words that the language reads as something else wherever they stand."""


def variable_name(name: str) -> str:
    """A type variable as the rule language writes it: with a capital."""
    base = _NOT_WRITTEN.sub("_", name)
    return base[:1].upper() + base[1:] if base[:1].isalpha() else f"T{base}"


def is_attribute_name(name: str) -> bool:
    """Whether the rule language can write an attribute of this name."""
    return re.fullmatch("[a-z][A-Za-z0-9_]*", name) is not None and name not in _CLAIMED


def slug(entry: Entry) -> str:
    """``abs_13``, ``ml_scaler_1``: an entry's name and version for the names of declarations."""
    domain = entry.domain.removeprefix("ai.onnx").strip(".")
    words = [_NOT_WRITTEN.sub("_", domain), _snake(entry.name), str(entry.since)]
    return "_".join(word for word in words if word)


def _snake(name: str) -> str:
    """``ReduceSumSquare`` → ``reduce_sum_square``, ``LSTM`` → ``lstm``, ``DFT`` → ``dft``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
