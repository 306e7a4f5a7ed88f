"""What was read, against ``onnx.defs``: the ground truth that nobody here wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from lark import Lark, Tree
from lark.exceptions import LarkError
from onnx import defs

from reprise.mining.docs.agreement import Agreement, Kind, compare
from reprise.mining.docs.generate import documents
from reprise.mining.docs.model import Documentation, Form
from reprise.mining.docs.reading import read_documents, read_texts
from tests.mining.docs.conftest import DATA

SCHEMAS = defs.get_all_schemas_with_history()


@pytest.mark.slow
@pytest.mark.parametrize("form", list(Form))
def test_every_fact_of_the_installed_release_agrees_or_is_explained(
    form: Form, markdown: Documentation, pages: Documentation
) -> None:
    documentation = markdown if form is Form.MARKDOWN else pages
    assert not documentation.diagnostics
    agreement = compare(documentation)
    assert agreement.stated[Kind.SINCE] == len(SCHEMAS)
    assert agreement.stated[Kind.DEFAULT] > 1000
    assert not agreement.absent
    assert not agreement.unread
    assert not agreement.unexplained
    for kind in Kind:
        if kind is not Kind.DEFAULT:
            assert agreement.agreeing[kind] == agreement.stated[kind], kind
    assert {d.subject.split("-")[0] for d in agreement.differences} == {
        "Clip",
        "Selu",
        "ai.onnx.preview.training.Adagrad",
        "ai.onnx.preview.training.Adam",
    }


def test_what_onnx_itself_published_agrees() -> None:
    agreement = compare(read_documents([DATA]))
    assert not agreement.unexplained
    assert sum(agreement.stated.values()) > 500
    assert sum(agreement.agreeing.values()) > 0.99 * sum(agreement.stated.values())


def test_a_rounded_default_is_explained() -> None:
    agreement = compare(read_documents([DATA / "Changelog.md"]))
    epsilon = next(d for d in agreement.differences if "Adam" in d.subject)
    assert (epsilon.documented, epsilon.actual) == ("0.0", "1e-06")
    assert "round" in (epsilon.explanation or "")
    assert epsilon.place.file.endswith("Changelog.md")


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        ("tensor(float16), tensor(float), tensor(double)", "tensor(float16)", Kind.TYPES),
        ("<tt>X</tt> : T", "<tt>Z</tt> : T", Kind.NAME),
        ("<tt>X</tt> : T", "<tt>X</tt> (differentiable) : T", Kind.FLAGS),
        ("consumed_inputs</tt> : list of ints", "consumed_inputs</tt> : int", Kind.ATTRIBUTE_TYPE),
        ("list of ints</dt>", "list of ints (required)</dt>", Kind.REQUIRED),
        ("list of ints</dt>", "list of ints (default is ['1'])</dt>", Kind.DEFAULT),
        ("consumed_inputs", "consumed_input", Kind.ATTRIBUTES),
        ("Abs-1", "Abs-2", Kind.SINCE),
        ("#### Inputs", "#### Inputs (0 - 1)", Kind.ARITY),
    ],
)
def test_a_wrong_fact_is_a_difference_of_its_kind(old: str, new: str, kind: Kind) -> None:
    text = (DATA / "Changelog.md").read_text(encoding="utf-8").partition('### <a name="GRU-1')[0]
    assert old in text
    agreement = compare(read_texts({"x.md": text.replace(old, new)}))
    assert [d.kind for d in agreement.differences] == [kind]


def test_documents_of_another_release_say_what_they_lack() -> None:
    agreement = compare(read_documents([DATA / "Changelog-ml.md"]))
    assert "Abs-13" in agreement.absent
    assert not agreement.differences


def test_a_domain_that_onnx_does_not_have_is_told() -> None:
    text = (DATA / "Changelog-ml.md").read_text(encoding="utf-8")
    agreement = compare(read_texts({"x.md": text.replace("ai.onnx.ml", "com.microsoft")}))
    assert {d.explanation for d in agreement.differences} == {"the onnx package has no such domain"}


def test_what_could_not_be_read_is_not_compared() -> None:
    text = (DATA / "Changelog.md").read_text(encoding="utf-8")
    agreement = compare(read_texts({"x.md": text.replace("<tt>X</tt> : T", "<tt>X</tt> T", 1)}))
    assert len(agreement.unread) == 1
    assert "Abs-1" in agreement.unread[0]
    assert not agreement.unexplained


# --- the paper's grammar, as a baseline ----------------------------------------------------------


def test_the_papers_grammar_reads_half_of_what_we_read(pages: Documentation) -> None:
    """The grammar of Figure 2B reads inputs, outputs and types of 330 of 659 versions right in
    onnx 1.23.2: names with digits or underscores, several labels, type variables with other
    names and literal types are beyond it."""
    right = sum(_reads_right(text) for text in _page_entries())
    assert 0.4 < right / len(SCHEMAS) < 0.6
    ours: Agreement = compare(pages)
    for kind in (Kind.COUNT, Kind.NAME, Kind.TYPE, Kind.TYPES):
        assert ours.agreeing[kind] == ours.stated[kind]


FIGURE_2 = Lark(
    Path(DATA / "figure2.lark").read_text(encoding="utf-8"),
    parser="lalr",
    start=["operator", "parameter", "constraint"],
)


def _page_entries() -> Iterator[str]:
    for text in documents(Form.PAGES).values():
        yield from re.split(r"(?m)^## ", text)[1:]


def _reads_right(entry: str) -> bool:
    heading = re.match(r"(\w+) - (\d+)(?: \((.*)\))?", entry)
    assert heading is not None
    key = (heading[3] or "", heading[1], int(heading[2]))
    schema = next(s for s in SCHEMAS if (s.domain, s.name, s.since_version) == key)
    types = {
        str(tree.children[0]): {str(t) for t in tree.children[1:]}
        for tree in _trees(entry, "Type Constraints", "constraint")
    }
    return (
        _parameters(entry, "Inputs") == [(p.name, p.type_str) for p in schema.inputs]
        and _parameters(entry, "Outputs") == [(p.name, p.type_str) for p in schema.outputs]
        and types == {t.type_param_str: set(t.allowed_type_strs) for t in schema.type_constraints}
    )


def _parameters(entry: str, title: str) -> Sequence[tuple[str, str]]:
    trees = _trees(entry, title, "parameter")
    return [(str(t.children[0]), str(t.children[-1])) for t in trees]


def _trees(entry: str, title: str, rule: str) -> Iterator[Tree[str]]:
    section = entry.partition(f"\n### {title}\n")[2].partition("\n### ")[0]
    for line in section.replace("**", "").replace("`", "").split("\n"):
        if line.startswith(("- ", "* ")):
            try:
                yield FIGURE_2.parse(line, start=rule)
            except LarkError:
                continue
