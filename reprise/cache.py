"""Where derived data is kept between runs, and how it is written there.

A cache never changes what a command does: whatever cannot be read or written is computed again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/reprise``, else ``~/.cache/reprise``; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path(os.path.expanduser("~"), ".cache")
    return root / "reprise"


@contextmanager
def naming(path: object) -> Iterator[None]:
    """Let an OSError that names no file, as writing to a full disk raises, name ``path``."""
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that readers see all of it or nothing.

    Raises OSError; then, and if it is interrupted, the file is as it was.
    """
    # Not by tempfile, which takes as long to import as all the rest.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_cache(path: Path, data: bytes, most: int | None = None, prefix: str = "") -> None:
    """Store ``data`` so that readers see all of it or nothing; a failure is no error.

    With ``most``, only so many files whose names start with ``prefix`` stay in the folder: those
    written last.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):
            write_whole(path, data)
        if most is not None:
            _thin_out(path.parent, most, prefix)
    except OSError:
        return


def _thin_out(folder: Path, most: int, prefix: str) -> None:
    files = [entry for entry in os.scandir(folder) if entry.name.startswith(prefix)]
    if len(files) > most:
        files.sort(key=lambda entry: entry.stat().st_mtime_ns)
        for entry in files[: len(files) - most]:
            Path(entry.path).unlink(missing_ok=True)
