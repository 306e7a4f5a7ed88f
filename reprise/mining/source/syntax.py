"""Where a node of a syntax tree stands: its statement, its function, what it is assigned to.

The same for Python and C++, whose grammars name these things differently but without conflict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tree_sitter import Node

from reprise.mining.source.expressions import flat, text

FUNCTIONS = ("function_definition",)
CLASSES = ("class_definition", "class_specifier", "struct_specifier")
TARGETS = ("identifier", "attribute", "field_expression", "subscript", "subscript_expression")
"""What a value may be assigned to; not several things at once."""
MOST_DEPTH = 1000
"""Nodes around a node at most; what is written by hand has less than a hundred."""

STATEMENTS = (
    "expression_statement",
    "declaration",
    "assert_statement",
    "if_statement",
    "for_statement",
    "while_statement",
    "return_statement",
    "field_declaration",
)
_COMPREHENSIONS = (
    "generator_expression",
    "list_comprehension",
    "set_comprehension",
    "dictionary_comprehension",
)
BLOCKS = (
    "block",
    "compound_statement",
    "module",
    "translation_unit",
    "field_declaration_list",
    "declaration_list",
    "preproc_ifdef",
    "preproc_if",
    "preproc_else",
)


def assigned(node: Node, around: Sequence[Node]) -> tuple[Node, Node | None]:
    """The statement that a node is in, and what the node's value is assigned to."""
    child = node
    variable: Node | None = None
    direct = True
    for parent in around:
        if direct and parent.type in ("assignment", "assignment_expression"):
            left, right = (parent.child_by_field_name(n) for n in ("left", "right"))
            if right == child and left is not None and left.type in TARGETS:
                variable = left
        elif direct and parent.type == "init_declarator":
            left = parent.child_by_field_name("declarator")
            if left is not None and left.type == "identifier":
                variable = left
        direct = direct and parent.type in ("parenthesized_expression",)
        if child.type in STATEMENTS or parent.type in BLOCKS:
            return child, variable
        child = parent
    return child, variable


def named(arguments: Node) -> dict[str, str]:
    """The texts of arguments, by position and by name."""
    known: dict[str, str] = {}
    position = 0
    for child in arguments.named_children:
        name, value = (child.child_by_field_name(n) for n in ("name", "value"))
        if child.type == "keyword_argument" and name is not None and value is not None:
            known[text(name)] = operand(value)
        elif child.type != "comment":
            known[str(position)] = operand(child)
            position += 1
    return known


def operand(node: Node) -> str:
    """The source text, in parentheses where it is no single operand."""
    written = flat(node)
    single = "operator" not in node.type and node.type not in ("binary_expression", "lambda")
    return written if single else f"({written})"


def ancestors(node: Node, root: Node) -> list[Node]:
    """The nodes around a node, the innermost first.

    From the root down: to ask a node for its parent takes as long as all the way from the root.
    Raises RecursionError: there are more than MOST_DEPTH.
    """
    found: list[Node] = []
    around: Node | None = root
    while around is not None and around != node:
        found.append(around)
        if len(found) > MOST_DEPTH:
            raise RecursionError("nested too deeply")
        around = around.child_with_descendant(node)
    return found[::-1]


def bound(node: Node, ancestors: Sequence[Node]) -> Iterator[str]:
    """Names that lambdas and comprehensions around a site bind, up to its statement."""
    for parent in ancestors:
        if parent.type in STATEMENTS or parent.type in BLOCKS:
            return
        if parent.type == "lambda":
            parameters = parent.child_by_field_name("parameters")
            if parameters is not None:
                yield from identifiers(parameters)
        for child in parent.named_children if parent.type in _COMPREHENSIONS else ():
            if child.type == "for_in_clause":
                left = child.child_by_field_name("left")
                if left is not None:
                    yield from identifiers(left)


def constants_beside(statement: Node) -> Iterator[tuple[Node, Node]]:
    """Name and value of the statements right before and after one that declare an integer."""
    for other in (_beside(statement, "prev"), _beside(statement, "next")):
        while other is not None and other.type in ("expression_statement", "declaration"):
            other = next(
                (c for c in other.named_children if c.type in ("assignment", "init_declarator")),
                None,
            )
        if other is None:
            continue
        name, value = (
            next((n for f in fields if (n := other.child_by_field_name(f)) is not None), None)
            for fields in (("left", "declarator", "name"), ("right", "value"))
        )
        if (
            name is not None
            and value is not None
            and re.search(r"[A-Za-z]", text(name))
            and re.fullmatch(r"[1-9][0-9]{0,17}|0|0[xX][0-9a-fA-F]{1,15}", text(value).strip())
        ):
            yield name, value


def _beside(statement: Node, side: str) -> Node | None:
    """The next statement on a side, comments left out."""
    other: Node | None = getattr(statement, f"{side}_named_sibling")
    while other is not None and other.type == "comment":
        other = getattr(other, f"{side}_named_sibling")
    return other


def perhaps(node: Node, ancestors: Sequence[Node]) -> bool:
    """Whether a node need not be evaluated where its statement is."""
    child = node
    for parent in ancestors:
        if child.type in STATEMENTS or parent.type in BLOCKS:
            return False
        match parent.type:
            case "conditional_expression":  # in Python `a if condition else b`
                condition = parent.child_by_field_name("condition") or parent.named_children[1]
                if child != condition:
                    return True
            case "boolean_operator" | "binary_expression":
                operator = parent.child_by_field_name("operator")
                joins = operator is not None and operator.type in ("and", "or", "&&", "||")
                if joins and child == parent.child_by_field_name("right"):
                    return True
            case "lambda" | "lambda_expression":
                return True
            case kind if kind in _COMPREHENSIONS:
                return True
        child = parent
    return False


def identifiers(node: Node) -> Iterator[str]:
    """The names in a node, in their order."""
    if node.type == "identifier":
        yield text(node)
    for child in node.named_children:
        yield from identifiers(child)


def function_name(node: Node) -> str:
    """The name of a function's definition, in C++ with its classes and namespaces."""
    name = node.child_by_field_name("name")
    if name is not None:
        return text(name)
    declarator = node.child_by_field_name("declarator")
    while declarator is not None:
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((c for c in declarator.named_children if "declarator" in c.type), None)
        if inner is None:
            return flat(declarator)
        declarator = inner
    return "?"
