"""Kernels from what a command line names: a text, a file of JSON kernels, or TENSURE's form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reprise.einsum import tensure
from reprise.einsum.json_form import JsonError, decoded, from_json, read_lines
from reprise.einsum.kernel import Kernel, KernelError
from reprise.einsum.text import parse


def is_file(named: str) -> bool:
    """Whether this is the name of a file of kernels, by its end."""
    return Path(named).suffix in (".json", ".jsonl")


def is_text(named: str) -> bool:
    """Whether an argument is a kernel's text, and not the name of a file of kernels.

    Raises KernelError for the name of a file that is there and is neither.
    """
    if is_file(named):
        return False
    if _reads(named) or not _is_there(Path(named)):
        return True
    hint = "rules are given by `--rules`" if Path(named).suffix == ".rules" else ""
    kinds = "kernels are in files .json or .jsonl, or written out: 'ij,jk->ik'"
    raise KernelError(f"{named}: this is no file of kernels; {hint or kinds}")


def _reads(text: str) -> bool:
    try:
        parse(text)
    except KernelError:
        return False
    return True


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def read_kernels(named: str) -> Iterator[Kernel]:
    """The kernels of an argument. Raises KernelError, and OSError for a file."""
    yield from (kernel for _, kernel in located(named))


def located(named: str) -> Iterator[tuple[str, Kernel]]:
    """The same, each with where it stands: ``FILE:LINE``, or "" for a text."""
    if is_text(named):
        yield "", parse(named).kernel()
        return
    for line, kernel in kernels_in(Path(named)):
        if isinstance(kernel, JsonError):
            raise KernelError(f"{named}:{line}:{kernel.column}: {kernel}")
        if isinstance(kernel, KernelError):
            raise KernelError(f"{named}:{line}: {kernel}")
        yield f"{named}:{line}", kernel


def kernels_in(path: Path) -> Iterator[tuple[int, Kernel | KernelError]]:
    """The kernels of a file, each with its line; for one that cannot be read, why.

    A ``.jsonl`` file has one on each line. A ``.json`` file is one document: a kernel, or kernels
    in the form of TENSURE's artifact. A byte order mark is passed over; bytes that are no UTF-8 are
    read as what no kernel has.

    Raises KernelError for a file without a kernel, and OSError.
    """
    is_empty = True
    for read in _kernels_in(path):
        is_empty = False
        yield read
    if is_empty:
        raise KernelError(f"{path}: there is no kernel in it")


def _kernels_in(path: Path) -> Iterator[tuple[int, Kernel | KernelError]]:
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            yield from read_lines(file)
        return
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    if not text.strip():
        return
    try:
        document = decoded(text)
        if isinstance(document, dict) and "computations" in document:
            yield from ((1, kernel) for kernel in tensure.from_document(document, path.parent))
        else:
            yield 1, from_json(document)
    except JsonError as error:
        yield error.line, error
    except KernelError as error:
        yield 1, error
