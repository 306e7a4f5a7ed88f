"""A registry of targets written in Python (TVM's ``target_tags.py``), read without running it.

A small interpreter follows what such files do: constants, dictionaries, functions that register,
loops over literals, arithmetic. Whatever comes from an import is unknown, and what depends on it is
left out with a warning; nothing of the file's is ever executed by Python.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from reprise.lang.diagnostics import Diagnostic
from reprise.mining.hardware.document import Entry, Place, Section, Value, problem, remark

MAX_STEPS = 200_000
"""Statements that one file may take; TVM's longest takes about a thousand."""

MAX_LENGTH = 10_000
"""Characters of a string, items of a list, bits of a number."""


class _Unknown(Exception):
    """A value that the file does not give: imported, or made by something not followed here."""


class _Return(Exception):
    """A function's end."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class _Stop(Exception):
    """The file takes too many steps."""


class _Located(dict[str, Any]):
    """A dictionary whose keys know their lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}


@dataclass(frozen=True)
class _Function:
    definition: ast.FunctionDef


def read_registry(
    text: str, file: str, name: str, register: Iterable[str]
) -> tuple[Section, list[Diagnostic]]:
    """The targets that calls of a function in ``register`` name, each a section, and what is wrong.

    The call's first argument is the target's name, its second a dictionary.
    """
    whole = Place(file, 1)
    try:
        with warnings.catch_warnings(action="ignore"):  # about the file's style
            module = ast.parse(text)
    except SyntaxError as error:
        place = Place(file, error.lineno or 1, error.offset or 1)
        wrong = problem("spec-syntax", f"this is not Python: {error.msg}", place)
        return Section(name, "", (), (), whole), [wrong]
    except (ValueError, RecursionError, MemoryError):
        wrong = problem("spec-syntax", "this is not Python", whole)
        return Section(name, "", (), (), whole), [wrong]
    reader = _Registry(file, frozenset(register))
    reader.run(module)
    return Section(name, "", (), tuple(reader.found), whole), reader.wrong


