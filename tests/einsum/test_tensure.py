"""The published artifact's form, as its sources write and read it (``formats.hpp``)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from reprise.einsum.data import materialise
from reprise.einsum.kernel import Computed, Kernel, KernelError, Level
from reprise.einsum.reference import reference
from reprise.einsum.tensure import from_document, read, to_document, write
from reprise.einsum.text import parse
from tests.einsum.kernels import kernels


def tensor(name: str, indices: str, shape: list[int], formats: str, data: str) -> dict[str, Any]:
    words = {"d": "Dense", "s": "Sparse"}
    return {
        "name": name,
        "shape": shape,
        "str_repr": f"{name}({','.join(indices)})",
        "idxs": [ord(i) for i in indices],
        "storageFormat": [words[letter] for letter in formats],
        "dataFile": data,
    }


def document() -> dict[str, Any]:
    return {
        "computations": [{"expression": "A(i,l) = B(i,j,l)*C(j,l)"}],
        "tensors": [
            tensor("A", "il", [2, 3], "ds", "-"),
            tensor("B", "ijl", [2, 4, 3], "sss", "fuzz_output/corpus/0/B.tns"),
            tensor("C", "jl", [4, 3], "dd", "C.tns"),
        ],
    }


def test_a_kernel_of_the_artifact_is_read_with_its_data(tmp_path: Path) -> None:
    (tmp_path / "B.tns").write_text("1 1 2 0.25\n2 4 3 0.5\n")
    (tmp_path / "C.tns").write_text("1 2 2\n4 3 4\n")
    file = tmp_path / "kernel.json"
    file.write_text(json.dumps(document(), indent=4))
    (kernel,) = read(file)
    assert kernel.statement == "A(i,l) = B(i,j,l) * C(j,l)"
    assert kernel.extent == {"i": 2, "l": 3, "j": 4}
    assert [str(t.format) for t in kernel.tensors] == ["ds", "sss", "dd"]
    result = reference(kernel, materialise(kernel))
    assert result.tolist() == [[0, 0.5, 0], [0, 0, 2]]


def test_matrix_market_data_have_a_header(tmp_path: Path) -> None:
    plain = document()
    plain["tensors"][2]["dataFile"] = "C.ttx"
    (tmp_path / "B.tns").write_text("")
    (tmp_path / "C.ttx").write_text("%%MatrixMarket tensor\n4 3 1\n4 3 4\n")
    (kernel,) = from_document(plain, tmp_path)
    assert materialise(kernel)["C"].coordinates.tolist() == [[3, 2]]


def test_a_later_computation_reads_an_earlier_output(tmp_path: Path) -> None:
    plain = document()
    plain["computations"].append({"expression": "D(i) = A(i,l) * E(l)"})
    plain["tensors"] += [tensor("D", "i", [2], "d", ""), tensor("E", "l", [3], "d", "-")]
    for name in "BC":
        (tmp_path / f"{name}.tns").write_text("")
    first, second = from_document(plain, tmp_path)
    assert first.output.tensor == "A"
    assert second.tensor("A").data == Computed("A")


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(kernels())
def test_what_is_written_computes_the_same(tmp_path: Path, kernel: Kernel) -> None:
    assume(not any(isinstance(t.data, Computed) for t in kernel.operands))
    simple = all(
        t.format.is_ordered and set(t.format.levels) <= {Level.DENSE, Level.COMPRESSED}
        for t in kernel.tensors
    )
    if not simple or kernel.dtype != "float64":
        with pytest.raises(KernelError, match="the artifact has"):
            to_document(kernel)
        return
    file = tmp_path / "kernel.json"
    write(kernel, file)
    (again,) = read(file)
    assert again.statement == kernel.statement
    assert [t.format for t in again.tensors] == [t.format for t in kernel.tensors]
    assert again.extents == kernel.extents
    stored = materialise(again)
    for name, before in materialise(kernel).items():
        assert (stored[name].coordinates == before.coordinates).all()
        assert (stored[name].values == before.values).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A(i,j) = B(i,j) where B: ds:1,0", "no order of modes"),
        ("A(i,j) = B(i,j) where B: uq", "no level nonunique"),
        ("A(i) = B(i) where float32", "float64 only"),
        ("A(row) = B(row)", "names of one letter, not row"),
    ],
)
def test_what_the_form_cannot_say_is_refused(text: str, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        to_document(parse(text).kernel())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("tensors"), "there are no 'tensors'"),
        (lambda d: d.update(computations=[{}]), "has no 'expression'"),
        (lambda d: d["computations"][0].update(expression="A(i = B(i)"), "expected `"),
        (lambda d: d["tensors"][1].pop("shape"), r"tensors\[1\]: there is no 'shape'"),
        (lambda d: d["tensors"][1].update(shape=[2, 4]), "has 3 indices, its shape 2"),
        (lambda d: d["tensors"][2].update(shape=[5, 3]), "index j has extents 4 and 5"),
        (lambda d: d["tensors"][2].update(storageFormat=["Odd"]), "no list of Dense, Sparse"),
        (lambda d: d["tensors"][2].update(dataFile="no.tns"), "No such file"),
        (lambda d: d["tensors"].pop(), "tensor C is not described"),
        (lambda d: d["tensors"][2].update(storageFormat=[["Dense"]] * 2), "no list of Dense"),
        (lambda d: d["tensors"][2].update(dataFile="C\0.tns"), "no name of a file"),
        (lambda d: d["tensors"][2].update(dataFile="C" * 300 + ".tns"), "too long"),
        (lambda d: d["computations"][0].update(expression="A(i) = B(i) where i=2"), "not of the"),
        (lambda d: d["computations"][0].update(expression="A(i,l) = A(i,l)"), "is also read"),
    ],
)
def test_what_is_no_kernel_is_said(tmp_path: Path, change: Any, message: str) -> None:
    (tmp_path / "B.tns").write_text("")
    plain = document()
    change(plain)
    file = tmp_path / "kernel.json"
    file.write_text(json.dumps(plain))
    with pytest.raises(KernelError, match=message):
        read(file)


@pytest.mark.parametrize(
    "line",
    [
        "1 x 2",
        "1 2",
        "1 2 3 4 5",
        "0 1 2",
        "5 1 2",
        "1 1 nan",
        "1 1 1e400",
        "\xff 1 1",
        "\uff11 1 1",
    ],
)
def test_a_bad_line_of_data_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "B.tns").write_text("")
    (tmp_path / "C.tns").write_text(f"1 2 2\n{line}\n", encoding="utf-8")
    with pytest.raises(KernelError, match=r"C.tns:2: "):
        from_document(document(), tmp_path)
