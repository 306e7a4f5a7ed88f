"""The type of arguments that name a file of operator signatures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

_MAKE = "`reprise mine docs --out DIR` writes DIR/signatures.rules"
_COMPLETE = "`reprise mine signatures` completes them"
_DECLARES = re.compile(r"^[ \t]*op[ \t]+\w", re.MULTILINE)


class SignatureFile(click.Path):
    """A rule file that declares operators. What is missing or of another kind is refused with a
    word on where such files come from."""

    def __init__(self, *, as_text: bool = False) -> None:
        """``as_text``: the whole path as a text, which the record of a run can hold."""
        kind = str if as_text else Path
        super().__init__(exists=True, dir_okay=False, path_type=kind, resolve_path=as_text)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(value)
        if path.is_dir():
            inside = path / "signatures.rules"
            hint = f"give {inside}" if inside.is_file() else f"give a file in it: {_MAKE}"
            self.fail(f"{path} is a folder; {hint}", param, ctx)
        if not path.exists():
            self.fail(f"there is no file {path}; {_MAKE}, {_COMPLETE}", param, ctx)
        converted = super().convert(value, param, ctx)
        if path.suffix != ".rules":
            self.fail(f"{path} is no rule file; {_MAKE}", param, ctx)
        text = path.read_text(encoding="utf-8", errors="replace")
        if not _DECLARES.search(text):
            self.fail(f"{path} declares no operators; {_MAKE}, {_COMPLETE}", param, ctx)
        return converted
