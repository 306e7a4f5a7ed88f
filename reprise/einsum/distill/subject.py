"""What `reprise reduce` and `reprise distill` are asked about where it is a kernel that fails."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reprise.campaign.findings import Detail, read_detail
from reprise.distill.memory import Memory
from reprise.distill.subject import NotShown, finding_folder
from reprise.distill.trials import Shown
from reprise.einsum.data import Array, materialise
from reprise.einsum.distill.trials import KernelTrials
from reprise.einsum.json_form import read_lines
from reprise.einsum.kernel import Computed, Kernel, KernelError
from reprise.einsum.reading import is_file, kernels_in
from reprise.einsum.reference import reference
from reprise.einsum.results import given
from reprise.einsum.symptom import Symptom
from reprise.einsum.translate.backends import BACKENDS
from reprise.lang.display import counted
from reprise.oracle.verdict import Verdict
from reprise.patterns.check import UsageError
from reprise.targets.discover import Target, parse_target
from reprise.targets.process import Limits

KERNEL = "kernel.json"


@dataclass(frozen=True)
class KernelSubject:
    """``spec``: the target as it was asked for. ``kernels``: those that may show it, each by
    itself. ``expected``: the symptom that a finding's record names; None where there is no
    record."""

    origin: Path
    target: Target
    spec: str
    kernels: tuple[Kernel, ...]
    expected: Symptom | None = None
    detail: Detail | None = None


def is_about_a_kernel(path: Path) -> bool:
    """Whether a finding's folder, ``RUN/ID`` or a file is about a kernel."""
    folder = finding_folder(path)
    if folder is not None:
        return (folder / KERNEL).exists()
    return path.is_file() and is_file(path.name)


def read_kernel_subject(path: Path, target: str | None) -> KernelSubject:
    """What ``path`` is about: a finding's folder, ``RUN/ID``, or a file with one JSON kernel, or
    with kernels of which later ones read the outputs of earlier ones.

    Raises KernelError, StoreError, TargetError, UsageError.
    """
    folder = finding_folder(path)
    detail = None if folder is None else read_detail(folder)
    spec = target or (detail.target if detail is not None else None)
    if spec is None:
        raise UsageError("say on what it fails: --target NAME")
    chosen = parse_target(spec)
    if chosen.name not in BACKENDS:
        raise UsageError(f"{chosen.name} takes no kernels; {', '.join(BACKENDS)} do")
    if folder is None:
        kernels = _alone(path, list(kernels_in(path)))
        return KernelSubject(path, chosen, spec, kernels)
    assert detail is not None
    with (folder / KERNEL).open(encoding="utf-8") as file:
        kernels = _alone(folder, list(read_lines(file)))
    expected = _recorded(detail) if detail.verdict.is_finding and target is None else None
    return KernelSubject(folder, chosen, spec, kernels, expected, detail)


def open_kernel_trials(
    subject: KernelSubject, limits: Limits | None, *, jobs: int = 1, keep: Path | None = None
) -> KernelTrials:
    """The means to try kernels for what the subject shows: of several kernels, what the last shows
    that fails by itself as recorded. ``keep``: a file for the answers.

    Raises NotShown if nothing is wrong with it, or something else than recorded; TargetError.
    """
    trials = KernelTrials(
        subject.target, subject.kernels[0], Symptom(Verdict.OK), limits, jobs=jobs
    )
    try:
        for kernel in reversed(subject.kernels):
            why = _tried(kernel, subject, trials)
            if why is None:
                break
        else:
            raise NotShown(f"{subject.origin}: {why}")
        if keep is not None:
            trials.memory = Memory(keep, trials.question(), [shown.value for shown in Shown])
        return trials
    except BaseException:
        trials.close()
        raise


def _tried(kernel: Kernel, subject: KernelSubject, trials: KernelTrials) -> str | None:
    """Aim at what a kernel shows, if it is that; else say why it is not."""
    symptom, expected = trials.symptom(kernel), subject.expected
    if not symptom.verdict.is_finding:
        said = f" ({symptom.text})" if symptom.text else ""
        return (
            f"does not fail on {subject.target} when it is run by itself: "
            f"the verdict is {symptom.verdict.value.replace('_', ' ')}{said}"
        )
    if expected is not None and not expected.is_like(symptom):
        return (
            f"fails on {subject.target.name}, but not as recorded: "
            f"{expected.key} was expected, this is {symptom.key} ({symptom.text})"
        )
    trials.kernel, trials.aim = kernel, symptom
    return None


def _recorded(detail: Detail) -> Symptom:
    """The symptom of a finding, by its record."""
    crash = detail.evidence.get("crash")
    if crash is not None:
        return Symptom(detail.verdict, str(crash))
    _, _, rest = detail.signature.partition(" | ")
    return Symptom(detail.verdict, rest.partition(" | ")[0])


def _alone(path: Path, read: list[tuple[int, Kernel | KernelError]]) -> tuple[Kernel, ...]:
    """The one kernel of a file; or kernels of which some read the outputs of earlier ones, each
    with what it should be given written out."""
    for line, kernel in read:
        if isinstance(kernel, KernelError):
            raise KernelError(f"{path}:{line}: {kernel}")
    kernels = [kernel for _, kernel in read if isinstance(kernel, Kernel)]
    if len(kernels) != 1 and not any(map(_reads, kernels)):
        raise UsageError(f"{path}: {counted(len(kernels), 'kernel')}: give one, or RUN/ID")
    outputs: dict[str, Array] = {}
    found = []
    for kernel in kernels:
        if missing := _read_by(kernel) - set(outputs):
            raise UsageError(f"{path}: no kernel before it computes {', '.join(sorted(missing))}")
        found.append(given(kernel, outputs))
        outputs[kernel.output.tensor] = reference(kernel, materialise(kernel, outputs))
    return tuple(found)


def _reads(kernel: Kernel) -> bool:
    return bool(_read_by(kernel))


def _read_by(kernel: Kernel) -> set[str]:
    """The outputs of other kernels that a kernel reads."""
    return {t.data.output for t in kernel.operands if isinstance(t.data, Computed)}
