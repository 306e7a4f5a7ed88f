"""Which known bug a kernel's finding is: deny rules over the facts of kernels.

The known bugs of a target are the deny rules in ``rules/bugs/TARGET``. A rule says which kernels
hit a bug, and a fact ``shows(RULE, SYMPTOM)`` beside it what happens then, in the words of the
rules about graphs (``wrong_result``, ``crash_at_run``). A kernel that a rule is about is kept away
by the generator as if it were not valid, and a finding whose kernel it is about, and which shows
the symptom, is filed under it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from reprise.campaign.filing import SYMPTOMS, RuleMatch
from reprise.data import data_path
from reprise.einsum.kernel import Kernel
from reprise.einsum.settings import PERMISSIONS, Settings
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.validity import KernelRules, Validity, load_kernel_rules
from reprise.lang import core
from reprise.lang.ruleset import rule_files
from reprise.oracle.verdict import Judgement


def bug_files(target: str, rules: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The files with a target's known bugs: those given, or those that ship."""
    if rules:
        return tuple(rules)
    folder = data_path("rules/bugs") / target.replace("-", "_")
    return (folder,) if folder.is_dir() else ()


def bug_rules(rules: KernelRules, files: Sequence[Path]) -> frozenset[str]:
    """The names of the deny rules that are in these files or folders."""
    own = {str(Path(path).resolve()) for path in rule_files(files)} if files else set()
    return frozenset(
        name for name, deny in rules.denies.items() if str(Path(deny.span.file).resolve()) in own
    )


@dataclass(frozen=True)
class KnownKernels:
    """Makes the known bugs of a target, in any process."""

    target: str
    files: tuple[Path, ...]

    def __call__(self) -> KernelBugs:
        return KernelBugs(self.target, load_kernel_rules(self.files), self.files)


class KernelBugs:
    """The known bugs of a target: see :class:`reprise.campaign.bench.Filing`."""

    def __init__(self, target: str, rules: KernelRules, files: Sequence[Path]) -> None:
        self.target = target
        self.rules = rules
        self.names = bug_rules(rules, files)
        self.symptoms = _symptoms(rules)

    @cached_property
    def _validity(self) -> Validity:
        aims = BACKENDS[self.target].aims
        return Validity(self.rules, Settings((), frozenset(PERMISSIONS), aims))

    def matches(self, kernels: Sequence[Kernel], /) -> tuple[RuleMatch, ...]:
        """The rules that are about one of the kernels."""
        if not self.names:
            return ()
        found = {v.rule for kernel in kernels for v in self._validity.of(kernel)} & self.names
        return tuple(RuleMatch(name, self.title(name), True) for name in sorted(found))

    def slips(self, kernel: Kernel) -> Callable[[Kernel], bool]:
        """Tells of another kernel whether a bug is about it that is not about this one: then it may
        fail for that reason."""
        known = {match.rule for match in self.matches((kernel,))}
        return lambda other: bool({match.rule for match in self.matches((other,))} - known)

    def title(self, name: str) -> str:
        """What a rule says, without what varies."""
        return " ".join(self.rules.denies[name].doc.split()) or name

    def file(
        self, judgement: Judgement, matches: Collection[RuleMatch], passes: Collection[str] = ()
    ) -> str | None:
        """The first rule whose symptom is what happened; a rule that states none fits all."""
        for match in matches:
            stated = self.symptoms.get(match.rule, frozenset())
            shown = any(judgement.verdict in SYMPTOMS.get(s, ()) for s in stated)
            if judgement.verdict.is_finding and (shown or not stated):
                return match.rule
        return None


def _symptoms(rules: KernelRules) -> dict[str, frozenset[str]]:
    """What the facts ``shows(RULE, SYMPTOM)`` say."""
    found: dict[str, set[str]] = {}
    for rule in rules.rules.program.rules:
        if rule.head.relation == "shows" and not rule.body:
            name, symptom = (t.value for t in rule.head.terms if isinstance(t, core.Const))
            found.setdefault(str(name), set()).add(str(symptom))
    return {name: frozenset(symptoms) for name, symptoms in found.items()}
