"""What tells one crash from another: a normalised type, message and call site.

Comes in: a :class:`~reprise.targets.interface.Failure`, or the outcome of a job whose process
died. Goes out: a :class:`Crash`, whose ``key`` is the same for the same defect however often,
wherever and on whatever program it is seen.

Addresses, paths, numbers, shapes, dtypes, names that the program chose and printed programs are
taken out of messages. Of the frames, those of the interpreter, of the foreign-function layer and
of generic visitors go; the innermost three of the compiler's own remain. A *slip* (an assertion or
an attribute error in the compiler's Python code) is told by its call site alone: TVM-20047 says
`'FloorDiv' object has no attribute 'value'`, `'Add' object …` or nothing at all, by the shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from reprise.targets.interface import Ended, Failure, Outcome

FRAMES = 3
MESSAGE = 400
SIMILAR = 0.8
"""Share of words that two messages from one call site must have in common."""

_SLIPS = frozenset(
    f"{name}Error"
    for name in (
        *("Assertion", "Attribute", "Index", "Key", "Name", "Overflow", "Recursion", "Type"),
        *("UnboundLocal", "Value", "ZeroDivision"),
    )
)
_GENERIC = re.compile(
    r"^(<|__call__$|__init__$|_?wrap(per|ped)?$|inner$|decorate_context$|TVMFFI|.*core\.Function"
    r"|(call|run)(_(node|method|function|default|module))?$|_?apply_rules$|_default$|_fn$|compiled$"
    r"|_pass_func$|_run_pass$|operator\(\)$|.*\b(Visit|Mutate|Dispatch)\w*$)"
)
"""Functions that say nothing about the place of a failure."""
_GLUE_FILES = re.compile(
    r"(^|/)(contextlib|_contextlib|functools|threading|runpy|worker|targets/\w+)\.py$"
)


@dataclass(frozen=True, slots=True)
class Crash:
    """A crash without what varies. ``frames``: innermost last. ``kind``: the exception's type,
    "slip", or how the process ended. ``stage``: "load", "compile", "run", with the mode before it
    (``optimised/compile``) if the process ended."""

    stage: str
    kind: str
    frames: tuple[str, ...]
    message: str

    @property
    def key(self) -> str:
        """One line of text; :func:`parse_key` reads it."""
        parts = (self.stage, self.kind, " > ".join(self.frames), self.message)
        return "crash | " + " | ".join(part.replace(" | ", " / ") for part in parts)


def parse_key(key: str) -> Crash | None:
    """The crash that has this key; None if it is the key of something else."""
    parts = key.split(" | ", 4)
    if len(parts) != 5 or parts[0] != "crash":
        return None
    frames = tuple(parts[3].split(" > ")) if parts[3] else ()
    return Crash(parts[1], parts[2], frames, parts[4])


def crash_of(failure: Failure) -> Crash:
    """An exception's signature."""
    kind, message = _unwrapped(failure.type, failure.message)
    frames = own_frames(failure.frames)
    python = bool(frames) and not frames[-1].endswith(")")
    if kind in _SLIPS and python:
        return Crash(failure.stage.value, "slip", frames, "")
    return Crash(failure.stage.value, kind, frames, normalise(message))


def crash_of_end(outcome: Outcome) -> Crash:
    """The signature of a job whose process died, hung, or ran out of memory."""
    place = "/".join(filter(None, (outcome.mode, outcome.stage.value if outcome.stage else "")))
    kind = outcome.ended.value
    if outcome.ended is Ended.DIED and outcome.signal:
        kind = outcome.signal
    return Crash(place, kind, own_frames(_log_frames(outcome.log)), _last_words(outcome.log))


def same_defect(a: Crash, b: Crash) -> bool:
    """Whether two crashes are one defect: equal keys, or the same call site in the same stage and
    messages that share most of their words. Without a call site only equal messages will do:
    `no implementation for Erf` and `… for Conv` differ in one word."""
    if a.key == b.key:
        return True
    if not a.frames or (a.stage, a.kind, a.frames) != (b.stage, b.kind, b.frames):
        return False
    return SequenceMatcher(None, a.message.split(), b.message.split()).ratio() >= SIMILAR


