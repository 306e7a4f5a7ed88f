"""A distilled draft as a rule file: its name, what it says, and kernels on either side as tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from reprise.einsum.distill.conditions import Condition, telling
from reprise.einsum.distill.draft import HEAD, Draft
from reprise.einsum.distill.view import View
from reprise.einsum.facts import facts_of
from reprise.einsum.json_form import dumps
from reprise.einsum.kernel import Kernel
from reprise.einsum.symptom import Symptom, described
from reprise.lang.core import Program
from reprise.lang.display import shortened
from reprise.lang.ruleset import load_text
from reprise.oracle.crash import parse_key
from reprise.oracle.verdict import Verdict
from reprise.patterns.testing import run_tests

_MATCHES, _MISSES = 3, 6
"""Kernels that are shown as tests."""


def symptom_word(symptom: Symptom) -> str:
    """A symptom in the words that rules use."""
    if symptom.verdict is not Verdict.CRASH:
        return str(symptom.verdict.value)
    crash = parse_key(symptom.key)
    stage = "run" if crash is None else crash.stage.rpartition("/")[2]
    return f"crash_at_{stage}" if stage in ("load", "compile", "run") else "crash_at_run"


def named(
    draft: Draft, name: str, target: str, versions: dict[str, str], seed: Kernel, symptom: Symptom
) -> Draft:
    """The draft with a name and what is known of the defect."""
    word = symptom_word(symptom)
    shown = "wrong result" if word == "wrong_result" else word.partition("_")[0]
    version = next(iter(versions.items()), None)
    said = " ".join(symptom.text.split())
    notes = [f"Found by Reprise, on {target}."]
    if version is not None:
        notes = [f"Found by Reprise, on {target} with {version[0]} {version[1]}."]
    notes.append(f"Seen on {shortened(described(seed), 90)}")
    return replace(
        draft,
        name=name or _made_up(draft, target, shown, seed),
        title=f"{target}: {shown}",
        doc=shortened(_plain(said), 90) if said else shown,
        notes=tuple(notes),
        symptom=word,
    )


_TAGS = 3
"""So much of what a rule is about is in its name, if no operands are."""


def _made_up(draft: Draft, target: str, shown: str, seed: Kernel) -> str:
    """``taco_crash_cyclic_loops``, ``torch_sparse_crash_ds_plus_ss``: what happens, and what the
    conditions are about; of operands, their formats in the kernel that it was made from."""
    about = sorted(draft.conditions, key=telling)
    tags = dict.fromkeys(c.tag for c in about if c.tag and not _operands(draft, c))
    formats = _formats(draft, seed)
    words = [target, shown.partition(" ")[0], *list(tags)[: 1 if formats else _TAGS], formats]
    return re.sub(r"[^a-z0-9]+", "_", "_".join(words).lower()).strip("_")


def _operands(draft: Draft, condition: Condition) -> list[str]:
    return [name for name in draft.operands if name in condition.variables]


def _formats(draft: Draft, seed: Kernel) -> str:
    """``ds_plus_ss``: the formats of the operands that something is said of."""
    operands = View(seed).operands
    said = [o for o in draft.operands if any(o in c.variables for c in draft.conditions)]
    text, term = "", None
    for own, name, _ in (operands[int(who[1:]) - 1] for who in said):
        joint = "" if term is None else " times " if own == term else " plus "
        levels = str(seed.tensor(name).format).replace(":", "").replace(",", "")
        text, term = f"{text}{joint}{levels or 'scalar'}", own
    return text


def with_tests(draft: Draft, triggers: Iterable[Kernel], passing: Sequence[Kernel]) -> str:
    """The rule with kernels that it matches, and for each condition one that passes and that it
    would match without. What does not come out as it should is left out."""
    cases = [("match", kernel) for kernel in _shown(draft, triggers)]
    cases += [("no_match", kernel) for kernel in _narrow(draft, passing)]
    read = _bases(load_text(draft.text()).program, draft.name)
    while cases:
        text = draft.text(_tests(draft, cases, read))
        results = run_tests(load_text(text))
        bad = {number for number, result in enumerate(results) if not result.ok}
        if not bad:
            return text
        cases = [case for number, case in enumerate(cases) if number not in bad]
    return draft.text()


def _shown(draft: Draft, triggers: Iterable[Kernel]) -> list[Kernel]:
    """The first trigger, and the shortest others."""
    first, *others = [kernel for kernel in triggers if draft.matches(View(kernel))]
    others.sort(key=lambda kernel: (len(facts_of(kernel)), dumps(kernel)))
    found: dict[str, Kernel] = {described(first): first}
    for kernel in others:
        found.setdefault(described(kernel), kernel)
    return list(found.values())[:_MATCHES]


def _narrow(draft: Draft, passing: Sequence[Kernel]) -> list[Kernel]:
    views = [View(kernel) for kernel in passing]
    views = [view for view in views if not draft.matches(view)]
    views.sort(key=lambda view: (len(facts_of(view.kernel)), dumps(view.kernel)))
    found: dict[str, Kernel] = {}
    for condition in draft.conditions:
        wider = draft.without(condition)
        for view in views:
            if described(view.kernel) not in found and wider.matches(view):
                found[described(view.kernel)] = view.kernel
                break
    return list(found.values())[:_MISSES]


def _bases(program: Program, name: str) -> frozenset[str]:
    """The relations of a kernel that a rule rests on."""
    return frozenset(program.restricted_to([name]).relations)


def _tests(draft: Draft, cases: Sequence[tuple[str, Kernel]], read: frozenset[str]) -> str:
    lines = [f"test {draft.name} {{"]
    for kind, kernel in cases:
        facts = [
            f"{relation}({', '.join(_value(value) for value in row)})"
            for relation, row in facts_of(kernel)
            if relation in read
        ]
        lines += [f'{kind} "{_plain(shortened(described(kernel), 90))}" {{', *facts, "}"]
    return "\n".join([*lines, "}"]) + "\n"


_WORDS = frozenset(
    {"dense", "compressed", "nonunique", "singleton", "empty_data", "full_data", "explicit_zeros"}
    | {"duplicates", "unsorted", "float64", "float32", "int64", "int32"}
)


def _value(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    return str(value) if value in _WORDS else f'"{value}"'


def _plain(text: str) -> str:
    return shortened(text.replace('"', "'").replace("{", "(").replace("}", ")"), 160)


__all__ = ["HEAD", "named", "symptom_word", "with_tests"]
