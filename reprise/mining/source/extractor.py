"""An extractor: what to look for in one compiler's sources. Data, read from ``extractors/NAME/``.

``extractor.toml`` holds the paper's ``Ext…`` non-terminals as sets of names; files ending in
``.scm`` beside it are queries of the extractor's own. The format is described in
``docs/mining-source.md``."""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reprise.data import data_path, data_root
from reprise.lang.diagnostics import Diagnostic, RulesError, Span
from reprise.lang.display import printable
from reprise.lang.ruleset import load_text
from reprise.lang.source import read_source
from reprise.lang.symbols import suggest

FILE = "extractor.toml"
COMMON = "_common"
"""The folder of the queries that all extractors share."""

MOST_NAMES = 1000
"""In one keyword set; every call in a checkout is held against them."""

LANGUAGES = ("python", "cpp")
PASSES = ("function", "class", "file")
"""What names the pass that a site belongs to: the outermost function or class, or the file."""

_KEYS = (
    "target",
    "languages",
    "include",
    "exclude",
    "pass",
    "keywords",
    "values",
    "device",
    "operators",
)
_SUFFIXES = ("_EQ", "_NE", "_LT", "_LE", "_GT", "_GE")


@dataclass(frozen=True)
class Extractor:
    """``keywords``: names by the set that they are in. ``values``: what else a call of a function
    says, by the function and the role, as source text in which ``{0}`` is an argument.
    ``device``: what a variable's name stands for, as an expression of the rule language.
    ``operators``: names of operators as the compiler spells them, and ours. ``queries``: the
    extractor's own, by language."""

    name: str
    target: str
    languages: tuple[str, ...]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    pass_named_by: str
    keywords: Mapping[str, tuple[str, ...]]
    values: Mapping[str, Mapping[str, str]]
    device: Mapping[str, str]
    operators: Mapping[str, str]
    queries: Mapping[str, tuple[Path, ...]]
    path: Path

    @cached_property
    def digest(self) -> str:
        """Changes whenever what is found in a file may change."""
        hashed = hashlib.sha256(self.path.read_bytes())
        for language in self.languages:
            for query in self.queries[language]:
                hashed.update(query.read_bytes())
        return hashed.hexdigest()


def known_extractors() -> list[str]:
    """The names of those that ship."""
    return sorted(p.parent.name for p in (data_root() / "extractors").glob(f"*/{FILE}"))


def load_extractor(which: str) -> Extractor:
    """The extractor that ships under this name, or that lies in this folder.

    Raises RulesError: there is none, or its file is wrong (told with its place).
    """
    path = _find(which)
    text = read_source(path).removeprefix("\ufeff")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _broken(path, text, str(error), _toml_place(text, error)) from None
    return _Reader(path, text, data).extractor()


def _find(which: str) -> Path:
    folder = Path(which)
    if (folder / FILE).is_file():
        return folder / FILE
    if folder.is_dir():
        where = Span(str(folder), 1, 1, 1, 1)
        raise RulesError([Diagnostic("no-extractor", f"there is no {FILE} in this folder", where)])
    known = known_extractors()
    name = folder.name if which.startswith("extractors/") else which
    if name in known:
        return data_path(f"extractors/{name}/{FILE}")
    hint = suggest(name, known) or f"there are: {', '.join(known)}; or name a folder"
    where = Span(which, 1, 1, 1, 1)
    raise RulesError([Diagnostic("no-extractor", f"no extractor is called `{which}`", where, hint)])


