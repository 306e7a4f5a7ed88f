"""A copy of a checkout, and its manifest: which files have insertions, and where.

The manifest makes the copy known as ours, so that it may be written again, and says how to take
the insertions back, so that instrumenting a copy starts from the original's bytes. Only files
whose bytes differ are written: what was built in the copy stays up to date.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reprise.cache import write_whole
from reprise.mining.instrument.edits import remove
from reprise.mining.instrument.errors import InstrumentError

MANIFEST = ".reprise-instrument.json"
_VERSION = 1
_LEFT_OUT = frozenset({".git"})
"""History is no source, and the ``.git`` of a linked work tree leads git to the original's."""


@dataclass(frozen=True)
class Manifest:
    """``files``: of each file with insertions, the hash of its bytes and where the insertions are;
    ``recorders``: files that were added; ``checks``: what each check's key stands for."""

    files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    recorders: tuple[str, ...] = ()
    checks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def text(self) -> str:
        """As the file holds it."""
        content = {
            "version": _VERSION,
            "files": dict(self.files),
            "recorders": list(self.recorders),
            "checks": dict(self.checks),
        }
        return json.dumps(content, indent=1, sort_keys=True) + "\n"


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of an instrumented copy; None for any other folder. Raises InstrumentError for
    one that cannot be read."""
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        content = json.loads(text)
        if content["version"] != _VERSION:
            raise InstrumentError(f"{folder}: instrumented by another version: delete the copy")
        found = Manifest(content["files"], tuple(content["recorders"]), content["checks"])
        for name in (*found.files, *found.recorders):  # recorders may be deleted
            if name.startswith("/") or ".." in name.split("/"):
                raise ValueError(f"`{name}` is outside of the copy")
        return found
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InstrumentError(f"{folder / MANIFEST} is damaged: {error}") from error


def digest(data: bytes) -> str:
    """What the manifest knows a file's bytes by."""
    return hashlib.sha256(data).hexdigest()


