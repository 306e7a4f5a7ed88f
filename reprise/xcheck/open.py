"""A run, from what was asked for to a loop that is ready: rules, device, compiler, folder."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reprise.campaign.source import require_shapes
from reprise.data import data_path
from reprise.distill.alone import alone_in
from reprise.facts.hardware import default_hardware
from reprise.lang import core
from reprise.lang.declared import Constraint
from reprise.lang.display import counted
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.patterns.check import UsageError
from reprise.solve.signatures import Signatures
from reprise.targets.discover import Target
from reprise.targets.process import Limits
from reprise.xcheck.device import Device, device
from reprise.xcheck.findings import declared_at, source_of
from reprise.xcheck.models import Modeller, missing
from reprise.xcheck.passes.compiler import PassCounter, parse_compiler
from reprise.xcheck.run import Ahead, Bench, Budget, Loop, Watch
from reprise.xcheck.signatures import interleaved, mined_files, without_signature
from reprise.xcheck.store import MONITORS, Asked, Declared, Store, XRun

_NAMED = 4
"""Constraints that are named in a remark."""
Say = Callable[[str], None]
"""Tells people what they should know before the run begins."""


@dataclass
class Prepared:
    """What a run works with. ``left_out``: constraints about other compilers; ``unknown``: those
    that ask for something of the device that is not known, with what that is; ``mined``: files of
    signatures that ship, if constraints name operators that have no other."""

    asked: Asked
    rules: RuleSet
    device: Device
    target: Target
    constraints: dict[str, Constraint]
    left_out: list[str]
    unknown: dict[str, list[str]]
    mined: tuple[Path, ...] = ()

    @property
    def rules_hash(self) -> str:
        """A hash of every rule that was loaded."""
        digest = hashlib.sha256()
        mined = {str(path): path.read_text() for path in self.mined}
        for path, text in sorted({**self.rules.sources, **mined}.items()):
            digest.update(f"{path}\0{text}\0".encode())
        return digest.hexdigest()

    def declared(self) -> list[Declared]:
        """The constraints as the store keeps them."""
        return [
            Declared(c.name, c.klass, source_of(c), declared_at(c))
            for c in self.constraints.values()
        ]

    def texts(self) -> dict[str, str]:
        """The constraints as they are written."""
        lines = {path: text.splitlines() for path, text in self.rules.sources.items()}
        return {
            c.name: "\n".join(lines[c.span.file][c.span.line - 1 : c.span.end_line])
            for c in self.constraints.values()
        }

    def modeller(self) -> Modeller:
        """What makes models. Not for two threads."""
        foreign = self.target.lowering != "onnx"
        return Modeller(self.rules, self.constraints, self.device, typed_only=foreign)


def asked_for(
    target: str,
    rules: Sequence[Path],
    hardware: Sequence[Path],
    device: str | None,
    seed: int,
    timeout: float,
    memory: int,
    budget: Budget = Budget(),  # noqa: B008 (it is frozen)
    signatures: Sequence[str] = (),
) -> Asked:
    """What options ask for; what ships where they name nothing."""
    return Asked(
        target=target,
        rules=tuple(str(p.resolve()) for p in rules) or default_rules(),
        hardware=tuple(str(p.resolve()) for p in hardware)
        or (tuple(map(str, default_hardware())) if device is not None else ()),
        device=device,
        seed=seed,
        timeout=timeout,
        memory=memory,
        models=budget.models,
        seconds=budget.seconds,
        signatures=tuple(signatures),
    )


def compiler_for(prepared: Prepared) -> PassCounter:
    """The compiler, within the limits that were asked for."""
    return PassCounter(prepared.target, _limits(prepared.asked))


def prepare(asked: Asked) -> Prepared:
    """Load everything that was asked for. Raises RulesError, OptionsError, TargetError, UsageError,
    OSError."""
    target = parse_compiler(asked.target)
    paths = [Path(p) for p in (*asked.rules, *asked.signatures, *asked.hardware)]
    rules = load_rules(list(dict.fromkeys(paths)))
    if asked.signatures:
        require_shapes(Signatures.of_symbols(rules.symbols))
    own = {c.name: c for c in rules.constraints.values() if c.span.file in rules.own}
    about = [c for c in own.values() if _is_about(c, target.name)]
    wanted = {c.name: c for c in interleaved(rules, about)}
    where = device(rules, asked.device)
    prepared = Prepared(
        asked, rules, where, target, wanted, [n for n in own if n not in wanted], {}
    )
    about_device = {
        rule.head.relation
        for rule in rules.program.rules
        if rule.head.relation in wanted and "device" in core.relations_in(rule.body)
    }
    for name in [name for name in wanted if name in about_device]:
        unknown = missing(rules, wanted[name], where)
        if unknown:
            prepared.unknown[name] = unknown
            del wanted[name]
    if not wanted:
        raise UsageError(_why_none(prepared, own))
    if without_signature(rules, wanted.values()):
        prepared.mined = tuple(mined_files())
    return prepared


def _is_about(constraint: Constraint, target: str) -> bool:
    """Whether a constraint is about a compiler; about any, if it does not say."""
    named = constraint.meta.get("target", ())
    return not named or any(name == target or name.startswith(f"{target}_") for name in named)


def _why_none(prepared: Prepared, own: dict[str, Constraint]) -> str:
    asked = prepared.asked
    if not own:
        return f"there is no constraint in {', '.join(asked.rules)}"
    if prepared.unknown:
        keys = sorted({key for keys in prepared.unknown.values() for key in keys})
        return (
            f"every constraint asks for {', '.join(f'device({key})' for key in keys)}, which "
            "nothing says: describe the device with --hardware FILE.rules"
        )
    about = "it is" if len(own) == 1 else f"all {len(own)} are"
    return (
        f"no constraint is about {prepared.target.name}: {about} about {_others(prepared)}; for a "
        "compiler that Reprise does not know, --target takes the path of a target file that counts "
        "passes (docs/xcheck-passes.md)"
    )


def _others(prepared: Prepared) -> str:
    """The compilers that the constraints that were left out are about."""
    left_out = (prepared.rules.constraints[name] for name in prepared.left_out)
    return ", ".join(sorted({name for c in left_out for name in c.meta.get("target", ())}))


def remarks(prepared: Prepared) -> Iterator[str]:
    """What people should know of what a run leaves out."""
    if prepared.left_out:
        left = counted(len(prepared.left_out), "constraint")
        are = "is" if len(prepared.left_out) == 1 else "are"
        yield f"{left} {are} left out, about other compilers ({_others(prepared)})"
    by_keys: dict[str, list[str]] = {}
    for name, keys in prepared.unknown.items():
        by_keys.setdefault(", ".join(f"device({key})" for key in keys), []).append(name)
    for asked, names in by_keys.items():
        shown = ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
        are = "is" if len(names) == 1 else "are"
        left = counted(len(names), "constraint")
        yield f"{left} {are} left out ({shown}): nothing says {asked} (--device, --hardware)"


def _limits(asked: Asked) -> Limits:
    return Limits(seconds=asked.timeout, memory_mib=asked.memory)


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


class _Bench:
    """A thread's modeller and compiler."""

    def __init__(self, prepared: Prepared, folder: Path) -> None:
        asked = prepared.asked
        self.modeller = prepared.modeller()
        self.compiler = PassCounter(prepared.target, _limits(asked), monitors=folder / MONITORS)

    def stop(self) -> None:
        self.compiler.stop()


