"""What `reprise reduce` and `reprise distill` are asked about: a program that shows a defect.

Comes in: a finding's folder, a ``.uir`` program or an ONNX model. Goes out: a :class:`Subject`, and
with :func:`open_trials` the means to try programs for the same defect, once the target has shown
that the subject has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from reprise.campaign.findings import Detail, read_detail, read_npz
from reprise.campaign.store import finding_id
from reprise.distill.memory import Memory
from reprise.distill.onnx_model import Model, as_program, closed, fixed, input_types, read_proto
from reprise.distill.trials import Aim, Shown, Trials
from reprise.facts.errors import ModelError
from reprise.lang.diagnostics import RulesError
from reprise.lang.display import counted
from reprise.lang.ruleset import load_rules
from reprise.oracle.verdict import Judgement, Severity, Verdict
from reprise.patterns.check import UsageError
from reprise.solve.signatures import Signatures
from reprise.synth.inputs import value_of
from reprise.synth.values import NoValue, ordinary
from reprise.synth.vocabulary import Policy, read_policies
from reprise.targets.discover import Target, TargetError, parse_target
from reprise.targets.process import Limits
from reprise.uir.graph import Array, Graph, Role, Tensor, TensorType
from reprise.uir.inference import SignatureError
from reprise.uir.program import Program
from reprise.uir.text import parse_uir
from reprise.uir.types import numpy_dtype

MAX_INPUT_ELEMENTS = 1 << 26
"""Random inputs of more elements are not made."""

SHOWABLE = frozenset(v for v in Verdict if v.is_finding) | {Verdict.REFERENCE_DISAGREEMENT}
"""Verdicts on what can be reduced and distilled: defects, and what may be one."""

_TAKE_MODELS = ("onnx", "relax")
"""Lowerings whose targets take ONNX models too: TVM has a frontend for them."""


class NotShown(UsageError):
    """The program does not show the defect on this target."""


@dataclass(frozen=True)
class Subject:
    """``forms``: the program, the best to work on first; a model is there as UIR, if UIR can say
    it, and as it came (last). ``spec``: the target as it was asked for. ``aim``: the defect that a
    finding's record names; None where there is no record, or one of another target.
    ``detail``: that record."""

    origin: Path
    target: Target
    spec: str
    forms: tuple[Program, ...]
    aim: Aim | None = None
    detail: Detail | None = None


def read_subject(
    path: Path,
    target: str | None,
    signatures: Signatures,
    *,
    inputs: Path | None = None,
    seed: int = 0,
) -> Subject:
    """What ``path`` is about.

    ``path``: a finding's folder, ``RUN/ID`` for one of a run's, a ``.uir`` file or an ONNX model.
    ``target`` as on the command line; it may be None for a finding, which names its own.
    ``inputs``: an ``.npz`` with values of inputs; without it those of the finding count, or those
    in ``NAME.npz`` or ``NAME.inputs.npz`` beside a file; what has none is drawn with ``seed``.
    Raises ModelError, StoreError, TargetError, UsageError.
    """
    if (folder := finding_folder(path)) is not None:
        return _of_finding(folder, target, signatures, inputs, seed)
    if path.is_dir():
        raise UsageError(f"{path} is no finding: it has no finding.json (give RUN/ID of a run's)")
    if not path.exists():
        raise UsageError(f"{path}: there is no such finding or file")
    if target is None:
        raise UsageError("say on what it fails: --target NAME")
    beside = (path.with_suffix(suffix) for suffix in (".npz", ".inputs.npz"))
    given = inputs or next((file for file in beside if file.exists()), None)
    chosen = parse_target(target)
    forms = _taken(chosen, path, _forms(path, given, signatures, seed))
    return Subject(path, chosen, target, forms)


def open_trials(
    subject: Subject,
    limits: Limits | None = None,
    *,
    jobs: int = 1,
    exact: bool = False,
    keep: Path | None = None,
) -> tuple[Trials, Program]:
    """The means to try programs for the subject's defect, and the first of its forms that shows it.

    Where no defect is recorded, the program as it came is judged in full, and what it shows is the
    aim. So it is where the same passes are to blame as recorded, but the symptom reads otherwise:
    it was recorded by another version of Reprise. ``exact`` as in
    :class:`~reprise.distill.trials.Trials`. ``keep``: a file for the answers, which are remembered
    from one time to the next. Raises NotShown if nothing is wrong with the program on this target,
    or something else than recorded; TargetError.
    """
    trials = Trials(subject.target, subject.aim, limits, jobs=jobs, exact=exact)
    try:
        if subject.aim is None:
            trials.aim_at(Aim.of(_judged(trials, subject)))
        for aim in (trials.aim, None):
            if aim is None:
                judgement = _judged(trials, subject)
                if not Aim.of(judgement).is_blamed_as(subject.aim):
                    break
                trials.aim_at(Aim.of(judgement))
            if keep is not None:
                trials.memory = Memory(keep, question(trials), [shown.value for shown in Shown])
            for form in subject.forms:
                if trials.try_one(form).shown is Shown.SAME:
                    return trials, form
        raise NotShown(
            f"{subject.origin}: fails on {subject.target.name}, but not with the recorded defect: "
            f"{trials.aim.signature if trials.aim else ''} was expected, this is "
            f"{judgement.signature} ({judgement.title})"
        )
    except BaseException:
        trials.close()
        raise


def question(trials: Trials) -> dict[str, object]:
    """What trials answer, as JSON values: on which target, for which defect."""
    aim = trials.aim
    assert aim is not None
    return {
        "target": str(trials.target),
        "modes": list(trials.target.modes),
        "versions": trials.versions(),
        "aim": [aim.verdict.value, aim.signature, aim.symptom, list(aim.cures)],
        "severity": aim.severity.value,
        "exact": trials.exact,
    }


def _judged(trials: Trials, subject: Subject) -> Judgement:
    """The full verdict on the subject as it came. Raises NotShown unless something
    is wrong."""
    judgement = trials.judge(subject.forms[-1])
    if judgement.verdict not in SHOWABLE:
        why = f" ({judgement.title})" if judgement.title else ""
        raise NotShown(
            f"{subject.origin}: does not fail on {subject.target}: the verdict is "
            f"{judgement.verdict.value.replace('_', ' ')}{why}{_flaky(subject)}"
        )
    return judgement


def _flaky(subject: Subject) -> str:
    """What a finding's record says of how often it showed."""
    confirmation = None if subject.detail is None else subject.detail.confirmation
    if confirmation is None or not confirmation.flaky:
        return ""
    runs = counted(confirmation.runs, "run")
    return f"; it showed in {confirmation.agreed} of {runs} when it was found"


