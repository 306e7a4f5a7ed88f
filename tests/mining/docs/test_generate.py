"""The documents that are made, against those that ONNX's own scripts made."""

from __future__ import annotations

import re

import pytest

from reprise.mining.docs.generate import documents
from reprise.mining.docs.model import Documentation, Entry, Form
from reprise.mining.docs.reading import read_documents
from tests.mining.docs.conftest import DATA

PUBLISHED = [
    *read_documents([DATA], Form.MARKDOWN).entries,
    *read_documents([DATA], Form.PAGES).entries,
]


@pytest.mark.parametrize("published", PUBLISHED, ids=lambda e: f"{e.form.value}-{e.title}")
def test_what_is_made_says_what_onnx_published(
    published: Entry, markdown: Documentation, pages: Documentation
) -> None:
    made = markdown if published.form is Form.MARKDOWN else pages
    assert published in made.entries


@pytest.mark.parametrize(
    "name", ["Changelog.md", "Changelog-ml.md", "pages/onnx__Concat.md", "pages/onnx__If.md"]
)
def test_every_line_that_states_a_fact_is_laid_out_as_onnx_does(name: str) -> None:
    form = Form.PAGES if name.startswith("pages/") else Form.MARKDOWN
    made = {line for text in documents(form).values() for line in text.split("\n")}
    published = (DATA / name).read_text(encoding="utf-8").split("\n")
    facts = [
        line
        for line in published
        if re.match(r"<dt>|### <a|#### [VAIOT]|This ver|\*\*since|[-*] \*\*|Between|## .* - ", line)
    ]
    assert len(facts) > 10
    # The site's template leaves a space where a default could stand; it is of no meaning.
    assert [line for line in facts if line.rstrip() not in made] == []


def test_a_page_has_the_name_that_it_has_on_the_site() -> None:
    names = {name.rpartition("/")[2] for name in documents(Form.PAGES)}
    assert {path.name for path in (DATA / "pages").glob("*.md")} <= names
