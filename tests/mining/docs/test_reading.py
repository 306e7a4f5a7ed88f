"""Documents, whole and damaged, in both forms."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from reprise.lang.lint import lint_rules
from reprise.lang.ruleset import load_text
from reprise.mining.docs.mining import mine
from reprise.mining.docs.model import UNBOUNDED, Arity, Documentation, Entry, Form, Option, Part
from reprise.mining.docs.reading import read_documents, read_texts
from tests.mining.docs.conftest import DATA

CHANGELOG = (DATA / "Changelog.md").read_text(encoding="utf-8")
CONCAT = (DATA / "pages" / "onnx__Concat.md").read_text(encoding="utf-8")


def read(text: str, form: Form | None = None) -> Documentation:
    return read_texts({"x.md": text}, form)


WHOLE = {Form.MARKDOWN: read(CHANGELOG), Form.PAGES: read(CONCAT)}


def entry(documentation: Documentation, title: str) -> Entry:
    return next(e for e in documentation.entries if e.title == title)


def codes(documentation: Documentation) -> list[str]:
    return [d.code for d in documentation.diagnostics]


# --- what ONNX's own generators wrote ------------------------------------------------------------


def test_excerpts_of_the_documents_are_read_without_a_complaint() -> None:
    documentation = read_documents([DATA])
    assert not documentation.diagnostics
    assert not [e for e in documentation.entries if e.damaged]
    assert len(documentation.entries) == 26


def test_every_item_knows_its_line() -> None:
    lines = CHANGELOG.split("\n")
    for one in read(CHANGELOG).entries:
        assert one.name in lines[one.place.line - 1]
        for parameter in (*one.inputs, *one.outputs):
            assert f"<tt>{parameter.name}</tt>" in lines[parameter.place.line - 1]
        for constraint in one.types:
            assert constraint.types[-1] in lines[constraint.place.line - 1]
        for attribute in one.attributes:
            assert f"<tt>{attribute.name}</tt>" in lines[attribute.place.line - 1]


def test_the_pages_label_means_the_opposite_of_what_it_says() -> None:
    documentation = read_documents([DATA / "pages"])
    (concat,) = (e for e in documentation.entries if e.title == "Concat-13")
    assert concat.inputs[0].homogeneous
    (conditional,) = (e for e in documentation.entries if e.name == "If")
    assert conditional.outputs[0].option is Option.VARIADIC
    assert not conditional.outputs[0].homogeneous


def test_where_the_label_is_no_longer_inverted_it_means_what_it_says() -> None:
    fixed = CONCAT.replace("(variadic, heterogeneous)", "(variadic)").replace(
        " (heterogeneous)", ""
    )
    concat = entry(read(fixed), "Concat-13")
    assert concat.inputs[0].homogeneous


def test_a_deprecated_operator_has_no_parameters_in_markdown() -> None:
    upsample = entry(read(CHANGELOG), "Upsample-10")
    assert upsample.deprecated
    assert upsample.input_arity is None
    assert upsample.inputs == ()


def test_an_experimental_operator_has_no_version_of_its_own() -> None:
    documentation = read_documents([DATA / "Operators.md"])
    flex = next(e for e in documentation.entries if e.name == "FlexAttention")
    assert (flex.experimental, flex.since) == (True, 1)


def test_optional_outputs_that_are_always_there_are_no_mismatch() -> None:
    gru = entry(read(CHANGELOG), "GRU-1")
    assert gru.outputs[0].option is Option.OPTIONAL
    assert gru.output_arity == Arity(2, 2)


@pytest.mark.slow
def test_both_forms_say_the_same(markdown: Documentation, pages: Documentation) -> None:
    ours = {e.key: e for e in markdown.entries}
    for page in pages.entries:
        text = ours[page.key]
        if text.input_arity is None:
            continue  # deprecated
        assert (page.input_arity, page.output_arity) == (text.input_arity, text.output_arity)
        assert [p.name for p in page.inputs] == [p.name for p in text.inputs]
        assert [p.option for p in page.outputs] == [p.option for p in text.outputs]
        assert [a.default for a in page.attributes] == [a.default for a in text.attributes]
        assert [(t.name, set(t.types)) for t in page.types] == [
            (t.name, set(t.types)) for t in text.types
        ]


# --- older layouts -------------------------------------------------------------------------------

OF_2018 = """
### <a name="ai.onnx.ml.Scaler"></a><a name="ai.onnx.ml.scaler">**ai.onnx.ml.Scaler**</a>

