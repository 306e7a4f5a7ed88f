"""A document and its format to facts: which section is a device, what its words come to.

Every fact remembers the lines that it came from. Whatever cannot be read is told and left out; the
rest is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from fractions import Fraction

from reprise.lang.diagnostics import Diagnostic
from reprise.lang.display import shown
from reprise.lang.spelling import did_you_mean
from reprise.mining.hardware.document import Entry, Place, Section, problem, remark
from reprise.mining.hardware.expressions import (
    ExpressionError,
    Lookup,
    MissingName,
    evaluate,
    holds,
    names_in,
    parse,
)
from reprise.mining.hardware.formats import Derivation, Format, Keys, Requirement, Word
from reprise.mining.hardware.units import (
    Quantity,
    UnitError,
    in_unit,
    quantity,
    unit_of_key,
    written,
)

_MAX_STEPS = 40
"""How many definitions one value may go through, in a header whose names refer to each other."""


LARGEST = 1 << 80
"""Larger numbers are mistakes: all storage on earth has some 2**77 bits."""


@dataclass(frozen=True, slots=True)
class HardwareFact:
    """``hw(target, key, value)``, the lines that say so, and the defaults that took part."""

    target: str
    key: str
    value: int
    places: tuple[Place, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Device:
    """What one section says of one target."""

    target: str
    place: Place
    facts: tuple[HardwareFact, ...]
    format: Format


def devices_in(
    document: Section,
    fmt: Format,
    keys: Keys,
    target: str | None = None,
    *,
    complete: bool = True,
) -> tuple[list[Device], list[Diagnostic]]:
    """The devices that a document describes, and what is wrong with it.

    ``target`` names the device instead of the document, where it has only one. Of a document that
    is not ``complete``, nothing is taken by default: it may be in the part that is missing.
    """
    wrong: list[Diagnostic] = []
    sections = _devices(document, fmt)
    if not sections:
        marks = " or ".join(f"`{mark}`" for mark in fmt.target_marks)
        message = f"no section with {marks}: nothing here describes a target"
        wrong.append(problem("spec-no-target", message, document.place))
    found = []
    for section in sections:
        name = target if target and len(sections) == 1 else _name_of(section, document, fmt)
        reader = _Device(section, fmt, keys, name, complete)
        found.append(Device(name, section.place, reader.facts(), fmt))
        wrong += reader.wrong
    return found, list(dict.fromkeys(wrong))


def _devices(section: Section, fmt: Format) -> list[Section]:
    if not fmt.target_marks or any(e.name in fmt.target_marks for e in section.entries):
        return [section]
    return [d for inner in section.sections for d in _devices(inner, fmt)]


def _name_of(section: Section, document: Section, fmt: Format) -> str:
    """The first of the format's names for a target that this one has, else the file's."""
    values = {entry.name: entry.value for entry in section.entries}
    for name in fmt.target_names:
        value = section.name if name == "@section" else values.get(name)
        if isinstance(value, str) and value and (name != "@section" or section is not document):
            return value
    return document.name


@dataclass
class _Scope:
    """A section with its folded parts, and the section around it."""

    section: Section
    entries: list[Entry]
    outer: _Scope | None
    count: int
    words: dict[str, tuple[Quantity, Entry]] = field(default_factory=dict)
    bad: set[str] = field(default_factory=set)

    @property
    def instances(self) -> int:
        """How many of this section the device has."""
        return self.count * (self.outer.instances if self.outer else 1)

    def chain(self) -> Iterator[_Scope]:
        """This scope, then those around it."""
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


@dataclass
class _Trace:
    """What an evaluation read."""

    places: list[Place] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    bad: bool = False


class _Device:
    """Reads one device."""

    def __init__(
        self, section: Section, fmt: Format, keys: Keys, target: str, complete: bool
    ) -> None:
        self.format = fmt
        self.complete = complete
        self.keys = keys
        self.target = target
        self.wrong: list[Diagnostic] = []
        self.scopes: list[_Scope] = []
        self._open(section, None)
        self.root = self.scopes[0]
        for scope in self.scopes:
            self._read_words(scope)
        self._tell_unknown_keys()

    # reading

    def _open(self, section: Section, outer: _Scope | None) -> None:
        entries = list(section.entries)
        inner = []
        for part in section.sections:
            if part.name in self.format.fold:
                entries += part.entries
            elif not any(fnmatchcase(part.name, name) for name in self.format.skip):
                inner.append(part)
        name, count = self._count(section)
        named = Section(name, section.tag, section.entries, section.sections, section.place)
        scope = _Scope(named, entries, outer, count)
        self.scopes.append(scope)
        for part in inner:
            self._open(part, scope)

    def _count(self, section: Section) -> tuple[str, int]:
        """``PE[0..167]`` is ``PE``, 168 times."""
        if self.format.count:
            found = re.fullmatch(self.format.count, section.name)
            if found is not None:
                first, last = int(found["first"]), int(found["last"])
                if last < first:
                    message = f"`{section.name}` counts backwards"
                    self.wrong.append(problem("spec-count", message, section.place, section.name))
                    return found["name"], 1
                return found["name"], last - first + 1
        return section.name, 1

    def _read_words(self, scope: _Scope) -> None:
        seen: dict[str, Entry] = {}
        for entry in scope.entries:
            if entry.name in seen:
                first = seen[entry.name]
                same = "again" if first.value == entry.value else "with another value"
                message = f"`{entry.name}` is given twice: line {first.place.line}, and here {same}"
                hint = "the last one counts, as for whoever reads this notation"
                found = problem("spec-duplicate", message, entry.place, entry.name, hint)
                self.wrong.append(found)
            seen[entry.name] = entry
        for entry in seen.values():
            word = self.format.word_for(entry.name)
            if word is not None:
                self._read_word(scope, word, entry)

    def _read_word(self, scope: _Scope, word: Word, entry: Entry) -> None:
        try:
            amount = self._amount(entry, word, scope)
        except (UnitError, ExpressionError, _BadValue) as error:
            scope.bad.add(word.name)
            hint = error.hint if isinstance(error, _BadValue) else ""
            message = f"`{entry.name}`: {error}"
            self.wrong.append(problem("spec-value", message, entry.place, entry.name, hint))
            return
        if word.name in scope.words and scope.words[word.name][0] != amount:
            other = scope.words[word.name][1]
            message = (
                f"`{entry.name}` disagrees with `{other.name}` in line {other.place.line}, "
                "which is another name for it"
            )
            self.wrong.append(problem("spec-disagrees", message, entry.place, entry.name))
            return
        scope.words.setdefault(word.name, (amount, entry))

    def _amount(self, entry: Entry, word: Word, scope: _Scope) -> Quantity:
        amount = self._raw_amount(entry, word, scope)
        if amount.value < 0:
            raise _BadValue("a negative number is no size")
        if amount.value == 0 and not word.zero:
            raise _BadValue("zero", "leave the line out if it is not known")
        if amount.value > LARGEST:
            raise _BadValue("no device has so much")
        if amount.value.denominator != 1:
            raise _BadValue(f"{entry.value} is not a whole number of bits or elements")
        return amount

    def _raw_amount(self, entry: Entry, word: Word, scope: _Scope) -> Quantity:
        value = entry.value
        if isinstance(value, str) and value in word.values:
            return quantity(word.values[value], word.unit)
        match value:
            case bool() | None | tuple():
                shown = {True: "true", False: "false", None: "nothing"}
                kind = "a list" if isinstance(value, tuple) else shown[value]
                raise _BadValue(f"{kind} where a number is expected")
            case str():
                number = written(value)
                if number is None:
                    try:
                        return _with_unit(evaluate(parse(value), _definitions(scope)).value, word)
                    except MissingName as error:
                        message = f"`{value}` is no number, and nothing defines `{error.name}`"
                        raise _BadValue(message) from None
                if number[1]:
                    return quantity(*number)
                return _with_unit(number[0], word)
        return _with_unit(Fraction(value), word)

    def _tell_unknown_keys(self) -> None:
        """One warning for each key that is no word, and that the format does not pass over."""
        fmt = self.format
        asked = {key for derivation in fmt.derivations for key in derivation.when}
        known = {*fmt.spellings(), *fmt.fold, *fmt.target_names, *fmt.target_marks, *asked, "name"}
        told: set[str] = set()
        for scope in self.scopes:
            for entry in scope.entries:
                name = entry.name
                if name in known or name in told or fmt.ignores(name):
                    continue
                told.add(name)
                hint = did_you_mean(name, fmt.spellings()) or ""
                message = f"`{name}` is no word of the format {fmt.name}: it is passed over"
                self.wrong.append(remark("spec-unknown-key", message, entry.place, name, hint))

    # evaluating

    def facts(self) -> tuple[HardwareFact, ...]:
        """What the device has: derivations, then what follows from their keys."""
        found: dict[str, HardwareFact] = {}
        for derivation in self.format.derivations:
            for fact in self._derive(derivation):
                self._combine(found, fact, derivation.combine)
        for key, (base, value) in self.keys.derived.items():
            if base in found and key not in found:
                amount = evaluate(value, _of_facts(found))
                try:
                    whole = in_unit(amount, unit_of_key(key))
                except UnitError as error:
                    self._tell(found[base].places, f"no {key}: {error}")
                    continue
                found[key] = HardwareFact(
                    self.target, key, whole, found[base].places, (f"from {base}",)
                )
        for requirement in self.format.requirements:
            self._hold(requirement, found)
        return tuple(found.values())

    def _derive(self, derivation: Derivation) -> Iterator[HardwareFact]:
        names = names_in(derivation.value)
        fitting = [scope for scope in self.scopes if _matches(scope, derivation.when)]
        direct = [s for s in fitting if any(n in s.words for n in names)]
        # what only defaults give is the whole device's
        for scope in direct or (fitting if derivation.when else [self.root]):
            key = derivation.key.replace("{name}", _as_key(scope.section.name))
            trace = _Trace()
            try:
                amount = evaluate(derivation.value, self._lookup(scope, trace, 0))
                value = in_unit(amount, unit_of_key(key))
            except MissingName as error:
                if direct and not trace.bad and trace.places:
                    keys = " or ".join(f"`{k}`" for k in self.format.words[error.name].keys)
                    self._tell(trace.places, f"no {key}, because nothing gives {keys}")
                continue
            except (UnitError, ExpressionError) as error:
                self._tell(trace.places, f"no {key}: {error}")
                continue
            if not 0 < value <= LARGEST:
                self._tell(trace.places, f"no {key}: it would be {shown(value)}")
                continue
            places = tuple(dict.fromkeys(trace.places))
            if not places and not trace.notes:
                trace.notes.append(f"always so in {self.format.title}")
            yield HardwareFact(self.target, key, value, places, tuple(dict.fromkeys(trace.notes)))

    def _lookup(self, scope: _Scope, trace: _Trace, steps: int) -> Lookup:
        def find(name: str) -> Quantity:
            if name == "instances":
                counted = [s.section.place for s in scope.chain() if s.count > 1]
                trace.places.extend(counted or [scope.section.place])
                return Quantity(Fraction(scope.instances))
            for here in scope.chain():
                if name in here.words:
                    amount, entry = here.words[name]
                    trace.places.append(entry.place)
                    return amount
                if name in here.bad:
                    trace.bad = True
                    raise MissingName(name)
            defaults = self.format.defaults.get(name, ()) if self.complete else ()
            default = next((d for d in defaults if _matches(self.root, d.when)), None)
            if default is None or steps > _MAX_STEPS:
                raise MissingName(name)
            trace.notes.append(f"{name} by default: {default.source}")
            amount = evaluate(default.value, self._lookup(scope, trace, steps + 1))
            return amount if amount.bits else _with_unit(amount.value, self.format.words[name])

        return find

    def _combine(self, found: dict[str, HardwareFact], fact: HardwareFact, combine: str) -> None:
        old = found.get(fact.key)
        if old is None:
            found[fact.key] = fact
            return
        if combine == "same":
            if old.value != fact.value:
                message = (
                    f"{fact.key} is {fact.value} here, and {old.value} by line "
                    f"{old.places[0].line}: the first one counts"
                )
                self.wrong.append(problem("spec-disagrees", message, fact.places[0]))
            return
        value = {
            "product": old.value * fact.value,
            "sum": old.value + fact.value,
            "max": max(old.value, fact.value),
            "min": min(old.value, fact.value),
        }[combine]
        places = tuple(dict.fromkeys((*old.places, *fact.places)))
        notes = tuple(dict.fromkeys((*old.notes, *fact.notes)))
        found[fact.key] = HardwareFact(fact.target, fact.key, value, places, notes)

    def _hold(self, requirement: Requirement, found: Mapping[str, HardwareFact]) -> None:
        trace = _Trace()
        word = self._lookup(self.root, trace, 0)
        key = _of_facts(found)

        def find(name: str) -> Quantity:
            if name in self.format.words:
                return word(name)
            amount = key(name)
            trace.places.extend(found[name].places)
            return amount

        try:
            if holds(requirement.test, find):
                return
            sizes = ", ".join(f"{name} is {find(name)}" for name in names_in(requirement.test))
        except (ExpressionError, UnitError):
            return  # a word without a value was told, if it should have one
        source = f" ({requirement.source})" if requirement.source else ""
        message = f"the compiler requires {requirement.text}{source}, but {sizes}"
        place = trace.places[0] if trace.places else self.root.section.place
        self.wrong.append(problem("spec-requirement", message, place))

    def _tell(self, places: Sequence[Place], message: str) -> None:
        place = places[0] if places else self.root.section.place
        self.wrong.append(remark("spec-incomplete", message, place))


class _BadValue(ValueError):
    """A value that no quantity has."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def _with_unit(value: Fraction, word: Word) -> Quantity:
    if not word.unit:
        raise _BadValue(
            f"{value} of what? there is no unit", f'write "{value} GiB", or bits, KiB, …'
        )
    return quantity(value, word.unit)