class _Registry:
    """One file's interpretation."""

    def __init__(self, file: str, register: frozenset[str]) -> None:
        self.file = file
        self.register = register
        self.names: dict[str, Any] = {}
        self.found: list[Section] = []
        self.wrong: list[Diagnostic] = []
        self.steps = 0

    def run(self, module: ast.Module) -> None:
        for statement in module.body:
            try:
                self.execute([statement], self.names)
            except _Unknown as error:
                message = f"cannot tell what this registers: {error}"
                place = Place(self.file, statement.lineno, statement.col_offset + 1)
                self.wrong.append(remark("spec-unknown-value", message, place))
            except _Return:
                pass
            except (_Stop, RecursionError):
                place = Place(self.file, statement.lineno)
                self.wrong.append(problem("spec-size", "this registers without end", place))
                return

    def execute(self, body: list[ast.stmt], names: dict[str, Any]) -> None:
        for statement in body:
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise _Stop
            try:
                self._statement(statement, names)
            except (TypeError, ValueError) as error:  # where running it would fail, too
                raise _Unknown(str(error)) from None

    def _statement(self, statement: ast.stmt, names: dict[str, Any]) -> None:
        match statement:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, self.value(value, names), names)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self.value(value, names), names)
            case ast.FunctionDef():
                names[statement.name] = _Function(statement)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.Expr(value=value):
                self.value(value, names)
            case ast.For(target=target, iter=items, body=body):
                for item in list(self.value(items, names)):
                    self._assign(target, item, names)
                    self.execute(body, names)
            case ast.If(test=test, body=body, orelse=other):
                self.execute(body if self.value(test, names) else other, names)
            case ast.Try(body=body, handlers=handlers, orelse=other):
                try:
                    self.execute(body, names)
                    self.execute(other, names)
                except _Unknown:  # as where what is imported is not there
                    if not handlers:
                        raise
                    self.execute(handlers[0].body, names)
            case ast.Return(value=value):
                raise _Return(None if value is None else self.value(value, names))
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    names.pop(alias.asname or alias.name, None)
            case _:
                raise _Unknown(f"{type(statement).__name__.lower()} statements are not followed")

    def _assign(self, target: ast.expr, value: Any, names: dict[str, Any]) -> None:
        match target:
            case ast.Name(id=name):
                names[name] = value
            case ast.Tuple(elts=parts):
                values = list(value)
                if len(values) != len(parts):
                    raise _Unknown("unequal unpacking")
                for part, item in zip(parts, values, strict=True):
                    self._assign(part, item, names)
            case ast.Subscript(value=holder, slice=index):
                into = self.value(holder, names)
                key = self.value(index, names)
                if not isinstance(into, dict) or not isinstance(key, str):
                    raise _Unknown("only dictionaries are assigned into")
                into[key] = value
                if isinstance(into, _Located):
                    into.lines[key] = target.lineno
            case _:
                raise _Unknown("this assignment is not followed")

    def value(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        """What an expression is. Raises _Unknown."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                if name in names:
                    return names[name]
                if name in self.names:
                    return self.names[name]
                raise _Unknown(f"`{name}` is not defined in this file")
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [self.value(item, names) for item in items]
            case ast.Dict(keys=keys, values=values):
                made = _Located()
                for key, item in zip(keys, values, strict=True):
                    self._into(made, key, item, names)
                return made
            case ast.BinOp(left=left, op=op, right=right):
                return _binary(op, self.value(left, names), self.value(right, names))
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return not self.value(inner, names)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return -self.value(inner, names)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return _compare(op, self.value(left, names), self.value(right, names))
            case ast.Subscript(value=holder, slice=index):
                try:
                    return self.value(holder, names)[self.value(index, names)]
                except (KeyError, IndexError, TypeError) as error:
                    raise _Unknown(f"no item {error}") from None
            case ast.JoinedStr(values=parts):
                return "".join(str(self.value(part, names)) for part in parts)
            case ast.FormattedValue(value=inner):
                return self.value(inner, names)
            case ast.Call():
                return self._call(node, names)
        raise _Unknown(f"`{ast.unparse(node)[:40]}` is not followed")

    def _into(
        self, made: _Located, key: ast.expr | None, item: ast.expr, names: Mapping[str, Any]
    ) -> None:
        value = self.value(item, names)
        if key is None:  # {**other}
            if not isinstance(value, dict):
                raise _Unknown("`**` of something that is no dictionary")
            made.update(value)
            made.lines.update(getattr(value, "lines", {}))
            return
        name = self.value(key, names)
        if not isinstance(name, str):
            raise _Unknown("a key that is no string")
        if name in made and isinstance(key, ast.Constant):
            place = Place(self.file, key.lineno, key.col_offset + 1)
            self.wrong.append(
                remark("spec-duplicate", f"`{name}` is given twice here", place, name)
            )
        made[name] = value
        made.lines[name] = item.lineno

    def _call(self, call: ast.Call, names: Mapping[str, Any]) -> Any:
        match call.func:
            case ast.Name(id=name) if name in self.register:
                self._register(call, names)
                return None
            case ast.Name(id=name) if isinstance(self.names.get(name), _Function):
                return self._follow(self.names[name].definition, call, names)
            case ast.Attribute(value=holder, attr=method):
                return self._method(self.value(holder, names), method, call, names)
        raise _Unknown(f"`{ast.unparse(call.func)[:40]}` is not defined in this file")

    def _method(self, holder: Any, method: str, call: ast.Call, names: Mapping[str, Any]) -> Any:
        if not isinstance(holder, dict):
            raise _Unknown(f"`.{method}` is not followed")
        arguments = [self.value(a, names) for a in call.args]
        match method, arguments:
            case "items", []:
                return [list(pair) for pair in holder.items()]
            case "keys", []:
                return list(holder)
            case "values", []:
                return list(holder.values())
            case "copy", []:
                return _copy(holder)
            case "get", [key, *default] if len(default) <= 1:
                return holder.get(key, *default)
            case "update", [dict() as other]:
                holder.update(other)
                if isinstance(holder, _Located):
                    lines = getattr(other, "lines", {})
                    holder.lines.update(lines or dict.fromkeys(other, call.lineno))
                return None
        raise _Unknown(f"`.{method}` is not followed")

    def _follow(self, function: ast.FunctionDef, call: ast.Call, names: Mapping[str, Any]) -> Any:
        arguments = function.args
        if arguments.vararg or arguments.kwonlyargs or arguments.posonlyargs:
            raise _Unknown(f"the parameters of `{function.name}` are not followed")
        parameters = [a.arg for a in arguments.args]
        local: dict[str, Any] = {}
        defaults = parameters[len(parameters) - len(arguments.defaults) :]
        for parameter, default in zip(defaults, arguments.defaults, strict=True):
            local[parameter] = self.value(default, self.names)
        if len(call.args) > len(parameters):
            raise _Unknown(f"too many arguments for `{function.name}`")
        for parameter, given in zip(parameters, call.args, strict=False):
            local[parameter] = self.value(given, names)
        extra = _Located()
        for keyword in call.keywords:
            value = self.value(keyword.value, names)
            if keyword.arg in parameters:
                local[keyword.arg] = value
            elif arguments.kwarg is not None and keyword.arg is not None:
                extra[keyword.arg] = value
                extra.lines[keyword.arg] = keyword.value.lineno
            else:
                raise _Unknown(f"`{function.name}` has no parameter `{keyword.arg}`")
        if arguments.kwarg is not None:
            local[arguments.kwarg.arg] = extra
        missing = [p for p in parameters if p not in local]
        if missing:
            raise _Unknown(f"`{function.name}` is called without `{missing[0]}`")
        try:
            self.execute(function.body, local)
        except _Return as returned:
            return returned.value
        return None

    def _register(self, call: ast.Call, names: Mapping[str, Any]) -> None:
        if len(call.args) < 2:
            raise _Unknown("a registration without a name and a dictionary")
        name, config = (self.value(argument, names) for argument in call.args[:2])
        if not isinstance(name, str) or not isinstance(config, dict):
            raise _Unknown("a registration without a name and a dictionary")
        self.found.append(_section(config, name, self.file, call.lineno))


def _section(config: dict[str, Any], name: str, file: str, line: int) -> Section:
    lines = getattr(config, "lines", {})
    entries = []
    sections = []
    for key, value in config.items():
        place = Place(file, lines.get(key, line))
        if isinstance(value, dict):
            sections.append(_section(value, key, file, place.line))
        else:
            entries.append(Entry(key, _value(value), place))
    return Section(name, "", tuple(entries), tuple(sections), Place(file, line))


def _value(value: Any) -> Value:
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return Fraction(str(value))
        case list():
            return tuple(_value(item) for item in value)
    return str(value)


def _copy(holder: dict[str, Any]) -> _Located:
    made = _Located()
    made.update(holder)
    made.lines.update(getattr(holder, "lines", {}))
    return made


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    match op, left, right:
        case (ast.Add(), str(), str()) | (ast.Add(), list(), list()):
            if len(left) + len(right) <= MAX_LENGTH:
                return left + right
        case _, int(), int() if left.bit_length() + right.bit_length() <= MAX_LENGTH:
            match op:
                case ast.Add():
                    return left + right
                case ast.Sub():
                    return left - right
                case ast.Mult():
                    return left * right
                case ast.FloorDiv() if right:
                    return left // right
                case ast.Mod() if right:
                    return left % right
                case ast.Pow() if 0 <= right <= 64 and abs(left) <= 1024:
                    return left**right
                case ast.LShift() if 0 <= right <= 64:
                    return left << right
    raise _Unknown("arithmetic that is not followed")


def _compare(op: ast.cmpop, left: Any, right: Any) -> bool:
    try:
        match op:
            case ast.In():
                return bool(left in right)
            case ast.NotIn():
                return bool(left not in right)
            case ast.Eq():
                return bool(left == right)
            case ast.NotEq():
                return bool(left != right)
            case ast.Is():
                return left is right
            case ast.IsNot():
                return left is not right
    except TypeError:
        pass
    raise _Unknown("a comparison that is not followed")
