"""What rules say that torch.sparse has no kernel for is what it refuses, pair by pair of layouts.
``REPRISE_TORCH_PYTHON`` names an interpreter with torch 2.13.0."""

from __future__ import annotations

from itertools import product

import pytest

from reprise.einsum.settings import PERMISSIONS, Settings
from reprise.einsum.symptom import symptom_of
from reprise.einsum.text import parse
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.validity import Validity, load_kernel_rules
from reprise.oracle.verdict import Verdict
from reprise.targets.discover import parse_target
from reprise.targets.process import Limits, TargetProcess
from tests.bugs.programs import interpreter

PYTHON = interpreter("REPRISE_TORCH_PYTHON")
LAYOUTS = ("dd", "ds", "ds:1,0", "ss", "ss:1,0", "sd", "sd:1,0")
OPERATIONS = {
    "sum": "A(i,j) = B(i,j) + C(i,j) where i=3, j=4, A: dd",
    "dense product": "A(i,k) = B(i,j) * C(j,k) where i=3, j=4, k=2, A: dd",
    "sparse product": "A(i,k) = B(i,j) * C(j,k) where i=3, j=4, k=2, A: ds",
    "by elements": "A(i) = B(i,j) * C(i,j) where i=3, j=4, A: d",
}


@pytest.mark.slow
@pytest.mark.skipif(PYTHON is None, reason="REPRISE_TORCH_PYTHON names no interpreter")
def test_torch_refuses_the_pairs_of_layouts_that_rules_name() -> None:
    rules = Validity(load_kernel_rules(), Settings((), frozenset(PERMISSIONS), ("torch",)))
    backend = BACKENDS["torch-sparse"]
    refused = 0
    with TargetProcess(parse_target(f"torch-sparse@{PYTHON}"), Limits(seconds=60)) as process:
        for text, one, other in product(OPERATIONS.values(), LAYOUTS, LAYOUTS):
            kernel = parse(f"{text}, B: {one} full(seed=1), C: {other} full(seed=2)").kernel()
            symptom = symptom_of(kernel, backend, process)
            named = [found.message for found in rules.of(kernel)]
            assert bool(named) == (symptom.verdict is Verdict.UNSUPPORTED), (text, one, other)
            refused += bool(named)
    assert 0 < refused < len(OPERATIONS) * len(LAYOUTS) ** 2
