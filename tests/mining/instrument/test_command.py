"""The command: what it prints, and its exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import environment
from tests.mining.instrument.conftest import Workshop, monitor

RULES = monitor('value("x") % device(array_m) == 0', "a.py:2")
FACTS = 'hw("chip", array_rows, 16).\nhw("board", array_rows, 8).\n'


def run(workshop: Workshop, *arguments: str) -> tuple[int, bytes, str]:
    """Exit code, standard output, standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "reprise", "instrument", *arguments],
        cwd=workshop.folder, env=environment(), capture_output=True, timeout=120,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.fixture
def ready(workshop: Workshop) -> Workshop:
    workshop.put({"a.py": b"# coding: latin-1\nx = 48  # \xe9\n"})
    (workshop.folder / "m.rules").write_text(RULES)
    (workshop.folder / "hw.rules").write_text(FACTS)
    return workshop


def test_a_copy_is_made_and_what_was_done_is_told(ready: Workshop) -> None:
    code, out, err = run(
        ready, "checkout", "-o", "copy", "--rules", "m.rules", "--device-value", "array_m=16"
    )
    assert (code, err) == (0, "")
    assert out.decode() == "copy: 1 check in 1 file\n  a.py: m (py_compile)\n"
    assert b"lambda x: x % 16 == 0)" in (ready.copy / "a.py").read_bytes()


@pytest.mark.slow
def test_facts_of_a_device_are_used(ready: Workshop) -> None:
    given = ("checkout", "-o", "copy", "--rules", "m.rules", "--hardware", "hw.rules")
    code, _, err = run(ready, *given)
    assert code == 2
    assert "say which device: --device board or chip" in err
    assert run(ready, *given, "--device", "board")[0] == 0
    assert b"x % 8 == 0" in (ready.copy / "a.py").read_bytes()


def test_a_diff_keeps_every_byte_and_writes_nothing(ready: Workshop) -> None:
    code, out, _ = run(
        ready, "checkout", "--rules", "m.rules", "--device-value", "array_m=16", "--diff"
    )
    assert code == 0
    assert not ready.copy.exists()
    (ready.folder / "change.diff").write_bytes(out)
    assert b" x = 48  # \xe9\n+_reprise[" in out
    subprocess.run(
        ["git", "apply", "../change.diff"], cwd=ready.checkout, check=True, capture_output=True
    )
    changed = (ready.checkout / "a.py").read_bytes()
    assert changed.count(b"\n") == 4


@pytest.mark.slow
def test_what_is_left_out_gives_exit_code_1(ready: Workshop) -> None:
    code, out, err = run(ready, "checkout", "-o", "copy", "--rules", "m.rules", "--format", "json")
    assert code == 1
    assert "m.rules:1: m is not put in at a.py:2: nothing says what `device(array_m)` is" in err
    (left,) = json.loads(out)["not_placed"]
    assert (left["check"], left["site"]) == ("m", "a.py:2")
    assert (ready.copy / "a.py").read_bytes() == (ready.checkout / "a.py").read_bytes()


def test_of_very_many_refusals_some_are_told(ready: Workshop) -> None:
    rules = [monitor('value("y") == 1', "a.py:9", name=f"m{n}") for n in range(20)]
    rules += [monitor(f'value("f{n}(x)") == 1', "a.py:2", name=f"n{n}") for n in range(10)]
    (ready.folder / "m.rules").write_text("".join(rules))
    _, _, err = run(ready, "checkout", "--diff", "--rules", "m.rules")
    assert err.splitlines()[20:] == [
        "10 more checks not put in (--format json lists them). In all:",
        "    20  the file has 3 lines",
        "    10  `…` makes a call, which may change what happens",
        "what only looks: --may-call NAME, or `looks` of an --extractor",
    ]


@pytest.mark.slow
def test_functions_that_an_extractor_knows_may_be_called(ready: Workshop) -> None:
    (ready.folder / "m.rules").write_text(monitor('value("x.bit_count()") > 0', "a.py:2"))
    assert run(ready, "checkout", "--diff", "--rules", "m.rules")[0] == 1
    given = ("--extractor", "inductor")
    assert run(ready, "checkout", "--diff", "--rules", "m.rules", *given)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("checkout", "--rules", "m.rules"), "say where the copy goes"),
        (("checkout", "-o", "checkout/copy", "--rules", "m.rules"), "inside"),
        (("checkout", "-o", ".", "--rules", "m.rules"), "inside"),
        (("checkout", "-o", "copy", "--rules", "hw.rules"), "no monitors"),
        (("checkout", "-o", "copy", "--rules", "m.rules", "--device-value", "16"), "KEY=VALUE"),
        (("checkout", "-o", "copy", "--rules", "m.rules", "--lazy", "m.rules"), "m.rules"),
        (("nowhere", "-o", "copy", "--rules", "m.rules"), "nowhere"),
    ],
)
def test_bad_input_gives_exit_code_2_and_one_message(
    ready: Workshop, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = run(ready, *arguments)
    assert (code, out) == (2, b"")
    assert message in err
    assert "Traceback" not in err
    assert not ready.copy.exists()


def test_rules_with_a_mistake_are_shown(ready: Workshop) -> None:
    (ready.folder / "m.rules").write_text(RULES.replace("assert", "asert"))
    code, _, err = run(ready, "checkout", "-o", "copy", "--rules", "m.rules")
    assert code == 2
    assert "m.rules:1:" in err


def test_the_recorders_ship_with_the_package() -> None:
    from reprise.mining import instrument

    folder = Path(instrument.__file__).parent / "recorder"
    assert {file.name for file in folder.iterdir()} >= {"monitor.py", "monitor.hpp"}


@pytest.mark.slow
def test_rules_that_were_mined_from_another_folder_make_no_copy(ready: Workshop) -> None:
    for path, place in (("checkout/a.py", "checkout/a.py"), ("b.py", "checkout/sub/b.py")):
        ready.put({"sub/b.py": "x = 1\n"})
        (ready.folder / "m.rules").write_text(monitor('value("x") == 1', f"{path}:1"))
        code, out, err = run(ready, "checkout", "-o", "copy", "--rules", "m.rules")
        assert (code, out) == (2, b"")
        assert f"mined from another root? {place} is there" in err
        assert not ready.copy.exists()
