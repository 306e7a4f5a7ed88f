"""Conditions inside texts are read as a language of their own."""

from __future__ import annotations

import pytest

from reprise.mining.source.mine import Mined
from reprise.mining.source.summary import summary
from tests.mining.source.conftest import Mine, assertions, rules

SOURCE = """\
def add_constraints(hag, cdlt, bandwidth, is_fusion):
    dims = hag.dims
    area = f"sizes['N']*sizes['P']"
    {body}
"""


def mine_text(mined: Mine, body: str) -> list[str]:
    found = mined({"a.py": SOURCE.replace("{body}", body)})
    return [text for text in comments(found) if "device" not in text]


def comments(found: Mined) -> list[str]:
    """What is asserted in comments: a value that is `tensor(…)` is not there at the text's line."""
    assert not assertions(found)
    indented = "//     "
    lines = found.text.splitlines()
    return [line.removeprefix(indented) for line in lines if line.startswith(indented)]


@pytest.mark.parametrize(
    ("text", "assertion"),
    [
        ('f"size % {bandwidth} == 0"', 'tensor(size) % value("bandwidth") == 0'),
        ('f"size == {dims[0]}"', 'tensor(size) == value("dims[0]")'),
        ('"split == 1"', "tensor(split) == 1"),
        (
            "f\"sizes['{d}']*{t.bits()} % {bandwidth} == 0\"",
            'tensor(sizes_d) * value("t.bits()") % value("bandwidth") == 0',
        ),
        (
            'f"{area} <= {hag.elements}"',
            'tensor(sizes_n) * tensor(sizes_p) <= value("hag.elements")',
        ),
    ],
)
def test_what_stands_in_braces_is_the_compilers_the_rest_is_not(
    mined: Mine, text: str, assertion: str
) -> None:
    assert mine_text(mined, f'cdlt.add_compilation_param("x", {text})') == [assertion]


def test_a_condition_joined_by_and_is_several(mined: Mine) -> None:
    body = 'hint = f"size <= {dims[0]} and size >= 0 and any(x)"; cdlt.add_constraint(hint)'
    assert mine_text(mined, body) == ['tensor(size) <= value("dims[0]")', "tensor(size) >= 0"]


def test_the_device_is_held_against_what_the_text_divides_by(mined: Mine) -> None:
    found = mined(
        {"a.py": SOURCE.replace("{body}", 'cdlt.add_constraint(f"size % {bandwidth} == 0")')}
    )
    assert "tensor(size) % device(channel_bytes) == 0" in comments(found)
    assert "// embedded: a.py:4: `cdlt.add_constraint(" in found.text
    assert "embedded: 2 assertions of values that the sites have not, as comments" in summary(found)


def test_a_text_about_the_compilers_own_values_is_a_monitor(mined: Mine) -> None:
    """It can be asked where the text is: `bandwidth` is known there."""
    body = 'cdlt.add_constraint(f"{dims[0]} % {bandwidth} == 0")'
    found = mined({"a.py": SOURCE.replace("{body}", body)})
    assert 'value("dims[0]") % value("bandwidth") == 0' in assertions(found)
    (monitor,) = rules(found).monitors.values()
    assert monitor.meta["template"] == ("embedded",)
    assert monitor.meta["from"] == ("a.py:4",)


@pytest.mark.parametrize(
    "body",
    [
        'raise ValueError(f"size <= {dims} is required here")',
        'cdlt.add_constraint("a < b, not c <= d ==")',
        'cdlt.add_constraint(f"x\\\\n == 1")',
        'cdlt.add_constraint(f"f(size) == 1")',
    ],
)
def test_prose_and_what_is_not_understood_give_nothing(mined: Mine, body: str) -> None:
    assert mine_text(mined, body) == []


def test_texts_in_functions_that_hand_none_on_are_something_else(mined: Mine) -> None:
    assert mine_text(mined, 'emit(f"size == {dims[0]}")') == []


def test_a_text_of_another_branch_is_not_put_in(mined: Mine) -> None:
    body = """if is_fusion:
        hint = "split == 1"
    else:
        cdlt.add_constraint(f"{hint} and size == 2")"""
    assert "tensor(size) == 2" in mine_text(mined, body)
    assert mine_text(mined, body).count("tensor(split) == 1") == 1  # where it is written
