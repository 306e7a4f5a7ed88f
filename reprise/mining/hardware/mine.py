"""``reprise mine hardware``: specifications in, facts and constraints out.

Each file is read by its format into devices; devices of one name are put together, and what two
files say differently is told with both places. Nothing that could be read is lost to what could
not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reprise.data import data_path
from reprise.lang.diagnostics import Diagnostic, RulesError, Severity
from reprise.lang.source import read_source
from reprise.mining.hardware.document import Place, Section, problem
from reprise.mining.hardware.facts import Device, HardwareFact, devices_in
from reprise.mining.hardware.formats import Format, Keys, choose, load_keys
from reprise.mining.hardware.grammar import read_with_grammar
from reprise.mining.hardware.python_tags import read_registry
from reprise.mining.hardware.yaml_document import read_yaml

_LFS = "version https://git-lfs.github.com/spec/"


@dataclass(frozen=True, slots=True)
class Mined:
    """Everything that the specifications said, and what was wrong with them."""

    facts: tuple[HardwareFact, ...]
    devices: tuple[Device, ...]
    """What each section of each file said, before they were put together."""
    diagnostics: tuple[Diagnostic, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """The devices of which something is known, in the order of their files."""
        return tuple(dict.fromkeys(fact.target for fact in self.facts))

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats that gave facts."""
        return tuple({d.format.name: d.format for d in self.devices if d.facts}.values())


def mine_specifications(
    paths: Sequence[Path],
    formats: Sequence[Format],
    *,
    chosen: Format | None = None,
    target: str | None = None,
) -> Mined:
    """The facts of every specification.

    Folders are searched for files that some format recognises. ``chosen`` is the format of all,
    where recognising it is not wanted; ``target`` the device that all of them describe.
    """
    keys = load_keys()
    wrong: list[Diagnostic] = []
    devices: list[Device] = []
    for path, searched in _files(paths):
        found, told = _mine_file(path, formats, chosen, target, keys, searched)
        devices += found
        wrong += told
    facts, clashes = _together(devices)
    return Mined(tuple(facts), tuple(devices), (*wrong, *clashes))


def read_document(path: Path, fmt: Format, text: str) -> tuple[Section, list[Diagnostic]]:
    """A specification as a document, and what is wrong with its syntax."""
    match fmt.syntax:
        case "yaml":
            return read_yaml(text, str(path), path.stem)
        case "python":
            return read_registry(text, str(path), path.stem, fmt.register)
    assert fmt.grammar is not None  # of every other syntax, when the format was loaded
    return read_with_grammar(text, str(path), path.stem, fmt.grammar)


def _files(paths: Sequence[Path]) -> list[tuple[Path, bool]]:
    """The files, each with whether it was found in a folder rather than named."""
    found: dict[Path, bool] = {}
    for path in paths:
        if path.is_dir():
            for inner in sorted(path.rglob("*")):
                if inner.is_file():
                    found.setdefault(inner, True)
        else:
            found[path] = False
    return list(found.items())


def _mine_file(
    path: Path,
    formats: Sequence[Format],
    chosen: Format | None,
    target: str | None,
    keys: Keys,
    searched: bool,
) -> tuple[list[Device], list[Diagnostic]]:
    whole = Place(str(path), 1)
    if searched and not any(path.match(p) for fmt in formats for p in fmt.files):
        return [], []
    try:
        text = read_source(path).removeprefix("\ufeff")
    except RulesError as error:
        return [], error.diagnostics
    if text.startswith(_LFS):
        hint = "`git lfs pull` in that checkout fetches the file itself"
        message = "this is a Git-LFS pointer, not the specification"
        return [], [problem("spec-pointer", message, whole, text.splitlines()[0], hint)]
    fmt = chosen or choose(formats, path, text)
    if fmt is None:
        if searched:
            return [], []
        broken = _syntax_errors(path, text)
        names = ", ".join(f.name for f in formats)
        what = "is empty" if not text.strip() else "has no mark of any known format"
        hint = f"formats: {names}; say which one with --as"
        return [], [*broken, problem("spec-unknown-format", f"this file {what}", whole, hint=hint)]
    document, wrong = read_document(path, fmt, text)
    complete = not any(d.severity is Severity.ERROR for d in wrong)
    devices, told = devices_in(document, fmt, keys, target, complete=complete)
    if searched and not devices:
        return [], wrong
    if wrong and not any(device.facts for device in devices):
        return [], wrong  # what an incomplete text lacks needs no telling
    return devices, [*wrong, *told]


def _syntax_errors(path: Path, text: str) -> list[Diagnostic]:
    """What is wrong with the syntax of a file that no format knows, if its name or its first
    character says which syntax that is: a mistake there may be why nothing was recognised."""
    start = text.lstrip()[:1]
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_yaml(text, str(path), path.stem)[1]
    if start and (path.suffix.lower() == ".json" or start in "{["):
        grammar = data_path("grammars/hardware/json.lark")
        return read_with_grammar(text, str(path), path.stem, grammar)[1]
    return []


def _together(devices: Sequence[Device]) -> tuple[list[HardwareFact], list[Diagnostic]]:
    """The facts of all devices; of a key that two files give, the first."""
    found: dict[tuple[str, str], HardwareFact] = {}
    wrong = []
    for fact in (fact for device in devices for fact in device.facts):
        old = found.setdefault((fact.target, fact.key), fact)
        if old.value != fact.value:
            message = (
                f"{fact.key} of `{fact.target}` is {fact.value} here, and {old.value} by "
                f"{old.places[0]}: the first one counts"
            )
            hint = (
                "two devices of one name: mine them apart, with --target"
                if (old.places[0].file != fact.places[0].file)
                else ""
            )
            wrong.append(problem("spec-disagrees", message, fact.places[0], hint=hint))
    return list(found.values()), wrong
