"""What an operator with ``flag many_results`` must declare."""

from __future__ import annotations

import pytest

from reprise.lang.diagnostics import RulesError
from reprise.lang.parse import parse_text
from reprise.solve.signatures import Signatures


@pytest.mark.parametrize("result", ["T[...]", "T[]", "T[*S, 1]", "a: T[*S], b: T[*S]"])
def test_one_result_with_a_list_of_shapes_is_asked_for(result: str) -> None:
    text = f"op foo(x: T[*S]) -> {result} {{ flag many_results where T in {{float32}} }}"
    with pytest.raises(RulesError) as caught:
        Signatures.of([parse_text(text, "foo.rules")])
    assert "one-result-for-many" in {d.code for d in caught.value.diagnostics}
