"""The page about operators is what the signatures say."""

from __future__ import annotations

from reprise.solve.catalogue import page
from tests.conftest import ROOT


def test_the_page_is_up_to_date(signatures):
    written = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
    assert written == page(signatures), (
        "run `python -m reprise.solve.catalogue > docs/operators.md`"
    )


def test_every_operator_has_a_description(signatures):
    undescribed = [op for op in signatures if not signatures[op].plan.decl.doc]
    assert undescribed == []