# --- reading --------------------------------------------------------------------------------------


def finding_folder(path: Path) -> Path | None:
    """The folder of the finding that ``path`` means, if it means one."""
    if (path / "finding.json").exists():
        return path
    name = finding_id(int(path.name)) if path.name.isascii() and path.name.isdigit() else path.name
    inside = path.parent / "findings" / name
    return inside if (inside / "finding.json").exists() else None


def _of_finding(
    folder: Path, target: str | None, signatures: Signatures, inputs: Path | None, seed: int
) -> Subject:
    detail = read_detail(folder)
    chosen = parse_target(target or detail.target)
    program, model = folder / "program.uir", folder / "model.onnx"
    file = program if program.exists() else model
    if not file.exists():
        raise UsageError(f"{folder}: holds neither program.uir nor model.onnx")
    kept = folder / "inputs.npz"
    forms = _forms(file, inputs or (kept if kept.exists() else None), signatures, seed)
    forms = _taken(chosen, file, forms)
    for form in forms:
        form.name = detail.program
    aim = None
    if detail.verdict in SHOWABLE and chosen.name == _name_of(detail.target):
        severity = Severity(detail.raw.get("severity", "normal"))
        aim = Aim.of(
            Judgement(detail.verdict, detail.signature, detail.title, detail.evidence, severity)
        )
    return Subject(folder, chosen, target or detail.target, forms, aim, detail)


def _taken(target: Target, path: Path, forms: tuple[Program, ...]) -> tuple[Program, ...]:
    """The forms that a target takes. Raises UsageError if there is none."""
    if target.lowering in _TAKE_MODELS:
        return forms
    taken = tuple(form for form in forms if not isinstance(form, Model))
    if not taken:
        raise UsageError(
            f"{path}: {target.name} takes no ONNX models, and this one has operators or values "
            "that cannot be said in UIR (reprise check names them)"
        )
    return taken


