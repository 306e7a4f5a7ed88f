"""Operator documentation, from files to entries.

Comes in: files or folders in one of two forms. Goes out: :class:`Documentation`, in which each
version of an operator occurs once, whatever number of documents describe it.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from reprise.lang.diagnostics import Diagnostic, Severity, Span
from reprise.mining.docs.document import Reader
from reprise.mining.docs.entries import warning
from reprise.mining.docs.model import Documentation, Entry, Form, Place

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
        entries += Reader(found, str(path), diagnostics).read(text)
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
        entries += Reader(found, name, diagnostics).read(text)
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
    """A document's text. One that is not UTF-8 is read as UTF-16 if it has the mark of that, else
    as Latin-1, with a warning."""
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or str(error)
        span = Span(str(path), 1, 1, 1, 1)
        diagnostics.append(Diagnostic("unreadable-file", f"cannot read this file: {reason}", span))
        return None
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace").replace("\r\n", "\n")
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
        hint = f"read it with `--as {found.value}`"
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
                warning(
                    "two-accounts",
                    f"{entry.title} is described differently at {first.place}",
                    entry.place,
                )
            )
            continue
        again.setdefault(entry.key, []).append(entry.place)
    ordered = sorted(kept.values(), key=lambda e: (e.domain, e.name, e.since))
    return tuple(ordered), {key: tuple(places) for key, places in again.items()}
