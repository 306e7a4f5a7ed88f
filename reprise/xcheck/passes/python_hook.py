"""Passes of compilers that are written in Python: the entry and return of configured functions.

Which functions is data: a TOML file with

- ``passes``: entries ``"module:qualified.name"``; ``*`` stands for any text in the name;
- ``containers`` (may be left out): entries that are no passes although ``passes`` names them;
- ``[by_name]`` (may be left out): entries to a path of attributes of the first argument that holds
  the pass's name, for one function that runs many passes. Otherwise the function's name is it.

A function is wrapped where it is defined and in every loaded module that has imported it under a
name. A pass has begun when it is called and has ended when it returns; one that raises has not.

Runs in the compiler's process: standard library only (Python 3.11, for ``tomllib``).
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

Say = Callable[[str], object]
"""Told the name of a pass that begins, or that has ended."""


class HookError(Exception):
    """A file of passes that is no good, or an entry that names no function; for people."""


class Passes:
    """What a file of passes says."""

    def __init__(
        self, passes: Sequence[str], containers: Sequence[str], by_name: Mapping[str, str]
    ) -> None:
        self.passes = tuple(passes)
        self.containers = frozenset(containers)
        self.by_name = dict(by_name)


def read_passes(path: Path) -> Passes:
    """Read a file of passes. Raises HookError, OSError."""
    import tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise HookError(f"{path}: {error}") from error
    passes, containers = content.get("passes", []), content.get("containers", [])
    by_name = content.get("by_name", {})
    if not passes:
        raise HookError(f'{path}: it needs passes = ["module:qualified.name", ...]')
    for entry in [*passes, *containers, *by_name]:
        if not isinstance(entry, str) or not re.fullmatch(r"[\w.]+:[\w.*]+", entry):
            raise HookError(f"{path}: {entry!r} is no entry: write module:qualified.name")
    return Passes(passes, containers, by_name)


class Hook:
    """Wraps the functions of ``passes``, importing their modules; :meth:`remove` undoes it."""

    def __init__(self, passes: Passes, begin: Say, end: Say) -> None:
        self.begin, self.end = begin, end
        self._undo: list[tuple[Any, str, Any]] = []
        try:
            for entry in passes.passes:
                self._wrap_entry(entry, passes)
        except BaseException:
            self.remove()
            raise

    def remove(self) -> None:
        """Put everything back."""
        while self._undo:
            owner, name, value = self._undo.pop()
            setattr(owner, name, value)

    def _wrap_entry(self, entry: str, passes: Passes) -> None:
        module_name, _, pattern = entry.partition(":")
        try:
            module = importlib.import_module(module_name)
        except ImportError as error:
            raise HookError(f"{entry}: {error}") from error
        fits = re.compile(re.escape(pattern).replace(r"\*", ".*")).fullmatch
        names = dict(_functions(module))
        found = [name for name in names if fits(name)]
        if not found:
            near = difflib.get_close_matches(pattern, names, 3)
            hint = f" (near ones: {', '.join(near)})" if near else ""
            raise HookError(f"{entry} names no function{hint}")
        for name in found:
            if f"{module_name}:{name}" not in passes.containers:
                by_name = passes.by_name.get(f"{module_name}:{name}", passes.by_name.get(entry))
                self._wrap(names[name], name.rpartition(".")[2], by_name)

    def _wrap(self, owner: Any, name: str, by_name: str | None) -> None:
        held = vars(owner)[name]
        kind = type(held) if isinstance(held, (staticmethod, classmethod)) else None
        function = held.__func__ if kind is not None else held
        if getattr(function, "_reprise_pass", False):
            return  # two entries name it
        wrapped = self._wrapped(function, name, by_name)
        self._set(owner, name, held, kind(wrapped) if kind is not None else wrapped)
        if isinstance(owner, ModuleType):
            for module in list(sys.modules.values()):
                for other, value in list(getattr(module, "__dict__", {}).items()):
                    if value is function and module is not owner:
                        self._set(module, other, value, wrapped)

    def _set(self, owner: Any, name: str, old: Any, new: Any) -> None:
        self._undo.append((owner, name, old))
        setattr(owner, name, new)

    def _wrapped(self, function: Any, name: str, by_name: str | None) -> Any:
        begin, end = self.begin, self.end

        def called(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
            if by_name is None:
                return name
            value = args[0] if args else next(iter(kwargs.values()), None)
            for part in by_name.split("."):
                value = getattr(value, part)
            return str(value)

        wrapper: Any
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args: Any, **kwargs: Any) -> Any:
                what = called(args, kwargs)
                begin(what)
                result = await function(*args, **kwargs)
                end(what)
                return result

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                what = called(args, kwargs)
                begin(what)
                result = yield from function(*args, **kwargs)
                end(what)
                return result

        else:

            @functools.wraps(function)
            def wrapper(*args: Any, **kwargs: Any) -> Any:
                what = called(args, kwargs)
                begin(what)
                result = function(*args, **kwargs)
                end(what)
                return result

        wrapper._reprise_pass = True
        return wrapper


def _functions(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The functions that a module defines, by qualified name, with what holds each."""
    waiting: list[tuple[str, Any]] = [("", module)]
    while waiting:
        prefix, owner = waiting.pop(0)
        for name, value in list(vars(owner).items()):
            plain = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            if isinstance(plain, FunctionType) and plain.__module__ == module.__name__:
                yield prefix + name, owner
            elif (
                isinstance(value, type)
                and value.__module__ == module.__name__
                and value.__qualname__ == prefix + name  # not another name of it
            ):
                waiting.append((f"{prefix}{name}.", value))
