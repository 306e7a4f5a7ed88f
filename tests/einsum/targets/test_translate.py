"""Scripts that compute kernels: their text, and with what is installed here, what they compute."""

from __future__ import annotations

import shutil
import subprocess
import sys
from random import Random
from typing import Any

import pytest

from reprise.einsum.data import materialise
from reprise.einsum.filing import KnownKernels, bug_files
from reprise.einsum.generate import Request, generate
from reprise.einsum.json_form import loads
from reprise.einsum.options import Options
from reprise.einsum.reference import difference, reference
from reprise.einsum.relations import variants
from reprise.einsum.results import dense_result
from reprise.einsum.self_check import self_check
from reprise.einsum.settings import PERMISSIONS, Settings
from reprise.einsum.targets.shared.kernel_runner import KernelRunner
from reprise.einsum.testing import TestRequest, kernel_options
from reprise.einsum.text import parse
from reprise.einsum.translate import finch, mlir_sparse, taco, tensora
from reprise.einsum.translate.backends import BACKENDS, rule_names
from reprise.einsum.translate.matrices import plan
from reprise.einsum.translate.script import Untranslatable, script, statements
from reprise.einsum.validity import Validity, load_kernel_rules
from reprise.targets.discover import parse_target
from reprise.targets.process import Limits, TargetProcess

MATMUL = "A(i,k) = B(i,j) * C(j,k) where i=2, j=2, k=2, A: ds, B: ds:1,0 {(0,1): 2}, C: dd full"


def test_tensora_is_given_the_statement_and_a_format_for_every_tensor() -> None:
    lines = statements(tensora, parse(MATMUL).kernel())
    assert lines[0] == (
        'B = tensora.Tensor.from_dok({(0, 1): 2.0}, dimensions=(2, 2), format="d1s0")'
    )
    assert lines[-1] == 'A = tensora.evaluate("A(i,k) = B(i,j) * C(j,k)", "ds", B=B, C=C)'


def test_taco_is_given_files_with_extents_and_formats_as_it_writes_them() -> None:
    lines = statements(taco, parse(MATMUL).kernel())
    assert lines[0] == (r"B = '%%MatrixMarket tensor coordinate real general\n2 2 1\n1 2 2\n'")
    assert lines[-1] == (
        """A = evaluate("A(i,k) = B(i,j) * C(j,k)", ['A:ds', 'B:ds:1,0', 'C:dd'], """
        """{"B": B, "C": C}, "A", (2, 2))"""
    )


def test_taco_gets_one_zero_for_an_operand_without_entries() -> None:
    lines = statements(taco, parse("A(i) = B(i) where i=3, B: s empty").kernel())
    assert lines[0].endswith(r"\n3 1\n1 0\n'")


def test_taco_writes_scalars_without_parentheses() -> None:
    assert taco.statement(parse("A() = B(i) * C(i)").kernel()) == "A = B(i) * C(i)"


@pytest.mark.parametrize(
    ("code", "stderr", "kind", "message"),
    [
        (-11, "", "Internal", "SIGSEGV"),
        (-6, "what():  Error at parser.cpp:96 in visit:\n Incompatible dimensions", "Rejected",
         "Error at parser.cpp:96"),
        (-6, "k.c:221:9: error: 'pA2_begin' undeclared (first use in this function)\n"
         "what():  Error at module.cpp:156 in compile:\n Compilation command failed", "Internal",
         "undeclared position_begin (`pA2_begin`)"),
        (-6, "k.c:164:18: error: 'iD' undeclared\n Compilation command failed", "Internal",
         "undeclared coordinate (`iD`)"),
    ],
)  # fmt: skip
def test_what_taco_says_is_told_apart(code: int, stderr: str, kind: str, message: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"{taco.imports}\n{taco.helpers}", scope)
    found = scope["failure"](subprocess.CompletedProcess([], code, "", stderr))
    assert type(found).__name__ == kind
    assert message in str(found)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("taco") is None, reason="there is no program taco on the PATH")
def test_taco_computes_what_numpy_does() -> None:
    target = parse_target(f"taco@{sys.executable}")
    with TargetProcess(target, Limits(seconds=100)) as process:
        self_check(target, process)


def test_mlir_has_an_encoding_for_what_is_not_plainly_dense() -> None:
    text = mlir_sparse.module(parse(MATMUL).kernel())
    assert (
        "#B = #sparse_tensor.encoding<{ map = (d0, d1) -> (d1 : dense, d0 : compressed) }>" in text
    )
    assert "#C" not in text
    assert 'iterator_types = ["parallel", "parallel", "reduction"]' in text
    assert "affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>" in text