class Checkout:
    """The sources as they were before any instrumenting; never written to."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InstrumentError(f"{root} is no folder")
        self.root = root
        self.manifest = read_manifest(root) or Manifest()

    def read(self, relative: str) -> bytes:
        """A file's original bytes. Raises OSError, and InstrumentError for an instrumented file
        that was changed since."""
        data = (self.root / relative).read_bytes()
        entry = self.manifest.files.get(relative)
        if entry is None:
            return data
        if digest(data) != entry["sha256"]:
            raise InstrumentError(
                f"{self.root / relative} has changed since it was instrumented: "
                "instrument the original instead"
            )
        return remove(data, [(offset, length) for offset, length in entry["insertions"]])

    def entries(self) -> Iterator[os.DirEntry[str]]:
        """Files, links and folders, folders before what they hold; links are not followed."""
        waiting = [str(self.root)]
        while waiting:
            with os.scandir(waiting.pop()) as folder:
                found = sorted(folder, key=lambda entry: entry.name)
            for entry in found:
                if entry.name in _LEFT_OUT or self.added(self.relative(entry.path)):
                    continue
                yield entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)

    def added(self, relative: str) -> bool:
        """Whether instrumenting put the file there."""
        return relative == MANIFEST or relative in self.manifest.recorders

    def relative(self, path: str) -> str:
        """A path below the root, with forward slashes."""
        return os.path.relpath(path, self.root).replace(os.sep, "/")


def check_place(checkout: Path, copy: Path) -> None:
    """Raise InstrumentError where a copy must not be made."""
    inside, outside = copy.resolve(), checkout.resolve()
    if inside == outside:
        raise InstrumentError(f"{copy} is the checkout itself, which stays as it is")
    if outside in inside.parents:
        raise InstrumentError(f"{copy} is inside {checkout}: the copy would hold itself")
    if inside in outside.parents:
        raise InstrumentError(f"{checkout} is inside {copy}: the copy would overwrite it")
    if copy.exists() and not copy.is_dir():
        raise InstrumentError(f"{copy} is a file")
    if copy.is_dir() and any(copy.iterdir()) and read_manifest(copy) is None:
        raise InstrumentError(f"{copy} is not empty, and no copy that `reprise instrument` made")


def write_copy(
    checkout: Checkout,
    copy: Path,
    written: Mapping[str, bytes],
    manifest: Manifest,
    watch: Callable[[int], None] = lambda files: None,
) -> list[str]:
    """Make or renew the copy: ``written`` files with these bytes, all others as in the checkout.
    Returns what could not be copied, with the reason. ``watch`` is told the number of files.
    Raises InstrumentError where the disk is full: what was copied stays, and the next run goes
    on from there."""
    before = read_manifest(copy) or Manifest()
    copy.mkdir(parents=True, exist_ok=True)
    # First, so that a copy that was interrupted is still known as ours.
    _write_manifest(copy, Manifest(recorders=before.recorders))
    for relative in set(before.recorders) - set(manifest.recorders):
        (copy / relative).unlink(missing_ok=True)
    failures = []
    for files, entry in enumerate(checkout.entries(), 1):
        relative = checkout.relative(entry.path)
        try:
            with _room(copy, relative):
                if relative in written:
                    _write(copy / relative, written[relative], Path(entry.path))
                else:
                    _take(checkout, relative, entry, copy)
        except OSError as error:
            failures.append(f"{relative}: {error.strerror or error}")
        watch(files)
    for relative in manifest.recorders:
        with _room(copy, relative):
            _write(copy / relative, written[relative], None)
    _write_manifest(copy, manifest)
    return failures


def _write_manifest(copy: Path, manifest: Manifest) -> None:
    """All of it or nothing: half of one would make the copy nobody's."""
    with _room(copy, MANIFEST):
        write_whole(copy / MANIFEST, manifest.text().encode())


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextlib.contextmanager
def _room(copy: Path, relative: str) -> Iterator[None]:
    """Where there is no room for a file, no more of them is tried: half a file does not stay."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        if relative != MANIFEST and (copy / relative).is_file():
            (copy / relative).unlink()
        reason = (error.strerror or str(error)).lower()
        raise InstrumentError(
            f"cannot write {copy / relative}: {reason}. The copy in {copy} is not whole: make room "
            "and run this again, which goes on from there, or delete it"
        ) from error


def _take(checkout: Checkout, relative: str, entry: os.DirEntry[str], copy: Path) -> None:
    """One entry as it is in the checkout."""
    to = copy / relative
    if entry.is_symlink():
        link = _link(entry.path, checkout.root, copy)
        if not (to.is_symlink() and os.readlink(to) == link):
            if to.is_symlink() or to.is_file():
                to.unlink()
            to.symlink_to(link)
    elif entry.is_dir():
        if to.is_symlink() or to.is_file():  # what is written below stays within the copy
            to.unlink()
        to.mkdir(exist_ok=True)
    elif not entry.is_file():
        raise OSError(None, "no file, link or folder: left out")
    elif relative in checkout.manifest.files:
        _write(to, checkout.read(relative), Path(entry.path))
    elif not _same(entry, to):
        _clone(entry.path, to)


def _link(path: str, root: Path, copy: Path) -> str:
    """Where a link of the copy leads: an absolute one into the checkout, to the copy instead."""
    target = os.readlink(path)
    for start in {str(root), str(root.resolve())}:
        if target == start or target.startswith(start + os.sep):
            return str(copy.resolve()) + target[len(start) :]
    return target


def _same(entry: os.DirEntry[str], to: Path) -> bool:
    """Whether a file was copied and neither has changed: by size and time, as copies keep it."""
    if to.is_symlink() or not to.is_file():
        return False
    ours, theirs = to.stat(), entry.stat(follow_symlinks=False)
    return ours.st_size == theirs.st_size and ours.st_mtime_ns == theirs.st_mtime_ns


def _write(to: Path, data: bytes, like: Path | None) -> None:
    if to.is_symlink():
        to.unlink()
    if not (to.is_file() and to.read_bytes() == data):
        to.unlink(missing_ok=True)
        to.write_bytes(data)
    if like is not None:
        shutil.copymode(like, to)


_FICLONE = 0x40049409


def _clone(path: str, to: Path) -> None:
    """Copy a file with its times and mode, sharing its blocks where the file system can."""
    if to.is_symlink() or to.is_file():
        to.unlink()
    if os.name == "posix":
        import fcntl

        with open(path, "rb") as source, open(to, "wb") as target:
            try:
                fcntl.ioctl(target.fileno(), _FICLONE, source.fileno())
            except OSError:
                pass
            else:
                shutil.copystat(path, to)
                return
    shutil.copy2(path, to)