class Clusters:
    """Crashes by defect: the first crash of each stands for those that follow."""

    def __init__(self, known: Iterable[Crash] = ()) -> None:
        self._keys: dict[str, Crash] = {}
        self._leaders: list[Crash] = []
        for crash in known:
            self.leader(crash)

    def leader(self, crash: Crash) -> Crash:
        """The crash that stands for this one's defect: itself if it is the first."""
        found = self._keys.get(crash.key)
        if found is None:
            found = next((c for c in self._leaders if same_defect(c, crash)), crash)
            if found is crash:
                self._leaders.append(crash)
            self._keys[crash.key] = found
        return found


# --- messages -------------------------------------------------------------------------------------

_INNER = re.compile(r"^(?:[\w.]*\.)?(\w*(?:Error|Exception)): (.*)", re.DOTALL)
_WRAPPERS = frozenset(("InductorError", "BackendCompilerFailed", "LoweringException"))
_PRINTED_PROGRAM = re.compile(
    r"\n\s*(# from tvm|@T\.|@I\.|The IR with diagnostic|Error in pass:|Location \(|Set TORCH"
    r"|Graph:|graph\(|While executing|Traceback |%[\w.]+ = )"
)
_SAID = re.compile(r"^Error message: (.+)$", re.MULTILINE)
_COMPILER_ERROR = re.compile(r"^.*?\b(?:fatal )?error: (.+)$", re.MULTILINE)
_SUBSTITUTIONS = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"\x1b\[[0-9;]*m", ""),
        (r"; did you mean .*", ""),
        (r"[‘’]", "'"),
        (r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b", "UUID"),
        (r"\b0x[0-9a-fA-F]+\b", "ADDRESS"),
        (r"(?<![\w.<])/(?:tmp|var/tmp|dev/shm)/[^\s:'\")]*", "PATH"),
        (r"(?<![\w.<])~?/(?:[\w.+@-]+/)*([\w+@-]+\.(?:cc|cpp|cu|h|hpp|c|py|pyx|pxi))\b", r"\1"),
        (r"(?<![\w.<])~?/(?:[\w.+@-]+/)+[\w.+@-]*", "PATH"),
        (r"\b(\w+\.(?:cc|cpp|cu|h|hpp|c|py|pyx|pxi)):\d+(?::\d+)?", r"\1"),
        (r"\b(?:tmp|c)(?=\w*\d)[a-z0-9_]{7,}\b", "TEMPORARY"),
        (r"\btensor\([\w() ]+\)", "DTYPE"),
        (r"\bN11onnxruntime17PrimitiveDataTypeI\w+EE\b", "DTYPE"),
        (r"\bT\.(?=(?:u?int|b?float|bool)\d*\b)", ""),
        (r"\b(?:torch\.)?(?:u?int|b?float|complex)\d+(?:_t|_?e\d\w*)?\b", "DTYPE"),
        (r"\b(?:torch\.)?(?:double|bool|half|c10::Half|c10::BFloat16)\b", "DTYPE"),
        (r"`[^`\n]*`", "`NAME`"),
        (r"(?i)\b(name|node|input|output|tensor|value|buffer|variable|block)(s?:? ?)'[^'\n]*'",
         r"\1\2'NAME'"),
        (r'(?i)\b(name|node|input|output|tensor|value|buffer|variable|block)(s?:? ?)"[^"\n]*"',
         r'\1\2"NAME"'),
        (r"\bnode \(\w*\)", "node (NAME)"),
        (r"\bNode \([^()]*\) Op", "Node (NAME) Op"),
        (r"\bOp with name \([^()]*\)", "Op with name (NAME)"),
        (r"(?i)\b(buffer|block|variable) (?!(?:is|was|of|in|n?or|and|vars?|has|the)\b)\w+",
         r"\1 NAME"),
        (r"\[(?:'[^'\]]*'(?:, )?)+\]", "[NAME]"),
        (r"(?<![A-Za-z_0-9])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", "N"),
        (r"(?<=[A-Za-z_])\d+\b", "N"),
        (r"\{\s*\}|[\[({]\s*N(?:\s*[,x]\s*N)*\s*,?\s*[\])}]", "[N]"),
        (r"\s+", " "),
        (r"(\b[A-Z][^.]{20,}\. )(?:\1)+", r"\1"),  # said once for each variable
    )
]  # fmt: skip


