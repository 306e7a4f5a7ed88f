"""Which rule a finding is filed under, and which rules a run is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.campaign.filing import Known, KnownBugs, RuleMatch, rules_hash
from reprise.lang.ruleset import load_rules, load_text
from reprise.oracle.verdict import Judgement, Verdict
from reprise.solve.signatures import Signatures
from reprise.uir.text import parse_uir

RULES = """
pattern crashes "A" { target: t   symptom: crash_at_compile   pass: "First"   a = abs(x) }
pattern differs "B" { target: t   symptom: wrong_result   pass: "Second"   a = abs(x) b = abs(a) }
pattern both "C" {
    target: t   symptom: wrong_result   symptom: crash_at_run
    a = abs(x) b = neg(a)
}
pattern somewhere "D" { target: t   symptom: wrong_result   a = sin(x)   graph env(isa) == avx512 }
"""


@pytest.fixture
def bugs() -> KnownBugs:
    rules = load_text(RULES)
    return KnownBugs(rules, rules.patterns.values(), {})


def filed(bugs: KnownBugs, verdict: Verdict, signature: str, *rules: str) -> str | None:
    matches = [RuleMatch(rule.rstrip("?"), "", not rule.endswith("?")) for rule in rules]
    return bugs.file(Judgement(verdict, signature), matches, ("First", "Second", "Third"))


def test_the_symptom_must_be_what_happened(bugs: KnownBugs) -> None:
    assert filed(bugs, Verdict.CRASH, "x", "crashes", "differs") == "crashes"
    assert filed(bugs, Verdict.WRONG_RESULT, "x", "crashes", "differs") == "differs"
    assert filed(bugs, Verdict.WRONG_RESULT, "x", "crashes") is None
    assert filed(bugs, Verdict.CRASH, "x", "both") == "both"
    assert filed(bugs, Verdict.HANG, "x", "both") is None
    assert filed(bugs, Verdict.INVALID, "x", "both") is None


def test_another_pass_is_another_bug(bugs: KnownBugs) -> None:
    assert filed(bugs, Verdict.CRASH, "pass:Second", "crashes") is None
    assert filed(bugs, Verdict.CRASH, "pass:First", "crashes") == "crashes"
    assert filed(bugs, Verdict.CRASH, "pass:First+Third", "crashes") == "crashes"


def test_the_rule_whose_pass_is_to_blame_comes_first(bugs: KnownBugs) -> None:
    assert filed(bugs, Verdict.CRASH, "pass:First", "both", "crashes") == "crashes"
    assert filed(bugs, Verdict.CRASH, "pass:Third", "both", "crashes") == "both"


def test_a_crash_is_filed_under_the_rule_that_has_its_words() -> None:
    rules = load_text(
        'pattern any "A" { target: t   symptom: crash   a = abs(x) }'
        'pattern worded "B" {'
        '    target: t   symptom: crash   says: "in range"   a = abs(x) where x.rank == 1'
        "}"
    )
    bugs = KnownBugs(rules, rules.patterns.values(), {})
    matches = [RuleMatch("any", "", True), RuleMatch("worded", "", True)]

    def filed(message: str) -> str | None:
        return bugs.file(Judgement(Verdict.CRASH, "x", evidence={"message": message}), matches)

    assert filed("x is not in range") == "worded"
    assert filed("x is zero") == "any"


def test_a_pass_that_cannot_be_disabled_decides_nothing(bugs: KnownBugs) -> None:
    """A rule may name its pass in words that the target's list does not have."""
    match = [RuleMatch("crashes", "", True)]
    assert bugs.file(Judgement(Verdict.CRASH, "pass:Other"), match, ("Other",)) == "crashes"


def test_a_possible_match_is_no_ground(bugs: KnownBugs) -> None:
    assert filed(bugs, Verdict.WRONG_RESULT, "x", "somewhere?") is None


def test_matches_say_whether_they_are_certain(bugs: KnownBugs) -> None:
    signatures = Signatures.load()
    graph = parse_uir("x: float32[2]\na = abs(x)\nb = neg(a)\ns = sin(b)\n", "t", signatures)
    found = {m.rule: m.certain for m in bugs.matches(graph)}
    assert found == {"both": True, "crashes": True, "somewhere": False}
    graph = parse_uir("x: float32[2]\na = exp(x)\n", "t", signatures)
    assert bugs.matches(graph) == ()


def test_versions_choose_the_rules(tmp_path: Path) -> None:
    rules = tmp_path / "r.rules"
    rules.write_text(
        'pattern old "A" { target: onnxruntime   affects: "<1.20"   a = abs(x) }\n'
        'pattern new "B" { target: onnxruntime   affects: ">=1.20"   a = neg(x) }\n'
        'pattern other "C" { target: tvm   a = exp(x) }\n'
    )
    graph = parse_uir("x: float32[2]\na = abs(x)\nb = neg(a)\nc = exp(b)\n", "t", Signatures.load())
    matched = {
        version: [m.rule for m in Known("onnxruntime", version, (rules,))().matches(graph)]
        for version in ("1.19.2", "1.27.0", None)
    }
    assert matched == {"1.19.2": ["old"], "1.27.0": ["new"], None: ["new", "old"]}


def test_the_hash_is_of_texts_not_of_places(tmp_path: Path) -> None:
    text = 'pattern one "A" { target: t   a = abs(x) }\n'
    hashes = []
    for folder, content in [("a", text), ("b", text), ("c", text.replace("abs", "neg"))]:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "r.rules").write_text(content)
        hashes.append(rules_hash([load_rules([tmp_path / folder / "r.rules"])], "t"))
    assert hashes[0] == hashes[1] != hashes[2]
