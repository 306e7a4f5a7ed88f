"""Compiled Python code by source text: what makes the second database with some rules cheap.

The cache is shared by all databases of the process. Invariant: an entry is used only for exactly
the source that it was compiled from.
"""

from __future__ import annotations

from types import CodeType

_MEMORY: dict[str, CodeType] = {}
_LIMIT = 20_000


def compiled(source: str, label: str) -> CodeType:
    """The module code of ``source``; ``label`` names it in tracebacks."""
    code = _MEMORY.get(source)
    if code is None:
        code = compile(source, f"<rules {label}>", "exec", dont_inherit=True)
        if len(_MEMORY) >= _LIMIT:
            _MEMORY.clear()
        _MEMORY[source] = code
    return code


def forget() -> None:
    """Drop all entries, as if the process were new."""
    _MEMORY.clear()
