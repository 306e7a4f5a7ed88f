"""Checking many kernels: texts from a command line, and files of JSON kernels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reprise.einsum.check import check_kernel, check_text
from reprise.einsum.fitting import Shape
from reprise.einsum.json_form import JsonError
from reprise.einsum.kernel import KernelError
from reprise.einsum.reading import is_text, kernels_in
from reprise.einsum.text import FILE, parse
from reprise.einsum.validity import Validity
from reprise.lang.diagnostics import Diagnostic, Span
from reprise.lang.render import to_json


@dataclass(frozen=True, slots=True)
class Checked:
    """A kernel as text, the file and line that it came from, and what is wrong with it."""

    text: str
    file: str
    line: int
    diagnostics: tuple[Diagnostic, ...]

    @property
    def texts(self) -> dict[str, str]:
        """The sources that positions refer to: the text stands where the kernel is in its file."""
        return {self.file: "\n" * (self.line - 1) + self.text}

    def document(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "kernel": self.text,
            "file": self.file,
            "line": self.line,
            "valid": not self.diagnostics,
            "diagnostics": to_json(self.diagnostics),
        }


def checked(kernels: Iterable[str], validity: Validity) -> Iterator[Checked]:
    """What is wrong with each of ``kernels``, which are texts or names of files.

    A kernel may read the outputs of those before it: of its file, or of the texts.

    Raises OSError for a file that cannot be read, and KernelError for one without a kernel.
    """
    computed: dict[str, Shape] = {}
    for kernel in kernels:
        if is_text(kernel):
            found = check_text(kernel, validity, computed)
            computed |= _output(kernel)
            yield Checked(kernel, FILE, 1, tuple(found))
        else:
            yield from _file(Path(kernel), validity)


def _output(text: str) -> dict[str, Shape]:
    """The output of a kernel's text and its shape, if it is a kernel."""
    try:
        kernel = parse(text).kernel()
    except KernelError:
        return {}
    return {kernel.output.tensor: kernel.shape(kernel.output)}


def _file(path: Path, validity: Validity) -> Iterator[Checked]:
    computed: dict[str, Shape] = {}
    for number, kernel in kernels_in(path):
        if isinstance(kernel, KernelError):
            text, column = "", 1
            if isinstance(kernel, JsonError):
                text, column = kernel.text, kernel.column
            span = Span(str(path), number, column, number, column)
            yield Checked(text, str(path), number, (Diagnostic("kernel-json", str(kernel), span),))
            continue
        text, found = check_kernel(kernel, validity, computed)
        computed[kernel.output.tensor] = kernel.shape(kernel.output)
        yield Checked(text, str(path), number, tuple(_moved(d, path, number) for d in found))


def _moved(diagnostic: Diagnostic, path: Path, line: int) -> Diagnostic:
    """A diagnostic of a text, where the kernel is in its file."""
    at = diagnostic.span
    span = Span(str(path), line, at.column, line, at.end_column)
    return Diagnostic(diagnostic.code, diagnostic.message, span, diagnostic.hint)
