"""What the commands share in writing: diagnostics, colour, JSON, tables, and files in place."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click

from reprise.lang.diagnostics import Diagnostic
from reprise.lang.display import HUGE_BITS, shown
from reprise.lang.display import counted as counted  # what commands share in writing

_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "blue": "34", "dim": "2"}

_EVERY = 10.0
"""Seconds between lines where there is no terminal."""

text_or_json = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How to write the result.",
)
"""The option of every command whose result a tool may read."""


def output_option(what: str, metavar: str = "FILE", **more: Any) -> Callable[[Any], Any]:
    """``-o``, ``--output`` or ``--out``: where a command's result goes, the same in all of them."""
    options = {"dir_okay": False, "path_type": Path, **more.pop("path", {})}
    if not more.get("required"):
        more["callback"] = lambda context, option, path: None if path == Path("-") else path
    return click.option(
        "-o",
        "--output",
        "--out",
        "output",
        metavar=metavar,
        type=click.Path(**options),
        help=what,
        **more,
    )


def write_output(path: Path, text: str, inputs: Iterable[Path] = ()) -> None:
    """Write a result, all of it or nothing, and the folders around it; ``-`` is standard output.

    Links, devices and pipes stay what they are. Raises UsageError: it is one of the ``inputs``;
    OSError, which names ``path``: it cannot be written.
    """
    from reprise.cache import write_whole

    if str(path) == "-":
        click.echo(text, nl=False)
        return
    if path.is_file() and path.resolve() in {given.resolve() for given in inputs}:
        raise click.UsageError(f"{path} is read: write to another file")
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
            return
        whole = path.resolve()
        whole.parent.mkdir(parents=True, exist_ok=True)
        write_whole(whole, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def wants_colour(stream: IO[str]) -> bool:
    """Whether ``stream`` is a terminal whose owner has not asked for plain text."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, name: str) -> str:
    """``text`` in a named colour or weight, if standard output shows colour."""
    return f"\033[{_CODES[name]}m{text}\033[0m" if wants_colour(sys.stdout) else text


def show_diagnostics(
    diagnostics: Iterable[Diagnostic],
    stream: IO[str] | None = None,
    texts: Mapping[str, str] | None = None,
) -> None:
    """Write diagnostics with their source lines, to standard error unless told otherwise.

    ``texts`` are the sources that are not files, by the name that diagnostics give them.
    """
    from reprise.lang.render import render

    to = stream or sys.stderr
    shown = list(diagnostics)
    if shown:
        print(
            render(shown, {**_sources(shown), **(texts or {})}, wants_colour(to)), end="", file=to
        )


def show_few(diagnostics: Sequence[Diagnostic]) -> None:
    """Write diagnostics to standard error, of many that are alike the first few and where the
    others are. For tools they are all in what ``--format json`` writes."""
    from reprise.lang.render import render
    from reprise.mining.alike import few

    shown = few(diagnostics)
    sources = _sources([item.diagnostic for item in shown])
    colour = wants_colour(sys.stderr)
    waiting = []
    for item in shown:
        waiting.append(item.diagnostic)
        if item.after or item is shown[-1]:
            text = render(waiting, sources, colour) + "".join(f"{line}\n" for line in item.after)
            print(text, end="", file=sys.stderr)
            waiting = []


def _sources(diagnostics: Sequence[Diagnostic]) -> dict[str, str]:
    """The text of every file that a diagnostic points into, if there is any to show."""
    from reprise.lang.source import source_for_messages

    texts = {file: source_for_messages(file) for file in {d.span.file for d in diagnostics}}
    return {file: text for file, text in texts.items() if text}


def show_json(value: Any) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(jsonable(value), indent=2, ensure_ascii=False, allow_nan=False))


def jsonable(value: Any) -> Any:
    """``value`` with what JSON has no number for (infinities, NaN, huge integers) as text."""
    match value:
        case dict():
            return {key: jsonable(item) for key, item in value.items()}
        case list() | tuple():
            return [jsonable(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
        case int() if value.bit_length() > HUGE_BITS:
            return shown(value)
        case _:
            return value


def show_table(rows: Sequence[Sequence[str]]) -> None:
    """Rows in columns as wide as they need to be; the last column is as long as it is."""
    if not rows:
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[-1]]).rstrip())


@contextlib.contextmanager
def counting(total: int, noun: str) -> Iterator[Callable[[int], None]]:
    """While entered, say on standard error how many of ``total`` are done: a bar on a terminal,
    else a line every ten seconds. Yields what is to be told how many are."""
    if wants_colour(sys.stderr):
        from rich.console import Console
        from rich.progress import Progress

        with Progress(transient=True, console=Console(stderr=True)) as progress:
            task = progress.add_task(counted(2, noun).removeprefix("2 "), total=total)
            yield lambda done: progress.update(task, completed=done)
        return
    said = time.monotonic()

    def say(done: int) -> None:
        nonlocal said
        if time.monotonic() - said >= _EVERY:
            said = time.monotonic()
            click.echo(f"{counted(done, noun)} of {total}", err=True)

    yield say


def replace_file(path: Path, text: str) -> None:
    """Put ``text`` in place of a file in one step: whoever reads sees the old or the new one.

    The file keeps its mode, and a symbolic link goes on pointing at it. Raises OSError, which names
    ``path``: it cannot be written.
    """
    target = path.resolve()
    try:
        mode = target.stat().st_mode & 0o7777
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise
