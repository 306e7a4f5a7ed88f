"""``--resume``, as the commands with runs have it: a run goes on with the options it began with."""

from __future__ import annotations

from collections.abc import Collection

import click


def refuse_other_options(context: click.Context, free: Collection[str]) -> None:
    """Raise UsageError if an option was given that ``--resume`` takes from the run; ``free``: the
    names of the parameters that it does not."""
    from reprise.patterns.check import UsageError

    fixed = [
        parameter.opts[-1]
        for parameter in context.command.params
        if parameter.name not in free
        and context.get_parameter_source(parameter.name or "")
        is click.core.ParameterSource.COMMANDLINE
    ]
    if fixed:
        raise UsageError(
            f"leave out {', '.join(fixed)}: --resume goes on with the options that the run "
            "began with"
        )
