"""Mined signatures: what they say, and that they fit what ONNX does."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import defs

from reprise.mining.docs.mining import Mined, in_uir
from reprise.mining.docs.model import Entry
from reprise.mining.docs.reading import read_documents, read_texts
from reprise.mining.docs.signatures import LeftOut, Signed, signature
from reprise.solve.signatures import Signatures
from reprise.uir.graph import TensorType
from reprise.uir.inference import SignatureError
from tests.mining.docs.conftest import DATA


def of(mined: Mined, name: str) -> str:
    return next(s.text for s in mined.signatures if s.entry.qualified == name)


def why_not(mined: Mined, name: str) -> str:
    return next(m.reason for m in mined.left_out if m.entry.qualified == name)


def test_a_signature_has_operands_attributes_and_types(mined: Mined) -> None:
    text = of(mined, "CenterCropPad")
    assert "op onnx.CenterCropPad(input_data: T[...], shape: Tind[...]) -> T[...] {" in text
    assert "attr axes: ints = absent" in text
    assert "Tind in {int32, int64}" in text


def test_results_have_names_where_there_are_several(mined: Mined) -> None:
    text = of(mined, "CausalConvWithState")
    assert "bias?: T[...], past_state?: T[...]" in text
    assert "-> output: T[...], present_state: T[...] {" in text


def test_an_attribute_that_holds_the_results_type_is_one(mined: Mined) -> None:
    assert "attr output_datatype as T2: dtype = float32" in of(mined, "BlackmanWindow")


def test_a_variadic_operand_is_one_whatever_the_shapes(mined: Mined) -> None:
    assert "onnx.Concat(inputs...: T[*Shapes]) -> T[...]" in of(mined, "Concat")


def test_a_result_type_that_may_be_given_is_else_the_operands(mined: Mined) -> None:
    text = of(mined, "EyeLike")
    assert "attr dtype as Given: dtype = absent" in text
    assert "where T2 == or_else(Given, T1), T1 in {" in text


def test_an_operator_of_another_domain_keeps_it(mined: Mined) -> None:
    assert "op ai.onnx.ml.Scaler(x: T[...]) -> float32[...] {" in of(mined, "ai.onnx.ml.Scaler")


def test_what_uir_has_is_marked(mined: Mined) -> None:
    assert "/// In UIR: `conv1d`, `conv2d`, `conv3d`" in of(mined, "Conv")
    assert "In UIR" not in of(mined, "Col2Im")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("SequenceAt", "not a tensor"),
        ("Loop", "any number of"),
        ("ai.onnx.ml.TreeEnsemble", "required and holds a tensor"),
        ("Upsample", "deprecated"),
        ("Constant", "nothing fixes the element type"),
        ("DequantizeLinear", "only where that is given"),
        ("Split", "any number of `outputs`"),
    ],
)
def test_what_has_no_signature_says_why(mined: Mined, name: str, reason: str) -> None:
    assert reason in why_not(mined, name)


def test_every_operator_has_a_signature_or_a_reason(mined: Mined) -> None:
    schemas = {f"{s.domain}.{s.name}".lstrip(".") for s in defs.get_all_schemas_with_history()}
    signed = {s.entry.qualified for s in mined.signatures}
    left_out = {m.entry.qualified for m in mined.left_out}
    assert signed | left_out == schemas
    assert not signed & left_out
    assert len(signed) >= 190


def test_a_damaged_entry_gives_no_signature() -> None:
    text = (DATA / "Changelog.md").read_text(encoding="utf-8")
    broken = read_texts({"x.md": text.replace("(required)</dt>", "(requird)</dt>")})
    concat = next(e for e in broken.entries if e.name == "Concat")
    match signature(concat):
        case LeftOut(_, reason):
            assert "`Attributes`" in reason
        case Signed():
            pytest.fail("a signature without its required attribute")


def test_defaults_are_written_as_values(mined: Mined) -> None:
    assert 'attr mode: sym = "constant"' in of(mined, "Pad")
    assert "attr detect_negative: int = 1" in of(mined, "IsInf")
    assert "attr axis: int\n" in of(mined, "Concat")


@pytest.fixture(scope="module")
def signatures(mined: Mined, tmp_path_factory: pytest.TempPathFactory) -> Signatures:
    """All mined signatures, loaded beside those that ship."""
    folder: Path = tmp_path_factory.mktemp("signatures")
    paths = []
    for name, text in mined.files().items():
        if name.startswith("signatures"):
            (folder / name).write_text(text, encoding="utf-8")
            paths.append(folder / name)
    return Signatures.load(paths)


@pytest.mark.slow
def test_every_signature_can_be_applied(mined: Mined, signatures: Signatures) -> None:
    """Operands of the first type that each variable allows: the results have their variable's."""
    for signed in mined.signatures:
        entry = signed.entry
        name = f"{entry.domain or 'onnx'}.{entry.name}"
        operands = [
            TensorType(_first(signatures, name, i), (2, 2)) for i in range(len(entry.inputs))
        ]
        attributes = {a.name: _value(a.type) for a in entry.attributes if a.required}
        if "as" in signed.text and "dtype\n" in signed.text:
            continue  # a required element type has no default to try
        results = signatures.infer(name, operands, attributes)
        assert len(results) == len(entry.outputs)


def _first(signatures: Signatures, name: str, place: int) -> str:
    """An element type that the operand may have."""
    from reprise.lang import ast

    decl = signatures[name].plan.decl
    dtype = decl.params[place].type.dtype
    if isinstance(dtype, ast.Name):
        return dtype.text
    for condition in decl.where:
        match condition:
            case ast.Membership(ast.Variable(variable), ast.SetDomain(items)) if (
                variable == dtype.name
            ):
                names = [item.text for item in items if isinstance(item, ast.Name)]
                return "float32" if "float32" in names else names[0]
    raise AssertionError(f"nothing says what {dtype.name} of {name} may be")


def _value(type_: str) -> int | float | str | tuple[int, ...]:
    values: dict[str, int | float | str | tuple[int, ...]] = {
        "INT": 1,
        "FLOAT": 1.0,
        "STRING": "x",
        "INTS": (1, 1),
        "FLOATS": (),
        "STRINGS": (),
    }
    return values[type_]


def test_a_signature_refuses_an_element_type_that_onnx_refuses(signatures: Signatures) -> None:
    whole = TensorType("int64", (1,))
    assert signatures.infer("onnx.Col2Im", [TensorType("float32", (1, 4, 4)), whole, whole])
    with pytest.raises(SignatureError, match="int32"):
        signatures.infer(
            "onnx.Col2Im", [TensorType("float32", (1, 4, 4)), TensorType("int32", (1,)), whole]
        )


def test_only_operators_of_onnxs_own_domain_can_be_in_uir() -> None:
    entries: list[Entry] = [*read_documents([DATA]).entries]
    assert {e.name for e in entries if in_uir(e)} >= {"Abs", "Concat", "If"}
    assert not [e for e in entries if e.domain and in_uir(e)]
