"""Checks in Python sources.

A check is a call of the recorder (``recorder/monitor.py``), on a line of its own where a line may
stand, else after ``;``. Values are read by a function without arguments, at once, within the
recorder's protection; what the condition computes is plain Python numbers.
"""

from __future__ import annotations

import ast as python
import builtins
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import tree_sitter_python
from tree_sitter import Language, Node

from reprise.mining.instrument.checks import Check, Site
from reprise.mining.instrument.device import Scalar
from reprise.mining.instrument.edits import Insertion, Lines
from reprise.mining.instrument.places import (
    NoPlace,
    Region,
    ancestors,
    choose,
    parse,
    text_of,
    unreadable,
    walk,
)
from reprise.mining.instrument.values import MAY_CHANGE, Condition, Untranslatable, Writer

LANGUAGE = Language(tree_sitter_python.language())
RECORDER = "_reprise_monitor.py"

PREAMBLE = (
    f'exec(__import__("pathlib").Path(__file__).with_name("{RECORDER}").read_bytes(), '
    '_reprise := {"__name__": "_reprise_monitor"})'
)
"""Runs the recorder that lies beside the file, whether the file is a module, a script or loaded by
its path: the copy can be moved, and installed."""

_BEFORE = frozenset(
    {"if_statement", "elif_clause", "match_statement", "assert_statement", "return_statement"}
    | {"raise_statement", "break_statement", "continue_statement", "delete_statement", "decorator"}
)
"""Where a check runs before the statement: it is a guard itself, or control leaves there."""

_COMPOUND = frozenset(
    {"if_statement", "for_statement", "while_statement", "with_statement", "try_statement"}
    | {"match_statement", "function_definition", "class_definition"}
    | {"elif_clause", "else_clause", "except_clause", "except_group_clause", "finally_clause"}
    | {"case_clause"}
)
_NO_STATEMENTS = frozenset({"comment", "decorated_definition", "ERROR", "decorator"})
_SCOPES = frozenset({"function_definition", "class_definition", "lambda"})
_COMPREHENSIONS = frozenset(
    {"list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression"}
)

_READ_AS_SOURCE = re.compile(
    r"(?:^|\.)(?:prim_func|ir_module|jit|njit|script|macro)$|^R\.function$"
)
"""Decorators whose functions another compiler reads as source (TVMScript, Triton, Numba, …): a
call of the recorder in them would be part of the program that they describe."""

_PURE = frozenset({"len", "int", "abs", "min", "max", "sum", "float", "bool", "round"})


class PythonWriter(Writer):
    """Conditions as Python expressions over names.

    Of a value's expression, only variables, attributes and items are read in the compiler; calls
    and arithmetic in it become part of the condition: applied to a placeholder of the compiler's,
    they might change it.
    """

    def read(self, expression: str, before: bool) -> str:
        return python.unparse(_Leaves(self, before).visit(_parsed(expression)))

    def name_of(self, expression: str, before: bool) -> str:
        plain = re.sub(r"\W+", "_", expression, flags=re.ASCII).strip("_") or "value"
        name = f"before_{plain}" if before else plain
        taken = {*self.reads.values(), *dir(builtins), "_reprise"}
        while name in taken or keyword.iskeyword(name) or name[0].isdigit():
            name = f"v_{name}"
        return name

    def literal(self, value: Scalar | bool) -> str:
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return f'float("{value}")'
        return repr(value)

    def binary(self, op: str, left: str, right: str) -> str:
        if op == "/":
            return f'_reprise["div"]({left}, {right})'
        return f"{_grouped(left)} {op} {_grouped(right)}"

    def call(self, function: str, args: list[str]) -> str:
        return f"{function}({', '.join(args)})"

    def join(self, word: str, parts: list[str]) -> str:
        return f" {word} ".join(_grouped(part) for part in parts)

    def negation(self, part: str) -> str:
        return f"not {_grouped(part)}"

    def comparison(self, left: str, op: str, right: str) -> str:
        return f"{_unary(left)} {op} {_unary(right)}"

    def listing(self, items: list[str]) -> str:
        return f"[{', '.join(items)}]"


def _grouped(text: str) -> str:
    return text if re.fullmatch(r"\w+|\w+\([^()]*\)", text) else f"({text})"


def _unary(text: str) -> str:
    """An operand of a comparison: arithmetic binds tighter, other comparisons do not."""
    return f"({text})" if re.search(r"[=<>]|\b(?:and|or|not|if|in|is)\b", text) else text


