"""The options that say which programs to generate, shared by the commands that generate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from reprise.cli.signature_file import SignatureFile

_Command = TypeVar("_Command", bound=Callable[..., Any])

_SHARES = {
    "initializers": "Share of sources that are stored in the model (the others are inputs).",
    "no-inputs": "Share of programs without any input.",
    "empty": "Share of programs that may have extents of 0.",
    "special": "Share of sources with special floats among their values.",
    "results": "How often a result other than the first is asked for.",
    "expose": "Share of tensors that are outputs though something reads them.",
    "join": "How often a second operand is looked for in the graph.",
    "backward": "How often a node is made for what the next one's operand must be.",
    "recent": "How often an operand is one of the youngest tensors.",
}
_WORDS = (
    ("ops", "Only these operators or categories (comma-separated; may be repeated)."),
    ("no-ops", "Without these operators or categories."),
    ("also", "Also operators that are `random` or have `data_dependent` extents."),
    ("dtypes", "Only these element types; NAME=WEIGHT for how often each."),
)
_NUMBERS = (
    ("nodes", 1, "Operators in a program."),
    ("attempts", 1, "How often a position is tried before a known bug is let through."),
    ("min-rank", 0, "The least rank of a tensor."),
    ("max-rank", 0, "The largest rank of a tensor."),
    ("max-extent", 1, "The largest extent."),
    ("max-elements", 1, "The most elements of a tensor."),
)


def generation_options(command: _Command) -> _Command:
    """Add the options to a command; ``reprise.campaign.options`` reads them."""
    for name in reversed(_SHARES):
        command = click.option(f"--{name}", type=click.FloatRange(0, 1), help=_SHARES[name])(
            command
        )
    command = click.option(
        "--key",
        type=click.Choice(["exact", "paper"]),
        help="What a rejected candidate excludes at its position.",
    )(command)
    command = click.option(
        "--signatures",
        multiple=True,
        type=SignatureFile(as_text=True),
        help="A file with more operators (reprise mine signatures); may be repeated.",
    )(command)
    for name, text in reversed(_WORDS):
        command = click.option(f"--{name}", multiple=True, metavar="NAME,...", help=text)(command)
    for name, least, text in reversed(_NUMBERS):
        number = click.IntRange(least)
        command = click.option(f"--{name}", type=number, metavar="N", help=text)(command)
    return command
