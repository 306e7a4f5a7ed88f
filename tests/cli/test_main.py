"""The frame of the command line: what every end of a command looks like to a shell."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from reprise import __version__
from reprise.cli import main as cli_main
from reprise.cli.lazy import LazyGroup
from reprise.cli.main import Exit, cli, run
from reprise.lang.diagnostics import Diagnostic, RulesError, Span
from tests.conftest import ROOT, Run, environment


def ending(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> int:
    """The exit code of a command that raises ``error``."""

    def invoke(_: click.Context) -> None:
        raise error

    monkeypatch.setattr(cli_main.cli, "invoke", invoke)
    return run(["rules"])


def test_what_points_into_no_file_is_told_without_an_empty_line_of_source(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = Diagnostic("no-extractor", "no extractor is called `tmv`", Span("tmv", 1, 1, 1, 1))
    ending(monkeypatch, RulesError([nowhere]))
    err = capsys.readouterr().err
    assert "no extractor is called `tmv`" in err and "|" not in err


def test_version(reprise: Run) -> None:
    done = reprise("--version")
    assert (done.returncode, done.stdout) == (0, f"reprise, version {__version__}\n")


def test_help_names_every_command_and_the_exit_codes(reprise: Run) -> None:
    done = reprise("--help")
    assert done.returncode == 0
    for word in ("check", "rules", "query", "3 internal fault"):
        assert word in done.stdout


@pytest.mark.slow
def test_help_is_quick_and_imports_nothing_heavy() -> None:
    code = (
        "import sys; from reprise.cli.main import run; run(['--help']); print(sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    for module in ("numpy", "onnx", "lark", "z3", "torch", "reprise.lang.ast"):
        assert f"'{module}'" not in done.stdout
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "reprise", "--help"],
            env=environment(),
            stdout=subprocess.DEVNULL,
            check=True,
        )
        times.append(time.perf_counter() - start)
    bare = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import click"], check=True)
        bare.append(time.perf_counter() - start)
    assert min(times) - min(bare) < 0.15


def test_a_misspelt_command_is_a_usage_error_with_a_suggestion(reprise: Run) -> None:
    done = reprise("rules", "lnit")
    assert done.returncode == 2
    assert "lint" in done.stderr


def test_a_group_alone_shows_its_commands(reprise: Run) -> None:
    done = reprise("rules")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: reprise rules [OPTIONS] COMMAND")
    assert "reprise: " not in done.stderr


def test_an_unknown_option_is_a_usage_error(reprise: Run) -> None:
    assert reprise("check", "--colour").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "said", "help"),
    [
        (["chekc"], "No such command 'chekc'", "reprise"),
        (["check", "--colour"], "No such option '--colour'", "reprise check"),
        (["rules", "lint"], "Missing argument 'PATH...'", "reprise rules lint"),
        (["rules", "show", "softmaxx"], "nothing is called `softmaxx`", "reprise rules show"),
        (["xcheck"], "say what to test: --target NAME", None),
    ],
)
def test_usage_errors_have_one_form_whoever_raises_them(
    capsys: pytest.CaptureFixture[str], arguments: list[str], said: str, help: str | None
) -> None:
    assert run(arguments) == 2
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.startswith(f"reprise: {said}")
    assert rest == ([] if help is None else [f"    see `{help} --help`"])


def groups(command: click.Command) -> list[LazyGroup]:
    if not isinstance(command, LazyGroup):
        return []
    context = click.Context(command)
    members = [command.get_command(context, name) for name in command.commands]
    return [command, *(group for member in members if member for group in groups(member))]


@pytest.mark.parametrize("group", groups(cli), ids=lambda group: group.name)
def test_the_line_of_help_is_the_command_s_own(group: LazyGroup) -> None:
    for name, placeholder in group.commands.items():
        command = group.get_command(click.Context(group), name)
        assert command is not None
        assert command.short_help == placeholder.help
        assert command.name == name


def test_an_internal_fault_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("REPRISE_DEBUG", raising=False)
    assert ending(monkeypatch, ZeroDivisionError("division\nby zero")) == Exit.FAULT == 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "internal fault: ZeroDivisionError: division by zero (please report this" in said


def test_debug_shows_where_an_internal_fault_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REPRISE_DEBUG", "1")
    assert ending(monkeypatch, KeyError("x")) == 3
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ending(monkeypatch, KeyboardInterrupt()) == 130


def test_a_full_disk_is_named_and_no_fault(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out.json")
    assert ending(monkeypatch, error) == 2
    assert capsys.readouterr().err == "reprise: out.json: No space left on device\n"


def test_rule_errors_are_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    diagnostic = Diagnostic("unknown-operator", "no such operator", Span("a.rules", 3, 1, 3, 2))
    assert ending(monkeypatch, RulesError([diagnostic])) == 2
    assert "a.rules:3:1" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_writing_to_a_full_device(reprise: Run) -> None:
    with open("/dev/full", "w") as full:
        done = reprise("--help", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == "reprise: No space left on device\n"


@pytest.mark.slow
def test_a_reader_that_stops_reading_hears_nothing(tmp_path: Path) -> None:
    listing = f'"{sys.executable}" -m reprise rules list'
    command = f'{listing} | head -c 1 > /dev/null; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", command],
        env=environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    assert done.stdout in ("0\n", "141\n")  # 0: all was written before the reader left


def test_completion_is_click_s(reprise: Run) -> None:
    surroundings = {**environment(), "_REPRISE_COMPLETE": "bash_source"}
    done = reprise(env=surroundings)
    assert done.returncode == 0
    assert "_REPRISE_COMPLETE" in done.stdout


def test_the_command_line_reference_is_up_to_date() -> None:
    from reprise.cli.reference import reference

    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == reference(), "python -m reprise.cli.reference > docs/cli.md"
