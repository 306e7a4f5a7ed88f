"""Every operator has a meaning or says why not, and kernels take what their signatures give."""

from __future__ import annotations

import pytest

from reprise.uir.semantics import KERNELS, UNDEFINED, UndefinedError, apply
from reprise.uir.semantics.registry import JUDGES

IMPORTED_ONLY = {
    ("resize", "axes"),
    *((f"max_pool{n}d", "storage_order") for n in (1, 2, 3)),
}
"""Attributes of imported models that signatures do not have."""

WITHOUT_INFLUENCE = {
    "stash_type": "kernels compute in single precision at least",
    "softmax_precision": "kernels compute in single precision at least",
    "output_shape": "a transposed convolution's is already in its pads",
    "kernel": "the weights have it",
    "sorted": "topk sorts in any case",
    "stable": "orders are stable in any case",
    "seed": "dropout is defined where it does not train",
    "dtype": "the results' types say it",
    "to": "the results' types say it",
    "output_dtype": "the results' types say it",
    "dilations": "a signature lets max_unpool have no others than 1",
}
"""Attributes that a kernel may leave out, and why."""


def test_every_operator_is_defined_or_says_why_not(signatures):
    assert set(KERNELS) | set(UNDEFINED) == set(signatures)
    assert not set(KERNELS) & set(UNDEFINED)
    assert set(JUDGES) <= set(KERNELS)
    assert len(KERNELS) == 208


@pytest.mark.parametrize("op", sorted(UNDEFINED))
def test_an_undefined_operator_is_refused_with_its_reason(op):
    with pytest.raises(UndefinedError, match=UNDEFINED[op][:6]):
        apply(op, [], {}, [])


def test_an_unknown_operator_is_refused():
    with pytest.raises(UndefinedError, match="no such operator"):
        apply("soft_max", [], {}, [])


@pytest.mark.parametrize("op", sorted(KERNELS))
def test_a_kernel_takes_its_operators_attributes(signatures, op):
    kernel = KERNELS[op]
    declared = {attribute.name for attribute in signatures[op].plan.attributes}
    taken = set(kernel.attributes) - {name for known, name in IMPORTED_ONLY if known == op}
    assert taken <= declared
    assert declared - taken <= WITHOUT_INFLUENCE.keys()


@pytest.mark.parametrize("op", sorted(KERNELS))
def test_operands_that_stand_for_attributes_are_known_as_such(signatures, op):
    plan = signatures[op].plan
    named = {attribute.name for attribute in plan.attributes}
    expected = {
        i: port.name.text
        for i, port in enumerate(plan.decl.params)
        if port.optional and port.name.text in named
    }
    assert dict(KERNELS[op].runtime) == expected
