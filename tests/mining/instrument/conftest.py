"""A checkout in a temporary folder, monitors as text, and what instrumenting makes of both."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reprise.lang.ruleset import load_rules
from reprise.mining.instrument.checks import read_checks
from reprise.mining.instrument.copying import Checkout
from reprise.mining.instrument.device import Scalar
from reprise.mining.instrument.instrumenting import Plan, plan, write


@dataclass(frozen=True)
class Workshop:
    """A place for one checkout and its copy."""

    folder: Path

    @property
    def checkout(self) -> Path:
        return self.folder / "checkout"

    @property
    def copy(self) -> Path:
        return self.folder / "copy"

    def put(self, files: Mapping[str, str | bytes]) -> None:
        """Write the checkout's files; text as UTF-8, with its own ends of line."""
        for name, content in files.items():
            path = self.checkout / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def plan(
        self,
        monitors: str,
        device: Mapping[str, Scalar] | None = None,
        checkout: Path | None = None,
        **options: Any,
    ) -> Plan:
        """The plan for monitors given as rules; plan only, nothing is written."""
        rules = self.folder / "monitors.rules"
        rules.write_text(monitors)
        checks = read_checks(load_rules([rules]))
        return plan(Checkout(checkout or self.checkout), checks, device or {}, **options)

    def make(self, monitors: str, device: Mapping[str, Scalar] | None = None, **more: Any) -> Plan:
        """Instrument the checkout into the copy."""
        made = self.plan(monitors, device, **more)
        assert write(Checkout(self.checkout), self.copy, made) == []
        return made

    def text(self, name: str) -> str:
        return (self.copy / name).read_bytes().decode("latin-1")

    def run(
        self, *command: str, mode: str = "", fails: bool = False
    ) -> tuple[str, list[dict[str, Any]]]:
        """Run a command in the copy: what it prints, and the records of the run."""
        out = self.folder / "records.jsonl"
        out.unlink(missing_ok=True)
        surroundings = {**os.environ, "REPRISE_MONITOR_OUT": str(out), "REPRISE_MONITOR": mode}
        done = subprocess.run(
            command, cwd=self.copy, env=surroundings, capture_output=True, text=True, timeout=60
        )
        assert (done.returncode != 0) == fails, done.stderr
        lines = out.read_text().splitlines() if out.exists() else []
        return done.stdout + done.stderr, [json.loads(line) for line in lines]

    def verdicts(self, *command: str) -> dict[str, str]:
        """The verdict of each check in the last run's record."""
        records = [r for r in self.run(*command)[1] if r["kind"] == "run"]
        return {key: check["verdict"] for key, check in records[-1]["checks"].items()}

    def python(self, name: str = "a.py") -> dict[str, str]:
        return self.verdicts(sys.executable, name)


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    made = Workshop(tmp_path)
    made.checkout.mkdir()
    return made


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check by the grammar, which is quick; another test compiles all of it."""
    monkeypatch.setattr(shutil, "which", lambda name: None)


def monitor(assertion: str, *sites: str, name: str = "m") -> str:
    """One monitor as rules."""
    places = " ".join(f'from: "{site}"' for site in sites)
    body = f"{places} assert {assertion}"
    return f'monitor {name} : hardware_feasibility on pass "padding" {{ {body} }}\n'
