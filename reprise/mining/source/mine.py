"""``reprise mine source``: a checkout and an extractor in, rules and a summary out.

File by file, with a cache: facts are kept by the file's content and by what the extractor asks
for, so that a second run reads only what has changed, and a run that was stopped goes on where it
was."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from reprise.cache import cache_folder, write_cache
from reprise.mining.source.derive import Derived, derive, given
from reprise.mining.source.extractor import Extractor
from reprise.mining.source.files import MOST_BYTES, Skipped, Source, decoded, sources
from reprise.mining.source.missing import names_in, near, unseen
from reprise.mining.source.sites import FileFacts, Miner
from reprise.mining.source.write import written

_SAVE_EVERY = 2.0
"""Seconds of work that are lost at most when the process is killed."""

Progress = Callable[[int], AbstractContextManager[Callable[[int], None]]]
"""Called with the number of files; while entered, told how many are done."""


@dataclass(frozen=True)
class Mined:
    """``text``: the ``.rules`` file. ``files``: what was read, by path. ``missing``: keywords that
    occur nowhere, with names in the checkout that are like them."""

    text: str
    derived: Derived
    files: Mapping[str, FileFacts]
    skipped: tuple[Skipped, ...]
    missing: Mapping[str, Sequence[str]]
    seconds: float
    parsed: int


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
    known = given(hardware, docs)
    listed, skipped = sources(checkout, extractor, most_bytes)
    reader = _FactReader(checkout, extractor)
    with progress(len(listed)) if progress is not None else nullcontext(_silent) as tell:
        files, unreadable = reader.read(listed, tell)
    derived = derive(files, extractor, known)
    about = f"Mined from {checkout.resolve().name} with the extractor {extractor.name}."
    text = written(derived, extractor, commit or checkout_commit(checkout), about)
    return Mined(
        text,
        derived,
        files,
        (*skipped, *unreadable),
        _missing(extractor, files, listed),
        time.perf_counter() - started,
        reader.parsed,
    )


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


class _FactReader:
    """Facts of files, from the cache or from the sources."""

    def __init__(self, checkout: Path, extractor: Extractor) -> None:
        self.extractor = extractor
        name = hashlib.sha256(str(checkout.resolve()).encode()).hexdigest()[:16]
        self.cache = cache_folder() / f"mine-{extractor.name}-{name}.pickle"
        self.digest = f"{_code_digest()} {extractor.digest}"
        self.parsed = 0

    def read(
        self, listed: Sequence[Source], tell: Callable[[int], None]
    ) -> tuple[dict[str, FileFacts], list[Skipped]]:
        kept = self._kept()
        fresh: dict[str, tuple[str, FileFacts]] = {}
        skipped: list[Skipped] = []
        miners: dict[str, Miner] = {}
        saved = time.monotonic()
        try:
            for done, source in enumerate(listed):
                try:
                    data = Path(source.absolute).read_bytes()
                except OSError as error:
                    skipped.append(Skipped(source.path, error.strerror or "cannot be read"))
                    continue
                digest = hashlib.sha1(data, usedforsecurity=False).hexdigest()
                known = kept.get(source.path)
                if known is not None and known[0] == digest:
                    fresh[source.path] = known
                    continue
                if source.language not in miners:
                    miners[source.language] = Miner(self.extractor, source.language)
                facts = miners[source.language].facts(source.path, decoded(data))
                fresh[source.path] = digest, facts
                self.parsed += 1
                tell(done + 1)
                if time.monotonic() - saved > _SAVE_EVERY:
                    self._keep({**kept, **fresh})
                    saved = time.monotonic()
        except BaseException:
            self._keep({**kept, **fresh})
            raise
        if self.parsed or len(fresh) != len(kept):
            self._keep(fresh)
        return {path: facts for path, (_, facts) in fresh.items()}, skipped

    def _kept(self) -> dict[str, tuple[str, FileFacts]]:
        try:
            digest, files = pickle.loads(self.cache.read_bytes())
        except Exception:  # a cache that cannot be read is none
            return {}
        return files if digest == self.digest else {}

    def _keep(self, files: Mapping[str, tuple[str, FileFacts]]) -> None:
        write_cache(self.cache, pickle.dumps((self.digest, dict(files)), 5))


def _code_digest() -> str:
    """Changes with this package: what a file gives may change with it."""
    hashed = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()


def _silent(done: int) -> None:
    """Where nobody asks for progress."""


def _missing(
    extractor: Extractor, files: Mapping[str, FileFacts], listed: Sequence[Source]
) -> dict[str, Sequence[str]]:
    keywords = unseen(extractor, files)
    if not keywords or not files:
        return {}
    texts = (Path(s.absolute).read_bytes() for s in listed if s.path in files)
    names = names_in(texts)
    return {keyword: near(keyword, names) for keyword in keywords}
