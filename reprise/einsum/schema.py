"""JSON Schema, as much of it as the schema of kernels uses, with errors for people.

The file ``rules/einsum/kernel.schema.json`` is the definition of the JSON kernel; :func:`check`
holds a document against it and says where the first thing is wrong. A keyword that is not known
here is an error, so that no part of the schema is silently not checked.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from reprise.data import data_path
from reprise.einsum.kernel import KernelError

FILE = "rules/einsum/kernel.schema.json"

_SILENT = frozenset({"$schema", "$id", "$defs", "title", "description", "default"})
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


@cache
def schema() -> dict[str, Any]:
    """The schema of a kernel."""
    found: dict[str, Any] = json.loads(data_path(FILE).read_text(encoding="utf-8"))
    return found


def check(document: Any) -> None:
    """Raise KernelError, with the path of the value, if a document is no JSON kernel."""
    version = schema()["properties"]["version"]["const"]
    if isinstance(document, dict) and document.get("version", version) != version:
        # What else is said would be about another version.
        raise KernelError(f"version: expected {version}, found {_shown(document['version'])}")
    problem = _problem(document, schema(), "")
    if problem is not None:
        raise KernelError(problem)


def _problem(value: Any, rules: dict[str, Any], path: str) -> str | None:
    """The first thing that is wrong with ``value``, or None."""
    for keyword, rule in rules.items():
        if keyword in _SILENT:
            continue
        found = _keyword(value, keyword, rule, rules, path)
        if found is not None:
            return found
    return None


def _keyword(value: Any, keyword: str, rule: Any, rules: dict[str, Any], path: str) -> str | None:
    def wrong(expected: str) -> str:
        return f"{path or 'the kernel'}: expected {expected}, found {_shown(value)}"

    match keyword:
        case "$ref":
            target = schema()
            for part in rule.removeprefix("#/").split("/"):
                target = target[part]
            return _problem(value, target, path)
        case "type":
            right = isinstance(value, _TYPES[rule]) and (
                rule == "boolean" or not isinstance(value, bool)
            )
            return None if right else wrong(f"{'an' if rule[0] in 'aio' else 'a'} {rule}")
        case "const":
            return None if _same(value, rule) else wrong(_shown(rule))
        case "enum":
            if any(_same(value, item) for item in rule):
                return None
            return wrong("one of " + ", ".join(map(_shown, rule)))
        case "oneOf":
            return _one_of(value, rule, path)
    if isinstance(value, dict):
        return _object_keyword(value, keyword, rule, rules, path)
    if isinstance(value, list):
        return _array_keyword(value, keyword, rule, rules, path, wrong)
    if isinstance(value, str):
        if keyword == "pattern":
            return None if _pattern(rule).search(value) else wrong("a name")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if keyword == "minimum":
            return None if value >= rule else wrong(f"at least {rule}")
        if keyword == "maximum":
            return None if value <= rule else wrong(f"at most {rule}")
    if keyword in _KNOWN:
        return None  # says nothing of a value of this type
    raise AssertionError(f"{FILE} uses {keyword!r}, which {__name__} does not know")


_KNOWN = frozenset(
    [
        "required",
        "additionalProperties",
        "propertyNames",
        "properties",
        "minItems",
        "items",
        "prefixItems",
        "uniqueItems",
        "pattern",
        "minimum",
        "maximum",
    ]
)


def _object_keyword(
    value: dict[str, Any], keyword: str, rule: Any, rules: dict[str, Any], path: str
) -> str | None:
    match keyword:
        case "required":
            missing = [name for name in rule if name not in value]
            return f"{path or 'the kernel'}: there is no {missing[0]!r}" if missing else None
        case "properties":
            parts = [(name, value[name], part) for name, part in rule.items() if name in value]
        case "additionalProperties":
            others = [name for name in value if name not in rules.get("properties", {})]
            if rule is False:
                known = ", ".join(rules["properties"])
                where = path or "the kernel"
                return f"{where}: {others[0]!r} is none of {known}" if others else None
            parts = [(name, value[name], rule) for name in others]
        case "propertyNames":
            parts = [(name, name, rule) for name in value]
        case _:
            if keyword in _KNOWN:
                return None
            raise AssertionError(f"{FILE} uses {keyword!r}, which {__name__} does not know")
    return _first((_problem(v, part, f"{path}.{name}".lstrip(".")) for name, v, part in parts))


def _array_keyword(
    value: list[Any], keyword: str, rule: Any, rules: dict[str, Any], path: str, wrong: Any
) -> str | None:
    match keyword:
        case "items":
            start = len(rules.get("prefixItems", ()))
            numbered = enumerate(value[start:], start)
            return _first(_problem(item, rule, f"{path}[{n}]") for n, item in numbered)
        case "prefixItems":
            pairs = enumerate(zip(value, rule, strict=False))
            return _first(_problem(item, part, f"{path}[{n}]") for n, (item, part) in pairs)
        case "minItems":
            return None if len(value) >= rule else str(wrong(f"at least {rule} items"))
        case "uniqueItems":
            unique = len({json.dumps(item) for item in value}) == len(value)
            return None if unique else str(wrong("no item twice"))
        case _:
            if keyword in _KNOWN:
                return None
            raise AssertionError(f"{FILE} uses {keyword!r}, which {__name__} does not know")


def _one_of(value: Any, rules: list[dict[str, Any]], path: str) -> str | None:
    """Alternatives are told apart by the constant that each has: what is wrong is said of the one
    that is meant."""
    tag = next(iter(rules[0]["required"]))
    found = value.get(tag) if isinstance(value, dict) else None
    for rule in rules:
        if _same(rule["properties"][tag]["const"], found):
            return _problem(value, rule, path)
    tags = ", ".join(_shown(rule["properties"][tag]["const"]) for rule in rules)
    return f"{path}: expected an object whose {tag!r} is one of {tags}, found {_shown(value)}"


def _first(problems: Any) -> str | None:
    return next((problem for problem in problems if problem is not None), None)


@cache
def _pattern(rule: str) -> re.Pattern[str]:
    """A schema's pattern. Its ``$`` is the end, where Python's is also before a last newline."""
    return re.compile(rule.replace("$", r"\Z"))


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
