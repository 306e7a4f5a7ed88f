"""What UIR asks of operator signatures, and how they answer.

The signatures themselves live in ``reprise.solve``; graphs are built against this small interface,
so that a graph can be read with any table of operators. An application of an operator either has
a :class:`Typing` or raises a :class:`SignatureError`; there is nothing in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from reprise.uir.graph import Attribute, TensorType


class SignatureError(Exception):
    """The operator does not apply to these operands and attributes.

    ``code``: unknown-operator, operand-count, missing-operand, dtype, rank, extent,
    unknown-attribute, missing-attribute, attribute-type, attribute-domain, attribute-conflict,
    axis, shape or condition. ``subject`` is the operand or attribute at fault, if there is one.
    """

    def __init__(
        self, op: str, code: str, message: str, subject: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(f"{op}: {message}" + (f" ({hint})" if hint else ""))
        self.op = op
        self.code = code
        self.message = message
        self.subject = subject
        self.hint = hint


class Typing(NamedTuple):
    """What a signature says of an application: result types, attributes with the defaults filled
    in, and whether it is certainly valid (False: some condition depends on an unknown)."""

    outputs: list[TensorType]
    attributes: dict[str, Attribute]
    certain: bool


class ResultTypes(Protocol):
    """Somebody who knows the results of operators whose signatures leave their shapes open."""

    def __call__(
        self,
        op: str,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Attribute],
    ) -> list[TensorType] | None:
        """The result types, or None for operators that it does not know. Raises SignatureError
        for operands and attributes that the operator does not take."""
        ...


class Inference(Protocol):
    """A table of operators that can be applied to types."""

    def __contains__(self, op: object) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def check(
        self,
        op: str,
        operands: Sequence[TensorType | None],
        attributes: Mapping[str, Attribute] = ...,
    ) -> Typing:
        """Apply an operator. Raises SignatureError."""
        ...
