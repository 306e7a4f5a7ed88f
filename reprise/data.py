"""Where the data that ships with Reprise lies: ``rules/``, ``grammars/`` and ``extractors/``.

In a wheel these folders are inside the package, as ``reprise/_data/``; in a source checkout they
stand beside it. Everything that reads one of their files asks :func:`data_path`.
"""

from __future__ import annotations

from pathlib import Path

DATA_FOLDERS = ("rules", "grammars", "extractors")


def data_root() -> Path:
    """The folder that holds :data:`DATA_FOLDERS`."""
    package = Path(__file__).resolve().parent
    packed = package / "_data"
    return packed if packed.is_dir() else package.parent


def data_path(relative: str) -> Path:
    """The path of a shipped file or folder, such as ``grammars/rules.lark``.

    Raises:
        FileNotFoundError: there is no such file, or it lies outside the data folders.
    """
    parts = Path(relative).parts
    if not parts or parts[0] not in DATA_FOLDERS or ".." in parts:
        raise FileNotFoundError(f"{relative!r} is not in one of {', '.join(DATA_FOLDERS)}")
    path = data_root().joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(f"no data file {relative!r} under {data_root()}")
    return path
