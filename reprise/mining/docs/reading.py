"""Operator documentation, from files to entries.

Comes in: files or folders in one of two forms. Goes out: :class:`Documentation`. A document is cut
into entries at the headings of operators, an entry into sections, and only lines that start as an
item does are read (:mod:`reprise.mining.docs.lines`); everything else is prose. So a line that
cannot be read costs itself: it is a diagnostic, its section is marked as damaged, and reading goes
on. Facts that a section states twice (how many parameters there are, and the parameters) are held
against each other, so that a line lost without a trace is noticed, too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reprise.lang.diagnostics import Diagnostic, Severity, Span
from reprise.mining.docs import lines as read
from reprise.mining.docs.lines import Misread, VersionLine
from reprise.mining.docs.model import (
    Arity,
    DocAttribute,
    Documentation,
    Entry,
    Form,
    Option,
    Parameter,
    Part,
    Place,
    TypeConstraint,
)
from reprise.mining.docs.older import is_older, modern

_PARTS = {part.value: part for part in Part} | {"Versioning": Part.VERSION}
SUFFIXES = (".md", ".markdown", ".rst", ".txt")
"""Files that are looked at in a folder."""


def read_documents(paths: Sequence[Path], form: Form | None = None) -> Documentation:
    """Everything that the files in ``paths`` (and in folders among them) say about operators.

    ``form`` None: each file's own. A file that is no operator documentation is passed over in a
    folder, and a diagnostic where it was named.
    """
    started = time.perf_counter()
    diagnostics: list[Diagnostic] = []
    entries: list[Entry] = []
    files = 0
    _note_empty(paths, diagnostics)
    for path, named in _files(paths):
        text = _text(path, diagnostics)
        if text is None:
            continue
        found = form_of(text)
        if found is None or (form is not None and found is not form):
            if named:
                diagnostics.append(_foreign(path, found))
            continue
        files += 1
        entries += _Reader(found, str(path), diagnostics).read(text)
    if not files and not diagnostics:
        message = "no file here is documentation of ONNX operators in a form that is known"
        span = Span(str(paths[0]), 1, 1, 1, 1)
        diagnostics.append(Diagnostic("no-operators", message, span, _EXPECTED))
    merged, again = _merge(entries, diagnostics)
    seconds = time.perf_counter() - started
    folders = tuple(str(path) for path in paths if path.is_dir())
    return Documentation(merged, again, tuple(diagnostics), files, seconds, folders)


def read_texts(texts: Mapping[str, str], form: Form | None = None) -> Documentation:
    """Documents given as texts, by the names that messages are to call them."""
    started = time.perf_counter()
    diagnostics: list[Diagnostic] = []
    entries: list[Entry] = []
    for name, text in texts.items():
        found = form or form_of(text) or Form.MARKDOWN
        entries += _Reader(found, name, diagnostics).read(text)
    merged, again = _merge(entries, diagnostics)
    seconds = time.perf_counter() - started
    return Documentation(merged, again, tuple(diagnostics), len(texts), seconds)


def form_of(text: str) -> Form | None:
    """The form of a document; None if it is no operator documentation."""
    if '\n### <a name="' in text or '\n### <sub>experimental</sub> <a name="' in text:
        return Form.MARKDOWN
    if "\n- **since_version**" in text or "**since version" in text:
        return Form.PAGES
    return None


def _files(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Files, and whether they were named; those of a folder in the order of their names."""
    for path in paths:
        if path.is_dir():
            for file in sorted(path.rglob("*")):
                if file.suffix in SUFFIXES and file.is_file():
                    yield file, False
        else:
            yield path, True


