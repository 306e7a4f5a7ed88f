"""The `reprise` command: its groups, and what every command's end means to a shell.

A command returns an exit code (see :class:`Exit`) or raises; :func:`run` turns whatever was raised
into one clear message and the right code. Nothing heavy is imported here.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from enum import IntEnum

import click

from reprise import __version__
from reprise.cli.lazy import LazyGroup


class Exit(IntEnum):
    """What a command's exit code says. The same four, everywhere."""

    OK = 0  # ran, and found nothing to report
    FOUND = 1  # ran, and found something: a match, a failed test, a file to format
    INPUT = 2  # bad rules, usage or input
    FAULT = 3  # Reprise's own fault
    INTERRUPTED = 130  # Ctrl-C
    BROKEN_PIPE = 141  # whoever read our output stopped reading


@click.group(
    cls=LazyGroup,
    lazy={
        "check": (
            "reprise.cli.check:check",
            "Say which known compiler bugs a model can hit, where and why.",
        ),
        "rules": ("reprise.cli.rules:rules", "Check, format, test and inspect rule files."),
        "query": ("reprise.cli.query:query", "Ask a rule file one question."),
        "targets": (
            "reprise.cli.targets:targets",
            "List compilers under test, and find out what they do.",
        ),
        "fuzz": (
            "reprise.cli.fuzz:fuzz",
            "Generate programs and test a compiler with them.",
        ),
        "distill": (
            "reprise.cli.distill:distill",
            "Turn a failing program into a rule about its defect.",
        ),
        "corpus": (
            "reprise.cli.corpus:corpus",
            "Collect programs that no run sees, to hold rules against.",
        ),
        "report": ("reprise.cli.report:report", "Say what a run came to."),
        "reduce": (
            "reprise.cli.reduce:reduce",
            "Make a failing program as small as it can be.",
        ),
        "compare": ("reprise.cli.compare:compare", "Compare runs: guided, unguided, many seeds."),
        "gen": ("reprise.cli.gen:gen", "Write programs, without running them."),
        "triage": (
            "reprise.cli.triage:triage",
            "Go through a run's findings, and write bug reports.",
        ),
        "regress": (
            "reprise.cli.regress:regress",
            "Say which known bugs still fire, in which versions of their targets.",
        ),
        "mine": (
            "reprise.cli.mine:mine",
            "Mine constraints from documents and sources.",
        ),
        "instrument": (
            "reprise.cli.instrument:instrument",
            "Put monitors into a copy of a compiler's sources.",
        ),
        "xcheck": (
            "reprise.cli.xcheck_run:xcheck",
            "Violate constraints one by one, and see what a compiler does.",
        ),
        "einsum": (
            "reprise.cli.einsum:einsum",
            "Check, generate and vary kernels for sparse tensor compilers.",
        ),
        "conformance": (
            "reprise.cli.conformance:conformance",
            "Compare the reference semantics with targets, operator by operator.",
        ),
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "--version", "-V", prog_name="reprise")
def cli() -> None:
    """Find bugs in deep-learning compilers, and do not find the same bug twice.

    Exit codes: 0 nothing found, 1 something found, 2 bad rules, usage or input, 3 internal fault.
    """


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; returns the process's exit code.

    Not through click's ``main``, which ends the process itself where it meets a broken pipe.
    """
    if "_REPRISE_COMPLETE" in os.environ:
        cli.main(prog_name="reprise")  # shell completion; does not return
    try:
        code = _invoke(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
        return code
    except click.ClickException as error:
        _refuse(error)
        return Exit.INPUT
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted")
        return Exit.INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return Exit.BROKEN_PIPE
    except OSError as error:
        _drop_output()
        _say(_os_message(error))
        return Exit.INPUT
    except Exception as error:
        return _fault(error)


def _invoke(arguments: list[str]) -> int:
    """The command's exit code, or raises what it raises."""
    try:
        with cli.make_context("reprise", arguments) as context:
            return int(cli.invoke(context) or 0)
    except click.exceptions.Exit as done:  # --help, --version
        return done.exit_code


def _refuse(error: click.ClickException) -> None:
    """Say what is wrong with a command line, in our words' form and not in click's own."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # a group alone: that is its help
        click.echo(error.format_message(), err=True)
        return
    for line in error.format_message().splitlines():
        _say(line)
    if isinstance(error, click.UsageError) and error.ctx is not None:
        print(f"    see `{error.ctx.command_path} --help`", file=sys.stderr)


_INPUT_ERRORS = frozenset(
    {
        "UsageError",
        "DeviceError",
        "ModelError",
        "DatalogError",
        "TargetError",
        "OptionsError",
        "StoreError",
        "MatrixError",
        "KernelError",
        "LoweringError",
        "Stuck",
    }
)
"""Exceptions of ours that say what is wrong with the input. By name, so that none is imported."""


def _fault(error: Exception) -> int:
    """The end of every other exception: the input's fault if we know its kind, else ours."""
    ours = {c.__name__ for c in type(error).__mro__ if c.__module__.startswith("reprise.")}
    if "RulesError" in ours:
        from reprise.cli.output import show_diagnostics

        show_diagnostics(error.diagnostics)  # type: ignore[attr-defined]
        return Exit.INPUT
    if ours & _INPUT_ERRORS:
        _say(str(error))
        return Exit.INPUT
    if os.environ.get("REPRISE_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    reason = " ".join(str(error).split())
    what = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    _say(
        f"internal fault: {what} (please report this with the command and its input; "
        "REPRISE_DEBUG=1 shows where)"
    )
    return Exit.FAULT


def _os_message(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}" if error.filename else reason


def _say(message: str) -> None:
    from reprise.lang.display import printable

    print(f"reprise: {printable(message)}", file=sys.stderr)


def _drop_output() -> None:
    """Send what is left of our output nowhere: the interpreter's own last flush stays quiet."""
    with contextlib.suppress(OSError, ValueError):  # standard output may be no file at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _mend_streams() -> None:
    """Standard streams that were closed lead nowhere; ones that cannot write a character escape it
    (a message must not turn into an encoding error)."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _terminated(*_: object) -> None:
    """End as for an interrupt, so that workers end too."""
    raise SystemExit(128 + signal.SIGTERM)


def main() -> None:
    """The console script."""
    _mend_streams()
    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(run())
