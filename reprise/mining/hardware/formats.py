"""Formats of hardware specifications: how they are written, and what their words mean.

A format is a TOML file, perhaps with a Lark grammar; ``docs/mining-hardware.md`` lists its tables.
A mistake in one is told with the file, the table and the key, and nothing is guessed.
"""

from __future__ import annotations

import ast
import contextlib
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from reprise.data import data_path
from reprise.lang.spelling import did_you_mean
from reprise.mining.hardware.expressions import ExpressionError, names_in, parse
from reprise.mining.hardware.units import (
    UnitError,
    in_unit,
    is_unit,
    quantity,
    unit_of_key,
)

SYNTAXES = ("json", "yaml", "python", "c_header", "grammar")
COMBINE = ("same", "product", "sum", "max", "min")

IMPLICIT = ("instances",)
"""Names that every expression may read: how many copies of its section the device has."""


class FormatError(ValueError):
    """A format file that cannot be used."""


@dataclass(frozen=True, slots=True)
class Word:
    """What a specification calls a quantity: an ``Ext…`` non-terminal of the paper's Figure 3a.

    ``unit`` is empty where each value must state its own. ``values`` are words for numbers.
    """

    name: str
    keys: tuple[str, ...]
    unit: str = ""
    values: Mapping[str, int] = field(default_factory=dict)
    zero: bool = False
    """Whether zero is a value like others."""


@dataclass(frozen=True, slots=True)
class Default:
    """What a compiler fills in for a word that is not written (of devices that ``when`` fits), and
    where it does."""

    name: str
    value: ast.expr
    source: str
    when: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Derivation:
    """``key`` is ``value`` in every section where ``when`` matches and the words have values.

    ``{name}`` in ``key`` is the section's name. ``combine`` says what several sections give.
    """

    key: str
    value: ast.expr
    when: Mapping[str, tuple[str, ...]]
    combine: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """What must hold among words and keys, and which line of the compiler says so."""

    text: str
    test: ast.expr
    source: str


@dataclass(frozen=True, slots=True)
class RuleText:
    """Declarations to write if the keys ``needs`` are known of some target."""

    needs: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Format:
    """One format."""

    name: str
    title: str
    path: Path
    syntax: str
    grammar: Path | None
    files: tuple[str, ...]
    recognise: tuple[str, ...]
    register: tuple[str, ...]
    target_names: tuple[str, ...]
    target_marks: tuple[str, ...]
    fold: tuple[str, ...]
    skip: tuple[str, ...]
    count: str
    ignore: tuple[str, ...]
    words: Mapping[str, Word]
    defaults: Mapping[str, tuple[Default, ...]]
    derivations: tuple[Derivation, ...]
    requirements: tuple[Requirement, ...]
    rules: tuple[RuleText, ...]

    def word_for(self, key: str) -> Word | None:
        """The word that a specification's ``key`` stands for."""
        return next((word for word in self.words.values() if key in word.keys), None)

    def spellings(self) -> tuple[str, ...]:
        """Every key that the format knows, in order."""
        return tuple(dict.fromkeys(key for word in self.words.values() for key in word.keys))

    def ignores(self, key: str) -> bool:
        """Whether the format knows ``key``, and that it says nothing about capacity."""
        return any(fnmatchcase(key, pattern) for pattern in self.ignore)


@dataclass(frozen=True, slots=True)
class Keys:
    """The canonical keys: what each means, and which further keys follow from it."""

    meaning: Mapping[str, str]
    derived: Mapping[str, tuple[str, ast.expr]]
    """Key to the key it follows from, and the expression that says how."""
    rules: tuple[RuleText, ...] = ()
    """What to write about every device that has the keys."""

    def knows(self, key: str) -> bool:
        """Whether ``key``, or the family ``sram_bytes_*`` that it belongs to, is declared."""
        return key in self.derived or any(fnmatchcase(key, pattern) for pattern in self.meaning)

    def completed(self, values: Mapping[str, int | float | str]) -> dict[str, int | float | str]:
        """``values``, and the same amounts under their other names and in their other units, where
        they are whole numbers of these."""
        full = dict(values)
        same = [(k, base) for k, (base, expr) in self.derived.items() if isinstance(expr, ast.Name)]
        same += [(base, key) for key, base in same]
        names = [*full, *(key for key, _ in same)]
        same += [(other, key) for key in names if (other := _in_other_unit(key)) is not None]
        for key, base in same:
            value = full.get(base)
            if isinstance(value, int) and key not in full:
                with contextlib.suppress(UnitError):
                    full[key] = in_unit(quantity(value, unit_of_key(base)), unit_of_key(key))
        return full