#### Versioning

This operator is used if you are using version 1 of operator set 'ai.onnx.ml' until the next \
BC-breaking change to this operator; e.g., it will be used if your protobuf has:

~~~~
opset_import {
  version = 1
  domain = 'ai.onnx.ml'
}
~~~~

#### Attributes

<dl>
<dt><tt>offset</tt> : list of floats</dt>
<dd>Subtracted first</dd>
</dl>

#### Inputs

<dl>
<dt><tt>X</tt> : T</dt>
<dd>Data</dd>
</dl>

#### Outputs

<dl>
<dt><tt>Y</tt> : tensor(float)</dt>
<dd>Scaled</dd>
</dl>

#### Type Constraints

<dl>
<dt><tt>T</tt> : tensor(float), tensor(double)</dt>
<dd>A tensor</dd>
</dl>
"""


def test_the_markdown_of_2018_is_read() -> None:
    documentation = read(OF_2018)
    (scaler,) = documentation.entries
    assert not documentation.diagnostics
    assert scaler.title == "ai.onnx.ml.Scaler-1"
    assert scaler.allowed(scaler.inputs[0]) == ("tensor(float)", "tensor(double)")


PAGE_OF_2022 = """
.. _l-onnx-doc-Max:

===
Max
===

.. _l-onnx-op-max-13:

Max - 13
========

**Version**

* **name**: `Max (GitHub) <https://github.com/onnx/onnx/blob/main/docs/Operators.md#Max>`_
* **domain**: **main**
* **since_version**: **13**
* **function**: False
* **support_level**: SupportType.COMMON
* **shape inference**: True

This version of the operator has been available
**since version 13**.

**Summary**

Element-wise max of each of the input tensors.

**Inputs**

Between 1 and 2147483647 inputs.

* **data_0** (variadic, heterogeneous) - **T**:
  List of tensors for max.

**Outputs**

* **max** (heterogeneous) - **T**:
  Output tensor.

**Type Constraints**

* **T** in (
  tensor(double),
  tensor(float)
  ):
  Constrain input and output types to numeric tensors.

**Examples**

**max_all_numeric_types**

