"""Where derived data is kept between runs, and how it is written there.

A cache never changes what a command does: whatever cannot be read or written is computed again.
"""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/reprise``, else ``~/.cache/reprise``; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path(os.path.expanduser("~"), ".cache")
    return root / "reprise"


def write_cache(path: Path, data: bytes) -> None:
    """Store ``data`` so that readers see all of it or nothing; a failure is no error."""
    import tempfile  # here, for it takes as long to import as all the rest

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
    except OSError:
        return
