"""What is not claimed, or with less confidence, and the reason that is written beside it."""

from __future__ import annotations

import pytest

from tests.mining.source.conftest import Mine, monitors
from tests.mining.source.test_templates import SETTINGS, of


@pytest.mark.parametrize(
    "code",
    [
        "v = loop if extent <= most else sch.split(loop, factors=[None, most])[-1]",
        "v = small or sch.split(loop, factors=[None, most])",
        "v = lambda: sch.split(loop, factors=[None, most])",
        "v = [sch.split(loop, factors=[None, most]) for _ in times]",
        "size = size + (n if whole else (n + f - 1) // f * f)",
    ],
)
def test_what_runs_on_a_condition_within_its_statement_is_not_claimed(
    mined: Mine, code: str
) -> None:
    found = mined({"a.py": code}, settings=SETTINGS)
    assert not monitors(found)
    assert "runs only on a condition within its statement" in {
        unused.why for unused in found.derived.unused
    }


def test_what_runs_in_any_case_is_claimed(mined: Mine) -> None:
    code = "v = (sch.split(loop, factors=[None, most]) if True and f(x) else 0, lcm(a, b) or c)\n"
    assert of(mined, code) == [
        'value("lcm(a, b)") % value("a") == 0',
        'value("lcm(a, b)") % value("b") == 0',
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "condition",
    [
        "hasRank() && x.getRank() % tile == 0",
        "isa<T>(y) && cast<T>(y).rank % tile == 0",
        "p && p->n % tile == 0",
    ],
)
def test_cpp_asks_nothing_that_only_a_condition_before_it_allows(
    mined: Mine, condition: str
) -> None:
    assert of(mined, f"void g() {{ bool ok = {condition}; CHECK({condition}); }}\n", "a.cc") == []


@pytest.mark.parametrize("code", ["CHECK(name(&buffer, 256) != 0);", "CHECK((n = f()) > 0);"])
def test_what_sets_something_is_not_asked_again(mined: Mine, code: str) -> None:
    assert of(mined, f"void g() {{ {code} }}\n", "a.cc") == []
    assert of(mined, "assert (n := f()) > 0\n") == []


@pytest.mark.parametrize(
    ("code", "level", "why"),
    [
        (
            "if n % tile == 0:\n    f()\n",
            "low",
            "A question: the sources go on with either answer.",
        ),
        (
            "def fast(n):\n    if n % 4 == 0:\n        f()\n        return n\n",
            "low",
            "A question: the function only answers early.",
        ),
        (
            "v = sch.split(loop, factors=[None, most])\n",
            "low",
            "A schedule guards the rest where a factor does not divide.",
        ),
        ("c = n // tile\n", "medium", "A division need not be meant to be exact."),
        (
            "p = round_up(n, f)\n"
            "def round_up(n, f):\n    if n == 1:\n        return n\n    return -(-n // f) * f\n",
            "medium",
            "The function leaves some extents as they are.",
        ),
    ],
)
def test_the_reason_for_less_confidence_is_written(
    mined: Mine, code: str, level: str, why: str
) -> None:
    found = mined({"a.py": code}, settings=SETTINGS)
    first = next(iter(monitors(found).values()))
    assert first.meta["confidence"] == (level,)
    assert f"/// {why}" in found.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "code", "refusals", "answers"),
    [
        ("a.py", "def f(n):\n    if n % 4 != 0:\n        return{}\n", ("", " None", " False"),
         (" n", " g(n)")),
        ("a.cc", "int f(int n) {{ if (n % 4 != 0) return{}; }}\n", (" false", " failure()"),
         (" success()",)),
    ],
)  # fmt: skip
def test_an_early_return_is_a_guard_only_if_it_is_a_refusal(
    mined: Mine, name: str, code: str, refusals: tuple[str, ...], answers: tuple[str, ...]
) -> None:
    for values, level in ((refusals, "high"), (answers, "low")):
        for value in values:
            found = mined({name: code.format(value)}, settings=SETTINGS)
            (guard,) = monitors(found).values()
            assert guard.meta["confidence"] == (level,), value


def test_a_function_that_always_pads_is_believed(mined: Mine) -> None:
    code = "p = round_up(n, f)\ndef round_up(n, f):\n    return -(-n // f) * f\n"
    found = mined({"a.py": code}, settings=SETTINGS)
    assert next(iter(monitors(found).values())).meta["confidence"] == ("high",)


@pytest.mark.slow
def test_functions_that_an_extractor_says_only_look_are_believed(mined: Mine) -> None:
    settings = SETTINGS.replace("[values]", 'looks = ["extent_of"]\n[values]')
    code = "assert extent_of(x) % 2 == 0\n"
    for known, level in ((SETTINGS, "medium"), (settings, "high")):
        found = mined({"a.py": code}, settings=known)
        assert next(iter(monitors(found).values())).meta["confidence"] == (level,)


def test_what_no_model_violates_is_told(mined: Mine) -> None:
    found = mined({"a.py": 'T = {"seq": ["Conv", "Relu"]}\nU = {"seq": ["Conv", "Add"]}\n'},
                  settings=SETTINGS)  # fmt: skip
    blocks = found.text.split("\n\n")
    relu = next(block for block in blocks if "relu{p" in block)
    add = next(block for block in blocks if "add{p" in block)
    assert "/// Every valid model keeps it." in relu
    assert "Every valid model" not in add