::

    node = onnx.helper.make_node(
"""


def test_the_sites_pages_of_2022_are_read() -> None:
    documentation = read(PAGE_OF_2022)
    (entry,) = documentation.entries
    assert not documentation.diagnostics
    assert entry.title == "Max-13"
    assert entry.function is False
    assert entry.input_arity == Arity(1, UNBOUNDED)
    assert entry.inputs[0].option is Option.VARIADIC
    assert entry.inputs[0].homogeneous
    assert entry.types[0].types == ("tensor(double)", "tensor(float)")
    assert PAGE_OF_2022.split("\n")[entry.types[0].place.line - 1] == "* **T** in ("


def test_attributes_without_types_are_told_once() -> None:
    attributes = (
        "**Attributes**\n\n* **axis** (required):\n  Which.\n* **keepdims**:\n  Whether.\n\n"
    )
    text = PAGE_OF_2022.replace("**Inputs**", attributes + "**Inputs**")
    documentation = read(text)
    assert codes(documentation) == ["unread-line"]
    assert documentation.entries[0].damaged == {Part.ATTRIBUTES}


# --- damage --------------------------------------------------------------------------------------


def test_a_broken_line_costs_only_itself() -> None:
    broken = CHANGELOG.replace(
        "<dt><tt>input</tt> : T</dt>\n<dd>Input tensor whose elements to be clipped",
        "<dt><tt>input</tt> (optionl) : T</dt>\n<dd>Input tensor whose elements to be clipped",
    )
    assert broken != CHANGELOG
    documentation = read(broken)
    (problem,) = documentation.diagnostics
    assert problem.code == "unread-line"
    assert "optionl" in broken.split("\n")[problem.span.line - 1][problem.span.column - 1 :]
    assert entry(documentation, "Clip-6").damaged == {Part.INPUTS}
    assert len(documentation.entries) == len(read(CHANGELOG).entries)


def test_a_broken_heading_costs_its_entry_and_no_other() -> None:
    broken = CHANGELOG.replace('<a name="Clip-6"></a>**Clip-6**', '<a name="Clip-6></a>**Clip-6**')
    documentation = read(broken)
    assert codes(documentation) == ["unread-line"]
    assert len(documentation.entries) == len(read(CHANGELOG).entries) - 1


def test_a_parameter_lost_without_a_trace_is_noticed() -> None:
    start = CHANGELOG.index("<dt><tt>max_output_boxes_per_class</tt>")
    end = CHANGELOG.index("<dt><tt>iou_threshold</tt>")
    documentation = read(CHANGELOG[:start] + CHANGELOG[end:])
    assert codes(documentation) == ["count-mismatch"]
    assert Part.INPUTS in entry(documentation, "NonMaxSuppression-10").damaged


def test_an_operator_without_results_is_not_believed() -> None:
    text = CHANGELOG.replace(
        "<dl>\n<dt><tt>Y</tt> : T</dt>\n<dd>Output tensor</dd>\n</dl>\n", "", 1
    )
    documentation = read(text)
    assert codes(documentation) == ["count-mismatch"]
    assert Part.OUTPUTS in entry(documentation, "Abs-1").damaged


def test_an_example_that_does_not_end_hides_its_own_entry_only() -> None:
    documentation = read(CONCAT.replace("\n```\n", "\n", 1))
    assert "open-block" in codes(documentation)
    assert [e.since for e in documentation.entries] == [1, 4, 11, 13]


@pytest.mark.slow
@pytest.mark.parametrize("cut", range(0, len(CHANGELOG), 211))
def test_what_is_left_of_a_truncated_file_is_right(cut: int) -> None:
    _claims_nothing_wrong(read(CHANGELOG[:cut], Form.MARKDOWN), WHOLE[Form.MARKDOWN])


@pytest.mark.parametrize("cut", range(0, len(CONCAT), 97))
def test_what_is_left_of_a_truncated_page_is_right(cut: int) -> None:
    _claims_nothing_wrong(read(CONCAT[:cut], Form.PAGES), WHOLE[Form.PAGES])


@pytest.mark.slow
@pytest.mark.parametrize(("text", "form"), [(CHANGELOG, Form.MARKDOWN), (CONCAT, Form.PAGES)])
def test_a_garbled_item_is_noticed_or_harmless(text: str, form: Form) -> None:
    """Each line that is an item, cut at its middle: what is still claimed is right."""
    whole = WHOLE[form]
    lines = text.split("\n")
    items = [i for i, line in enumerate(lines) if re.match(r"<dt>|[-*] \*\*[A-Za-z_0-9]", line)]
    assert len(items) > 20
    for i in items:
        cut = [*lines[:i], lines[i][: len(lines[i]) // 2], *lines[i + 1 :]]
        damaged = read("\n".join(cut), form)
        _claims_nothing_wrong(damaged, whole)


def _claims_nothing_wrong(part: Documentation, whole: Documentation) -> None:
    """Every fact of a section that counts as read is a fact of the whole document."""
    truth = {e.key: e for e in whole.entries}
    for one in part.entries:
        true = truth[one.key]
        if Part.INPUTS not in one.damaged:
            assert (one.inputs, one.input_arity) == (true.inputs, true.input_arity)
        if Part.OUTPUTS not in one.damaged:
            assert (one.outputs, one.output_arity) == (true.outputs, true.output_arity)
        if Part.TYPES not in one.damaged:
            assert one.types == true.types
        if Part.ATTRIBUTES not in one.damaged:
            assert one.attributes == true.attributes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_in_a_document_the_rules_are_well_formed(seed: int) -> None:
    """Documents with random edits: no edit breaks the reader, or the rules that come out."""
    rng = random.Random(seed)
    text = rng.choice((CHANGELOG[:9000], CONCAT[:4000], OF_2018, PAGE_OF_2022))
    for _ in range(8):
        at = rng.randrange(len(text))
        match rng.randrange(3):
            case 0:
                text = text[:at] + text[at + rng.randint(1, 30) :]
            case 1:
                inserted = "".join(
                    rng.choices("<>/*-`()#:,'\"\\ \n\té²09TXx&;", k=rng.randint(1, 6))
                )
                text = text[:at] + inserted + text[at:]
            case _:
                other = rng.randrange(len(text))
                text = text[:at] + text[other : other + rng.randint(1, 200)] + text[at:]
    for rules in mine(read(text)).files().values():
        assert lint_rules(load_text(rules)) == []


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (f"<dt><tt>X</tt> : {'seq(' * 99}tensor(float){')' * 99}</dt>", "nested at most"),
        (f"<dt><tt>X</tt> : {'x' * 99999}(</dt>", "a name"),
    ],
)
def test_a_type_without_end_is_a_line_that_cannot_be_read(line: str, hint: str) -> None:
    text = CHANGELOG.replace("<dt><tt>X</tt> : T</dt>", line, 1)
    (problem, *_) = read(text).diagnostics
    assert hint in (problem.hint or "")


def test_an_operators_name_must_be_one_that_rules_can_write() -> None:
    text = CHANGELOG.replace("**Abs-1**", "**abs-1**")
    documentation = read(text)
    assert codes(documentation) == ["unread-line"]
    assert "an operator's name" in (documentation.diagnostics[0].hint or "")


# --- files ---------------------------------------------------------------------------------------


def test_a_folder_with_one_broken_page_gives_the_others(tmp_path: Path) -> None:
    (tmp_path / "onnx__Concat.md").write_text(CONCAT, encoding="utf-8")
    (tmp_path / "onnx__Broken.md").write_bytes(b"\n## Broken 13\n\n**since version 13**.\n")
    (tmp_path / "notes.md").write_text("# Notes\n", encoding="utf-8")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    documentation = read_documents([tmp_path])
    assert documentation.files == 2
    assert {e.name for e in documentation.entries} == {"Concat"}
    (problem,) = documentation.diagnostics
    assert problem.span.file.endswith("onnx__Broken.md")
    assert problem.span.line == 2


def test_utf_16_is_read_as_what_its_mark_says(tmp_path: Path) -> None:
    path = tmp_path / "Changelog.md"
    path.write_bytes(CHANGELOG.encode("utf-16"))
    documentation = read_documents([path])
    assert documentation.entries and codes(documentation) == []


def test_latin_1_is_read_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "Changelog.md"
    path.write_bytes(CHANGELOG.replace("Concatenate", "Concaténate").encode("latin-1"))
    documentation = read_documents([path])
    assert codes(documentation) == ["not-utf-8"]
    line = documentation.diagnostics[0].span.line
    assert "Concaténate" in path.read_text("latin-1").split("\n")[line - 1]
    assert len(documentation.entries) == len(read(CHANGELOG).entries)


def test_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "Changelog.md"
    path.write_bytes(CHANGELOG.replace("\n", "\r\n").encode())
    assert read_documents([path]).entries == read(CHANGELOG).entries


def test_an_empty_folder_is_said_to_be_empty(tmp_path: Path) -> None:
    documentation = read_documents([tmp_path])
    assert codes(documentation) == ["no-documents"]
    assert documentation.entries == ()


def test_a_named_file_that_documents_no_operators_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Notes\n", encoding="utf-8")
    assert codes(read_documents([path])) == ["no-operators"]


def test_the_same_entry_twice_is_one_with_two_places() -> None:
    documentation = read_texts({"a.md": CHANGELOG, "b.md": CHANGELOG})
    assert len(documentation.entries) == len(read(CHANGELOG).entries)
    (place,) = documentation.again["", "Abs", 1]
    assert place.file == "b.md"


def test_two_accounts_that_differ_are_told() -> None:
    other = CHANGELOG.replace("tensor(float16), tensor(float), ", "tensor(float16), ", 1)
    documentation = read_texts({"a.md": CHANGELOG, "b.md": other})
    assert set(codes(documentation)) == {"two-accounts"}
