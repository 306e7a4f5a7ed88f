"""Single lines of operator documentation, as ONNX's two generators write them."""

from __future__ import annotations

import pytest

from reprise.mining.docs import lines
from reprise.mining.docs.lines import Misread, OperatorLine
from reprise.mining.docs.model import UNBOUNDED, Arity, Form

MARKDOWN, PAGES = Form.MARKDOWN, Form.PAGES


@pytest.mark.parametrize(
    ("form", "line", "expected"),
    [
        (
            MARKDOWN,
            '### <a name="Abs-13"></a>**Abs-13**</a>',
            OperatorLine("", "Abs", 13, False, False),
        ),
        (
            MARKDOWN,
            '### <a name="ai.onnx.ml.Scaler"></a><a name="ai.onnx.ml.scaler">'
            "**ai.onnx.ml.Scaler**</a>",
            OperatorLine("ai.onnx.ml", "Scaler", None, False, False),
        ),
        (
            MARKDOWN,
            '### <a name="Upsample-10"></a>**Upsample-10** (deprecated)</a>',
            OperatorLine("", "Upsample", 10, True, False),
        ),
        (
            MARKDOWN,
            '### <sub>experimental</sub> <a name="x.FlexAttention"></a>'
            '<a name="x.flexattention">**x.FlexAttention**</a>',
            OperatorLine("x", "FlexAttention", None, False, True),
        ),
        (PAGES, "## Concat - 13", OperatorLine("", "Concat", 13, False, False)),
        (
            PAGES,
            "## Adagrad - 1 (ai.onnx.preview.training)",
            OperatorLine("ai.onnx.preview.training", "Adagrad", 1, False, False),
        ),
    ],
)
def test_a_heading_names_operator_domain_and_version(
    form: Form, line: str, expected: OperatorLine
) -> None:
    assert lines.operator(form, line) == expected


@pytest.mark.parametrize(
    ("form", "line", "name", "flags", "type_"),
    [
        (MARKDOWN, "<dt><tt>X</tt> : T</dt>", "X", (), "T"),
        (
            MARKDOWN,
            "<dt><tt>data_0</tt> (variadic, heterogeneous, non-differentiable) : T1</dt>",
            "data_0",
            ("variadic", "heterogeneous", "non-differentiable"),
            "T1",
        ),
        (
            MARKDOWN,
            "<dt><tt>Z</tt> (optional) : seq(map(string, float))</dt>",
            "Z",
            ("optional",),
            "seq(map(string, float))",
        ),
        (PAGES, "- **indices** - **tensor(int64)**:", "indices", (), "tensor(int64)"),
        (
            PAGES,
            "- **v_initial** (variadic, heterogeneous) - **V**:",
            "v_initial",
            ("variadic", "heterogeneous"),
            "V",
        ),
    ],
)
def test_a_parameter_has_a_name_labels_and_a_type(
    form: Form, line: str, name: str, flags: tuple[str, ...], type_: str
) -> None:
    read = lines.parameter(form, line)
    assert (read.name, read.flags, read.type) == (name, flags, type_)


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (MARKDOWN, "<dt><tt>V</tt> : tensor(float8e4m3fn), map(int64, float), seq(tensor(x))</dt>"),
        (PAGES, "* **V** in ( `tensor(float8e4m3fn)`, `map(int64, float)`, `seq(tensor(x))` ):"),
    ],
)
def test_types_are_split_at_the_outer_commas_only(form: Form, line: str) -> None:
    types = ("tensor(float8e4m3fn)", "map(int64, float)", "seq(tensor(x))")
    assert lines.constraint(form, line).types == types


@pytest.mark.parametrize(
    ("form", "line", "type_", "required", "default"),
    [
        (MARKDOWN, "<dt><tt>a</tt> : int (required)</dt>", "INT", True, None),
        (MARKDOWN, "<dt><tt>a</tt> : list of strings</dt>", "STRINGS", False, None),
        (MARKDOWN, "<dt><tt>a</tt> : float (default is 1e-05)</dt>", "FLOAT", False, 1e-05),
        (MARKDOWN, "<dt><tt>a</tt> : float (default is (3.4e+38))</dt>", "FLOAT", False, 3.4e38),
        (MARKDOWN, "<dt><tt>a</tt> : string (default is f(x))</dt>", "STRING", False, "f(x)"),
        (
            MARKDOWN,
            "<dt><tt>a</tt> : list of ints (default is ['0', '2'])</dt>",
            "INTS",
            False,
            (0, 2),
        ),
        (PAGES, "* **a - INT** (required) :", "INT", True, None),
        (PAGES, "* **a - INTS** :", "INTS", False, None),
        (PAGES, "* **a - INTS** (default is `[0, 2]`):", "INTS", False, (0, 2)),
        (PAGES, "* **a - STRINGS** (default is `[Tanh, Tanh]`):", "STRINGS", False, ("Tanh",) * 2),
        (PAGES, "* **a - STRING** (default is `it&#39;s`):", "STRING", False, "it's"),
        (PAGES, "* **a - SPARSE_TENSOR** :", "SPARSE_TENSOR", False, None),
    ],
)
def test_an_attribute_has_a_type_and_is_required_or_has_a_default(
    form: Form, line: str, type_: str, required: bool, default: object
) -> None:
    read = lines.attribute(form, line)
    value = None if read.default is None else lines.value(form, read.type, read.default)
    assert (read.name, read.type, read.required, value) == ("a", type_, required, default)


def test_numbers_of_parameters_may_be_unbounded() -> None:
    assert lines.section(MARKDOWN, "#### Inputs (1 - &#8734;)").arity == Arity(1, UNBOUNDED)
    assert lines.arity(PAGES, "Between 1 and 2147483647 inputs.") == Arity(1, UNBOUNDED)
    assert lines.section(MARKDOWN, "#### Outputs (1 - 3)").arity == Arity(1, 3)
    assert lines.section(MARKDOWN, "#### Type Constraints").arity is None


@pytest.mark.parametrize(
    ("line", "column", "expected"),
    [
        ("<dt><tt>X</tt> (optionl) : T</dt>", 17, "`optional`, `variadic` or another label"),
        ("<dt><tt>X</tt> : tensor(float</dt>", 30, "`)`"),
        ("<dt><tt>X</tt> : T", 19, "`</dt>`"),
    ],
)
def test_a_line_that_cannot_be_read_says_where_and_what_was_expected(
    line: str, column: int, expected: str
) -> None:
    with pytest.raises(Misread) as caught:
        lines.parameter(MARKDOWN, line)
    assert caught.value.column == column
    assert expected in str(caught.value)


def test_a_default_must_be_of_its_attributes_type() -> None:
    with pytest.raises(Misread):
        lines.value(MARKDOWN, "INT", "high")
    assert lines.value(MARKDOWN, "TENSOR", "whatever") is None
