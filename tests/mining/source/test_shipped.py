"""The extractors that ship."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.data import data_root
from reprise.lang.format import format_text
from reprise.lang.lint import lint_rules
from reprise.lang.parse import parse_text
from reprise.mining.source.extractor import known_extractors, load_extractor
from reprise.mining.source.queries import Queries
from tests.mining.source.conftest import Mine, monitors, rules
from tests.mining.source.test_padding import genesys

SMALL = 50
"""Lines of data that a compiler may take (the paper's Table 5: 26 to 42)."""


def test_there_is_one_for_each_compiler() -> None:
    assert {"genesys", "tvm", "onnx-mlir", "inductor"} <= set(known_extractors())


@pytest.mark.parametrize("name", known_extractors())
def test_each_is_small(name: str) -> None:
    folder = data_root() / "extractors" / name
    lines = [line for path in folder.iterdir() for line in path.read_text().splitlines()]
    assert len([line for line in lines if line.strip()]) < SMALL


@pytest.mark.parametrize("name", known_extractors())
def test_the_queries_of_each_compile(name: str) -> None:
    extractor = load_extractor(name)
    for language in extractor.languages:
        Queries(extractor, language)


@pytest.mark.parametrize("name", known_extractors())
def test_what_names_stand_for_is_an_expression(name: str) -> None:
    for meaning in load_extractor(name).device.values():
        parse_text(f'monitor m : resource_safety on pass "p" {{ assert {meaning} == 1 }}')


def test_what_is_written_lints_and_is_formatted(mined: Mine) -> None:
    files = genesys()
    files["long.py"] = (
        "def f(a):\n"
        "    assert a.some_long_name_of_a_field.another_one % a.yet_another_name_of.end == 0\n"
        "    assert (a.x + a.y) * 2 % -a.z == 0 and a.z % (a.x * a.y) == 0\n"
    )
    found = mined(files)
    assert len(monitors(found)) > 5
    assert format_text(found.text) == found.text
    assert lint_rules(rules(found)) == []


def test_an_assertion_that_cannot_fail_is_listed_not_written(mined: Mine) -> None:
    found = mined({"a.py": "assert OH - OH == 0\nassert 3 > 2\n"})
    assert monitors(found) == {}
    assert {u.why for u in found.derived.unused} == {"always true, or never"}


def test_the_commit_of_a_checkout_is_stated(mined: Mine, tmp_path: Path) -> None:
    found = mined({"a.py": "assert a % b == 0\n"}, commit="95ae327")
    (monitor,) = monitors(found).values()
    assert monitor.meta["commit"] == ("95ae327",)
    assert monitor.meta["target"] == ("genesys",)


def test_a_literal_that_the_device_contradicts_is_a_clash(mined: Mine, tmp_path: Path) -> None:
    hardware = tmp_path / "device.rules"
    hardware.write_text('hw("gpu", warp, 64).\n')
    code = "def f(n):\n    warp_size = 32\n    assert n % warp_size == 0\n"
    found = mined({"python/tvm/a.py": code}, extractor="tvm", hardware=[hardware])
    (monitor,) = monitors(found).values()
    assert monitor.meta["clashes"] == ("device.rules:1",)


def test_documents_that_speak_of_a_fused_operator_are_referred_to(
    mined: Mine, tmp_path: Path
) -> None:
    docs = tmp_path / "docs.rules"
    docs.write_text(
        'constraint relu_type : data_representation on { from: "Operators.md:12"; r = relu(x) }\n'
        "require x.dtype in floats\n"
    )
    found = mined({"a.py": "x = {'seq': ['Add', 'Relu']}\n"}, docs=[docs])
    (constraint,) = rules(found).constraints.values()
    assert constraint.meta["agrees"] == ("Operators.md:12",)
