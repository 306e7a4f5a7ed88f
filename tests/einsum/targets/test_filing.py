"""Known bugs as deny rules: what they are about, and how findings are filed."""

from __future__ import annotations

import pytest

from reprise.data import data_path
from reprise.einsum.filing import KernelBugs, KnownKernels, bug_files, bug_rules
from reprise.einsum.testing import TestRequest, kernel_options
from reprise.einsum.text import parse
from reprise.einsum.validity import load_kernel_rules
from reprise.oracle.verdict import Judgement, Verdict

WRONG = Judgement(Verdict.WRONG_RESULT)
CRASH = Judgement(Verdict.CRASH)


def bugs(target: str) -> KernelBugs:
    return KnownKernels(target, bug_files(target))()


@pytest.mark.parametrize(
    ("target", "text", "rule"),
    [
        ("tensora", "A(i,j,k) = B(i,j,k) where A: ddd:1,2,0", "tensora_cyclic_order"),
        ("tensora", "A(i,j,k) = B(i,j,k) where A: ddd:2,1,0", None),
        ("tensora", "A(i,j,k) = B(i,j,k) where B: ddd:1,2,0", None),
        ("finch", "A() = B(i) * C(i)", "finch_scalar_output"),
        ("finch", "A(i) = B(i) * C(i)", None),
        ("finch", "A(i,k) = B(i,j) * C(k,j) where B: ds, C: ds", "finch_sparse_intersection"),
        ("finch", "A(i,k) = B(i,j) * C(j,k) where B: ds, C: ds", None),
        ("finch", "A(i,k) = B(i,j) * C(k,j) where B: ds", None),
        (
            "torch-sparse",
            "A(i,k) = B(i,j) * C(j,k) where A: ss, B: ds:1,0, C: ds:1,0",
            "torch_csc_product",
        ),
        ("torch-sparse", "A(i,k) = B(i,j) * C(j,k) where B: ds:1,0, C: ds:1,0", None),
        ("torch-sparse", "A(i,k) = B(i,j) * C(j,k) where A: ss, B: ds, C: ds:1,0", None),
        ("torch-sparse", "A(i,j) = B(i,j) * C(i,j) where A: ss, B: ds:1,0, C: ds:1,0", None),
    ],
)
def test_a_wrong_result_is_filed_under_the_rule_about_its_kernel(
    target: str, text: str, rule: str | None
) -> None:
    known = bugs(target)
    matches = known.matches((parse(text).kernel(),))
    assert known.file(WRONG, matches) == rule


def test_a_finding_that_does_not_show_the_symptom_is_not_filed() -> None:
    known = bugs("tensora")
    matches = known.matches((parse("A(i,j,k) = B(i,j,k) where A: ddd:1,2,0").kernel(),))
    assert [match.rule for match in matches] == ["tensora_cyclic_order"]
    assert known.file(CRASH, matches) is None


@pytest.mark.slow
def test_the_generator_keeps_away_from_known_bugs_and_says_how_often() -> None:
    files = bug_files("tensora")
    tests = TestRequest("tensora", 3, kernel_options("tensora", {}), files)()
    known = bugs("tensora")
    kept_away = 0
    for number in range(60):
        made = tests.program(number)
        kept_away += made.rejected["tensora_cyclic_order"]
        for variant in made.program.variants.values():
            assert known.matches(variant.kernels) == ()
    assert kept_away > 0


def test_a_file_of_known_bugs_may_be_spelled_in_another_way_than_an_import_of_it() -> None:
    folder = data_path("rules/bugs/taco")
    again = folder / ".." / "taco" / "cycle.rules"
    rules = load_kernel_rules((folder / "sums.rules", again))  # sums.rules imports cycle.rules
    assert {"taco_transposed", "taco_inner_sum"} <= set(rules.denies)
    assert bug_rules(rules, (again,)) == {"taco_transposed"}


def test_a_smaller_kernel_that_hits_another_known_bug_has_slipped() -> None:
    slips = bugs("tensora").slips(parse("A(i,j,k) = B(i,j,k) where A: dds, B: ddd:1,2,0").kernel())
    assert slips(parse("A(i,j,k) = B(i,j,k) where A: ddd:1,2,0").kernel())
    assert not slips(parse("A(i,j,k) = B(i,j,k) where A: dds").kernel())


def test_tests_do_not_depend_on_each_other() -> None:
    request = TestRequest("tensora", 3, kernel_options("tensora", {}))
    assert request().program(5).program == _after_others(request, 5)


def _after_others(request: TestRequest, number: int):
    tests = request()
    for earlier in range(number):
        tests.program(earlier)
    return tests.program(number).program
