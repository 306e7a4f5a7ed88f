"""How values that are still expressions when a monitor sees them become known: data about a
compiler's classes, for the recorder.

A file holds tables ``[[lazy]]`` with ``class`` (``module.Class``) and either ``concrete`` and
``same`` or ``attribute``. ``concrete``: the method that gives an object's number; when the compiler
calls it, the recorder sees what it returns. ``same``: a path of attributes; objects in which it is
equal stand for the same number. ``attribute``: where the number is once it is known.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from reprise.mining.instrument.errors import InstrumentError

_FORMS = ({"class", "concrete", "same"}, {"class", "attribute"})


def read_lazy(paths: Iterable[Path]) -> list[dict[str, str]]:
    """The tables of all files, in order. Raises InstrumentError."""
    found: list[dict[str, str]] = []
    for path in paths:
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InstrumentError(f"{path}: {error}") from error
        for entry in content.get("lazy", []):
            if set(entry) not in _FORMS or not all(isinstance(v, str) for v in entry.values()):
                raise InstrumentError(
                    f"{path}: a [[lazy]] table has class, concrete and same, or class and attribute"
                )
            found.append(dict(entry))
    return found