def normalise(message: str) -> str:
    """The message without what varies between sightings of one defect, on one line."""
    said = _SAID.search(message)
    compiler = _COMPILER_ERROR.search(message)
    cut = _PRINTED_PROGRAM.search("\n" + message)
    head = message[: cut.start()] if cut else message
    if compiler is not None and ("Command:" in message or not head.strip()):
        head = "error: " + compiler.group(1)
    if said is not None:
        head = f"{head.strip()} {said.group(1)}"
    for pattern, text in _SUBSTITUTIONS:
        head = pattern.sub(text, head)
    return head.strip()[:MESSAGE].rstrip()


def _unwrapped(kind: str, message: str) -> tuple[str, str]:
    """The exception inside one that only carries it (`InductorError: OverflowError: …`)."""
    kind = kind.rpartition(".")[2]
    while kind in _WRAPPERS and (inner := _INNER.match(message)):
        kind, message = inner.group(1), inner.group(2)
    return kind, message


# --- frames ---------------------------------------------------------------------------------------

_PREFIX = re.compile(
    r"^.*(?:/(?:site|dist)-packages/|/python3\.\d+/|/onnxruntime_src/|/project/(?:src/)?|/src/)"
)
_CPP = re.compile(r"(?:^|[\s*&])((?:[\w~]+::)*(?:operator\S+|[\w~]+))\(")


def own_frames(frames: Sequence[str]) -> tuple[str, ...]:
    """The innermost frames that belong to the compiler: ``folder/file:function`` for Python,
    ``file:Class::function()`` for C++. The innermost of all is kept even if it is generic."""
    kept: list[str] = []
    for position, frame in enumerate(reversed(frames)):
        file, _, function = frame.partition(":")
        native = "(" in function
        name = _cpp_name(function) if native else function
        last = name.rpartition("::")[2]
        innermost = position == 0 and not function.startswith("<")
        if file.startswith("<") and not innermost:
            continue
        if _GLUE_FILES.search(file) or (_GENERIC.match(last) and not innermost):
            continue
        if kept and kept[-1] == f"{_short(file)}:{name}{'()' if native else ''}":
            continue  # recursion
        kept.append(f"{_short(file)}:{name}{'()' if native else ''}")
        if len(kept) == FRAMES:
            break
    return tuple(reversed(kept))


def _short(file: str) -> str:
    """The file's last folder and name: `gpu/gemv.py`."""
    return "/".join(_PREFIX.sub("", file.replace("\\", "/")).split("/")[-2:])


def _cpp_name(function: str) -> str:
    """The qualified name, of at most two parts, in a demangled signature."""
    plain = function
    while (shorter := re.sub(r"<[^<>]*>", "", plain)) != plain:
        plain = shorter
    plain = re.sub(r"\(anonymous namespace\)|\{lambda\([^{}]*\)#\d+\}", "_", plain)
    found = _CPP.search(plain)
    name = found.group(1) if found else plain.partition("(")[0]
    return "::".join(name.split("::")[-2:])


_FAULTHANDLER = re.compile(r'^\s*File "([^"]+)", line \d+ in (.+)$', re.MULTILINE)
_NATIVE = re.compile(r"^\s*#?\d+:?\s+(?:0x[0-9a-f]+ in )?(\w[\w:~<>]*::[^\n]+\))", re.MULTILINE)
_WORDS = [
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^\s*what\(\):\s*(.+)$",
        r"^(terminate called .+)$",
        r"(Assertion [`'].+' failed.*)$",
        r"((?:free|malloc|realloc|munmap_chunk)\(\): .+|double free .+|corrupted .+)$",
        r"^(LLVM ERROR: .+)$",
        r"^(Fatal Python error: .+)$",
        r"(stack smashing detected.*)$",
    )
]


def _log_frames(log: str) -> tuple[str, ...]:
    """Frames that the process left behind, innermost last: the first block of faulthandler's
    (which lists the innermost first), else a native backtrace."""
    start = log.rfind("(most recent call first)")
    if start >= 0:
        block = log[start:].split("\n\n", 1)[0]
        return tuple(f"{file}:{name}" for file, name in reversed(_FAULTHANDLER.findall(block)))
    return tuple(f"<native>:{name}" for name in reversed(_NATIVE.findall(log)))


def _last_words(log: str) -> str:
    """What the process said of its end, normalised."""
    for pattern in _WORDS:
        found = pattern.search(log)
        if found:
            return normalise(found.group(1))
    return ""
