"""From checks and a checkout to a plan (which bytes go where), and from a plan to a copy or a diff.

Whatever cannot be placed is told, with the reason, and the rest is done.
"""

from __future__ import annotations

import difflib
import json
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from reprise.mining.instrument import cpp_source, python_source, syntax
from reprise.mining.instrument.checks import Check, Site
from reprise.mining.instrument.copying import (
    Checkout,
    Manifest,
    check_place,
    digest,
    write_copy,
)
from reprise.mining.instrument.device import Scalar
from reprise.mining.instrument.edits import Insertion, insert
from reprise.mining.instrument.errors import InstrumentError
from reprise.mining.instrument.places import NoPlace, SourceFile
from reprise.mining.instrument.values import Untranslatable

_PYTHON = frozenset({".py", ".pyi"})
_CPP = frozenset(
    {".cc", ".cpp", ".cxx", ".c++", ".cu", ".h", ".hh", ".hpp", ".hxx", ".inc", ".inl"}
)

_QUOTED = re.compile(r"`[^`]*`")
_CHECKS = "CHECKS: dict[str, list[Any]] = {}"
_LAZY = "LAZY: list[dict[str, str]] = []"
"""Lines of the Python recorder that are filled in."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A check that is nowhere in the copy, or not at one of its sites, and why."""

    check: Check
    site: Site | None
    reason: str


@dataclass(frozen=True, slots=True)
class Touched:
    """A file with insertions. ``verified``: which syntax check it passed."""

    path: str
    before: bytes
    after: bytes
    insertions: tuple[tuple[int, int], ...]
    keys: tuple[str, ...]
    verified: str


@dataclass(frozen=True)
class Plan:
    """What instrumenting comes to: files that change, recorders to add beside them, the checks
    that were placed (with their sites), and the refusals."""

    touched: tuple[Touched, ...]
    recorders: Mapping[str, bytes]
    placed: Mapping[str, tuple[Site, ...]]
    refused: tuple[Refusal, ...]
    checks: tuple[Check, ...] = field(default=())

    def manifest(self) -> Manifest:
        files = {
            file.path: {
                "sha256": digest(file.after),
                "insertions": [list(s) for s in file.insertions],
            }
            for file in self.touched
        }
        by_key = {check.key: check for check in self.checks}
        described = {
            key: {
                "monitor": by_key[key].monitor,
                "assert": by_key[key].text,
                "pass": by_key[key].pass_name,
                "class": by_key[key].klass,
                "sites": [str(site) for site in sites],
            }
            for key, sites in self.placed.items()
        }
        return Manifest(files, tuple(sorted(self.recorders)), described)

    def diff(self) -> bytes:
        """A unified diff of the files that change."""
        pieces: list[str] = []
        for file in self.touched:
            # As Latin-1, which keeps every byte.
            old, new = (data.decode("latin-1") for data in (file.before, file.after))
            lines = difflib.unified_diff(
                _lines(old),
                _lines(new),
                f"a/{file.path}",
                f"b/{file.path}",
            )
            for line in lines:
                ended = line.endswith("\n")
                pieces.append(line if ended else f"{line}\n\\ No newline at end of file\n")
        return "".join(pieces).encode("latin-1")


def _lines(text: str) -> list[str]:
    """Lines as diff knows them: ended by line feeds only."""
    return [line for line in text.replace("\n", "\n\0").split("\0") if line]


def plan(
    checkout: Checkout,
    checks: Sequence[Check],
    device: Mapping[str, Scalar],
    lazy: Sequence[Mapping[str, str]] = (),
    cxxflags: Sequence[str] = (),
    may_call: Iterable[str] = (),
    watch: Callable[[str], None] = lambda path: None,
) -> Plan:
    """Find a place for every check. ``may_call``: functions and methods that only look, so that
    monitors may call them; ``watch`` is told each file before it is verified. Raises
    InstrumentError for an instrumented file that was changed since."""
    return _Planner(checkout, checks, device, lazy, cxxflags, frozenset(may_call), watch).plan()


def require_some_file(root: Path, checks: Sequence[Check]) -> None:
    """Raises InstrumentError where no file of the checks exists below ``root``: their rules are of
    another checkout, or of a folder around or below this one."""
    paths = sorted({posixpath.normpath(site.path) for check in checks for site in check.sites})
    if not paths or any((root / path).exists() for path in paths):
        return
    first = paths[0]
    message = f"no file of these rules is in {root}: there is no {first}"
    for path in paths:
        found = _elsewhere(root, path)
        if found is not None:
            raise InstrumentError(f"{message}; mined from another root? {found} is there")
    raise InstrumentError(message)


