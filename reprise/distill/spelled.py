"""Attributes as they are written: which say something, and which could be left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reprise.solve.signatures import Signature
from reprise.uir.graph import Attribute, TensorType
from reprise.uir.inference import SignatureError

Attributes = Mapping[str, Attribute]


def plain(signature: Signature, attributes: Attributes) -> dict[str, Attribute]:
    """Attributes without their second, short spellings."""
    short = {a.short for a in signature.plan.attributes if a.short and a.name in attributes}
    return {name: value for name, value in attributes.items() if name not in short}


def plain_given(signature: Signature, given: frozenset[str]) -> frozenset[str]:
    """The names of attributes that are written out, short spellings under their long names."""
    long = {a.short: a.name for a in signature.plan.attributes if a.short}
    return frozenset(long.get(name, name) for name in given)


def required(signature: Signature) -> frozenset[str]:
    """The attributes that have no default."""
    return frozenset(a.name for a in signature.plan.attributes if a.required)


def off_default(
    signature: Signature, operands: Sequence[TensorType | None], attributes: Attributes
) -> list[str]:
    """The attributes that would be others if nobody gave them, required ones too."""
    usual = defaults(signature, operands, attributes)
    return [n for n, v in plain(signature, attributes).items() if n not in usual or usual[n] != v]


def defaults(
    signature: Signature,
    operands: Sequence[TensorType | None],
    attributes: Attributes,
) -> dict[str, Attribute]:
    """What the attributes would be, were none given that need not be. Where that is refused (one
    of two must be given), what each would be, were it alone not given."""
    needed = required(signature)
    try:
        given = {name: value for name, value in attributes.items() if name in needed}
        completed = dict(signature.check(operands, given).attributes)
        return {name: value for name, value in completed.items() if name not in needed}
    except SignatureError:
        pass
    found: dict[str, Attribute] = {}
    for name in attributes:
        rest = {n: value for n, value in attributes.items() if n != name}
        typing = signature.attempt(operands, rest)
        if typing is not None and name in typing.attributes:
            found[name] = typing.attributes[name]
    return found
