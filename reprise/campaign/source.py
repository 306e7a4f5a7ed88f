"""A generator from a request that can be sent to another process: which rules, target, options.

The one place that puts rules, signatures, a target's limits and options together, for the
campaign, ``reprise gen`` and benchmarks alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from reprise.data import data_path
from reprise.facts.onnx_apply import USUAL_OPSET, OnnxResults
from reprise.lang import core
from reprise.lang.declared import Pattern
from reprise.lang.ruleset import RuleSet, load_rules, rule_files
from reprise.lang.symbols import suggest
from reprise.lower.lowering import lowering
from reprise.patterns.check import Target, UsageError, concerns
from reprise.solve.signatures import Signatures
from reprise.synth.generator import Generator, Unsupported
from reprise.synth.options import Options, OptionsError
from reprise.synth.vocabulary import WhyNot
from reprise.synth.witness import WitnessFinder
from reprise.targets.support import Support, forbidden, target_rules
from reprise.uir.graph import Attribute, Scalar, TensorType

RULE_TARGETS: Mapping[str, tuple[str, ...]] = {"tvm-cuda-compile": ("tvm_cuda",)}
"""The names under which rules know a target, where they differ from the target's own."""

FRONTENDS: Mapping[str, str] = {"from_onnx": "onnx"}
"""What a rule's ``pass`` says of the form in which a target must get the program: a bug of an ONNX
importer shows only where it has something to import."""


@dataclass(frozen=True)
class SourceRequest:
    """What programs a run wants.

    ``rules``: files and folders with known bugs (none: the shipped ones). ``target``: steer around
    that target's known bugs, in ``version``, and keep to what it supports; None for neither.
    ``guided``: whether to steer at all. ``lowerings``: keep to what can be lowered in all these
    ways, to ONNX at ``opset``.
    """

    seed: int
    options: Options = field(default_factory=Options)
    target: str | None = None
    version: str | None = None
    rules: tuple[Path, ...] = ()
    guided: bool = True
    environment: Mapping[str, Scalar] = field(default_factory=dict)
    opset: int | None = None
    lowerings: tuple[str, ...] = ()


def open_source(request: SourceRequest) -> Generator:
    """The generator of a request. Raises RulesError for bad rules and OptionsError for options
    that leave nothing to generate."""
    limits = [] if request.target is None else target_rules(request.target)
    form = request.lowerings[0] if len(request.lowerings) == 1 else None
    rules = load_rules([*_bug_rules(request.rules), *limits, *_more(request)])
    signatures = _signatures(request)
    return Generator(
        rules,
        signatures,
        request.options,
        request.seed,
        patterns=known_bugs(rules, request.target, request.version, form) if request.guided else (),
        unsupported=_unsupported(request),
        why_not=None if request.target is None else _support(request.target),
        forbidden=forbidden(rules, limits),
        environment=request.environment,
        opset=request.opset,
    )


def open_finder(request: SourceRequest, name: str) -> tuple[WitnessFinder, Pattern]:
    """What looks for witnesses, and the pattern called ``name``, with the mined signatures that
    ship if it is about one of ONNX's operators that has no other. Raises UsageError if there is
    none."""
    rules = load_rules([*_bug_rules(request.rules), *_more(request)])
    pattern = rules.patterns.get(name)
    if pattern is None:
        hint = suggest(name, rules.patterns)
        raise UsageError(f"no pattern is called `{name}`" + (f" ({hint})" if hint else ""))
    signatures = _signatures(request)
    if any("." in op and op not in signatures for op in _operators(pattern)):
        known = {path.resolve() for path in _more(request)}
        mined = [p for p in sorted(data_path("rules/mining").glob("onnx*.rules")) if p not in known]
        asked = tuple(map(str, (*request.options.signatures, *mined)))
        request = replace(request, options=replace(request.options, signatures=asked))
        rules = load_rules([*_bug_rules(request.rules), *_more(request)])
        pattern, signatures = rules.patterns[name], _signatures(request)
    finder = WitnessFinder(
        rules,
        signatures,
        request.options,
        why_not=None if request.target is None else _support(request.target),
        unsupported=_unsupported(request),
    )
    return finder, pattern


def _operators(pattern: Pattern) -> Iterator[str]:
    """The names of operators, and other words, in what a pattern says of its nodes."""
    for alternative in pattern.alternatives:
        for literal in alternative.structure:
            match literal:
                case core.Atom(_, terms):
                    words = [term.value for term in terms if isinstance(term, core.Const)]
                case core.Member(_, members):
                    words = list(members)
                case _:
                    words = []
            yield from (word for word in words if isinstance(word, str))


def _unsupported(request: SourceRequest) -> Unsupported | None:
    """Why an application cannot be lowered in one of the ways."""
    made = [lowering(name, request.opset) for name in request.lowerings]
    if len(made) <= 1:
        return made[0].unsupported if made else None

    def unsupported(
        op: str, operands: Sequence[TensorType | None], attributes: Mapping[str, Attribute]
    ) -> str | None:
        reasons = (one.unsupported(op, operands, attributes) for one in made)
        return next((reason for reason in reasons if reason is not None), None)

    return unsupported


def known_bugs(
    rules: RuleSet, target: str | None, version: str | None = None, form: str | None = None
) -> list[Pattern]:
    """The patterns about a target (all, if it is None) whose ``affects`` includes the version. Not
    those about its back ends: what only ``tvm_cuda`` does is no concern of a run on a CPU.

    ``form``: the lowering in which the target gets its programs; those about importers of other
    forms are left out.
    """
    from packaging.version import Version

    if target is None:
        return list(rules.patterns.values())
    asked = [
        Target(name, None if version is None else Version(version))
        for name in RULE_TARGETS.get(target, (target,))
    ]
    return [
        pattern
        for pattern in rules.patterns.values()
        if any(t.name in pattern.meta.get("target", ()) and concerns(pattern, t) for t in asked)
        and (form is None or _imported(pattern) <= {form})
    ]


def _imported(pattern: Pattern) -> set[str]:
    """The forms that the rule's importers take."""
    return {FRONTENDS[p] for p in pattern.meta.get("pass", ()) if p in FRONTENDS}


def _bug_rules(paths: Sequence[Path]) -> list[Path]:
    return list(paths) or [data_path("rules/bugs")]


def _more(request: SourceRequest) -> list[Path]:
    """The files with operators besides those that ship."""
    return [Path(path) for path in request.options.signatures]


def _signatures(request: SourceRequest) -> Signatures:
    files = [p for p in rule_files(request.rules) if " op " in f" {p.read_text()}"]
    more = [path for path in _more(request) if path not in files]
    signatures = Signatures.load([*files, *more], OnnxResults(request.opset or USUAL_OPSET))
    require_shapes(signatures)
    return signatures


def require_shapes(signatures: Signatures) -> None:
    """Raise OptionsError if one of them does not say what shapes its operands have."""
    for name in signatures:
        decl = signatures[name].plan.decl
        untyped = "untyped" in signatures[name].flags
        if not untyped and any(param.type.shape is None for param in decl.params):
            raise OptionsError(
                f"{decl.name.span}: `{name}` does not say what shapes its operands have; "
                "`reprise mine signatures` completes such signatures"
            )


def _support(target: str) -> WhyNot | None:
    why_not: WhyNot = Support.whole(target).why_not
    return why_not