def test_finch_is_told_to_compile_by_julia_in_the_one_line_that_says_how() -> None:
    kernel = parse("A(i,k) = B(i,j) * C(j,k) where B: ds").kernel()
    by_numba, by_julia = (
        script(BACKENDS[name].translator, {"reference": (kernel,)}).decode().splitlines()
        for name in ("finch", "finch-julia")
    )
    told = [pair for pair in zip(by_numba, by_julia, strict=True) if len(set(pair)) == 2]
    assert told == [
        (
            "finch.set_default_scheduler(finch.COMPILE_NUMBA)",
            "finch.set_default_scheduler(finch.autoschedule.COMPILE_JULIA)",
        )
    ]


@pytest.mark.parametrize(
    ("translator", "text", "why"),
    [
        (finch, "A(i,k) = B(i,j) * C(j,k) where A: ds", "results are dense"),
        (finch, "A(i) = B(i,j) * C(j) where B: ds:1,0", "order of positions"),
        (finch, "A(i) = B(i) + C(i)", "one product"),
        (tensora, "A(i) = B(i) where float32", "float64 only"),
        (mlir_sparse, "A(i) = B(i) + C(i)", "no one linalg.generic"),
        (taco, "A(i) = B() * C(i)", "scalar"),
    ],
)
def test_what_a_target_cannot_be_told_is_said(translator: object, text: str, why: str) -> None:
    with pytest.raises(Untranslatable, match=why):
        statements(translator, parse(text).kernel())  # type: ignore[arg-type]


def test_a_product_with_an_index_in_all_tensors_is_block_diagonal() -> None:
    planned = plan(parse("A(b,i,k) = B(b,i,j) * C(b,j,k)").kernel())
    assert planned.how == "product"
    assert planned.operands[0].rows == ("b", "i")
    assert planned.operands[0].columns == planned.operands[1].rows == ("b", "j")
    assert planned.result.columns == ("b", "k")


@pytest.mark.parametrize("name", ["scipy-sparse", "torch-sparse", "pydata-sparse"])
def test_scripts_compute_what_numpy_does(name: str) -> None:
    pytest.importorskip({"scipy-sparse": "scipy", "torch-sparse": "torch"}.get(name, "sparse"))
    tests = TestRequest(name, 7, kernel_options(name, {}))()
    translator = BACKENDS[name].translator
    known = KnownKernels(name, bug_files(name))()
    runner = KernelRunner("cpu", lambda stage: None)
    computed = 0
    for number in range(25):
        test = tests.program(number).program
        try:
            model = script(translator, {"reference": (test.kernel,)})
            arrays = runner.run(model, {}, "reference", ())
        except (Untranslatable, RuntimeError, NotImplementedError, IndexError):
            continue
        dense, wrong = dense_result(test.kernel, *arrays)
        assert wrong is None
        if known.matches((test.kernel,)):
            continue
        assert difference(reference(test.kernel, materialise(test.kernel)), dense) is None
        computed += 1
    assert computed >= 12


def test_the_functions_of_a_script_are_its_variants() -> None:
    kernel = parse(MATMUL).kernel()
    made = {v.relation: v.kernels for v in variants(kernel, Random(1), ["commute", "rename"])}
    text = script(tensora, made).decode()
    scope: dict[str, object] = {}
    exec(compile(text.replace("import tensora", ""), "script", "exec"), scope)
    assert list(scope["VARIANTS"]) == list(made)  # type: ignore[call-overload]


def test_data_are_written_as_they_are_stored() -> None:
    kernel = parse("A(i) = B(i) where i=4, B: s {(3): 2, (0): -1}").kernel()
    line = statements(BACKENDS["scipy-sparse"].translator, kernel)[0]
    assert "(np.array([3, 0], 'int32'), np.array([0, 0], 'int32'))" in line


def test_rules_know_which_kernels_are_matrices() -> None:
    some = Options(
        operands=(1, 3), ranks=(1, 3), sums=0.4, diagonals=0.1, scalars=0.1, reductions=0.3,
        broadcasts=0.3, repeated_tensors=0.2,
    )  # fmt: skip
    settings = Settings(allowed=frozenset(PERMISSIONS), targets=("scipy",))
    validity = Validity(load_kernel_rules(), settings)
    told = set()
    for text in "".join(generate(Request(300, 3, some))).splitlines():
        kernel = loads(text)
        wrong = {v.rule for v in validity.of(kernel)}
        assert all(name.startswith("matrix_") for name in wrong)
        try:
            plan(kernel)
        except Untranslatable:
            assert wrong, text
        else:
            assert not wrong, (text, wrong)
        told |= wrong
    assert told == {name for name in validity.rules.denies if name.startswith("matrix_")}


def test_targets_have_one_name_among_rules_and_users_may_say_both() -> None:
    for name, backend in BACKENDS.items():
        assert rule_names([name]) == (backend.limits or "taco",)
        assert BACKENDS[parse_target(rule_names([name])[0]).name].limits == backend.limits
