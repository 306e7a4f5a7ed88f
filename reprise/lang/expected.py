"""The parser's expectations in words."""

from __future__ import annotations

from collections.abc import Mapping

from reprise.lang.display import listed
from reprise.lang.tokens import DECLARATION_KEYWORDS

LISTS = "operands, conditions and list items"

DECLARATIONS = "a declaration starts with " + ", ".join(
    f"`{word}`" for word in sorted(DECLARATION_KEYWORDS)
)

AT_MOST = 5
"""Alternatives that a message names."""

_KINDS = {
    "NAME": "a name",
    "QNAME": "a name",
    "VAR": "a value variable",
    "INT": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "WILDCARD": "`_`",
    "END": "`.`",
    "REL": "a comparison",
    "NOT_IN": "`in`",
}
_VALUE = frozenset(
    ["NAME", "QNAME", "VAR", "INT", "FLOAT", "STRING", "WILDCARD", "MINUS", "LPAR", "LSQB"]
)
_VALUE_WORDS = frozenset(["INF", "NAN", "TRUE", "FALSE", "COUNT", "SUM", "MIN", "MAX", "PROD"])
_CONDITION_WORDS = frozenset(("NOT", "EXISTS"))
_ARITHMETIC = frozenset(["PLUS", "MINUS", "STAR", "SLASH", "PERCENT"])
_AFTER_VALUE = frozenset(("MEMBER", "LSQB", "LPAR"))
_OPERAND = frozenset(["NAME", "QNAME", "WILDCARD", "MAYBE", "NONE", "DOTS", "VIA"])
_DECLARATION = frozenset(word.upper() for word in DECLARATION_KEYWORDS)


def expectation(allowed: set[str], signs: Mapping[str, str]) -> str | None:
    """``expected a name, `,` or `)` ``, for the terminals that may come next."""
    rest = set(allowed) - {"$END"}
    words: list[str] = []
    if rest >= _DECLARATION:
        words.append("a declaration or a rule")
        rest -= _DECLARATION | {"NAME"}
    if rest >= _VALUE:
        words.append("a condition" if rest & _CONDITION_WORDS else "a value")
        rest -= _VALUE | _VALUE_WORDS | _CONDITION_WORDS
    elif rest >= _OPERAND:
        words.append("an operand")
        rest -= _OPERAND
    if rest >= _ARITHMETIC:
        rest -= _ARITHMETIC | _AFTER_VALUE
        if not rest:
            words.append("an operator")
    for kind in sorted(rest, key=_order):
        word = _KINDS.get(kind) or f"`{signs.get(kind, kind)}`"
        if kind != "MEMBER" and word not in words:
            words.append(word)
    if not words:
        return None
    if len(words) > AT_MOST:
        return f"expected {', '.join(words[:AT_MOST])}, …"
    return f"expected {listed(words)}"


def _order(kind: str) -> tuple[int, str]:
    """Named things, then signs, then keywords."""
    if kind in _KINDS and kind not in ("REL", "NOT_IN", "END"):
        return 0, kind
    return (1 if kind in _SIGNS else 2), kind


_SIGNS = frozenset(
    [
        "COMMA",
        "RPAR",
        "RSQB",
        "RBRACE",
        "LBRACE",
        "LPAR",
        "LSQB",
        "EQUAL",
        "COLON",
        "IF",
        "END",
        "ARROW",
        "SEMICOLON",
        "VBAR",
    ]
)


def describe(kind: str, text: str) -> str:
    """A token as a message names it."""
    if kind == "STRING":
        return f"string {text if len(text) <= 30 else text[:29] + '…'}"
    if kind in ("INT", "FLOAT"):
        return f"number `{text}`"
    return f"`{text if len(text) <= 40 else text[:39] + '…'}`"


def operand_hint(row: Mapping[str, int]) -> str | None:
    """What to say of a literal where an operand is wanted; None where none is."""
    if "MAYBE" not in row:
        return None
    return "an operand is a tensor: name it, and say in `where` or in a test what it holds"
