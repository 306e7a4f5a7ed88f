"""The command-line reference, ``docs/cli.md``, made from the commands themselves.

``python -m reprise.cli.reference > docs/cli.md`` writes it; a test sees that it is up to date.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from reprise.cli.main import cli

HEAD = """# Command line

<!-- Made by `python -m reprise.cli.reference > docs/cli.md`; edit the commands instead. -->
"""


def reference() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_command(cli, "reprise", 2)])


def _command(command: click.Command, path: str, level: int) -> Iterator[str]:
    context = click.Context(command, info_name=path)
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"{'#' * level} `{path}`\n"
    yield f"```text\n{path} {pieces}\n```\n"
    if command.help:
        yield _prose(command.help) + "\n"
    options = [p for p in command.params if isinstance(p, click.Option)]
    if options:
        yield "| option | |\n|---|---|"
        yield from (_option(option, context) for option in options)
        yield ""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            member = command.get_command(context, name)
            assert member is not None
            yield from _command(member, f"{path} {name}", min(level + 1, 4))


def _prose(text: str) -> str:
    """A help text's paragraphs, each on one line."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(p.split()) for p in paragraphs)


def _option(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    if not option.is_flag:
        names += f" `{option.make_metavar(context)}`"
    default = ""
    if option.show_default and option.default is not None:
        default = f" Default: `{option.default}`."
    text = re.sub(r"\s+", " ", option.help or "").strip()
    return f"| {names.replace('|', chr(92) + '|')} | {text}{default} |"


if __name__ == "__main__":
    print(reference(), end="")
