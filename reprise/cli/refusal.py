"""What a command says of input that it cannot work with."""

from __future__ import annotations

import click


class Refusal(click.ClickException):
    """Ends a command with exit code 2 and its message."""
