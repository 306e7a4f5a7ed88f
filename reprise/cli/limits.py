"""The options that say how much rules may derive: of every command that runs them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click


class Seconds(click.FloatRange):
    """A time that ends: more than nothing, and a number."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; what is none, such as nan and inf, is refused."""
        seconds = float(super().convert(value, param, ctx))
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return seconds


def limit_options(whatever: str) -> Callable[[Any], Any]:
    """``--max-rows`` and ``--max-seconds``, which give up on ``whatever`` the rules run on."""

    def decorate(command: Any) -> Any:
        for option in (
            click.option(
                "--max-seconds",
                type=Seconds(),
                metavar="S",
                help=f"Give up on {whatever} the rules run longer than this.",
            ),
            click.option(
                "--max-rows",
                type=click.IntRange(1),
                metavar="N",
                help=f"Give up on {whatever} the rules derive more facts than this.",
            ),
        ):
            command = option(command)
        return command

    return decorate