def _in_other_unit(key: str) -> str | None:
    """``dram_bits`` for ``dram_bytes``, and the other way round; None for a count."""
    other = {"bits": "bytes", "bytes": "bits"}.get(unit_of_key(key))
    parts = key.split("_")
    return None if other is None else "_".join(other if p == unit_of_key(key) else p for p in parts)


def load_keys() -> Keys:
    """The canonical keys, from ``extractors/hardware/keys.toml``."""
    table = tomllib.loads(data_path("extractors/hardware/keys.toml").read_text(encoding="utf-8"))
    derived = {
        key: (names_in(value)[0], value)
        for key, value in ((k, parse(v)) for k, v in table["derived"].items())
    }
    rules = tuple(RuleText(tuple(r["needs"]), r["text"]) for r in table["rules"])
    return Keys(table["keys"], derived, rules)


def load_formats(folders: Iterable[Path] = ()) -> tuple[Format, ...]:
    """The formats that ship, then those of ``folders``, which replace shipped ones by name.

    Raises:
        FormatError: a format file cannot be used.
        OSError: it cannot be read.
    """
    found: dict[str, Format] = {}
    for folder in (data_path("extractors/hardware"), *folders):
        paths = [folder] if folder.is_file() else sorted(folder.glob("*.toml"))
        paths = [p for p in paths if p.name != "keys.toml"]
        if not paths:
            raise FormatError(f"{folder}: there is no format (a .toml file) in this folder")
        for path in paths:
            loaded = load_format(path)
            found[loaded.name] = loaded
    return tuple(found.values())


def load_format(path: Path) -> Format:
    """One format file. Raises FormatError, OSError."""
    return _Reading(path, _table(path)).format()


