"""``reprise mine source``: a checkout and an extractor in, rules and a summary out.

File by file, with what earlier runs kept (``kept``): a second run reads only what has changed, and
a run that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reprise.lang.display import printable
from reprise.mining.source.derive import Derived, derive, given
from reprise.mining.source.extractor import Extractor
from reprise.mining.source.facts import FileFacts
from reprise.mining.source.files import MOST_BYTES, Skipped, Source, decoded, sources
from reprise.mining.source.fitting import HARDLY, Fit, better
from reprise.mining.source.kept import Kept
from reprise.mining.source.missing import Names, names_in, searched_for, unseen
from reprise.mining.source.write import written

if TYPE_CHECKING:
    from reprise.mining.source.sites import Miner

_SAVE_EVERY = 2.0
"""Seconds of work that are lost at most when the process is killed."""

Progress = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""Called with the number of files; while entered, told how many are done."""


@dataclass(frozen=True, slots=True)
class Read:
    """How large a file is, how many of its places do not parse, and how many sites were left."""

    lines: int
    errors: int
    left: int = 0


@dataclass(frozen=True)
class Mined:
    """``text``: the ``.rules`` file. ``files``: what was read, by path. ``missing``: keywords that
    occur nowhere, with names in the checkout that are like them. ``better``: where hardly any
    keyword occurs, a shipped extractor that fits. ``parsed``: files read now."""

    text: str
    derived: Derived
    files: Mapping[str, Read]
    missing: Mapping[str, Sequence[str]]
    better: Fit | None = None
    skipped: tuple[Skipped, ...] = ()
    seconds: float = 0.0
    parsed: int = 0


def mine(
    checkout: Path,
    extractor: Extractor,
    *,
    commit: str | None = None,
    hardware: Sequence[Path] = (),
    docs: Sequence[Path] = (),
    most_bytes: int = MOST_BYTES,
    progress: Progress | None = None,
) -> Mined:
    """Mine a checkout.

    Raises RulesError: a query, the rules, or a file of ``hardware`` or ``docs`` is wrong. What was
    read so far is kept if this is interrupted.
    """
    started = time.perf_counter()
    listed, skipped = sources(checkout, extractor, most_bytes)
    digests, unreadable = _digests(listed)
    listed = [source for source in listed if source.path in digests]
    commit = commit or checkout_commit(checkout)
    known = given(hardware, docs)
    kept = Kept(checkout, extractor)
    key = kept.key(digests, checkout.resolve().name, commit, known.facts)
    found: Mined | None = kept.result(key)
    parsed = 0
    if found is None:
        with progress(len(listed)) if progress is not None else nullcontext(_silent) as tell:
            read = _facts(listed, digests, extractor, kept, tell)
        parsed = read.parsed
        unreadable += read.unreadable
        derived = derive(read.files, extractor, known)
        about = f"Mined from {checkout.resolve().name} with the extractor {extractor.name}."
        text = written(derived, extractor, commit, printable(about))
        sizes = {
            path: Read(facts.lines, facts.errors, facts.left) for path, facts in read.files.items()
        }
        missing = _missing(extractor, read.files, listed)
        fit = better(checkout, extractor) if _fits_badly(extractor, missing, sizes) else None
        found = Mined(text, derived, sizes, missing, fit)
        if read.digests == digests:  # else files were changed meanwhile
            kept.keep_result(key, found)
    seconds = time.perf_counter() - started
    return replace(found, skipped=(*skipped, *unreadable), seconds=seconds, parsed=parsed)


def checkout_commit(checkout: Path) -> str | None:
    """The commit of a git work tree, if the checkout is one."""
    with suppress(OSError, subprocess.SubprocessError):
        run = subprocess.run(
            ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        if run.returncode == 0:
            return run.stdout.strip()
    return None


@dataclass(frozen=True)
class _Facts:
    """The facts of files and the digests of what they are from, by path; which files could not be
    read after all; how many had to be parsed."""

    files: dict[str, FileFacts]
    digests: dict[str, str]
    unreadable: list[Skipped]
    parsed: int


def _digests(listed: Sequence[Source]) -> tuple[dict[str, str], list[Skipped]]:
    """The content of every file, in short; and files that cannot be read."""
    digests: dict[str, str] = {}
    unreadable: list[Skipped] = []
    for source in listed:
        data = _content(source, unreadable)
        if data is not None:
            digests[source.path] = _digest(data)
    return digests, unreadable


def _digest(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def _content(source: Source, unreadable: list[Skipped]) -> bytes | None:
    """What is in a file, or None, and why, in ``unreadable``."""
    try:
        return Path(source.absolute).read_bytes()
    except OSError as error:
        unreadable.append(Skipped(source.path, error.strerror or "cannot be read"))
        return None


def _facts(
    listed: Sequence[Source],
    digests: Mapping[str, str],
    extractor: Extractor,
    kept: Kept,
    tell: Callable[[int], None],
) -> _Facts:
    """The facts of all files that can be read."""
    before = kept.facts()
    now: dict[str, tuple[str, FileFacts]] = {}
    unreadable: list[Skipped] = []
    miners: dict[str, Miner] = {}
    parsed = 0
    saved = time.monotonic()
    try:
        for done, source in enumerate(listed):
            known = before.get(source.path)
            if known is not None and known[0] == digests[source.path]:
                now[source.path] = known
                continue
            data = _content(source, unreadable)
            if data is None:
                continue
            if source.language not in miners:
                from reprise.mining.source.sites import Miner

                miners[source.language] = Miner(extractor, source.language)
            facts = miners[source.language].facts(source.path, decoded(data))
            now[source.path] = _digest(data), facts
            parsed += 1
            tell(done + 1)
            if time.monotonic() - saved > _SAVE_EVERY:
                kept.keep_facts({**before, **now})
                saved = time.monotonic()
    except BaseException:
        kept.keep_facts({**before, **now})
        raise
    if parsed or len(now) != len(before):
        kept.keep_facts(now)
    return _Facts(
        {path: facts for path, (_, facts) in now.items()},
        {path: digest for path, (digest, _) in now.items()},
        unreadable,
        parsed,
    )


def _silent(done: int) -> None:
    """Where nobody asks for progress."""


def _fits_badly(
    extractor: Extractor, missing: Mapping[str, object], files: Mapping[str, object]
) -> bool:
    """Whether there is no file that the extractor asks for, or hardly any of its keywords."""
    return not files or len(missing) >= HARDLY * max(len(searched_for(extractor)), 1)


def _missing(
    extractor: Extractor, files: Mapping[str, FileFacts], listed: Sequence[Source]
) -> dict[str, Sequence[str]]:
    keywords = unseen(extractor, files)
    if not keywords or not files:
        return {}
    texts = (data for source in listed if (data := _content(source, [])) is not None)
    names = Names(names_in(texts))
    return {keyword: names.near(keyword) for keyword in keywords}
