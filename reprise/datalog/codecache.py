"""Compiled Python code by source text: what makes the second database with some rules cheap.

Within a process the cache is shared by all databases. With a directory, code is also kept on
disk, marshalled, under a name made of the source's hash and the interpreter's version. Invariant:
an entry is used only for exactly the source that it was compiled from, so stale entries are
impossible and files may be deleted at any time.
"""

from __future__ import annotations

import marshal
import os
import sys
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_MEMORY: dict[str, CodeType] = {}
_LIMIT = 20_000


def compiled(source: str, label: str, directory: Path | None) -> CodeType:
    """The module code of ``source``; ``label`` names it in tracebacks."""
    code = _MEMORY.get(source)
    if code is not None:
        return code
    path = None if directory is None else directory / _file_name(source)
    code = None if path is None else _read(path)
    if code is None:
        code = compile(source, f"<rules {label}>", "exec", dont_inherit=True)
        if path is not None:
            _write(path, code)
    if len(_MEMORY) >= _LIMIT:
        _MEMORY.clear()
    _MEMORY[source] = code
    return code


def _file_name(source: str) -> str:
    from hashlib import sha256  # Not needed by a cache in memory.

    digest = sha256(source.encode()).hexdigest()[:32]
    return f"{digest}.{sys.implementation.cache_tag}.{sys.hexversion:x}"


def _read(path: Path) -> CodeType | None:
    """The code in a cache file; an unreadable or damaged one counts as absent."""
    try:
        loaded = marshal.loads(path.read_bytes())
    except (OSError, ValueError, EOFError, TypeError):
        return None
    return loaded if isinstance(loaded, CodeType) else None


def _write(path: Path, code: CodeType) -> None:
    """Store code so that a concurrent reader sees all of it or nothing; failure does no harm."""
    temporary = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(marshal.dumps(code))
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