@dataclass
class PythonSource:
    """A Python file; see ``places.SourceFile``."""

    source: bytes
    device: Mapping[str, Scalar]
    may_call: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.lines = Lines(self.source)
        self.tree = parse(LANGUAGE, self.source)

    def place(self, check: Check, site: Site) -> list[Insertion]:
        condition = PythonWriter(self.device, self.may_call).condition(check.condition)
        roots = {name for value in condition.values for name in names_read(value)}
        region = self.region(site, roots)
        node = region.node
        block = _body(node) if node.type in _COMPOUND - _BEFORE else None
        scope = _scope(block or node)
        self.refuse(node, scope, region, roots)
        if node.type == "decorator":
            assert node.parent is not None
            node = node.parent
        elif node.type == "elif_clause":
            node = next(n for n in ancestors(node) if n.type == "if_statement")
        early = [self.before(node, keep)] if (keep := _keep(check, condition, scope)) else []
        if early and (block is not None or region.node.type in _BEFORE):
            raise NoPlace("before(…) needs a statement that the check can run after")
        text = _call(check, condition, scope)
        if block is not None:
            return [self.at_start(block, text)]
        if region.node.type in _BEFORE:
            return [self.before(node, text)]
        return [*early, self.after(node, text)]

    def preamble(self) -> Insertion:
        statements = [n for n in self.tree.root_node.children if n.is_named and n.type != "comment"]
        if statements and _is_string(statements[0]):
            statements = statements[1:]
        while statements and statements[0].type == "future_import_statement":
            statements = statements[1:]
        return self.before(statements[0], PREAMBLE)

    # --- which statement ------------------------------------------------------------------------

    def region(self, site: Site, roots: set[str]) -> Region:
        """The statement that the site means. Raises NoPlace."""
        if site.line > len(self.lines):
            raise NoPlace(f"the file has {len(self.lines)} lines")
        start, end = self.lines.start(site.line), self.lines.end(site.line)
        found = []
        for region in self.regions:
            if region.start < end and region.end > start:
                mentioned, bound = _names_in(region)
                found.append((region, bound, mentioned))
        try:
            return choose(found, roots)
        except NoPlace as refused:
            raise NoPlace(f"{refused}{self.elsewhere(roots)}") from None

    def elsewhere(self, roots: set[str]) -> str:
        """Where the values are bound, for the message about a site that has moved."""
        lines = sorted(
            {self.lines.number(r.start) for r in self.regions if _names_in(r)[1] & roots}
        )
        shown = ", ".join(map(str, lines[:5]))
        return f" (it is bound on line {shown})" if len(roots) == 1 and lines else ""

    @cached_property
    def regions(self) -> list[Region]:
        """All statements, in order. Those of a block are its children: to ask each node for its
        parent would take as long as all the way from the root."""
        found = []
        for node in walk(self.tree.root_node):
            if node.type in _COMPOUND:
                body = _body(node)
                end = _header_end(node, body.start_byte if body is not None else node.end_byte)
                found.append(Region(node, node.start_byte, end))
            elif node.type == "decorator":
                found.append(Region(node, node.start_byte, node.end_byte))
            elif node.type in ("block", "module"):
                found += (
                    Region(child, child.start_byte, child.end_byte)
                    for child in node.named_children
                    if child.type not in _COMPOUND | _NO_STATEMENTS
                )
        return sorted(found, key=lambda region: (region.start, -region.node.end_byte))

    def refuse(self, node: Node, scope: Node | None, region: Region, roots: set[str]) -> None:
        """Raise NoPlace where a check must not stand or cannot see its values."""
        if unreadable(region):
            raise NoPlace("the grammar cannot read the source there")
        for above in [node, *ancestors(node)]:
            if above.type == "decorated_definition":
                for decorator in above.children:
                    name = _decorator_name(decorator)
                    if name is not None and _READ_AS_SOURCE.search(name):
                        raise NoPlace(f"@{name} reads the function as source")
        bound = _names_in(region)[1]
        for root in sorted(roots - bound - self.own_mentions(region)):
            if not self.visible(root, scope):
                raise NoPlace(f"there is no `{root}` in that scope")

    def own_mentions(self, region: Region) -> set[str]:
        """Names that the statement itself reads in its own scope, so that they exist there."""
        inner = frozenset(_SCOPES | _COMPREHENSIONS) - {region.node.type}
        return {
            text_of(node)
            for node in walk(region.node, inner)
            if node.type == "identifier"
            and region.start <= node.start_byte < region.end
            and not _is_attribute(node)
        }

    def visible(self, name: str, scope: Node | None) -> bool:
        if hasattr(builtins, name):
            return True
        innermost = True
        while True:
            if scope is None or scope.type != "class_definition" or innermost:
                bound = _bound_in(scope or self.tree.root_node)
                if name in bound or "*" in bound:
                    return True
            if scope is None:
                return False
            innermost = False
            scope = _scope(scope)

    # --- where exactly --------------------------------------------------------------------------

    def before(self, node: Node, text: str) -> Insertion:
        line = self.lines.number(node.start_byte)
        if self.starts_line(node):
            return self.lines.before(line, self.lines.indentation(line) + text.encode())
        return Insertion(node.start_byte, f"{text}; ".encode())

    def after(self, node: Node, text: str) -> Insertion:
        first, last = self.lines.number(node.start_byte), self.lines.number(node.end_byte - 1)
        rest = self.source[node.end_byte : self.lines.end(last)].strip()
        if self.starts_line(node) and (not rest or rest.startswith(b"#")):
            return self.lines.after(last, self.lines.indentation(first) + text.encode())
        return Insertion(node.end_byte, f"; {text}".encode())

    def at_start(self, block: Node, text: str) -> Insertion:
        """At the start of a body, behind its docstring."""
        statements = [n for n in block.children if n.is_named and n.type != "comment"]
        if not statements:
            raise NoPlace("the grammar cannot read the body there")
        owner = block.parent
        documented = owner is not None and owner.type in ("function_definition", "class_definition")
        if documented and _is_string(statements[0]):
            if len(statements) == 1:
                return self.after(statements[0], text)
            statements = statements[1:]
        return self.before(statements[0], text)

    def starts_line(self, node: Node) -> bool:
        line = self.lines.number(node.start_byte)
        continued = line > 1 and self.lines.text(line - 1).endswith(b"\\")
        return not continued and not self.source[self.lines.start(line) : node.start_byte].strip()


