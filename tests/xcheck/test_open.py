"""What is said of constraints that a run leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.patterns.check import UsageError
from reprise.xcheck.open import prepare, remarks
from reprise.xcheck.store import Asked


def asked(folder: Path, *targets: str) -> Asked:
    """A run of ONNX Runtime, of a constraint about each of the targets; about all, if empty."""
    rules = folder / "some.rules"
    rules.write_text(
        "".join(
            f"constraint c{i} : cardinality on {{ {f'target: {t};' if t else ''} n = add(...) }}"
            " require arity(n) == 2\n"
            for i, t in enumerate(targets)
        ).replace(";", "\n")
    )
    return Asked("onnxruntime", (str(rules),), (), None, 0, 60.0, 4096)


@pytest.mark.parametrize(
    "targets, said", [(["toy"], "it is about toy"), (["toy", "tvm"], "all 2 are about toy, tvm")]
)
def test_without_a_constraint_about_the_compiler_the_way_to_a_target_is_told(
    tmp_path: Path, targets: list[str], said: str
) -> None:
    with pytest.raises(UsageError, match=f"{said}; .*xcheck-passes.md"):
        prepare(asked(tmp_path, *targets))


def test_how_many_are_about_other_compilers_is_told(tmp_path: Path) -> None:
    one = prepare(asked(tmp_path, "", "toy"))
    assert list(remarks(one)) == ["1 constraint is left out, about other compilers (toy)"]
    two = prepare(asked(tmp_path, "", "toy", "tvm"))
    assert list(remarks(two)) == ["2 constraints are left out, about other compilers (toy, tvm)"]
