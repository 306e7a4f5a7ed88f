"""What declarations state about themselves."""

from __future__ import annotations

import pytest

from reprise.lang.diagnostics import RulesError
from reprise.lang.ruleset import load_text

MINED = """
constraint even_rows : resource on {
    target: tvm
    from: "dlight/gemv.py:101"
    template: tiling
    m = matmul(a, b)
} require a.dim[-1] % 4 == 0

monitor padded : hardware_feasibility on pass "padding" {
    from: "stages.py:124"
    agrees: "benchmark_16x16.json:3"
    agrees: "config_loader.py:40"
    assert value("constr") % 16 == 0
}
"""


def test_a_mined_constraint_says_where_it_comes_from() -> None:
    rules = load_text(MINED)
    assert rules.constraints["even_rows"].meta == {
        "target": ("tvm",),
        "from": ("dlight/gemv.py:101",),
        "template": ("tiling",),
    }


def test_a_key_may_be_stated_more_than_once() -> None:
    meta = load_text(MINED).monitors["padded"].meta
    assert meta["agrees"] == ("benchmark_16x16.json:3", "config_loader.py:40")


@pytest.mark.parametrize("key", ["template", "from"])
def test_a_misspelt_key_is_told_even_though_it_looks_like_a_declaration(key: str) -> None:
    with pytest.raises(RulesError) as caught:
        load_text(MINED.replace(f"{key}:", f"{key}x:"))
    found = {d.code: d for d in caught.value.diagnostics}
    assert f"`{key}`" in (found["unknown-meta-key"].hint or "")