def _name_of(target: str) -> str:
    """The name of a recorded target, whose interpreter may be gone."""
    try:
        return parse_target(target).name
    except TargetError:
        return target.partition("@")[0].partition(":")[0]


def _forms(
    path: Path, inputs: Path | None, signatures: Signatures, seed: int
) -> tuple[Program, ...]:
    given = {} if inputs is None else _read_inputs(inputs)
    if path.suffix != ".uir":
        proto = read_proto(path)
        types = {n: t for n, t in input_types(proto, path).items() if n not in given}
        rng = Random(seed)
        drawn = {name: _drawn(path, name, closed(type), rng) for name, type in types.items()}
        names = {info.name for info in proto.graph.input}
        values = {name: array for name, array in {**drawn, **given}.items() if name in names}
        model = Model(fixed(proto, values), values, path.stem)
        imported = as_program(model, signatures)
        return (model,) if imported is None else (imported, model)
    graph = _read_uir(path, signatures)
    return (Program(graph, input_values(graph, given, path, seed), path.stem),)


def _read_uir(path: Path, signatures: Signatures) -> Graph:
    """A program, its nodes' attributes completed."""
    from reprise.lang.source import read_source

    try:
        graph = parse_uir(read_source(path), str(path), signatures)
    except RulesError as error:
        first = error.diagnostics[0]
        where = f"line {first.span.line}, column {first.span.column}"
        raise ModelError(path, f"{where}: {first.message}", first.hint) from error
    for node in graph.nodes:
        types = [None if t is None else t.type for t in node.inputs]
        try:
            node.attributes = dict(signatures.check(node.op, types, node.attributes).attributes)
        except SignatureError as error:
            raise ModelError(path, str(error)) from error
    for tensor in graph.tensors:
        if tensor.type.elements is None or tensor.type.dtype is None:
            raise ModelError(
                path, f"{tensor.name}: {tensor.type} is not fully known", "state dtype and extents"
            )
        if tensor.role is Role.INITIALIZER and tensor.value is None:
            raise ModelError(path, f"constant {tensor.name} has no value", "write `= ...` after it")
    return graph


def _read_inputs(path: Path) -> dict[str, Array]:
    try:
        return read_npz(path)
    except OSError as error:
        raise ModelError(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise ModelError(path, f"is no .npz file of arrays: {error}") from error


def input_values(
    graph: Graph, given: Mapping[str, Array], path: Path, seed: int
) -> dict[str, Array]:
    """A value for each input: the given one, which must be of the input's type, or one drawn with
    ``seed``, of the kind that the operators that read it demand. Raises ModelError."""
    rng = Random(seed)
    values: dict[str, Array] = {}
    for tensor in graph.tensors:
        if tensor.role is not Role.INPUT:
            continue
        if tensor.name not in given:
            values[tensor.name] = _drawn_for(graph, tensor, path, rng)
            continue
        array = given[tensor.name]
        if array.shape != tensor.type.shape or array.dtype != numpy_dtype(tensor.type.dtype or ""):
            found = f"{array.dtype}{list(array.shape)}"
            raise ModelError(path, f"input {tensor.name} is {tensor.type}, its value {found}")
        values[tensor.name] = array
    return values


def _drawn_for(graph: Graph, tensor: Tensor, path: Path, rng: Random) -> Array:
    """A value for an input, of the kind that the first reader that cares demands."""
    _check_size(path, tensor.name, tensor.type)
    try:
        return value_of(graph, tensor, _policies(), rng, "ordinary")
    except NoValue:
        return _drawn(path, tensor.name, tensor.type, rng)


@cache
def _policies() -> Mapping[str, Policy]:
    return read_policies(load_rules([]))


def _check_size(path: Path, name: str, type: TensorType) -> None:
    if (type.elements or 0) > MAX_INPUT_ELEMENTS:
        raise ModelError(path, f"input {name} is too large to draw: {type}", "use --inputs")


def _drawn(path: Path, name: str, type: TensorType, rng: Random) -> Array:
    _check_size(path, name, type)
    if type.dtype == "string":
        shape = tuple(e for e in type.shape or () if isinstance(e, int))
        return np.full(shape, "a", dtype=object)
    return ordinary(rng, type)