def _table(path: Path) -> dict[str, Any]:
    """A format file's tables; ``like = "NAME"`` takes those that it lacks from another format."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"{path}: {error}") from None
    like = table.pop("like", None)
    if like is None:
        return table
    beside = path.with_name(f"{like}.toml")
    base = beside if beside.is_file() else data_path("extractors/hardware") / f"{like}.toml"
    if not base.is_file() or base == path:
        raise FormatError(f"{path}: `like`: there is no other format `{like}`")
    return tomllib.loads(base.read_text(encoding="utf-8")) | table


class _Reading:
    """Checks a format's tables while turning them into dataclasses."""

    def __init__(self, path: Path, table: dict[str, Any]) -> None:
        self.path = path
        self.table = table

    def fail(self, message: str) -> FormatError:
        return FormatError(f"{self.path}: {message}")

    def format(self) -> Format:
        known = {
            "title", "syntax", "grammar", "files", "recognise", "register", "target", "fold",
            "skip", "count", "ignore", "words", "defaults", "facts", "require", "rules",
        }  # fmt: skip
        self._only(self.table, known, "")
        syntax = self._text("syntax")
        if syntax not in SYNTAXES:
            raise self.fail(f"`syntax` is one of {', '.join(SYNTAXES)}")
        target = self.table.get("target", {})
        self._only(target, {"names", "marks"}, "target")
        words = self._words()
        defaults = self._defaults(words)
        return Format(
            name=self.path.stem,
            title=self._text("title"),
            path=self.path,
            syntax=syntax,
            grammar=self._grammar(syntax),
            files=self._list(self.table, "files"),
            recognise=self._list(self.table, "recognise"),
            register=self._list(self.table, "register"),
            target_names=self._list(target, "names"),
            target_marks=self._list(target, "marks"),
            fold=self._list(self.table, "fold"),
            skip=self._list(self.table, "skip"),
            count=self._text("count", ""),
            ignore=self._list(self.table, "ignore"),
            words=words,
            defaults=defaults,
            derivations=self._derivations(words),
            requirements=self._requirements(words),
            rules=self._rules(),
        )

    def _grammar(self, syntax: str) -> Path | None:
        if syntax in ("json", "c_header"):
            return data_path(f"grammars/hardware/{syntax}.lark")
        if syntax != "grammar":
            return None
        name = self._text("grammar")
        for place in (self.path.parent / name, data_path("grammars/hardware") / name):
            if place.is_file():
                return place
        raise self.fail(f"there is no grammar {name!r} beside it, nor among grammars/hardware")

    def _words(self) -> dict[str, Word]:
        found: dict[str, Word] = {}
        for name, entry in self.table.get("words", {}).items():
            where = f"words.{name}"
            if not name.isidentifier() or not isinstance(entry, dict):
                raise self.fail(f"`{where}`: write {name} = {{ keys = […], unit = … }}")
            self._only(entry, {"keys", "unit", "values", "zero"}, where)
            unit = entry.get("unit", "")
            if unit and not is_unit(unit):
                raise self.fail(f"`{where}.unit`: `{unit}` is no unit")
            keys = self._list(entry, "keys") or (name,)
            found[name] = Word(name, keys, unit, entry.get("values", {}), entry.get("zero", False))
        if not found:
            raise self.fail("there is no table `words`")
        return found

    def _defaults(self, words: Mapping[str, Word]) -> dict[str, tuple[Default, ...]]:
        found = {}
        for name, given in self.table.get("defaults", {}).items():
            where = f"defaults.{name}"
            if name not in words:
                raise self.fail(f"`{where}`: no such word" + _hint(name, words))
            one_word = []
            for entry in given if isinstance(given, list) else [given]:
                self._only(entry, {"is", "from", "when"}, where)
                value = self._expression(str(entry.get("is", "")), where, words)
                one_word.append(Default(name, value, entry.get("from", ""), _when(entry)))
            found[name] = tuple(one_word)
        return found

    def _derivations(self, words: Mapping[str, Word]) -> tuple[Derivation, ...]:
        found = []
        keys = load_keys()
        for entry in self.table.get("facts", []):
            where = f"facts, key {entry.get('key')!r}"
            self._only(entry, {"key", "is", "when", "combine"}, where)
            key = entry.get("key", "")
            if not keys.knows(key.replace("{name}", "x")):
                raise self.fail(f"{where}: no such key" + _hint(key, keys.meaning))
            combine = entry.get("combine", "same")
            if combine not in COMBINE:
                raise self.fail(f"{where}: `combine` is one of {', '.join(COMBINE)}")
            value = self._expression(str(entry.get("is", "")), where, words)
            found.append(Derivation(key, value, _when(entry), combine))
        return tuple(found)

    def _requirements(self, words: Mapping[str, Word]) -> tuple[Requirement, ...]:
        found = []
        keys = load_keys()
        for entry in self.table.get("require", []):
            text = entry.get("that", "")
            where = f"require, {text!r}"
            self._only(entry, {"that", "from"}, where)
            test = self._expression(text, where, words, also=keys)
            if not isinstance(test, ast.Compare):
                raise self.fail(f"{where}: this is not a comparison")
            found.append(Requirement(text, test, entry.get("from", "")))
        return tuple(found)

    def _rules(self) -> tuple[RuleText, ...]:
        return tuple(
            RuleText(self._list(entry, "needs"), entry.get("text", ""))
            for entry in self.table.get("rules", [])
        )

    def _expression(
        self, text: str, where: str, words: Mapping[str, Word], also: Keys | None = None
    ) -> ast.expr:
        try:
            node = parse(text)
        except ExpressionError as error:
            raise self.fail(f"{where}: {error}") from None
        for name in names_in(node):
            if name in words or name in IMPLICIT or (also is not None and also.knows(name)):
                continue
            raise self.fail(f"{where}: `{name}` is no word" + _hint(name, words))
        return node

    def _text(self, key: str, default: str | None = None) -> str:
        value = self.table.get(key, default)
        if not isinstance(value, str):
            raise self.fail(f"`{key}` is missing, or no string")
        return value

    def _list(self, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fail(f"`{key}` must be a list of strings")
        return tuple(value)

    def _only(self, table: Any, known: set[str], where: str) -> None:
        if not isinstance(table, dict):
            raise self.fail(f"`{where}` must be a table")
        for key in table:
            if key not in known:
                full = f"{where}.{key}" if where else key
                raise self.fail(f"`{full}` is nothing that a format has" + _hint(key, known))


def _when(entry: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Patterns by entry: ``when = { class = ["*SRAM*"] }``."""
    return {key: tuple(patterns) for key, patterns in entry.get("when", {}).items()}


def _hint(word: str, known: Iterable[str]) -> str:
    hint = did_you_mean(word, sorted(known))
    return f"; {hint}" if hint else ""


def choose(formats: Sequence[Format], path: Path, text: str) -> Format | None:
    """The format that ``path`` is written in: among those whose file patterns fit, the one of
    which most marks occur in the text. None if no mark of any occurs."""
    scores = [
        (sum(mark in text for mark in fmt.recognise), fmt)
        for fmt in formats
        if any(fnmatchcase(path.name, pattern) for pattern in fmt.files)
    ]
    best = max((score for score, _ in scores), default=0)
    return next((fmt for score, fmt in scores if score == best), None) if best else None


def named(formats: Sequence[Format], name: str) -> Format:
    """The format of that name. Raises FormatError."""
    for fmt in formats:
        if fmt.name == name:
            return fmt
    known = [fmt.name for fmt in formats]
    hint = did_you_mean(name, known) or f"known are {', '.join(known)}"
    raise FormatError(f"there is no format `{name}`: {hint}")