def _text(path: Path, diagnostics: list[Diagnostic]) -> str | None:
    """A document's text. One that is not UTF-8 is read as Latin-1, with a warning."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        span = Span(str(path), 1, 1, 1, 1)
        diagnostics.append(Diagnostic("unreadable-file", f"cannot read this file: {reason}", span))
        return None
    try:
        return data.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        diagnostics.append(
            Diagnostic(
                "not-utf-8",
                f"byte 0x{data[error.start]:02X} is not UTF-8 text; the file is read as Latin-1",
                Span(str(path), line, column, line, column + 1),
                severity=Severity.WARNING,
            )
        )
        return data.decode("latin-1").replace("\r\n", "\n")


def _note_empty(paths: Sequence[Path], diagnostics: list[Diagnostic]) -> None:
    """Say which folders hold no document at all."""
    for path in paths:
        if path.is_dir() and not any(True for _ in _files([path])):
            message = f"this folder holds no files {', '.join(f'*{s}' for s in SUFFIXES)}"
            span = Span(str(path), 1, 1, 1, 1)
            diagnostics.append(Diagnostic("no-documents", message, span, _EXPECTED))


_EXPECTED = 'expected headings such as `### <a name="Abs-13"></a>**Abs-13**</a>` or `## Abs - 13`'


def _foreign(path: Path, found: Form | None) -> Diagnostic:
    message = "this is no documentation of ONNX operators in a form that is known"
    hint = _EXPECTED
    if found is not None:
        message = f"this is in the form `{found.value}`"
        hint = f"read it with `--format {found.value}`"
    return Diagnostic("no-operators", message, Span(str(path), 1, 1, 1, 1), hint)


def _merge(
    entries: Iterable[Entry], diagnostics: list[Diagnostic]
) -> tuple[tuple[Entry, ...], dict[tuple[str, str, int], tuple[Place, ...]]]:
    """Each version of an operator once: of several entries, the first that is whole."""
    kept: dict[tuple[str, str, int], Entry] = {}
    again: dict[tuple[str, str, int], list[Place]] = {}
    for entry in entries:
        first = kept.get(entry.key)
        if first is None:
            kept[entry.key] = entry
            continue
        if first.damaged and not entry.damaged:
            kept[entry.key], entry = entry, first
        elif first != entry and not entry.damaged and entry.form is first.form:
            diagnostics.append(
                _warning(
                    "two-accounts",
                    f"{entry.title} is described differently at {first.place}",
                    entry.place,
                )
            )
            continue
        again.setdefault(entry.key, []).append(entry.place)
    ordered = sorted(kept.values(), key=lambda e: (e.domain, e.name, e.since))
    return tuple(ordered), {key: tuple(places) for key, places in again.items()}


def _warning(code: str, message: str, place: Place, hint: str | None = None) -> Diagnostic:
    span = Span(place.file, place.line, 1, place.line, 1)
    return Diagnostic(code, message, span, hint, Severity.WARNING)


@dataclass(slots=True)
class _Draft:
    """An entry while it is being read."""

    heading: read.OperatorLine
    place: Place
    version: VersionLine = field(default_factory=VersionLine)
    parts: set[Part] = field(default_factory=set)
    damaged: set[Part] = field(default_factory=set)
    arities: dict[Part, Arity] = field(default_factory=dict)
    parameters: dict[Part, list[tuple[read.ParameterLine, Place]]] = field(
        default_factory=lambda: {Part.INPUTS: [], Part.OUTPUTS: []}
    )
    types: list[TypeConstraint] = field(default_factory=list)
    attributes: list[tuple[read.AttributeLine, list[str], Place]] = field(default_factory=list)


class _Reader:
    """Reads one document. ``part`` is the section in which the current line stands; None in
    prose, in examples and before the first entry."""

    def __init__(self, form: Form, name: str, diagnostics: list[Diagnostic]) -> None:
        self.form = form
        self.name = name
        self.diagnostics = diagnostics
        self.draft: _Draft | None = None
        self.part: Part | None = None
        self.entries: list[Entry] = []
        self.fence: Place | None = None
        self.items = 0  # `<dt>` without their `<dd>`
        self.list: Place | None = None  # the `<dl>` that is open

    def read(self, text: str) -> list[Entry]:
        """All entries of the document."""
        number = 0
        lines = modern(text) if is_older(text) else enumerate(text.split("\n"), 1)
        for number, line in lines:
            self._line(line, Place(self.name, number))
        end = Place(self.name, max(1, number))
        if self.draft is not None and self.part is not None and text and text[-1] != "\n":
            self._lost(end, "the document ends within a line")
        self._finish(end, end=True)
        return self.entries

    def _line(self, line: str, place: Place) -> None:
        if line.startswith("#") and self._heading(line, place):
            return
        if line.startswith("```"):
            self.fence = None if self.fence else place
            return
        if self.fence or self.draft is None:
            return
        if self.part is None or self.part is Part.VERSION:
            self._stray(line, place)
        if self.part is None:
            return
        if self.part is Part.VERSION:
            self._version(line, place)
        elif self.form is Form.MARKDOWN:
            self._markdown_item(line, place)
        else:
            self._page_item(line, place)

    # --- headings ----------------------------------------------------------------------------

    def _heading(self, line: str, place: Place) -> bool:
        """Read a heading that ends what came before; False for one in prose or in an example."""
        if self._starts_entry(line):
            self._finish(place)
            self._start(line, place)
            return True
        if self.fence:
            return False
        section = "### " if self.form is Form.PAGES else "#### "
        if line.startswith(section):
            self._close_section(place)
            self._section(line, place)
        elif line.startswith(("# ", "## ", "### ")):
            self._close_section(place)
            self.part = None
        return True

    def _starts_entry(self, line: str) -> bool:
        if self.form is Form.MARKDOWN:
            return line.startswith("### <")
        if not line.startswith("## "):
            return False
        if not self.fence:
            return True
        try:  # a comment in an example looks like a heading; an example may lack its end, too
            read.operator(self.form, line)
        except Misread:
            return False
        return True

    def _start(self, line: str, place: Place) -> None:
        try:
            heading = read.operator(self.form, line)
        except Misread as error:
            self._misread(error, line, place, "no operator's heading: its entry is passed over")
            return
        self.draft = _Draft(heading, place)

    def _section(self, line: str, place: Place) -> None:
        draft = self.draft
        if draft is None:
            return
        try:
            heading = read.section(self.form, line)
        except Misread as error:
            title = line.lstrip("# ")
            part = next((p for name, p in _PARTS.items() if title.startswith(name)), None)
            self.part = part
            if part is not None:
                draft.parts.add(part)
                self._damage(part, error, line, place)
            return
        self.part = _PARTS.get(heading.title)
        if self.part is None:
            return
        if self.part in draft.parts:
            draft.damaged.add(self.part)
            self.diagnostics.append(
                _warning("repeated-section", f"a second section `{heading.title}`", place)
            )
        draft.parts.add(self.part)
        if heading.arity is not None:
            draft.arities[self.part] = heading.arity

    # --- items -------------------------------------------------------------------------------

    def _version(self, line: str, place: Place) -> None:
        starts: tuple[str, ...] = ("This ", "No versioning")
        if self.form is Form.PAGES:
            starts = ("- **", "This version", "**since", "No versioning")
        if not line.startswith(starts) or self.draft is None:
            return
        try:
            found = read.version(self.form, line)
        except Misread as error:
            self._damage(Part.VERSION, error, line, place)
            return
        known = self.draft.version
        for name in ("since", "deprecated", "experimental", "function", "domain"):
            if getattr(found, name) is None:
                continue
            if getattr(known, name) not in (None, getattr(found, name)):
                self.draft.damaged.add(Part.VERSION)
                self.diagnostics.append(
                    _warning("contradiction", f"this says otherwise about `{name}`", place)
                )
        self.draft.version = VersionLine(
            *(
                getattr(known, name) if getattr(known, name) is not None else getattr(found, name)
                for name in ("since", "deprecated", "experimental", "function", "domain")
            )
        )

    def _stray(self, line: str, place: Place) -> None:
        """Notice an attribute where none is expected: the heading of its section is lost."""
        mark = "<dt>" if self.form is Form.MARKDOWN else "* **"
        if not line.startswith(mark) or self.draft is None or Part.INPUTS in self.draft.parts:
            return
        try:
            read.attribute(self.form, line)
        except Misread:
            return
        self.draft.damaged.add(Part.ATTRIBUTES)
        self.diagnostics.append(
            _warning("stray-line", "an attribute outside of a section `Attributes`", place)
        )

    def _markdown_item(self, line: str, place: Place) -> None:
        if line.startswith("<dt"):
            self.items += 1
            self._item(line, place)
        elif line.startswith("<dd"):
            self.items -= 1
            if self.items < 0:
                self.items = 0
                self._lost(place, "a description (`<dd>`) of nothing: the `<dt>` before it is lost")
            self._describe(line)
        elif line.startswith("<dl"):
            self.items, self.list = 0, place
        elif line.startswith("</dl>"):
            self.list = None
        else:
            self._describe(line)

    def _page_item(self, line: str, place: Place) -> None:
        if line.startswith(("- ", "* ")):
            self._item(line, place)
        elif line.startswith("Between ") and self.part in (Part.INPUTS, Part.OUTPUTS):
            try:
                self._of().arities[self.part] = read.arity(self.form, line)
            except Misread as error:
                self._damage(self.part, error, line, place)
        else:
            self._describe(line)

    def _item(self, line: str, place: Place) -> None:
        draft = self._of()
        try:
            match self.part:
                case Part.INPUTS | Part.OUTPUTS:
                    parameter = read.parameter(self.form, line)
                    draft.parameters[self.part].append((parameter, place))
                case Part.TYPES:
                    constraint = read.constraint(self.form, line)
                    draft.types.append(TypeConstraint(constraint.name, constraint.types, place))
                case Part.ATTRIBUTES:
                    attribute = read.attribute(self.form, line)
                    draft.attributes.append((attribute, [], place))
                case _:
                    pass
        except Misread as error:
            assert self.part is not None
            self._damage(self.part, error, line, place)

    def _describe(self, line: str) -> None:
        if self.part is Part.ATTRIBUTES and self.draft is not None and self.draft.attributes:
            text = line.removeprefix("<dd>").removesuffix("</dd>").strip()
            if text not in ("", "<dl>", "</dl>"):
                self.draft.attributes[-1][1].append(text)

    def _of(self) -> _Draft:
        assert self.draft is not None
        return self.draft

    # --- the end of an entry -----------------------------------------------------------------

    def _close_section(self, place: Place) -> None:
        if self.items > 0 and self.part is not None:
            self._lost(place, "an item (`<dt>`) without its description (`<dd>`)")
        elif self.list is not None and self.part is not None:
            self._lost(self.list, "a list (`<dl>`) that does not end")
        self.items, self.list = 0, None

    def _finish(self, place: Place, end: bool = False) -> None:
        """Make an entry of what has been read so far; ``end``: the document ends here."""
        self._close_section(place)
        if self.fence is not None:
            self.diagnostics.append(
                _warning(
                    "open-block",
                    "a code block that does not end: what follows it in this entry is not read",
                    self.fence,
                )
            )
        draft, self.draft, self.part, self.fence = self.draft, None, None, None
        if draft is None:
            return
        since = draft.heading.since if draft.heading.since is not None else draft.version.since
        experimental = draft.heading.experimental or bool(draft.version.experimental)
        if since is None and experimental:
            since = 1  # experimental operators have no versions; ONNX counts them as 1
        if since is None:
            self.diagnostics.append(
                _warning(
                    "no-version",
                    f"nothing says since which version {draft.heading.name} is available: "
                    "its entry is passed over",
                    draft.place,
                )
            )
            return
        self._check(draft, place, end)
        self.entries.append(_entry(draft, since, experimental, self.form, self.diagnostics))

    def _check(self, draft: _Draft, place: Place, end: bool) -> None:
        """Hold against each other what the entry says twice, and notice what is missing."""
        deprecated = draft.heading.deprecated or draft.version.deprecated
        if deprecated and self.form is Form.MARKDOWN:
            return
        expected = {Part.VERSION, Part.OUTPUTS}
        if self.form is Form.MARKDOWN:
            expected |= {Part.INPUTS, Part.TYPES}
        missing = [part for part in Part if part in expected - draft.parts]
        if missing:
            names = ", ".join(f"`{part.value}`" for part in missing)
            # Sections have a fixed order. What follows the gap may be missing, too, and what
            # comes before it may have lost its last lines, or hold those of the one that is not.
            first = _ORDER.index(missing[0])
            before = [part for part in _ORDER[:first] if part in draft.parts]
            draft.damaged |= set(_ORDER[_ORDER.index(before[-1]) if before else 0 :])
            self.diagnostics.append(
                _warning(
                    "truncated-entry" if end else "missing-section",
                    f"the entry of {draft.heading.name} ends without {names}",
                    place if end else draft.place,
                )
            )
        for part in (Part.INPUTS, Part.OUTPUTS):
            self._check_arity(draft, part)
        named = {t.name for t in draft.types}
        for part in (Part.INPUTS, Part.OUTPUTS):
            for parameter, at in draft.parameters[part]:
                if parameter.type not in named and "(" not in parameter.type:
                    if Part.TYPES not in draft.damaged:
                        self.diagnostics.append(
                            _warning(
                                "unknown-type",
                                f"nothing says what `{parameter.type}` may be",
                                at,
                            )
                        )
                    draft.damaged.add(Part.TYPES)

    def _check_arity(self, draft: _Draft, part: Part) -> None:
        arity = draft.arities.get(part)
        found = draft.parameters[part]
        if part in draft.damaged or part not in draft.parts:
            return
        if arity is None:
            # Optional parameters alone prove nothing: GRU-1 has one, and always two outputs.
            told = "a variadic one" if any("variadic" in p.flags for p, _ in found) else ""
        elif any("variadic" in p.flags for p, _ in found):
            told = ""
        else:
            most = len(found)
            told = f"{most} parameter{'' if most == 1 else 's'}" if most != arity.most else ""
        if told:
            draft.damaged.add(part)
            says = "no range" if arity is None else f"at most {arity.most}"
            self.diagnostics.append(
                _warning(
                    "count-mismatch",
                    f"{draft.heading.name}: `{part.value}` announces {says} and lists {told}",
                    draft.place,
                )
            )

    # --- diagnostics ---------------------------------------------------------------------------

    def _damage(self, part: Part, error: Misread, line: str, place: Place) -> None:
        self._of().damaged.add(part)
        self._misread(error, line, place, f"not read as a line of `{part.value}`")

    def _lost(self, place: Place, message: str) -> None:
        if self.draft is not None and self.part is not None:
            self.draft.damaged.add(self.part)
        self.diagnostics.append(_warning("lost-line", message, place))

    def _misread(self, error: Misread, line: str, place: Place, message: str) -> None:
        column = min(error.column, len(line) + 1)
        self.diagnostics.append(
            Diagnostic(
                "unread-line",
                message,
                Span(place.file, place.line, column, place.line, column + 1),
                str(error),
                Severity.WARNING,
            )
        )


_ORDER = list(Part)


def _entry(
    draft: _Draft, since: int, experimental: bool, form: Form, diagnostics: list[Diagnostic]
) -> Entry:
    heading, version = draft.heading, draft.version
    silent = heading.deprecated and form is Form.MARKDOWN and Part.INPUTS not in draft.parts
    attributes = tuple(_attribute(a, form, draft, diagnostics) for a in draft.attributes)
    inputs, outputs = (
        _parameters(draft.parameters[part], form) for part in (Part.INPUTS, Part.OUTPUTS)
    )
    return Entry(
        heading.domain or (version.domain or ""),
        heading.name,
        since,
        heading.deprecated or bool(version.deprecated),
        experimental,
        version.function,
        inputs,
        outputs,
        None if silent else draft.arities.get(Part.INPUTS, Arity(len(inputs), len(inputs))),
        None if silent else draft.arities.get(Part.OUTPUTS, Arity(len(outputs), len(outputs))),
        tuple(draft.types),
        attributes,
        frozenset(draft.damaged),
        form,
        draft.place,
    )


def _parameters(
    found: Sequence[tuple[read.ParameterLine, Place]], form: Form
) -> tuple[Parameter, ...]:
    return tuple(_parameter(line, place, form) for line, place in found)


def _parameter(line: read.ParameterLine, place: Place, form: Form) -> Parameter:
    flags = set(line.flags)
    option = Option.SINGLE
    if "optional" in flags:
        option = Option.OPTIONAL
    elif "variadic" in flags:
        option = Option.VARIADIC
    differentiable = None
    if "differentiable" in flags:
        differentiable = True
    elif "non-differentiable" in flags:
        differentiable = False
    labelled = "heterogeneous" in flags
    homogeneous = labelled if form is Form.PAGES else not labelled
    return Parameter(line.name, line.type, option, homogeneous, differentiable, place)


def _attribute(
    found: tuple[read.AttributeLine, list[str], Place],
    form: Form,
    draft: _Draft,
    diagnostics: list[Diagnostic],
) -> DocAttribute:
    line, description, place = found
    default = None
    if line.default is not None:
        try:
            default = read.value(form, line.type, line.default)
        except Misread as error:
            draft.damaged.add(Part.ATTRIBUTES)
            diagnostics.append(
                _warning(
                    "unread-default",
                    f"`{line.default}` is no default of this type",
                    place,
                    str(error),
                )
            )
    return DocAttribute(
        line.name, line.type, line.required, default, line.default, " ".join(description), place
    )