def names_read(expression: str) -> set[str]:
    """The variables that a value's expression reads."""
    tree = _parsed(expression)
    return {node.id for node in python.walk(tree) if isinstance(node, python.Name)} - _PURE


def _parsed(expression: str) -> python.expr:
    try:
        return python.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        raise Untranslatable(f"`{expression}` is no Python expression") from None


_COMPUTES = (python.Constant, python.BinOp, python.UnaryOp, python.BoolOp, python.Compare)


class _Leaves(python.NodeTransformer):
    """Replaces what is read in the compiler by names. Raises Untranslatable for what may change
    something there."""

    def __init__(self, writer: PythonWriter, before: bool) -> None:
        self.writer = writer
        self.before = before

    def only_looks(self, node: python.AST) -> bool:
        match node:
            case python.Call(python.Name(function)) | python.Call(python.Attribute(attr=function)):
                return function in self.writer.may_call | _PURE
            case python.Call() | python.NamedExpr() | python.Await() | python.Yield():
                return False
        return True

    def visit(self, node: python.AST) -> python.AST:
        match node:
            case python.Name() | python.Attribute() | python.Subscript():
                text = python.unparse(node)
                if not all(self.only_looks(inner) for inner in python.walk(node)):
                    raise Untranslatable(f"`{text}` makes a call, {MAY_CHANGE}")
                return python.Name(Writer.read(self.writer, text, self.before))
            case python.Call(python.Name(function), _, []) if function in _PURE:
                inner = ", ".join(python.unparse(self.visit(arg)) for arg in node.args)
                return python.parse(f"{function}({inner})", mode="eval").body
            case python.Call():
                text = python.unparse(node)
                if all(self.only_looks(inner) for inner in python.walk(node)):
                    return python.Name(Writer.read(self.writer, text, self.before))
                raise Untranslatable(f"`{text}` makes a call, {MAY_CHANGE}")
            case python.Tuple() | python.List() | python.operator() | python.unaryop():
                return self.generic_visit(node)
            case python.boolop() | python.cmpop() | python.expr_context() | python.IfExp():
                return self.generic_visit(node)
        if isinstance(node, _COMPUTES):
            return self.generic_visit(node)
        raise Untranslatable(f"`{python.unparse(node)}` is more than a value")


def _call(check: Check, condition: Condition, scope: Node | None) -> str:
    late = [value for value, name in condition.pairs if name not in condition.before]
    names = ", ".join(name for _, name in condition.pairs)
    read = _reader(late, scope)
    return f'_reprise["check"]("{check.key}", {read}, lambda {names}: {condition.text})'


