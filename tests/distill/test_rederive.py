"""Changing the type of a source, and deriving what depends on it again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from reprise.campaign.source import SourceRequest, open_source
from reprise.distill.flow import Flow, Source
from reprise.distill.forms import UirForm
from reprise.distill.rederive import Corner, Rederiver, fitted
from reprise.uir.graph import TensorType
from reprise.uir.program import Program
from reprise.uir.semantics import SemanticsError, evaluate
from reprise.uir.text import print_uir
from tests.distill.toys import program, signatures

FORM = UirForm(signatures(), "test")
REDERIVE = Rederiver(signatures())


def changed(text: str, **shapes: tuple[int, ...]) -> str | None:
    """The program once some sources have other shapes."""
    flow = FORM.flow(program(text))
    sources = [
        Source(name, s.dtype, fitted(s, TensorType(s.dtype, shape)), s.stored)
        for name, shape in shapes.items()
        for s in [flow.by_name[name]]
    ]
    made = REDERIVE(flow, FORM.types(flow), sources=sources)
    found = None if made is None else FORM.program(made)
    return None if found is None else print_uir(found.graph)


@pytest.mark.parametrize(
    ("before", "shape", "after"),
    [
        ("x: float32[6, 8]\ny = reshape(x, shape=[48])\n", (1, 8), "shape=[8]"),
        ("x: float32[6, 8]\ny = reshape(x, shape=[2, 3, 8])\n", (6, 1), "shape=[2, 3, 1]"),
        ("x: float32[6, 8]\ny = expand(x, shape=[4, 6, 8])\n", (3, 8), "shape=[4, 3, 8]"),
        ("x: float32[6, 8]\ny = transpose(x, perm=[1, 0])\n", (6,), "perm=[0]"),
        ("x: float32[2, 3, 4]\ny = sum(x, axes=[0, 2])\n", (2, 3), "axes=[0]"),
        ("x: float32[2, 3, 4]\ny = softmax(x, axis=2)\n", (3, 4), "axis=1"),
        ("x: float32[9]\ny, z = split(x, sizes=[3, 6], axis=0)\n", (3,), "sizes=[1, 2]"),
        ("x: float32[5, 4]\ny = pad(x, pads=[1, 2, 3, 4])\n", (4,), "pads=[2, 4]"),
    ],
)
def test_attributes_follow_the_extents(before: str, shape: tuple[int, ...], after: str) -> None:
    text = changed(before, x=shape)
    assert text is not None
    assert after in text


def test_other_sources_follow() -> None:
    text = changed("x: float32[6, 8]\nw: float32[6, 8]\ny = add(x, w)\nz = exp(y)\n", x=(3, 8))
    assert text is not None
    assert "w: float32[3, 8]" in text
    text = changed("x: float32[6, 8]\nw: float32[8, 5]\ny = matmul(x, w)\n", x=(6, 2))
    assert text is not None
    assert "w: float32[2, 5]" in text
    text = changed(
        "x: float32[1, 4, 5, 5]\nw: float32[2, 4, 3, 3]\ny = conv2d(x, w)\n", x=(1, 1, 5, 5)
    )
    assert text is not None
    assert "w: float32[2, 1, 3, 3]" in text


def test_a_source_that_was_asked_for_stays_as_asked() -> None:
    both = changed("x: float32[6]\nw: float32[6]\ny = add(x, w)\n", x=(2,), w=(3,))
    assert both is None


def test_what_cannot_be_is_refused() -> None:
    assert changed("x: float32[1, 3, 8, 8]\ny = global_avg_pool(x)\n", x=(3,)) is None


@pytest.mark.parametrize(
    ("corner", "kept"), [(Corner.FIRST, [0, 1]), (Corner.LAST, [4, 5]), (Corner.LARGEST, [9, 4])]
)
def test_a_corner_says_which_elements_stay(corner: Corner, kept: list[int]) -> None:
    source = Source("x", "float32", np.array([0, 1, 2, 9, 4, 5], np.float32))
    shorter = fitted(source, TensorType("float32", (2,)), corner=corner)
    assert shorter.tolist() == kept


def test_values_are_cast_without_surprises() -> None:
    source = Source("x", "float32", np.array([np.nan, np.inf, -2.7, 300], np.float32))
    assert fitted(source, TensorType("int8", (4,))).tolist() == [0, 0, -2, 127]
    assert fitted(source, TensorType("uint8", (4,))).tolist() == [0, 0, 0, 255]
    assert fitted(source, TensorType("bool", (4,))).dtype == np.bool_


def shrunk(flow: Flow) -> Iterator[Source]:
    """Each source with each axis shorter, and without it."""
    for source in flow.sources:
        for axis, extent in enumerate(source.shape):
            before, after = source.shape[:axis], source.shape[axis + 1 :]
            for shape in ((*before, 1, *after), (*before, *after)):
                if extent and shape != source.shape:
                    value = fitted(source, TensorType(source.dtype, shape))
                    yield Source(source.name, source.dtype, value, source.stored)


@pytest.mark.slow
def test_derived_programs_are_valid_and_most_changes_of_extents_can_be_made() -> None:
    """On programs of the generator: what comes out has the types that the reference computes."""
    generator = open_source(SourceRequest(seed=17, guided=False, lowerings=("onnx",)))
    tried = made = 0
    for number in range(40):
        flow = FORM.flow(generator.program(number).program)
        types = FORM.types(flow)
        for source in shrunk(flow):
            derived = REDERIVE(flow, types, sources=[source])
            extent = len(source.shape) == len(flow.by_name[source.name].shape)
            tried += extent
            if derived is None:
                continue
            made += extent
            assert derived.by_name[source.name].shape == source.shape
            check(FORM.program(derived))
    assert made > 0.7 * tried


def check(derived: Program | None) -> None:
    """Evaluate a program; its values may be out of range, but its types must be right."""
    assert derived is not None
    try:
        evaluate(derived)
    except SemanticsError as error:
        assert "computed shape" not in str(error)
