"""The rules about sparse tensor compilers: each names a kernel and not one that is nearly the same;
and against these compilers, what a rule is about really fails so, and the other does not.

The second needs interpreters that have them: ``REPRISE_TENSORA_PYTHON`` (tensora 0.6.0),
``REPRISE_FINCH_PYTHON`` (finch-tensor 0.7.0), ``REPRISE_TORCH_PYTHON`` (torch 2.13.0),
``REPRISE_MLIR_PYTHON`` (torch-mlir 20261001); and a program ``taco`` (2b8ece4) on the PATH."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from functools import cache

import pytest

from reprise.einsum.filing import KernelBugs, KnownKernels, bug_files
from reprise.einsum.oracle import KernelOracle
from reprise.einsum.testing import REFERENCE, KernelTest, alone
from reprise.einsum.text import parse
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.translate.script import script
from reprise.oracle.verdict import Verdict
from reprise.targets.discover import parse_target
from reprise.targets.process import Limits, TargetProcess

VARIABLES = {
    "tensora": "REPRISE_TENSORA_PYTHON",
    "finch": "REPRISE_FINCH_PYTHON",
    "mlir-sparse": "REPRISE_MLIR_PYTHON",
    "torch-sparse": "REPRISE_TORCH_PYTHON",
}
"""The variables that name interpreters, by target; TACO is a program."""


@dataclass(frozen=True)
class Case:
    """A kernel, and the rule that it is filed under; None if its target is right about it."""

    target: str
    text: str
    rule: str | None

    def __str__(self) -> str:
        return f"{self.target}: {self.text}"


B = "uniform(density=0.6, seed=1)"
C = "uniform(density=0.6, seed=2)"
CASES = [
    Case("tensora", f"A(i,j,k) = B(i,j,k) where A: ddd:1,2,0, B: sss {B}",
         "tensora_cyclic_order"),
    Case("tensora", f"A(i,j,k) = B(i,j,k) where A: sss:2,1,0, B: sss:2,1,0 {B}", None),
    Case("tensora", f"A(i,j,k) = B(j,i,k) where A: dds, B: sss {B}", "tensora_leaked_refusal"),
    Case("tensora", f"A(i,j,k) = B(j,i,k) where A: dds:1,0,2, B: sss {B}", None),
    Case("mlir-sparse", f"A(j,k) = B(i,j) * C(i,k) where A: ss, B: ss {B}, C: ss {C}",
         "mlir_scattered_output"),
    Case("mlir-sparse", f"A(j,k) = B(i,j) * C(i,k) where A: ss, B: ss:1,0 {B}, C: ss {C}", None),
    Case("mlir-sparse", f"A(j,l) = B(j,k) * C(k,j,l) where A: ss, B: ss {B}, C: sss {C}",
         "mlir_scattered_by_conversion"),
    Case("mlir-sparse", f"A(j,l) = C(k,j,l) * B(j,k) where A: ss, B: ss {B}, C: sss {C}", None),
    Case("mlir-sparse", f"A(i,j) = B(i,j) * C(i,j) where A: ss, B: ss:1,0 {B}, C: ss:1,0 {C}",
         "mlir_cycle"),
    Case("mlir-sparse", f"A(i,j) = B(i,j) * C(i,j) where A: ss, B: ss:1,0 {B}, C: ss {C}", None),
    Case("finch", f"A(k) = B(k,m,l) * C(k,l,m) where B: ddd {B}, C: ddd {C}", "finch_loop_order"),
    Case("finch", f"A(m) = B(m,l) * C(l,m) where B: dd {B}, C: dd {C}", None),
    Case("finch", f"A(i) = B(i,j,k) * C(j,k) where B: dsd {B}, C: dd {C}", "finch_nested_list"),
    Case("finch", f"A(i) = B(i,j,k) * C(j,k) where B: dds {B}, C: dd {C}", None),
    Case("finch", f"A(i) = B() * C(i) where B: full, C: d {C}", "finch_scalar_operand"),
    Case("finch", "A() = B(i) * C(i) where B: d full(seed=1), C: d full(seed=2)",
         "finch_scalar_output"),
    Case("finch", f"A(i) = B(i,j) * C(j) where B: dd {B}, C: d {C}", None),
    Case("finch", f"A(i,k) = B(i,j) * C(k,j) where B: ds {B}, C: ds {C}",
         "finch_sparse_intersection"),
    Case("finch", f"A(i,k) = B(i,j) * C(j,k) where B: ds {B}, C: ds {C}", None),
    Case("torch-sparse",
         f"A(i,k) = B(i,j) * C(j,k) where A: ss, B: ds:1,0 {B}, C: ds:1,0 {C}",
         "torch_csc_product"),
    Case("torch-sparse",
         f"A(i,k) = B(i,j) * C(j,k) where B: ds:1,0 {B}, C: ds:1,0 {C}", None),
    Case("torch-sparse", f"A(i,j) = B(i,j) + C(i,j) where B: sd {B}, C: sd {C}",
         "torch_sum_of_blocks"),
    Case("torch-sparse", f"A(i,j) = B(i,j) + C(i,j) where B: sd {B}, C: ss {C}",
         "torch_sum_of_layouts"),
    Case("torch-sparse", f"A(i,j) = B(i,j) + C(i,j) where B: sd {B}, C: dd {C}",
         "torch_blocks_and_dense"),
    Case("torch-sparse", f"A(i,j) = B(i,j) + C(i,j) where B: ds {B}, C: ds {C}", None),
    Case("taco", f"A(i,j) = B(j,i) where A: ds, B: ds {B}", "taco_transposed"),
    Case("taco", f"A(i,j) = B(j,i) where A: dd, B: ds {B}", None),
    Case("taco", f"A(j) = B(i,j) * C(i) + D(j) where B: sd {B}, C: d {C}, D: d {C}",
         "taco_inner_sum"),
    Case("taco", f"A(j) = B(i,j) * C(i) + D(j) where B: dd {B}, C: d {C}, D: d {C}", None),
    Case("taco", f"A(i,k) = B(i,j) * C(j,k) where A: ss, B: ds {B}, C: ds {C}",
         "taco_split_output"),
    Case("taco", f"A(i,k) = B(i,j) * C(j,k) where A: sd, B: ds {B}, C: ds {C}", None),
    Case("taco", f"A(k) = B(j) * C(j,k) where A: s, B: d {B}, C: dd {C}",
         "taco_scattered_output"),
    Case("taco", f"A(k) = B(j) * C(j,k) where A: s, B: d {B}, C: dd:1,0 {C}", None),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_rule_names_its_kernel_and_not_the_other(case: Case) -> None:
    named = [match.rule for match in _bugs(case.target).matches((parse(case.text).kernel(),))]
    assert named == ([] if case.rule is None else [case.rule])


def test_every_rule_has_a_kernel_and_every_target_one_that_no_rule_names() -> None:
    for target in (*VARIABLES, "taco"):
        shown = {case.rule for case in CASES if case.target == target}
        assert shown == {*_bugs(target).names, None}


def _python(target: str) -> str:
    """The interpreter that a target runs in; without one, the test is skipped."""
    if target == "taco":
        if shutil.which("taco") is None:
            pytest.skip("there is no program taco on the PATH")
        return sys.executable
    python = os.environ.get(VARIABLES[target])
    if python is None:
        pytest.skip(f"{VARIABLES[target]} names no interpreter")
    return python


@cache
def _bugs(target: str) -> KernelBugs:
    return KnownKernels(target, bug_files(target))()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_kernel_is_what_the_rules_say(case: Case) -> None:
    python = _python(case.target)
    backend = BACKENDS[case.target]
    kernel = parse(case.text).kernel()
    test = KernelTest("case", {REFERENCE: alone(kernel)})
    model = script(backend.translator, {REFERENCE: (kernel,)})
    with TargetProcess(parse_target(f"{case.target}@{python}"), Limits(seconds=100)) as process:
        examination = KernelOracle(backend)(test, model, process)
    known = _bugs(case.target)
    verdict = examination.judgement.verdict
    if case.rule is None:
        assert verdict is Verdict.OK
        assert known.matches((kernel,)) == ()
    else:
        assert known.file(examination.judgement, known.matches(examination.shown)) == case.rule