def _keep(check: Check, condition: Condition, scope: Node | None) -> str:
    early = [value for value, name in condition.pairs if name in condition.before]
    return f'_reprise["keep"]("{check.key}", {_reader(early, scope)})' if early else ""


def _reader(values: list[str], scope: Node | None) -> str:
    """A function that reads the values. In a class body it is given the names there, which a
    function within cannot see."""
    listed = ", ".join(value.strip() for value in values)
    listed = f"({listed},)" if len(values) == 1 else f"({listed})"
    if scope is not None and scope.type == "class_definition":
        return f"lambda g=globals(), l=locals(): eval({listed!r}, g, l)"
    return f"lambda: {listed}"


# --- the tree -----------------------------------------------------------------------------------


def _body(node: Node) -> Node | None:
    body = node.child_by_field_name("body") or node.child_by_field_name("consequence")
    return body or next((child for child in node.children if child.type == "block"), None)


def _header_end(node: Node, end: int) -> int:
    """Where a header ends: behind its colon, the last one before the body."""
    return max(
        (c.end_byte for c in node.children if c.type == ":" and c.end_byte <= end), default=end
    )


def _scope(node: Node) -> Node | None:
    """The function or class that a node is directly in; None for a module."""
    return next((n for n in ancestors(node) if n.type in _SCOPES), None)


def _is_string(node: Node) -> bool:
    return node.type == "expression_statement" and [c.type for c in node.children] == ["string"]


def _is_attribute(node: Node) -> bool:
    """Whether an identifier is an attribute's name or a keyword argument's."""
    parent = node.parent
    if parent is None:
        return False
    field = {"attribute": "attribute", "keyword_argument": "name"}.get(parent.type)
    return field is not None and parent.child_by_field_name(field) == node


def _decorator_name(node: Node) -> str | None:
    if node.type != "decorator":
        return None
    named = next((child for child in node.children if child.is_named), None)
    if named is not None and named.type == "call":
        named = named.child_by_field_name("function")
    return None if named is None else text_of(named)


def _names_in(region: Region) -> tuple[set[str], set[str]]:
    """The names that a region mentions, and those that it binds."""
    mentioned, bound = set(), set()
    for node in walk(region.node):
        if region.start <= node.start_byte < region.end:
            if node.type == "identifier" and not _is_attribute(node):
                mentioned.add(text_of(node))
            bound |= _binds(node)
    return mentioned, bound


def _bound_in(scope: Node) -> set[str]:
    """The names that a scope binds, its parameters included; ``*`` for a star import."""
    bound: set[str] = set()
    inner = _SCOPES | _COMPREHENSIONS
    parameters = scope.child_by_field_name("parameters")
    if parameters is not None:
        for node in walk(parameters):
            if node.type == "identifier":
                bound.add(text_of(node))
    start = scope.child_by_field_name("body") or scope
    for node in walk(start, frozenset(inner)):
        bound |= _binds(node)
    return bound


_TARGETS = {
    "assignment": "left",
    "augmented_assignment": "left",
    "named_expression": "name",
    "for_statement": "left",
    "as_pattern": "alias",
    "function_definition": "name",
    "class_definition": "name",
}


def _binds(node: Node) -> set[str]:
    """The names that one node binds in its scope."""
    if node.type in _TARGETS:
        target = node.child_by_field_name(_TARGETS[node.type])
        skip = frozenset({"attribute", "subscript"})
        nodes = [] if target is None else list(walk(target, skip))
        return {text_of(n) for n in nodes if n.type == "identifier" and not _within(n, skip)}
    if node.type in ("global_statement", "nonlocal_statement", "case_pattern"):
        return {text_of(n) for n in walk(node) if n.type == "identifier"}
    if node.type == "wildcard_import":
        return {"*"}
    if node.type in ("import_statement", "import_from_statement"):
        return _imported(node)
    return set()


def _within(node: Node, types: frozenset[str]) -> bool:
    return node.parent is not None and node.parent.type in types


def _imported(node: Node) -> set[str]:
    module = node.child_by_field_name("module_name")
    names = set()
    for child in node.children:
        if child.type == "aliased_import":
            alias = child.child_by_field_name("alias")
            names |= set() if alias is None else {text_of(alias)}
        elif child.type == "dotted_name" and child != module:
            names.add(text_of(child).split(".")[0])
    return names
