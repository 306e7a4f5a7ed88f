"""The table of kernels: what each operator computes, as a small function over numpy arrays.

A kernel takes operands by position (None where an optional one is absent) and, by keyword, those
attributes that it needs; ``dtypes`` is the reserved keyword of the results' numpy dtypes. What is
declared beside it says how it is called:

- Kernels compute in at least single precision: operands of 16 bits (``float16``, ``bfloat16``)
  are widened to ``float32`` first and results rounded once. ``moves=True`` is for kernels that only
  move elements, of any type: they get the operands as they are.
- ``mixed=True``: the result's dtype does not follow from the arithmetic, so it is cast to it.
- ``runtime={1: "axes"}``: where operand 1 is present it stands for the attribute ``axes``.

Dispatch is one dictionary look-up; nothing is inspected after import.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

import ml_dtypes
import numpy as np

from reprise.uir.graph import Array

Values = Any
"""A numpy array inside a kernel: numpy's stubs have no arithmetic over arrays of any dtype."""

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class SemanticsError(Exception):
    """An application cannot be evaluated, or a kernel broke its operator's signature.

    ``op`` is the operator's name.
    """

    def __init__(self, op: str, message: str) -> None:
        super().__init__(f"{op}: {message}")
        self.op = op


class UndefinedError(SemanticsError):
    """The operator (or this use of it) has no reference semantics: ``UNDEFINED`` says why."""


RANDOM = frozenset(
    {
        "random_normal",
        "random_uniform",
        "random_normal_like",
        "random_uniform_like",
        "bernoulli",
        "multinomial",
    }
)
"""Operators that draw numbers, whatever their operands and attributes. (``dropout`` does in
training.)"""

UNDEFINED: dict[str, str] = {
    "if": "control flow: its results are what its sub-graphs return",
    "loop": "control flow: its results are what its sub-graph returns",
    "scan": "control flow: its results are what its sub-graph returns",
    **dict.fromkeys(sorted(RANDOM), "random: no generator is prescribed"),
}
"""Operators without reference semantics, and why. All others have a kernel."""


class Kernel(NamedTuple):
    """How one operator is computed; see the module's docstring."""

    function: Function
    attributes: tuple[str, ...]
    typed: bool
    moves: bool
    mixed: bool
    runtime: tuple[tuple[int, str], ...]


KERNELS: dict[str, Kernel] = {}
"""Every operator that has reference semantics."""


def kernel(
    *ops: str,
    moves: bool = False,
    mixed: bool = False,
    runtime: Mapping[int, str] | None = None,
) -> Callable[[F], F]:
    """Register a function as the kernel of ``ops``."""

    def register(function: F) -> F:
        names: tuple[str, ...] = ()
        if isinstance(function, FunctionType):
            code = function.__code__
            names = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
        attributes = tuple(name for name in names if name != "dtypes")
        operands = tuple(sorted((runtime or {}).items()))
        for op in ops:
            if op in KERNELS:
                raise ValueError(f"two kernels of {op}")
            KERNELS[op] = Kernel(function, attributes, "dtypes" in names, moves, mixed, operands)
        return function

    return register


# --- calling a kernel ----------------------------------------------------------------------------

FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
HALVES = frozenset({np.dtype(np.float16).num, BFLOAT16.num})
"""The ``num`` of dtypes that kernels do not compute in."""

_SCALARS = frozenset({"axis", "k", "depth", "ratio", "training", "min", "max", "value"})
"""Attributes that an operand of one element stands for; other operands stand for lists."""


def run(
    op: str,
    operands: Sequence[Array | None],
    attributes: Mapping[str, Any],
    dtypes: tuple[np.dtype[Any] | None, ...],
) -> Sequence[Array]:
    """The results of one application, of the given dtypes (None: not known, or not asked for).

    Callers must have floating-point warnings off. Raises SemanticsError.
    """
    found = KERNELS.get(op)
    if found is None:
        raise UndefinedError(op, UNDEFINED.get(op, "no such operator"))
    function, names, typed, moves, mixed, runtime = found
    given: dict[str, Any] = {}
    if names:
        for name in names:
            if name in attributes:
                given[name] = attributes[name]
    if runtime and len(operands) > runtime[0][0]:
        operands = _take_runtime(operands, runtime, given)
    if typed:
        given["dtypes"] = dtypes
    if not moves:
        for operand in operands:
            if operand is not None and operand.dtype.num in HALVES:
                operands = [_single(o) for o in operands]
                mixed = True
                break
    made = function(*operands, **given) if given else function(*operands)
    if len(dtypes) == 1 and type(made) is np.ndarray and made.dtype == dtypes[0]:
        return (made,)
    results = made if type(made) is tuple else (made,)
    checked = []
    for result, dtype in zip(results, dtypes, strict=False):
        if type(result) is not np.ndarray:
            result = np.asarray(result, object if type(result) is str else None)
        if dtype is not None and result.dtype != dtype:
            if not mixed:
                raise SemanticsError(op, f"computed {result.dtype}, its signature says {dtype}")
            result = result.astype(dtype)
        checked.append(result)
    if len(checked) < len(dtypes):
        raise SemanticsError(op, f"computed {len(checked)} results, not {len(dtypes)}")
    return checked


def _single(operand: Array | None) -> Array | None:
    if operand is None or operand.dtype.num not in HALVES:
        return operand
    return operand.astype(FLOAT32)


def _take_runtime(
    operands: Sequence[Array | None],
    runtime: tuple[tuple[int, str], ...],
    given: dict[str, Any],
) -> Sequence[Array | None]:
    """Move operands that stand for attributes into ``given``; the others remain."""
    taken = dict(runtime)
    rest = []
    for i, operand in enumerate(operands):
        name = taken.get(i)
        if name is None:
            rest.append(operand)
        elif operand is not None:
            given[name] = operand.item() if name in _SCALARS else tuple(operand.ravel().tolist())
    return rest


# --- what is implementation-defined --------------------------------------------------------------


class Cause(Enum):
    """Why a result is implementation-defined."""

    DIVISION = "integer division by zero, or of the least integer by -1"
    CONVERSION = "a float that is outside the integer type's range, or NaN"
    OVERFLOW = "an integer power that the type cannot hold, or 0 to a negative power"
    SHIFT = "a shift by less than 0 or by the type's width or more"
    NAN = "a NaN that is compared"
    SIGNED_ZERO = "the sign of a zero, where -0 and 0 compare equal"
    TIE = "the order of equal elements"
    DUPLICATE = "two updates of one element"
    INDEX = "an index outside its axis"
    ROUNDING = "a rounding error that decides between two whole numbers"
    EMPTY = "a window without elements, or a query without keys"
    FRACTION = "an extent that is no whole number before it is rounded down"
    TEXT = "a number written as text"


Causes = dict[int, Cause]
"""For each output that is implementation-defined, why (one cause is enough)."""

Judge = Callable[[Sequence[Array | None], Mapping[str, Any]], Causes | None]

JUDGES: dict[str, Judge] = {}
"""Operators with values that are implementation-defined, and what finds them."""


def judge(*ops: str) -> Callable[[Judge], Judge]:
    """Register a function that looks for implementation-defined values of ``ops``."""

    def register(function: Judge) -> Judge:
        for op in ops:
            if op in JUDGES:
                raise ValueError(f"two judges of {op}")
            JUDGES[op] = function
        return function

    return register
