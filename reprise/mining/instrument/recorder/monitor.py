"""Records what monitors see while a compiler runs. Put into an instrumented copy by
`reprise instrument`; needs nothing but the standard library (Python 3.8 or later).

Inserted lines call :func:`check`. It never raises, unless REPRISE_MONITOR=raise asks for it, and
changes nothing that the compiler computes: it reads values, and never calls a method of a value
that it does not know.

A verdict is one of *satisfied*, *violated*, *unknown* (a value was lazy: an expression, not yet a
number), *error* (a value could not be read, or the condition not be computed) and, at the end of
a run, *not_reached*. Values that were lazy are looked at again when they become known (see LAZY)
and at the end.

Environment:
    REPRISE_MONITOR_OUT  a file to append to: when a verdict occurs for the first time in a run, a
                         line {"kind": "first", ...}; at the end of a run, its record
                         {"kind": "run", ...}. A process that died leaves the first lines.
    REPRISE_MONITOR      "raise": raise MonitorViolation where a condition is false; "off": do
                         nothing.

One process is one run, unless it says :func:`begin` and :func:`end`. Every module of the copy
executes this file; the first one keeps the state, as ``sys.modules["_reprise_monitor"]``.
"""

# ruff: noqa: B905 (zip(strict=) needs Python 3.10)

from __future__ import annotations

import atexit
import contextlib
import json
import numbers
import operator
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

NAME = "_reprise_monitor"
# Written by `reprise instrument`. CHECKS: by a check's key, its condition and the names of its
# values. LAZY: {"class": "module.Class"} with {"concrete": method, "same": path} or
# {"attribute": path}.
CHECKS: dict[str, list[Any]] = {}
LAZY: list[dict[str, str]] = []

VERDICTS = ("satisfied", "violated", "unknown", "error")
_WORST_FIRST = ("violated", "error", "unknown", "satisfied")
_PLAIN = (int, float, complex, str, bytes, type(None))
_NEVER_ASK = ("SymInt", "SymFloat", "SymBool")  # asking torch for their number changes the graph
_DEEPEST = 4  # of nested lists
_LONGEST = 4096  # items of a list
_MOST_PENDING = 256  # lazy evaluations kept for each check


_Waiting = Any  # (raw values, what each is recognised by, condition)


class MonitorViolation(AssertionError):
    """A monitored condition is false, and REPRISE_MONITOR=raise."""


class Lazy(Exception):
    """A condition depends on a value that is not known yet."""


