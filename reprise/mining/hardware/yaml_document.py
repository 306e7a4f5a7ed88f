"""YAML specifications as documents, tags included (Timeloop's ``!Component``, ``!Container``, …).

The parser's events are read one by one, never constructed: no tag runs anything, a text that ends
in the middle gives what came before, and an alias costs what it expands to, up to a limit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

import yaml
from yaml import events as ev

from reprise.lang.diagnostics import Diagnostic
from reprise.mining.hardware.document import MAX_DEPTH, Entry, Place, Section, Value, problem
from reprise.mining.hardware.units import written

MAX_PARTS = 200_000
"""Entries and sections of one document with its aliases expanded; a real one has hundreds."""


class _TooLarge(Exception):
    """Aliases expand to more than :data:`MAX_PARTS`, or the nesting is deeper than MAX_DEPTH."""

    def __init__(self, place: Place, what: str) -> None:
        super().__init__(what)
        self.place = place


class _Mapping:
    """A mapping or sequence under construction; ``items`` of a sequence have empty names."""

    def __init__(self, tag: str, place: Place, sequence: bool) -> None:
        self.tag = tag
        self.place = place
        self.sequence = sequence
        self.items: list[tuple[str, Place, _Node]] = []
        self.size = 1

    def add(self, name: str, place: Place, node: _Node) -> None:
        self.items.append((name, place, node))


_Node: TypeAlias = "_Mapping | Value"


def read_yaml(text: str, file: str, name: str) -> tuple[Section, list[Diagnostic]]:
    """The document in ``text`` and what is wrong with it. ``name`` names the outermost section."""
    wrong: list[Diagnostic] = []
    builder = _Builder(file)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        wrong.append(_syntax_error(error, file))
    except yaml.YAMLError as error:
        wrong.append(problem("spec-syntax", str(error).splitlines()[0], Place(file, 1)))
    except _TooLarge as error:
        wrong.append(problem("spec-size", str(error), error.place))
    except RecursionError:
        wrong.append(problem("spec-depth", "sections nest too deep", Place(file, 1)))
    wrong += builder.wrong
    root = builder.root
    whole = Place(file, 1)
    return (_section(root, name, 0) if root else Section(name, "", (), (), whole)), wrong


def _syntax_error(error: yaml.MarkedYAMLError, file: str) -> Diagnostic:
    mark = error.problem_mark or error.context_mark
    place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file, 1)
    return problem("spec-syntax", error.problem or "this is not YAML", place)


class _Builder:
    """Builds mappings from events; ``root`` grows while events arrive."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.root: _Mapping | None = None
        self.stack: list[_Mapping] = []
        self.keys: list[tuple[str, Place] | None] = []
        self.anchors: dict[str, _Node] = {}
        self.wrong: list[Diagnostic] = []
        self.parts = 0

    def take(self, event: yaml.Event) -> None:
        match event:
            case ev.MappingStartEvent() | ev.SequenceStartEvent():
                place = self._place(event)
                tag = _tag(event.tag)
                opened = _Mapping(tag, place, isinstance(event, ev.SequenceStartEvent))
                if event.anchor:
                    self.anchors[event.anchor] = opened
                self._put(opened, place)
                if self.root is None:
                    self.root = opened
                if len(self.stack) >= MAX_DEPTH:
                    raise _TooLarge(place, "sections nest too deep")
                self.stack.append(opened)
                self.keys.append(None)
            case ev.MappingEndEvent() | ev.SequenceEndEvent():
                closed = self.stack.pop()
                self.keys.pop()
                if self.stack:
                    self.stack[-1].size += closed.size
            case ev.ScalarEvent():
                self._scalar(event)
            case ev.AliasEvent():
                self._alias(event)

    def _scalar(self, event: ev.ScalarEvent) -> None:
        place = self._place(event)
        if self.stack and not self.stack[-1].sequence and self.keys[-1] is None:
            self.keys[-1] = (event.value, place)
            return
        value = _plain(event.value) if event.implicit[0] else event.value
        if event.anchor:
            self.anchors[event.anchor] = value
        self._put(value, place)

    def _alias(self, event: ev.AliasEvent) -> None:
        place = self._place(event)
        if event.anchor not in self.anchors:
            hint = "an anchor must be written before its alias"
            found = problem("spec-alias", f"there is no anchor `{event.anchor}`", place, hint=hint)
            self.wrong.append(found)
            self._put(None, place)
            return
        node = self.anchors[event.anchor]
        if isinstance(node, _Mapping):
            if node in self.stack:
                raise _TooLarge(place, f"`*{event.anchor}` contains itself")
            self.parts += node.size
            if self.stack:
                self.stack[-1].size += node.size
            if max(self.parts, node.size) > MAX_PARTS:
                raise _TooLarge(place, f"aliases expand to more than {MAX_PARTS:,} parts")
        self._put(node, place)

    def _put(self, node: _Node, place: Place) -> None:
        if not self.stack:
            return
        top = self.stack[-1]
        top.size += 1
        if top.sequence:
            top.add("", place, node)
            return
        key = self.keys[-1]
        self.keys[-1] = None
        if key is None:  # a mapping as a key: nothing that a specification has
            return
        name, at = key
        if name == "<<":
            _merge(top, node)
        else:
            top.add(name, at, node)

    def _place(self, event: yaml.Event) -> Place:
        mark = event.start_mark
        assert mark is not None  # the parser knows where it is
        return Place(self.file, mark.line + 1, mark.column + 1)


def _merge(into: _Mapping, node: _Node) -> None:
    """``<<: *base``: what is written in the mapping itself goes before what is merged."""
    sources = [node]
    if isinstance(node, _Mapping) and node.sequence:
        sources = [item for _, _, item in node.items]
    for source in sources:
        if isinstance(source, _Mapping):
            have = {name for name, _, _ in into.items}
            into.items = [item for item in source.items if item[0] not in have] + into.items


def _tag(tag: str | None) -> str:
    return "" if tag is None or tag.startswith("tag:yaml.org") else tag.lstrip("!")


def _plain(text: str) -> Value:
    lowered = text.lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    if lowered in ("null", "~", ""):
        return None
    number = written(text)
    if number is not None and not number[1]:
        value: Fraction = number[0]
        return value.numerator if value.denominator == 1 else value
    return text


def _section(mapping: _Mapping, name: str, depth: int) -> Section:
    """A mapping as a section. A mapping's own ``name`` names it where it is an item of a list."""
    entries: list[Entry] = []
    sections: list[Section] = []
    for key, place, node in mapping.items:
        if not isinstance(node, _Mapping):
            if key:
                entries.append(Entry(key, node, place))
        elif node.sequence and not any(isinstance(item, _Mapping) for _, _, item in node.items):
            values = tuple(item for _, _, item in node.items if not isinstance(item, _Mapping))
            entries.append(Entry(key, values, place))
        elif depth < MAX_DEPTH:
            sections.append(_section(node, key, depth + 1))
    named = [e.value for e in entries if e.name == "name" and isinstance(e.value, str)]
    own = named[0] if named and (not name or not mapping.sequence) else name
    return Section(own, mapping.tag, tuple(entries), tuple(sections), mapping.place)