def _definitions(scope: _Scope) -> Lookup:
    """What a definition's text may refer to: other definitions, as they are written."""
    steps = 0

    def find(name: str) -> Quantity:
        nonlocal steps
        steps += 1
        if steps > _MAX_STEPS:
            raise ExpressionError("these definitions refer to each other without end")
        for here in scope.chain():
            for entry in here.entries:
                if entry.name != name:
                    continue
                if isinstance(entry.value, int | Fraction):
                    return Quantity(Fraction(entry.value))
                if isinstance(entry.value, str):
                    number = written(entry.value)
                    return Quantity(number[0]) if number else evaluate(parse(entry.value), find)
        raise MissingName(name)

    return find


def _of_facts(found: Mapping[str, HardwareFact]) -> Lookup:
    def find(name: str) -> Quantity:
        if name not in found:
            raise MissingName(name)
        return quantity(found[name].value, unit_of_key(name))

    return find


def _matches(scope: _Scope, when: Mapping[str, tuple[str, ...]]) -> bool:
    values = {entry.name: entry.value for entry in scope.entries}
    values |= {"@name": scope.section.name, "@tag": scope.section.tag}
    return all(
        any(fnmatchcase(str(values.get(key, "")), pattern) for pattern in patterns)
        for key, patterns in when.items()
    )


def _as_key(name: str) -> str:
    """A section's name as the end of a key: ``Shared-GLB`` is ``shared_glb``."""
    return re.sub(r"\W+", "_", name.strip(), flags=re.ASCII).strip("_").lower() or "unnamed"
