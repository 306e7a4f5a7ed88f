"""Kernels as JSON, held against the JSON Schema that ships, as ``jsonschema`` reads it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from reprise.data import data_path
from reprise.einsum import schema
from reprise.einsum.json_form import data_from_json, dumps, from_json, loads, read_lines, to_json
from reprise.einsum.kernel import Kernel, KernelError
from reprise.einsum.reading import read_kernels
from reprise.einsum.text import parse, print_text
from reprise.einsum.varying import varied
from tests.einsum.kernels import kernels

SCHEMA = json.loads(data_path(schema.FILE).read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
SAMPLE = to_json(
    parse(
        "A(i,k) = B(i,j) * C(j,k) + D(i,k) where i=3, B: ds:1,0 {(0,1): 2.5} | scaled(3), "
        "C: ss banded(density=0.5, zeros=2, unsorted) | transposed(1,0) | kept(0, 1, 2), "
        "D: uq computed(T)"
    ).kernel()
)


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.slow
@given(kernels())
def test_what_is_written_can_be_read_and_is_as_the_schema_says(kernel: Kernel) -> None:
    line = dumps(kernel)
    assert "\n" not in line
    assert loads(line) == kernel
    assert not list(VALIDATOR.iter_errors(json.loads(line)))


@pytest.mark.slow
@given(kernels())
def test_text_and_json_say_the_same(kernel: Kernel) -> None:
    assert loads(dumps(parse(print_text(kernel)).kernel())) == kernel


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a document."""
    found = [here]
    items: Any = ()
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        found += paths(item, (*here, key))
    return found


PLACES = [path for path in paths(SAMPLE) if path]
OTHERS = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1,
        2,
        0.5,
        7.25,
        "",
        "x",
        "1x",
        "dense",
        "drawn",
        [],
        [0],
        [0, 0],
        {},
        {"x": 1},
    ]
)


@pytest.mark.slow
@given(st.sampled_from(PLACES), OTHERS, st.sampled_from(["replace", "remove", "add"]))
def test_our_reading_of_the_schema_is_jsonschemas(
    path: tuple[Any, ...], other: Any, action: str
) -> None:
    document = copy.deepcopy(SAMPLE)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    match action:
        case "remove":
            del place[path[-1]]
        case "add" if isinstance(place, dict):
            place["more"] = other
        case "add":
            place.append(other)
        case _:
            place[path[-1]] = other
    expected = VALIDATOR.is_valid(document)
    try:
        schema.check(document)
    except KernelError:
        assert not expected
    else:
        assert expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version: expected 1, found 2"),
        ({"dtype": "float16"}, "dtype: expected one of"),
        ({"terms": []}, "terms: expected at least 1 items"),
        ({"extents": {"i": 3, "j": 4, "k": 4, "x": 1}}, "index x does not occur"),
        ({"extents": {"i": -3}}, "extents.i: expected at least 0"),
        ({"extents": {"i": 3}}, "index k has no extent"),
        ({"comment": ""}, "'comment' is none of version"),
        ({"output": {"tensor": "Z", "indices": ["i"]}}, "tensors[0]: A is not the output"),
    ],
)
def test_what_cannot_be_read_is_said(change: dict[str, Any], message: str) -> None:
    with pytest.raises(KernelError) as caught:
        from_json({**SAMPLE, **change})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[" * 100_000 + b"]" * 100_000, "nested too deeply"),
        (b'{"version": ' + b"9" * 5000 + b"}", "too many digits"),
        (b"\xff\xfe{}\x00", ":1:1: this is no JSON"),
        (b'{"version": 1, "dtype" 3}', ":1:24: this is no JSON"),
        (b'{"version": NaN}', "NaN is no number"),
        (b'{"version": 1, "extents": {"i": 3, "j": 1, "i": 4}}', "the key 'i' twice"),
    ],
    ids=["deep", "long", "bytes", "comma", "nan", "twice"],
)
@pytest.mark.parametrize("name", ["kernel.json", "kernels.jsonl"])
def test_a_file_that_cannot_be_held_is_refused(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(KernelError, match=message):
        list(read_kernels(str(path)))


@pytest.mark.parametrize("name", ["kernel.json", "kernels.jsonl"])
def test_a_byte_order_mark_is_passed_over(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(json.dumps(to_json(parse("i->i").kernel())), encoding="utf-8-sig")
    assert len(list(read_kernels(str(path)))) == 1


@pytest.mark.parametrize("name", ["B\n", "where", "1x", "", "\u00e9", "B C"])
def test_what_no_text_can_name_is_no_name(name: str) -> None:
    written = json.dumps(to_json(parse("A(i) = B(i) where B: s").kernel()))
    for what in ("B", "i", "A"):
        with pytest.raises(KernelError, match="expected a name"):
            loads(written.replace(f'"{what}"', json.dumps(name)))


def test_every_coordinate_has_a_value() -> None:
    data = {"kind": "entries", "coordinates": [[0], [1]], "values": [1.0]}
    with pytest.raises(KernelError, match="2 coordinates, but 1 values"):
        data_from_json(data)


def test_every_tensor_is_described_once() -> None:
    tensors = SAMPLE["tensors"]
    for changed, message in (
        (tensors[:-1], "D is not described"),
        ([*tensors, tensors[-1]], "D is described twice"),
        ([*tensors, {**tensors[-1], "name": "E"}], "E occurs in no term"),
    ):
        with pytest.raises(KernelError, match=message):
            from_json({**SAMPLE, "tensors": changed})


def test_a_bad_line_does_not_hide_the_others() -> None:
    line = json.dumps(SAMPLE)
    found = list(read_lines([line, "", "{", "3", line]))
    assert [number for number, _ in found] == [1, 3, 4, 5]
    assert [isinstance(kernel, Kernel) for _, kernel in found] == [True, False, False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A(i,i) = B(i)", "the output has index i twice"),
        (f"A(i) = {' * '.join(['B(i)'] * 31)}", "more than the limit"),
    ],
)
def test_what_computes_nothing_has_no_variants(text: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        list(varied(text, ["commute"], 1, 0))
