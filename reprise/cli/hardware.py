"""The options that say which device ``device(key)`` in rules is about, the same in all commands."""

from __future__ import annotations

from pathlib import Path

import click

hardware_option = click.option(
    "--hardware",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="A hardware description (hw facts), instead of those that ship; may be repeated.",
)
device_option = click.option(
    "--device", metavar="NAME", help="Which of the devices that are described."
)
