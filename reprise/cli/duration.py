"""How long something may take, as options say it."""

from __future__ import annotations

import re
from typing import Any

import click

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s?)?")


class Duration(click.ParamType[float]):
    """``90``, ``90s``, ``30m``, ``1h30m``: seconds as a float."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        match = _DURATION.fullmatch(value.strip())
        if match is None or not any(match.groups()):
            self.fail(f"{value!r} is no duration: write 90s, 30m or 1h30m", param, ctx)
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
        if total <= 0:
            self.fail("must be more than nothing", param, ctx)
        return total
