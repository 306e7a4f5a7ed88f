"""With every number known, the reading over z3 says what the engine says."""

from __future__ import annotations

from typing import Any

import pytest

from reprise.facts.facts import facts_of
from reprise.lang import core
from reprise.lang.ruleset import RuleSet, load_text
from reprise.lower.onnx import OnnxLowering
from reprise.solve.signatures import Signatures
from reprise.solve.z3_reading import Symbolic
from reprise.solve.z3_search import new_context
from reprise.synth.generator import Generator
from reprise.synth.options import Options
from reprise.uir.graph import Graph
from reprise.xcheck.judge import Judge
from reprise.xcheck.symbolic import Reader

RULES = """
constraint compare : parameter_bound on { n = any(x, ...) where x.rank >= 1 }
    require x.dim[0] <= 3 or x.dim[-1] * 2 - 1 >= x.rank + 4
constraint member : data_representation on { n = any(x, ...) } require x.dtype in {float32, int32}
constraint shapes : topology on { a = any(x, ...) b = any(a, ...) } require a.shape != b.shape
constraint divides : algebraic on { n = any(x, ...) where x.rank >= 2 }
    require x.dim[0] % x.dim[1] == 0
constraint sums : resource on { n = any(...) } require sum{ T.bytes : input(n, _, T) } <= 300
constraint counts : cardinality on { n = any(x, ...) }
    require count{ E : dim(x, _, E) } == x.rank
constraint largest : parameter_bound on { n = any(x, ...) where x.rank >= 1 }
    require max{ E : dim(x, _, E) } >= 2 * min{ E : dim(x, _, E) }
constraint absent : topology on { n = any(x, ...) } require not graph_input(x)
constraint context : topology on { n = any(x, ...) } require not downstream(n) in arithmetic
"""


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return load_text(RULES)


@pytest.fixture(scope="module")
def graphs(rules: RuleSet) -> list[Graph]:
    signatures = Signatures.of_symbols(rules.symbols)
    generator = Generator(
        rules, signatures, Options(nodes=3), 7, unsupported=OnnxLowering().unsupported
    )
    return [generator.program(number).program.graph for number in range(40)]


@pytest.mark.slow
def test_the_reading_is_the_engines(rules: RuleSet, graphs: list[Graph]) -> None:
    judge = Judge(rules, rules.constraints.values(), ())
    by_head: dict[str, list[core.Rule]] = {}
    for rule in rules.program.rules:
        by_head.setdefault(rule.head.relation, []).append(rule)
    seen: dict[str, set[bool]] = {name: set() for name in rules.constraints}
    for graph in graphs:
        judged = judge.judge(graph)
        assert not judged.possible
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for relation, row in facts_of(graph):
            rows.setdefault(relation, []).append(row)
        reader = Reader(by_head, rows, Symbolic(new_context()))
        for name in rules.constraints:
            found = reader.holds_somewhere([rule.body for rule in by_head[name]])
            assert found is (name in judged.violated), (name, graph)
            seen[name].add(found)
    assert [name for name, both in seen.items() if both != {True, False}] == []
