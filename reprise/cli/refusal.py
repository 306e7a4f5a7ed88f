"""What a command says of input that it cannot work with: one line, `reprise: …`."""

from __future__ import annotations

import sys
from typing import IO, Any

import click

from reprise.lang.display import printable


class Refusal(click.ClickException):
    """Ends a command with exit code 2 and its message, as every other message of ours reads."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"reprise: {printable(self.format_message())}", file=file or sys.stderr)