def _elsewhere(root: Path, path: str) -> Path | None:
    """Where a path is if rules were mined in a folder around ``root``, or in one directly below."""
    parts = path.split("/")
    shorter = (root.joinpath(*parts[cut:]) for cut in range(1, len(parts)))
    deeper = (folder / path for folder in sorted(root.iterdir()) if folder.is_dir())
    return next((place for place in (*shorter, *deeper) if place.is_file()), None)


def write(
    checkout: Checkout, copy: Path, made: Plan, watch: Callable[[int], None] = lambda files: None
) -> list[str]:
    """Make or renew the copy. Returns what could not be copied. Raises InstrumentError."""
    check_place(checkout.root, copy)
    contents = {file.path: file.after for file in made.touched} | dict(made.recorders)
    return write_copy(checkout, copy, contents, made.manifest(), watch)


@dataclass
class _Placing:
    """One file while checks are put into it."""

    path: str
    bytes: bytes
    source: SourceFile
    language: str
    found: list[tuple[Check, Site, list[Insertion]]] = field(default_factory=list)


class _Planner:
    def __init__(
        self,
        checkout: Checkout,
        checks: Sequence[Check],
        device: Mapping[str, Scalar],
        lazy: Sequence[Mapping[str, str]],
        cxxflags: Sequence[str],
        may_call: frozenset[str],
        watch: Callable[[str], None],
    ) -> None:
        self.checkout = checkout
        self.checks = checks
        self.device = dict(device)
        self.lazy = lazy
        self.cxxflags = cxxflags
        self.may_call = may_call
        self.watch = watch
        self.files: dict[str, _Placing] = {}
        self.refused: list[Refusal] = []

    def plan(self) -> Plan:
        for check in self.checks:
            self.place(check)
        touched = [
            done
            for path in sorted(self.files)
            if (done := self.finish(self.files[path])) is not None
        ]
        placed: dict[str, list[Site]] = {}
        for path in sorted(self.files):
            for check, site, _ in self.files[path].found:
                placed.setdefault(check.key, []).append(site)
        return Plan(
            tuple(touched),
            self.recorders(touched),
            {check.key: tuple(placed[check.key]) for check in self.checks if check.key in placed},
            tuple(self.refused),
            tuple(self.checks),
        )

    def place(self, check: Check) -> None:
        if not check.sites:
            self.refused.append(Refusal(check, None, 'it has no `from: "path:line"`'))
            return
        refused = []
        for site in check.sites:
            try:
                file = self.file(site)
                file.found.append((check, site, file.source.place(check, site)))
            except (NoPlace, Untranslatable) as error:
                refused.append(Refusal(check, site, str(error)))
        if len(refused) == len(check.sites):
            self.refused += refused

    def file(self, site: Site) -> _Placing:
        path = posixpath.normpath(site.path)
        if path not in self.files:
            self.files[path] = self.open(path)
        return self.files[path]

    def open(self, path: str) -> _Placing:
        if path.startswith(("/", "..")):
            raise NoPlace("its place is outside of the checkout")
        full = self.checkout.root / path
        if not full.is_file():
            raise NoPlace("there is no such file")
        real = full.resolve()
        root = self.checkout.root.resolve()
        if root not in real.parents:
            raise NoPlace("that file is a link that leads out of the checkout")
        if full.is_symlink() or real != root / path:
            raise NoPlace(f"that file is a link: name {real.relative_to(root).as_posix()}")
        suffix = full.suffix.lower()
        try:
            data = self.checkout.read(path)
        except OSError as error:
            raise NoPlace(error.strerror or str(error)) from error
        if suffix in _PYTHON:
            source = python_source.PythonSource(data, self.device, self.may_call)
            return _Placing(path, data, source, "python")
        if suffix in _CPP:
            return _Placing(
                path, data, cpp_source.CppSource(data, self.device, self.may_call), "c++"
            )
        if suffix == ".c":
            raise NoPlace("that file is C, and the recorder is C++")
        raise NoPlace("that file is neither Python nor C++")

    def finish(self, file: _Placing) -> Touched | None:
        """The file with all its checks; those with which it is no program any more are left out."""
        self.watch(file.path)
        while file.found:
            after, spans = self.inserted(file)
            verdict = self.verify(file, after)
            if verdict.sound:
                keys = tuple(dict.fromkeys(check.key for check, _, _ in file.found))
                return Touched(file.path, file.bytes, after, tuple(spans), keys, verdict.by)
            self.blame(file, verdict)
        return None

    def inserted(
        self, file: _Placing, only: Sequence[Insertion] | None = None
    ) -> tuple[bytes, list[tuple[int, int]]]:
        chosen = [i for _, _, found in file.found for i in found] if only is None else list(only)
        return insert(file.bytes, [file.source.preamble(), *chosen])

    def blame(self, file: _Placing, whole: syntax.Verdict) -> None:
        """Leave out the checks that make the file unsound by themselves; if none does, all."""
        kept = []
        for check, site, found in file.found:
            verdict = self.verify(file, self.inserted(file, found)[0])
            if verdict.sound:
                kept.append((check, site, found))
            else:
                reason = f"{verdict.by} refuses the file with it: {verdict.reason}"
                self.refused.append(Refusal(check, site, reason))
        if len(kept) == len(file.found):
            reason = f"{whole.by} refuses the file with all its checks: {whole.reason}"
            self.refused += [Refusal(check, site, reason) for check, site, _ in kept]
            kept = []
        file.found = kept

    def verify(self, file: _Placing, after: bytes) -> syntax.Verdict:
        if file.language == "python":
            return syntax.check_python(file.bytes, after, file.path, python_source.LANGUAGE)
        recorder = {cpp_source.RECORDER: self.recorder("c++", {})}
        path = self.checkout.root / file.path
        return syntax.check_cpp(
            file.bytes, after, path, cpp_source.LANGUAGE, recorder, self.cxxflags
        )

    # --- recorders ------------------------------------------------------------------------------

    def recorders(self, touched: Sequence[Touched]) -> dict[str, bytes]:
        """A recorder beside each file that changes, of its language; each lists all checks that
        the copy makes in that language."""
        names = {"python": python_source.RECORDER, "c++": cpp_source.RECORDER}
        keys: dict[str, dict[str, Check]] = {"python": {}, "c++": {}}
        by_key = {check.key: check for check in self.checks}
        for file in touched:
            language = self.files[file.path].language
            keys[language] |= {key: by_key[key] for key in file.keys}
        texts = {language: self.recorder(language, keys[language]) for language in names}
        found = {}
        for file in touched:
            language = self.files[file.path].language
            path = posixpath.join(posixpath.dirname(file.path), names[language])
            ours = path in self.checkout.manifest.recorders
            if not ours and (self.checkout.root / path).exists():
                raise InstrumentError(f"{path} is in the checkout, where the recorder would be")
            found[path] = texts[language]
        return found

    def recorder(self, language: str, checks: Mapping[str, Check]) -> bytes:
        if language == "python":
            described = {
                key: [check.text, self.names(check)] for key, check in sorted(checks.items())
            }
            text = _template("monitor.py")
            for line, value in ((_CHECKS, described), (_LAZY, list(self.lazy))):
                declared = line.partition(" = ")[0]
                assert text.count(f"\n{line}\n") == 1, f"the recorder has no line {line}"
                text = text.replace(f"\n{line}\n", f"\n{declared} = {json.dumps(value)}\n")
            return text.encode()
        listed = "".join(f"{json.dumps(key)}, " for key in sorted(checks))
        return _template("monitor.hpp").replace("/*CHECKS*/ ", listed).encode()

    def names(self, check: Check) -> list[str]:
        """The expressions that a check reads, in the order in which the recorder sees them."""
        condition = python_source.PythonWriter(self.device, self.may_call).condition(
            check.condition
        )
        return [
            f"before {value}" if name in condition.before else value
            for value, name in condition.pairs
        ]


@cache
def _template(name: str) -> str:
    return (Path(__file__).parent / "recorder" / name).read_text(encoding="utf-8")


def kinds(refused: Iterable[Refusal]) -> Counter[str]:
    """How often checks were refused for each kind of reason: what is quoted in it, and what it
    adds in parentheses or behind a colon, left out."""
    return Counter(
        re.split(r" \(|: ", _QUOTED.sub("`…`", each.reason), maxsplit=1)[0] for each in refused
    )


def report(made: Plan) -> dict[str, Any]:
    """The plan as JSON-able data."""
    return {
        "checks": len(made.checks),
        "placed": {key: [str(site) for site in sites] for key, sites in made.placed.items()},
        "files": [
            {"path": file.path, "checks": list(file.keys), "verified_by": file.verified}
            for file in made.touched
        ],
        "recorders": sorted(made.recorders),
        "not_placed": [
            {
                "check": refusal.check.key,
                "site": None if refusal.site is None else str(refusal.site),
                "reason": refusal.reason,
                "rule": str(refusal.check.span),
            }
            for refusal in made.refused
        ],
    }