class _Reader:
    """Reads and checks one ``extractor.toml``."""

    def __init__(self, path: Path, text: str, data: Mapping[str, Any]) -> None:
        self.path, self.text, self.data = path, text, data

    def extractor(self) -> Extractor:
        for key in self.data:
            if key not in _KEYS:
                raise self.wrong(f"no setting is called `{key}`", key, suggest(key, _KEYS))
        pass_named_by = self.data.get("pass", "function")
        if pass_named_by not in PASSES:
            raise self.wrong(f"`pass` is one of {', '.join(PASSES)}", "pass")
        target = self.data.get("target")
        if not isinstance(target, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", target):
            raise self.wrong("`target` is a compiler's name, such as tvm", "target")
        languages = self.names("languages", LANGUAGES)
        keywords = {name: self._name_list("keywords", name) for name in self.table("keywords")}
        compared = [f"{name}{end}" for name in keywords.get("assert", ()) for end in _SUFFIXES]
        keywords["assert_compare"] = (*keywords.get("assert_compare", ()), *compared)
        return Extractor(
            name=self.path.parent.name,
            target=target,
            languages=languages,
            include=self.names("include"),
            exclude=self.names("exclude", required=False),
            pass_named_by=pass_named_by,
            keywords=keywords,
            values={name: self._roles(name) for name in self.table("values")},
            device=self._device(),
            operators=self._texts("operators"),
            queries={language: self._queries(language) for language in languages},
            path=self.path,
        )

    def _queries(self, language: str) -> tuple[Path, ...]:
        common = data_path(f"extractors/{COMMON}").glob(f"{language}*.scm")
        return (*sorted(common), *sorted(self.path.parent.glob(f"{language}*.scm")))

    def names(
        self, key: str, allowed: tuple[str, ...] = (), required: bool = True
    ) -> tuple[str, ...]:
        value = self.data.get(key, [])
        if (required and not value) or not self._are_names(value):
            raise self.wrong(f"`{key}` is a list of strings", key)
        for name in value:
            if allowed and name not in allowed:
                raise self.wrong(
                    f"`{name}` is none of {', '.join(allowed)}", name, suggest(name, allowed)
                )
        return tuple(value)

    def table(self, key: str) -> Mapping[str, Any]:
        value = self.data.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(f"`{key}` is a table", key)
        return value

    def _name_list(self, key: str, name: str) -> tuple[str, ...]:
        value = self.table(key)[name]
        if not self._are_names(value):
            raise self.wrong(f"`{key}.{name}` is a list of strings", name)
        if len(value) > MOST_NAMES:
            raise self.wrong(f"`{key}.{name}` has more than {MOST_NAMES:,} names", name)
        odd = next((word for word in value if not word.isprintable()), None)
        if odd is not None:
            raise self.wrong(f"`{key}.{name}`: `{printable(odd)}` is no name", name)
        return tuple(value)

    def _roles(self, function: str) -> Mapping[str, str]:
        roles = self.table("values")[function]
        if not isinstance(roles, dict) or not all(isinstance(v, str) for v in roles.values()):
            raise self.wrong(
                f'`values.{function}` is a table, such as {{extent = "{{0}}"}}', function
            )
        return roles

    def _texts(self, key: str) -> Mapping[str, str]:
        table = self.table(key)
        for name, value in table.items():
            if not isinstance(value, str):
                raise self.wrong(f"`{key}.{name}` is a string", name)
        return table

    def _device(self) -> Mapping[str, str]:
        """Each must be an expression: it goes into what is written as it is."""
        table = self._texts("device")
        lines = []
        for number, (name, meaning) in enumerate(table.items()):
            if "\n" in meaning:
                raise self.wrong(f"`device.{name}` is one line", name)
            asserted = f'assert ({meaning}) == value("x")'
            lines.append(f'monitor m{number} : execution_safety on pass "p" {{ {asserted} }}')
        try:
            load_text("\n".join(lines))
        except RulesError as error:
            first = error.diagnostics[0]
            name = list(table)[first.span.line - 1]
            raise self.wrong(f"`device.{name}`: {first.message}", name) from None
        return table

    @staticmethod
    def _are_names(value: object) -> bool:
        return isinstance(value, list) and all(isinstance(v, str) and v for v in value)

    def wrong(self, message: str, word: str, hint: str | None = None) -> RulesError:
        written = re.escape(word)
        found = re.search(rf"^\s*({written})\s*=", self.text, re.MULTILINE) or re.search(
            rf"(?<!\w)({written})(?!\w)", self.text
        )
        place = (1, 1)
        if found:
            before = self.text[: found.start(1)]
            place = before.count("\n") + 1, len(before) - before.rfind("\n")
        return _broken(self.path, self.text, message, place, hint)


def _toml_place(text: str, error: tomllib.TOMLDecodeError) -> tuple[int, int]:
    found = re.search(r"line (\d+), column (\d+)", str(error))
    if found:
        return int(found[1]), int(found[2])
    return text.count("\n") + 1, len(text) - text.rfind("\n")  # at the end


def _broken(
    path: Path, text: str, message: str, place: tuple[int, int], hint: str | None = None
) -> RulesError:
    line, column = place
    span = Span(str(path), line, column, line, column + 1)
    return RulesError([Diagnostic("bad-extractor", message, span, hint)])
