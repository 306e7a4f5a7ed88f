"""Whether a file with insertions is still a program; which check could be made is told."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tree_sitter import Language

from reprise.mining.instrument.places import errors_in, parse

_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """``sound``, or why not (``reason``); ``by`` names the check that ran."""

    sound: bool
    by: str
    reason: str = ""


def check_python(before: bytes, after: bytes, path: str, language: Language) -> Verdict:
    """By Python's own compiler, if this Python can compile the original; else by the grammar."""
    if _compile(before, path):
        return check_grammar(before, after, language)
    reason = _compile(after, path)
    return Verdict(not reason, "py_compile", reason)


def _compile(source: bytes, path: str) -> str:
    """Why Python does not compile a source, or nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(source, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return f"{type(error).__name__}: {error}"
    return ""


def check_cpp(
    before: bytes,
    after: bytes,
    path: Path,
    language: Language,
    recorder: Mapping[str, bytes],
    flags: Sequence[str] = (),
) -> Verdict:
    """By a C++ compiler, if there is one and it accepts the original by itself (most files of a
    project need its headers: ``flags`` may say where these are); else by the grammar."""
    compiler = shutil.which("clang++") or shutil.which("g++")
    if compiler is None:
        return check_grammar(before, after, language)
    with tempfile.TemporaryDirectory() as folder:
        for name, data in recorder.items():
            (Path(folder) / name).write_bytes(data)
        near = ["-iquote", str(path.parent), "-iquote", folder]
        command = [compiler, "-x", "c++", "-std=c++17", "-fsyntax-only", "-w", *flags, *near, "-"]
        if _complaint(command, before):
            return check_grammar(before, after, language)
        reason = _complaint(command, after)
    return Verdict(not reason, f"{Path(compiler).name} -fsyntax-only", reason)


def _complaint(command: list[str], source: bytes) -> str:
    try:
        done = subprocess.run(
            command, input=source, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_SECONDS} seconds"
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode("utf-8", "replace").splitlines()
    return next((line for line in lines if "error" in line), "the compiler failed")


def check_grammar(before: bytes, after: bytes, language: Language) -> Verdict:
    """By the grammar: no more pieces that it cannot read than there were."""
    new = errors_in(parse(language, after)) - errors_in(parse(language, before))
    return Verdict(new <= 0, "tree-sitter", f"{new} new syntax errors" if new > 0 else "")