@contextlib.contextmanager
def begin(
    asked: Asked, out: Path, budget: Budget, watch: Watch, jobs: int, say: Say
) -> Iterator[Loop]:
    """A new run in ``out``. Raises as :func:`prepare`, and StoreError."""
    prepared = prepare(asked)
    for remark in remarks(prepared):
        say(remark)
    with compiler_for(prepared) as counter:  # before there is a folder
        versions = counter.start()
    out.mkdir(parents=True, exist_ok=True)
    with (
        alone_in(out),
        Store.create(out, asked, prepared.rules_hash, versions, prepared.declared()) as store,
        _loop(prepared, store, versions, budget, watch, jobs) as loop,
    ):
        yield loop


@contextlib.contextmanager
def go_on(path: Path, budget: Budget, watch: Watch, jobs: int, say: Say) -> Iterator[Loop]:
    """The run in ``path``, from where it was left. ``budget``: in place of the one that it began
    with, if it says anything. Raises as :func:`begin`."""
    run = XRun.open(path)
    if budget == Budget():
        budget = Budget(run.asked.models, run.asked.seconds)
    prepared = prepare(run.asked)
    if prepared.rules_hash != run.rules_hash:
        raise UsageError(f"{path}: the rules have changed since this run began: begin a new one")
    with compiler_for(prepared) as counter:
        versions = counter.start()
    if versions != run.versions:
        raise UsageError(
            f"{path}: this run is of {_listed(run.versions)}, and the compiler is "
            f"{_listed(versions)} now: begin a new one"
        )
    with (
        alone_in(path),
        Store.resume(path) as store,
        _loop(prepared, store, versions, budget, watch, jobs) as loop,
    ):
        yield loop


@contextlib.contextmanager
def _loop(
    prepared: Prepared,
    store: Store,
    versions: dict[str, str],
    budget: Budget,
    watch: Watch,
    jobs: int,
) -> Iterator[Loop]:
    def bench() -> Bench:
        return _Bench(prepared, store.path.resolve())

    ahead = Ahead(bench, jobs, prepared.asked.seed)
    try:
        yield Loop(
            store,
            prepared.constraints,
            prepared.texts(),
            prepared.target,
            versions,
            ahead,
            budget,
            watch,
        )
    finally:
        ahead.close()


def free_folder(target: str) -> Path:
    """A new name for a run's folder."""
    number = 1
    while Path(f"xcheck-{target}-{number}").exists():
        number += 1
    return Path(f"xcheck-{target}-{number}")


def default_rules() -> tuple[str, ...]:
    """The constraints that ship."""
    return (str(data_path("rules/constraints")),)
