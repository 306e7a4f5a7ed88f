"""A click group that knows its commands by name and one line of help, and imports one when used.

`reprise --help` and shell completion read only the names and lines given here; a command's module
is imported when the command itself runs. The line stands in two places, and a test keeps them
equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """``commands`` holds placeholders until :meth:`get_command` replaces one by the real thing.

    ``lazy`` maps a command's name to where it is (``"module:attribute"``) and its line of help.
    """

    def __init__(self, *, lazy: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        placeholders = {name: click.Command(name, help=line) for name, (_, line) in lazy.items()}
        super().__init__(commands=placeholders, **kwargs)
        self.locations = {name: location for name, (location, _) in lazy.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of declaration: the first a newcomer needs comes first."""
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.locations:
            return None
        module, attribute = self.locations[cmd_name].split(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.commands:
            return
        with formatter.section("Commands"):
            formatter.write_dl([(name, stub.help or "") for name, stub in self.commands.items()])
