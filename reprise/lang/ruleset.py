"""A checked set of rules, and loading one: from paths, or from the cache of an earlier load.

A RuleSet has resolved names, typed and safe rules, and a stratified program. What only authors of
rules need (syntax trees, names, tests) is its :attr:`RuleSet.syntax`, loaded when first asked for:
checking a model does without the parser. The table of names alone, which operators' signatures
come from, is kept with the set.
"""

from __future__ import annotations

import gc
import hashlib
import pickle
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reprise import __version__
from reprise.cache import cache_folder, write_cache
from reprise.data import data_path
from reprise.lang import core
from reprise.lang.declared import Constraint, Deny, Monitor, Pattern
from reprise.lang.diagnostics import Diagnostic
from reprise.lang.source import files_below

if TYPE_CHECKING:
    from reprise.lang import ast
    from reprise.lang.symbols import NamedSet, Symbols

LIBRARY = ("std", "ops")
"""Folders of the rule library that every rule may use without importing them."""
_PREFIX = "rules-"
_MOST_KEPT = 100
"""Sets of rules that the cache keeps; the one written longest ago makes room. One takes about
1 MB."""


@dataclass(frozen=True)
class Syntax:
    """The files as written: their trees, the table of names, and the tests."""

    files: tuple[ast.RuleFile, ...]
    symbols: Symbols
    tests: tuple[ast.TestDecl, ...]


@dataclass(frozen=True)
class RuleSet:
    """Checked rules. ``program`` is everything lowered; the rest is for people and tools.

    ``own`` holds the paths of the files that were asked for (not the library, not imports);
    ``sources`` the text of every file by path; ``names``, in a set from the cache, the pickled
    table of names.
    """

    sources: dict[str, str]
    program: core.Program
    patterns: dict[str, Pattern] = field(default_factory=dict)
    constraints: dict[str, Constraint] = field(default_factory=dict)
    denies: dict[str, tuple[Deny, ...]] = field(default_factory=dict)
    monitors: dict[str, Monitor] = field(default_factory=dict)
    warnings: tuple[Diagnostic, ...] = ()
    own: frozenset[str] = frozenset()
    loaded: Syntax | None = None
    names: bytes = field(default=b"", repr=False)
    request: tuple[tuple[Path, ...], bool] = ((), True)

    @cached_property
    def syntax(self) -> Syntax:
        """Trees, names and tests; read from the files again if this set came from the cache."""
        if self.loaded is not None:
            return self.loaded
        fresh = _load(*self.request).loaded
        assert fresh is not None
        return fresh

    @property
    def files(self) -> tuple[ast.RuleFile, ...]:
        """The syntax trees of all files."""
        return self.syntax.files

    @cached_property
    def symbols(self) -> Symbols:
        """The table of global names."""
        if self.loaded is None and self.names:
            kept: Symbols = pickle.loads(self.names)
            return kept
        return self.syntax.symbols

    @property
    def tests(self) -> tuple[ast.TestDecl, ...]:
        """The test blocks of all files."""
        return self.syntax.tests

    @property
    def ops(self) -> dict[str, ast.OpDecl]:
        """Operator signatures by name."""
        return {name: op.decl for name, op in self.symbols.operators.items()}

    @property
    def sets(self) -> dict[str, NamedSet]:
        """Named sets."""
        return self.symbols.sets


def rule_files(paths: Iterable[Path]) -> list[Path]:
    """The ``.rules`` files that ``paths`` name: files as they are, folders searched, in order.

    Raises RulesError for a folder that cannot be read.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += files_below(path, ".rules")
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def load_rules(paths: Sequence[Path], *, library: bool = True) -> RuleSet:
    """Load rule files and folders, with what they import and (``library``) the shipped library.

    Raises RulesError with every diagnostic, errors and warnings, in source order. A set that
    loaded before and whose files have not changed comes from the cache.
    """
    request = (tuple(paths), library)
    cache = cache_folder() / f"{_PREFIX}{_request_hash(request)}.pickle"
    kept = _read_cache(cache, request)
    if kept is not None:
        return kept
    requested = _requested(request)  # before: a file that appears meanwhile is not in the set
    rules = _load(*request)
    bare = RuleSet(
        rules.sources,
        rules.program,
        rules.patterns,
        rules.constraints,
        rules.denies,
        rules.monitors,
        rules.warnings,
        rules.own,
        names=pickle.dumps(rules.symbols, 5),
        request=request,
    )
    manifest = {path: _text_hash(text) for path, text in rules.sources.items()}
    write_cache(cache, pickle.dumps((requested, manifest, bare), 5), _MOST_KEPT, _PREFIX)
    return rules


def load_text(text: str, path: str = "<text>", *, library: bool = True) -> RuleSet:
    """Load rules from a string, as :func:`load_rules` does from files."""
    from reprise.lang.loading import Loader

    loader = Loader()
    loader.add_text(text, path)
    for file in library_files() if library else ():
        loader.load(file)
    return loader.finish()


def _load(paths: tuple[Path, ...], library: bool) -> RuleSet:
    from reprise.lang.loading import Loader

    loader = Loader()
    with _without_collection():
        for path in rule_files(paths):
            loader.load(path, own=True)
        for path in library_files() if library else ():
            loader.load(path)
        return loader.finish()


@contextmanager
def _without_collection() -> Iterator[None]:
    """Trees and rules have no cycles and are kept: looking for garbage among them doubles the time
    that a large file takes."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def library_files() -> list[Path]:
    """The files of the library that every rule may use."""
    return rule_files(data_path(f"rules/{folder}") for folder in LIBRARY)


def _requested(request: tuple[tuple[Path, ...], bool]) -> list[str]:
    """All files that the request names now: a new file in a folder makes the cache stale."""
    paths, library = request
    return [str(p) for p in (*rule_files(paths), *(library_files() if library else ()))]


def _request_hash(request: tuple[tuple[Path, ...], bool]) -> str:
    """Names a cache entry: what was asked, from where, of which code and interpreter."""
    code = max(p.stat().st_mtime_ns for p in Path(__file__).parent.rglob("*.py"))
    paths = [str(p) for p in request[0]]
    parts = repr((paths, request[1], str(Path.cwd()), __version__, sys.version, code))
    return hashlib.sha256(parts.encode()).hexdigest()[:24]


def _text_hash(text: str) -> str:
    """The hash of the file that had this text when it was read."""
    return hashlib.sha256(text.encode()).hexdigest()


def _file_hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def _read_cache(cache: Path, request: tuple[tuple[Path, ...], bool]) -> RuleSet | None:
    """The kept set, if it is whole and every file is as it was."""
    try:
        data: Any = pickle.loads(cache.read_bytes())
        requested, manifest, rules = data
        if requested != _requested(request):
            return None
        if any(_file_hash(Path(path)) != digest for path, digest in manifest.items()):
            return None
        return rules if isinstance(rules, RuleSet) else None
    except Exception:  # a damaged entry may fail in any way; it only means "load again"
        return None
