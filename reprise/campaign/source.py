"""A generator from a request that can be sent to another process: which rules, target, options.

The one place that puts rules, signatures, a target's limits and options together, for the
campaign, ``reprise gen`` and benchmarks alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reprise.data import data_path
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet, load_rules, rule_files
from reprise.lower.lowering import lowering
from reprise.patterns.check import Target, concerns
from reprise.solve.signatures import Signatures
from reprise.synth.generator import Generator
from reprise.synth.options import Options
from reprise.synth.vocabulary import WhyNot
from reprise.uir.graph import Scalar

RULE_TARGETS: Mapping[str, tuple[str, ...]] = {"tvm-cuda-compile": ("tvm_cuda",)}
"""The names under which rules know a target, where they differ from the target's own."""


@dataclass(frozen=True)
class SourceRequest:
    """What programs a run wants.

    ``rules``: files and folders with known bugs (none: the shipped ones). ``target``: steer around
    that target's known bugs, in ``version``, and keep to what it supports; None for neither.
    ``guided``: whether to steer at all. ``lowering``: keep to what can be lowered so.
    """

    seed: int
    options: Options = field(default_factory=Options)
    target: str | None = None
    version: str | None = None
    rules: tuple[Path, ...] = ()
    guided: bool = True
    environment: Mapping[str, Scalar] = field(default_factory=dict)
    opset: int | None = None
    lowering: str | None = None


def open_source(request: SourceRequest) -> Generator:
    """The generator of a request. Raises RulesError for bad rules and OptionsError for options
    that leave nothing to generate."""
    target_rules = [] if request.target is None else _target_rules(request.target)
    rules = load_rules([*_bug_rules(request.rules), *target_rules])
    signatures = _signatures(request.rules)
    return Generator(
        rules,
        signatures,
        request.options,
        request.seed,
        patterns=known_bugs(rules, request.target, request.version) if request.guided else (),
        unsupported=None if request.lowering is None else lowering(request.lowering).unsupported,
        why_not=None if request.target is None else _support(request.target),
        forbidden=_forbidden(rules, target_rules),
        environment=request.environment,
        opset=request.opset,
    )


def known_bugs(rules: RuleSet, target: str | None, version: str | None = None) -> list[Pattern]:
    """The patterns about a target (all, if it is None) whose ``affects`` includes the version."""
    from packaging.version import Version

    if target is None:
        return list(rules.patterns.values())
    asked = [
        Target(name, None if version is None else Version(version))
        for name in RULE_TARGETS.get(target, (target,))
    ]
    return [p for p in rules.patterns.values() if any(concerns(p, one) for one in asked)]


def _bug_rules(paths: Sequence[Path]) -> list[Path]:
    return list(paths) or [data_path("rules/bugs")]


def _signatures(paths: Sequence[Path]) -> Signatures:
    return Signatures.load(p for p in rule_files(paths) if " op " in f" {p.read_text()}")


def _target_rules(target: str) -> list[Path]:
    """The file with what the target does not do, where there is one."""
    path = data_path("rules/targets") / f"{target}.rules"
    return [path] if path.is_file() else []


def _support(target: str) -> WhyNot | None:
    from reprise.targets.support import Support

    why_not: WhyNot = Support.load(target).why_not
    return why_not


def _forbidden(rules: RuleSet, files: Sequence[Path]) -> list[str]:
    """The relations whose rows make a program invalid for the target: the violations of its
    constraints, and its deny rules."""
    paths = {str(path) for path in files}
    constraints = [c.name for c in rules.constraints.values() if c.span.file in paths]
    denies = [name for name, many in rules.denies.items() if many[0].span.file in paths]
    return [*constraints, *denies]
