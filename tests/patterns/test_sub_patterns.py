"""What ``not exists`` costs: no pairs of what the pattern does not bring together."""

from __future__ import annotations

from reprise.datalog import Database
from reprise.facts.facts import facts_of
from reprise.lang.ruleset import load_text
from reprise.solve.signatures import Signatures
from reprise.uir.text import parse_uir

RULES = """
pattern p "a sum, but not over the last axis" {
    t = sum(x)
    where not exists { attr_at(t, axes, _, A), A == x.rank - 1 }
}
"""


def test_sub_patterns_are_looked_for_where_the_pattern_is() -> None:
    rules = load_text(RULES)
    lines = ["x: float32[4, 4]"]
    for i in range(40):
        lines.append(f"t{i} = sum({f't{i - 1}' if i else 'x'}, axes=[{i % 2}], keepdims=true)")
    graph = parse_uir("\n".join(lines), "m.uir", Signatures.of_symbols(rules.symbols))
    database = Database(rules.program.restricted_to(["p"]))
    known = database.program.relations
    database.commit([fact for fact in facts_of(graph) if fact[0] in known])
    assert len(list(database.rows("p"))) == 20
    assert len(list(database.rows("p__exists"))) == 20  # not 20 sums times 41 tensors