class Unknown:
    """Stands for a value that is not known yet: whatever depends on it raises Lazy."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"<{self.kind}>"

    def _depend(self, *_: object) -> Any:
        raise Lazy(self.kind)

    __hash__ = object.__hash__
    __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __abs__ = __neg__ = _depend
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __int__ = __float__ = __round__ = _depend
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _depend
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _depend
    __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __invert__ = __pos__ = _depend


def concrete(value: Any, depth: int = 0) -> Any:
    """``value`` as exact plain Python data, with Unknown for what only stands for a value."""
    kind = type(value)
    if isinstance(value, _PLAIN):  # bool is an int
        return value
    if depth > _DEEPEST:
        return Unknown(kind.__name__)
    if isinstance(value, (Sequence, Mapping)) and len(value) > _LONGEST:
        return Unknown(kind.__name__)
    if isinstance(value, Sequence):
        return [concrete(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {key: concrete(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return value
    if kind.__module__ == "numpy":
        if (
            hasattr(kind, "tolist") and value.size <= _LONGEST
        ):  # scalars and arrays: exact Python numbers, which do not wrap
            return value.tolist()
        return Unknown(kind.__name__) if hasattr(kind, "tolist") else str(value)  # a dtype
    if kind.__name__ in _NEVER_ASK:
        return Unknown(kind.__name__)
    if isinstance(value, numbers.Integral) or any("__index__" in c.__dict__ for c in kind.__mro__):
        try:
            return operator.index(value)
        except Exception:
            return Unknown(kind.__name__)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, type):
        return value.__name__
    if any(c.__module__ == "enum" for c in kind.__mro__):
        return value.name
    return Unknown(kind.__name__)


def div(left: Any, right: Any) -> Any:
    """``/`` of the rule language: rounds down between integers."""
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    return left / right


class _Run:
    """What happened since ``begin``: counts and first values by check and verdict."""

    def __init__(self, label: str | None) -> None:
        self.label = label
        self.id = f"{os.getpid()}-{time.time_ns()}"
        self.pid = os.getpid()
        self.counts: dict[str, dict[str, int]] = {}
        self.firsts: dict[str, dict[str, dict[str, Any]]] = {}
        self.pending: dict[str, list[_Waiting]] = {}
        self.dropped = 0
        self.late: dict[str, int] = {}


class _Recorder:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.checks: dict[str, list[Any]] = {}
        self.watched: dict[tuple[type, str], Any] = {}
        self.lazy: list[dict[str, str]] = []
        self.early: dict[tuple[str, int], list[Any]] = {}
        self.run = _Run(None)
        self.mode = os.environ.get("REPRISE_MONITOR", "")
        self.out = os.environ.get("REPRISE_MONITOR_OUT")

    def declare(self, checks: Mapping[str, list[Any]], lazy: Sequence[dict[str, str]]) -> None:
        self.checks.update(checks)
        self.lazy += [entry for entry in lazy if entry not in self.lazy]

    def check(self, key: str, read: Callable[[], Any], holds: Callable[..., Any]) -> None:
        if self.mode == "off":
            return
        verdict: str = "error"
        values: list[Any] = []
        raw: Any = ()
        try:
            raw = self.kept(key) + tuple(read())
            values = [concrete(value) for value in raw]
            verdict = "satisfied" if holds(*values) else "violated"
        except Lazy:
            verdict = "unknown"
        except Exception as error:
            values = [f"{type(error).__name__}: {error}"]
        try:
            with self.lock:
                if verdict == "unknown":
                    self.wait(key, raw, holds)
                self.count(key, verdict, values)
        except Exception:  # the file cannot be written: the compiler goes on
            pass
        if verdict == "violated" and self.mode == "raise":
            text, names = self.checks.get(key, [key, []])
            shown = ", ".join(f"{name} = {value!r}" for name, value in zip(names, values))
            raise MonitorViolation(f"{key}: {text} is false ({shown})")

    def keep(self, key: str, read: Callable[[], Any]) -> None:
        """Values from before a statement, for the check after it."""
        if self.mode == "off":
            return
        values: Any
        try:
            values = tuple(read())
        except Exception as error:
            values = error
        stack = self.early.setdefault((key, threading.get_ident()), [])
        del stack[:-_MOST_PENDING]  # of statements that raised, and had no check
        stack.append(values)

    def kept(self, key: str) -> tuple[Any, ...]:
        stack = self.early.get((key, threading.get_ident()))
        values = stack.pop() if stack else ()
        if isinstance(values, Exception):
            raise values
        return tuple(values)

    def count(self, key: str, verdict: str, values: list[Any], late: bool = False) -> None:
        run = self.current()
        counts = run.counts.setdefault(key, {})
        if verdict not in counts:
            names = self.checks.get(key, ["", []])[1]
            if verdict == "error" or len(names) != len(values):
                first = {"": _short(values[0])} if values else {}
            else:
                first = {name: _plain(value) for name, value in zip(names, values)}
            run.firsts.setdefault(key, {})[verdict] = first
            event = {"kind": "first", "run": run.id, "label": run.label, "check": key}
            self.write(dict(event, verdict=verdict, values=first, late=late))
        counts[verdict] = counts.get(verdict, 0) + 1

    def current(self) -> _Run:
        if self.run.pid != os.getpid():  # forked: a run of its own
            self.run = _Run(self.run.label)
        return self.run

    def wait(self, key: str, raw: Sequence[Any], holds: Callable[..., Any]) -> None:
        """Keep a lazy evaluation until its values are known."""
        run = self.current()
        waiting = run.pending.setdefault(key, [])
        if len(waiting) >= _MOST_PENDING:
            run.dropped += 1
            return
        known = [self.ticket(value) for value in raw]
        waiting.append((list(raw), known, holds))

    def ticket(self, value: Any) -> Any:
        """For a value that a method of its class makes concrete: what to recognise it by."""
        entry = self.entry(value)
        if entry is None or "concrete" not in entry:
            return None
        self.watch(type(value), entry)
        try:
            return _path(value, entry["same"])
        except Exception:
            return None

    def entry(self, value: Any) -> dict[str, str] | None:
        names = {f"{c.__module__}.{c.__qualname__}" for c in type(value).__mro__}
        return next((entry for entry in self.lazy if entry["class"] in names), None)

    def watch(self, kind: type, entry: dict[str, str]) -> None:
        """See what the compiler gets when it asks objects of this class for their value."""
        name = entry["concrete"]
        owner = next((c for c in kind.__mro__ if name in c.__dict__), None)
        if owner is None or (owner, name) in self.watched:
            return
        plain = owner.__dict__[name]
        recorder = self

        def watched(lazy: Any, *args: Any, **kwargs: Any) -> Any:
            result = plain(lazy, *args, **kwargs)
            with contextlib.suppress(Exception):
                recorder.became(_path(lazy, entry["same"]), result)
            return result

        self.watched[owner, name] = plain
        setattr(owner, name, watched)

    def became(self, ticket: Any, result: Any) -> None:
        """A value is known now: decide what waited for it."""
        with self.lock:
            for key, waiting in list(self.current().pending.items()):
                rest: list[_Waiting] = []
                for raw, known, holds in waiting:
                    if any(ticket == k for k in known if k is not None):
                        raw = [result if k == ticket else v for v, k in zip(raw, known)]
                        known = [None if k == ticket else k for k in known]
                        if self.decide(key, raw, holds):
                            continue
                    rest.append((raw, known, holds))
                self.run.pending[key] = rest

    def decide(self, key: str, raw: Sequence[Any], holds: Callable[..., Any]) -> bool:
        """Evaluate late; whether that gave a verdict (it replaces one *unknown*)."""
        values = [concrete(self.read_late(value)) for value in raw]
        try:
            verdict = "satisfied" if holds(*values) else "violated"
        except Lazy:
            return False
        except Exception as error:
            verdict, values = "error", [f"{type(error).__name__}: {error}"]
        counts = self.run.counts[key]
        counts["unknown"] -= 1
        self.run.late[key] = self.run.late.get(key, 0) + 1
        self.count(key, verdict, values, late=True)
        return True

    def read_late(self, value: Any) -> Any:
        entry = self.entry(value)
        if entry is None or "attribute" not in entry:
            return value
        try:
            return _path(value, entry["attribute"])
        except Exception:
            return value

    def record(self) -> dict[str, Any]:
        """The run so far: a verdict and counts for each check of the copy."""
        with self.lock:
            run = self.current()
            for key, waiting in list(run.pending.items()):
                run.pending[key] = [w for w in waiting if not self.decide(key, w[0], w[2])]
            checks: dict[str, dict[str, Any]] = {}
            for key in sorted(set(self.checks) | set(run.counts)):
                counts = {v: n for v, n in run.counts.get(key, {}).items() if n}
                verdict = next((v for v in _WORST_FIRST if v in counts), "not_reached")
                checks[key] = {"verdict": verdict, "counts": counts}
                if counts:
                    firsts = run.firsts[key]
                    checks[key]["first"] = {v: firsts[v] for v in VERDICTS if v in counts}
                if key in run.late:
                    checks[key]["late"] = run.late[key]
            record: dict[str, Any] = {
                "kind": "run",
                "run": run.id,
                "label": run.label,
                "language": "python",
            }
            if run.dropped:
                record["not_reevaluated"] = run.dropped
            return dict(record, checks=checks)

    def begin(self, label: str | None) -> None:
        with self.lock:
            if self.run.counts:
                self.end()
            self.run = _Run(label)

    def end(self) -> dict[str, Any]:
        with self.lock:
            record = self.record()
            self.write(record)
            self.run = _Run(None)
            return record

    def finish(self) -> None:
        """At the end of the process; one that recorded run by run has nothing left to say."""
        try:
            if self.mode != "off" and (self.run.counts or not self.ended):
                self.end()
        except Exception:
            pass

    ended = False

    def write(self, line: Mapping[str, Any]) -> None:
        if line["kind"] == "run":
            self.ended = True
        if not self.out:
            return
        data = (json.dumps(line, default=_short) + "\n").encode()
        try:
            file = os.open(self.out, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError:
            return
        try:
            os.write(file, data)
        finally:
            os.close(file)


def _path(value: Any, path: str) -> Any:
    """Attributes by name, without the class's own ``__getattr__``: it may do anything."""
    for name in path.split("."):
        value = object.__getattribute__(value, name)
    return value


def _plain(value: Any) -> Any:
    """``value`` as JSON holds it, of bounded length; integers beyond 2**53 as text."""
    if isinstance(value, int) and abs(value) > 2**53:
        return str(value)
    if isinstance(value, (int, float, type(None))):
        return (
            value if value == value and value not in (float("inf"), -float("inf")) else str(value)
        )
    if isinstance(value, str):
        return value[:200]
    return _short(value)


def _short(value: Any) -> str:
    try:
        return str(value)[:200]
    except Exception:
        return f"<{type(value).__name__}>"


_shared = sys.modules.get(NAME)
if _shared is None or not hasattr(_shared, "check"):
    _shared = types.ModuleType(NAME, __doc__)
    _recorder = _Recorder()
    for _name in ("check", "keep", "record", "begin", "end", "declare"):
        setattr(_shared, _name, getattr(_recorder, _name))
    vars(_shared).update(div=div, MonitorViolation=MonitorViolation)
    sys.modules[NAME] = _shared
    atexit.register(_recorder.finish)
_shared.declare(CHECKS, LAZY)
check, keep = _shared.check, _shared.keep
