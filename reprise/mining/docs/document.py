"""One document of operator documentation, from lines to entries.

Comes in: a text in one of two forms. Goes out: its entries and, in ``diagnostics``, what could
not be read. A document is cut into entries at the headings of operators, an entry into sections,
and only lines that start as an item does are read (:mod:`reprise.mining.docs.lines`); all else
is prose. So a line that cannot be read costs itself: its section is marked as damaged, and
reading goes on.
"""

from __future__ import annotations

from reprise.lang.diagnostics import Diagnostic, Severity, Span
from reprise.mining.docs import lines as read
from reprise.mining.docs.entries import Draft, check, finished, warning
from reprise.mining.docs.lines import Misread, VersionLine
from reprise.mining.docs.model import Entry, Form, Part, Place, TypeConstraint
from reprise.mining.docs.older import is_older, modern

_PARTS = {part.value: part for part in Part} | {"Versioning": Part.VERSION}


class Reader:
    """Reads one document. ``part`` is the section in which the current line stands; None in
    prose, in examples and before the first entry."""

    def __init__(self, form: Form, name: str, diagnostics: list[Diagnostic]) -> None:
        self.form = form
        self.name = name
        self.diagnostics = diagnostics
        self.draft: Draft | None = None
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
        self.draft = Draft(heading, place)

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
                warning("repeated-section", f"a second section `{heading.title}`", place)
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
                    warning("contradiction", f"this says otherwise about `{name}`", place)
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
            warning("stray-line", "an attribute outside of a section `Attributes`", place)
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

    def _of(self) -> Draft:
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
                warning(
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
                warning(
                    "no-version",
                    f"nothing says since which version {draft.heading.name} is available: "
                    "its entry is passed over",
                    draft.place,
                )
            )
            return
        check(draft, self.form, place, end, self.diagnostics)
        self.entries.append(finished(draft, since, experimental, self.form, self.diagnostics))

    # --- diagnostics ---------------------------------------------------------------------------

    def _damage(self, part: Part, error: Misread, line: str, place: Place) -> None:
        self._of().damaged.add(part)
        self._misread(error, line, place, f"not read as a line of `{part.value}`")

    def _lost(self, place: Place, message: str) -> None:
        if self.draft is not None and self.part is not None:
            self.draft.damaged.add(self.part)
        self.diagnostics.append(warning("lost-line", message, place))

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
