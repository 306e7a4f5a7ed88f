"""Checks in C++ sources.

A check is one statement that calls the recorder (``recorder/monitor.hpp``), on a line of its own
where a line may stand, else on the statement's line; a statement that is the whole body of an
``if`` or a loop gets braces. Values are read as numbers where they are some, and nothing is divided
by zero on the way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import tree_sitter_cpp
from tree_sitter import Language, Node

from reprise.mining.instrument.checks import Check, Site
from reprise.mining.instrument.device import Scalar
from reprise.mining.instrument.edits import Insertion, Lines
from reprise.mining.instrument.places import (
    NoPlace,
    Region,
    ancestors,
    choose,
    errors_in,
    parse,
    text_of,
    unreadable,
    walk,
)
from reprise.mining.instrument.values import MAY_CHANGE, Condition, Untranslatable, Writer

LANGUAGE = Language(tree_sitter_cpp.language())
RECORDER = "_reprise_monitor.hpp"
PREAMBLE = f'#include "{RECORDER}"'

_BEFORE = frozenset(
    {"if_statement", "switch_statement", "return_statement", "throw_statement", "goto_statement"}
    | {"break_statement", "continue_statement", "co_return_statement"}
)
_LOOPS = frozenset({"for_statement", "for_range_loop", "while_statement", "do_statement"})
_HEADED = frozenset({"function_definition", "catch_clause", "case_statement"}) | _LOOPS
_GUARD = re.compile(
    r"(?:\w*_)?(?:assert|ASSERT|D?I?CHECK|ENFORCE)(?:_\w+)?|assert\w*|static_assert"
)
"""Macros and functions that check something: a monitor of theirs runs before them."""

_BLOCKS = frozenset({"compound_statement", "case_statement"})
_PREPROCESSOR = frozenset(
    {"preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif", "preproc_elifdef"}
)
_PURE = re.compile(
    r"size|length|empty|rank|ndim|bits|bytes|lanes|value|min|max|(?:get|is|has)[A-Z]\w*"
)
"""Functions that only look, by the naming of the compilers' sources."""


class CppWriter(Writer):
    """Conditions as C++ expressions over the recorder's values."""

    def name_of(self, expression: str, before: bool) -> str:
        if before:
            return f"reprise_before_{len(self.reads)}"
        return _read(expression)

    def literal(self, value: Scalar | bool) -> str:
        if isinstance(value, str):
            raise Untranslatable(f"`{value}` is no number, and C++ values are compared as numbers")
        if isinstance(value, float):
            return f"reprise::real({value!r})" if abs(value) < float("inf") else _infinite(value)
        if abs(value) >= 1 << 63:
            raise Untranslatable(f"{value} is no 64-bit integer")
        return f"reprise::num({int(value)})"

    def binary(self, op: str, left: str, right: str) -> str:
        return f"({left} {op} {right})"

    def call(self, function: str, args: list[str]) -> str:
        match function, args:
            case ("abs", [argument]):
                return f"reprise::absolute({argument})"
            case ("min" | "max", [_, *_]):
                listed = ", ".join(args)
                return f"reprise::{'least' if function == 'min' else 'greatest'}({{{listed}}})"
        raise Untranslatable(f"{function} of {len(args)} values has no meaning in C++ here")

    def join(self, word: str, parts: list[str]) -> str:
        return f"reprise::{'all' if word == 'and' else 'any'}({{{', '.join(parts)}}})"

    def negation(self, part: str) -> str:
        return f"reprise::negated({part})"

    def comparison(self, left: str, op: str, right: str) -> str:
        match op:
            case "==":
                return f"reprise::equal({left}, {right})"
            case "!=":
                return f"reprise::negated(reprise::equal({left}, {right}))"
            case "<":
                return f"reprise::less({left}, {right})"
            case ">":
                return f"reprise::less({right}, {left})"
            case "<=":
                return f"reprise::negated(reprise::less({right}, {left}))"
            case _:
                return f"reprise::negated(reprise::less({left}, {right}))"


def _infinite(value: float) -> str:
    return f"reprise::real({'-' if value < 0 else ''}HUGE_VAL)"


def _read(expression: str) -> str:
    text = expression.strip()
    return f"reprise::of<decltype({text})>({text})"


@dataclass
class CppSource:
    """A C++ source or header; see ``places.SourceFile``."""

    source: bytes
    device: Mapping[str, Scalar]
    may_call: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.lines = Lines(self.source)
        self.tree = parse(LANGUAGE, self.source)

    def place(self, check: Check, site: Site) -> list[Insertion]:
        condition = CppWriter(self.device, self.may_call).condition(check.condition)
        roots = {name for value in condition.values for name in names_read(value, self.may_call)}
        region = self.region(site, roots)
        self.refuse(region, roots)
        node = region.node
        if node.type in _HEADED:
            place, at_start = self.body(node), True
        else:
            node = _chain(node) if node.type == "if_statement" else node
            place, at_start = node, False
        early = node.type in _BEFORE or _is_guard(node)
        if condition.before and (at_start or early or _block(place).type == "case_statement"):
            raise NoPlace("before(…) needs a statement that the check can run after")
        kept = "".join(
            f"const auto {name} = ::reprise_monitor::of<decltype({value})>({value}); "
            for value, name in condition.pairs
            if name in condition.before
        ).rstrip()
        text = _statement(check, condition)
        if at_start:
            return self.at_start(place, node, text)
        if early:
            return self.around(place, text, "")
        return self.around(place, kept, text)

    def preamble(self) -> Insertion:
        """Before the first ``#include`` of the file there may be macros that it heeds: so after
        it, if it is a plain one at the start; else before everything but comments."""
        top: list[Node] = list(self.tree.root_node.children)
        while top:
            node = top.pop(0)
            if node.type == "preproc_include":
                line = self.lines.number(node.start_byte)
                return self.lines.after(line, PREAMBLE.encode())
            if node.type == "preproc_ifdef" and _is_guard_of_header(node):
                top = list(node.children)[2:]
            elif node.type not in ("comment", "preproc_def", "preproc_call", "\n"):
                break
        first = next((n for n in self.tree.root_node.children if n.type != "comment"), None)
        line = 1 if first is None else self.lines.number(first.start_byte)
        return self.lines.before(line, PREAMBLE.encode())

    # --- which statement ------------------------------------------------------------------------

    def region(self, site: Site, roots: set[str]) -> Region:
        """The statement that the site means. Raises NoPlace."""
        if site.line > len(self.lines):
            raise NoPlace(f"the file has {len(self.lines)} lines")
        start, end = self.lines.start(site.line), self.lines.end(site.line)
        found = []
        for region in self.regions:
            if region.start < end and region.end > start:
                if region.node.type.startswith("preproc_"):
                    raise NoPlace("that line is in the definition of a macro")
                found.append((region, _declared(region), _mentioned(region)))
        return choose(found, roots)

    @cached_property
    def regions(self) -> list[Region]:
        found = []
        for node in walk(self.tree.root_node):
            if node.type in ("preproc_def", "preproc_function_def"):
                found.append(Region(node, node.start_byte, node.end_byte))
            elif node.type == "do_statement":
                found.append(Region(node, node.start_byte, node.start_byte + 2))
            elif node.type in _HEADED or node.type in ("if_statement", "switch_statement"):
                found.append(Region(node, node.start_byte, _header_end(node)))
            elif node.type in ("declaration", "field_declaration", "static_assert_declaration") or (
                node.type.endswith("_statement")
                and node.type not in ("compound_statement", "labeled_statement", "try_statement")
            ):
                parent = node.parent
                if parent is not None and parent.type not in ("for_statement", "condition_clause"):
                    found.append(Region(node, node.start_byte, node.end_byte))
        return found

    def refuse(self, region: Region, roots: set[str]) -> None:
        """Raise NoPlace where a check must not stand or cannot see its values."""
        node = region.node
        around = [node, *ancestors(node)]
        if unreadable(region):
            raise NoPlace("the grammar cannot read the source there")
        inside = next(
            (n for n in around if n.type in ("function_definition", "lambda_expression")), None
        )
        if inside is None:
            raise NoPlace("that line is outside of functions, where no statement can stand")
        function = next((n for n in around if n.type == "function_definition"), inside)
        if function.type == "function_definition":
            header = self.source[function.start_byte : _header_end(function)]
            for word in ("constexpr", "consteval", "__global__", "__device__"):
                if re.search(rf"\b{word}\b".encode(), header):
                    raise NoPlace(f"a {word} function cannot call the recorder")
        own = _declared(region)
        early = node.type in _BEFORE or _is_guard(node)
        for root in sorted(roots):
            if root in own and not early:
                continue
            if not self.visible(root, region, function):
                raise NoPlace(f"there is no `{root}` in that scope")

    def visible(self, name: str, region: Region, function: Node) -> bool:
        """Whether a local of that name is in scope; or, if the function declares none, whether
        the function has used the name by then: a member, a global or a macro."""
        declared = [
            node for node in walk(function) if node.type == "identifier" and text_of(node) == name
        ]
        locals_ = [node for node in declared if _declaration_of(node) is not None]
        if locals_:
            return any(_in_scope(node, region) for node in locals_)
        return name == "this" or any(node.start_byte < region.end for node in declared)

    def body(self, node: Node) -> Node:
        if node.type == "case_statement":
            statements = [c for c in node.children if c.type.endswith("_statement")]
            if not statements:
                raise NoPlace("there is no statement behind that label")
            return statements[0]
        body = node.child_by_field_name("body")
        if body is None:
            raise NoPlace("there is no body to check in")
        return body

    # --- where exactly --------------------------------------------------------------------------

    def around(self, node: Node, before: str, after: str) -> list[Insertion]:
        """Text before and after a statement, in braces if it is the body of something."""
        if _block(node).type in _BLOCKS:
            found = [self.before(node, before)] if before else []
            return [*found, self.after(node, after)] if after else found
        opening = f"{{ {before} " if before else "{ "
        closing = f" {after} }}" if after else " }"
        return [
            Insertion(node.start_byte, opening.encode()),
            Insertion(node.end_byte, closing.encode()),
        ]

    def at_start(self, body: Node, header: Node, text: str) -> list[Insertion]:
        if body.type != "compound_statement":
            return self.around(body, text, "")
        at = body.start_byte + 1
        line = self.lines.number(body.start_byte)
        if self.ends_line(at, line):
            inner = [c for c in body.children if c.is_named and c.type != "comment"]
            first = self.lines.number(inner[0].start_byte) if inner else line
            blanks = self.lines.indentation(first)
            if first == line:
                blanks = self.lines.indentation(self.lines.number(header.start_byte)) + b"  "
            return [self.lines.after(line, blanks + text.encode())]
        return [Insertion(at, f" {text}".encode())]

    def before(self, node: Node, text: str) -> Insertion:
        line = self.lines.number(node.start_byte)
        if self.starts_line(node):
            return self.lines.before(line, self.lines.indentation(line) + text.encode())
        return Insertion(node.start_byte, f"{text} ".encode())

    def after(self, node: Node, text: str) -> Insertion:
        first, last = self.lines.number(node.start_byte), self.lines.number(node.end_byte - 1)
        if self.starts_line(node) and self.ends_line(node.end_byte, last):
            return self.lines.after(last, self.lines.indentation(first) + text.encode())
        return Insertion(node.end_byte, f" {text}".encode())

    def starts_line(self, node: Node) -> bool:
        line = self.lines.number(node.start_byte)
        continued = line > 1 and self.lines.text(line - 1).endswith(b"\\")
        return not continued and not self.source[self.lines.start(line) : node.start_byte].strip()

    def ends_line(self, offset: int, line: int) -> bool:
        """Whether nothing but blanks and comments that end there follow on the line."""
        rest = self.source[offset : self.lines.end(line)].strip()
        return (
            not rest.endswith(b"\\")
            and re.fullmatch(rb"(?:/\*.*?\*/\s*)*(?://.*)?", rest) is not None
        )


def names_read(expression: str, may_call: frozenset[str] = frozenset()) -> set[str]:
    """The variables that a value's expression reads. Raises Untranslatable for an expression that
    is none, or that may change what the compiler does."""
    tree = parse(LANGUAGE, f"int f() {{ return ({expression}); }}".encode())
    if errors_in(tree) or ";" in expression:
        raise Untranslatable(f"`{expression}` is no C++ expression")
    names: set[str] = set()
    own: set[str] = set()  # functions that are called without an object: members, or free ones
    for node in walk(tree.root_node.children[0].children[-1]):
        if node.type in ("assignment_expression", "update_expression", "new_expression"):
            raise Untranslatable(f"`{expression}` changes something")
        if node.type in ("delete_expression", "lambda_expression", "throw_expression"):
            raise Untranslatable(f"`{expression}` changes something")
        if node.type == "call_expression":
            function = node.child_by_field_name("function")
            called = _called(function)
            if not _PURE.fullmatch(called) and called not in may_call:
                raise Untranslatable(f"`{expression}` calls `{called}`, {MAY_CHANGE}")
        if node.type in ("identifier", "this"):
            (own if _is_called(node) else names).add(text_of(node))
    names = names or own
    if not names:
        raise Untranslatable(f"`{expression}` reads no variable")
    return names


def _called(function: Node | None) -> str:
    """The name of what is called: without classes, namespaces, and template arguments."""
    written = "" if function is None else text_of(function)
    return re.split(r"::|\.|->", re.sub(r"<.*>", "", written, flags=re.DOTALL))[-1]


def _is_called(node: Node) -> bool:
    parent = node.parent
    return (
        parent is not None
        and parent.type == "call_expression"
        and parent.child_by_field_name("function") == node
    )


def _statement(check: Check, condition: Condition) -> str:
    seen = ", ".join(
        f'{{"{"before " if name in condition.before else ""}{_escaped(value)}", {name}}}'
        for value, name in condition.pairs
    )
    return (
        "{ namespace reprise = ::reprise_monitor; "
        f'reprise::check("{check.key}", {condition.text}, {{{seen}}}); }}'
    )


def _escaped(text: str) -> str:
    return text.strip().replace("\\", "\\\\").replace('"', '\\"')


# --- the tree -----------------------------------------------------------------------------------


def _header_end(node: Node) -> int:
    """Where a statement's part before its body ends."""
    if node.type == "case_statement":
        colon = next((c for c in node.children if c.type == ":"), None)
        return node.end_byte if colon is None else colon.end_byte
    body = node.child_by_field_name("body") or node.child_by_field_name("consequence")
    last = None if body is None else body.prev_sibling
    return node.end_byte if last is None else last.end_byte


def _chain(node: Node) -> Node:
    """The first ``if`` of an ``else if`` chain."""
    while (
        node.parent is not None
        and node.parent.type == "else_clause"
        and node.parent.parent is not None
    ):
        node = node.parent.parent
    return node


def _block(node: Node) -> Node:
    """What a statement is directly in, conditional compilation left out."""
    for above in ancestors(node):
        if above.type not in _PREPROCESSOR:
            return above
    return node


def _is_guard(node: Node) -> bool:
    """``assert(…);``, ``ICHECK_EQ(…) << …;``: a check that the source makes."""
    if node.type == "static_assert_declaration":
        return True
    if node.type != "expression_statement":
        return False
    inner: Node | None = node.named_child(0)
    while inner is not None and inner.type in ("binary_expression", "parenthesized_expression"):
        inner = inner.named_child(0)
    if inner is None or inner.type != "call_expression":
        return False
    function = inner.child_by_field_name("function")
    return function is not None and _GUARD.fullmatch(text_of(function)) is not None


def _is_guard_of_header(node: Node) -> bool:
    """``#ifndef X`` and, first in it, ``#define X``."""
    if not node.children or node.children[0].type != "#ifndef":
        return False
    named = [child for child in node.children if child.is_named and child.type != "comment"]
    return (
        len(named) > 1
        and named[1].type == "preproc_def"
        and text_of(named[1]).split()[1:2] == [text_of(named[0])]
    )


_LAMBDA = frozenset({"lambda_expression"})
"""What has statements of its own within a statement."""


def _mentioned(region: Region) -> set[str]:
    return {
        text_of(node)
        for node in walk(region.node, _LAMBDA)
        if node.type in ("identifier", "field_identifier", "this")
        and region.start <= node.start_byte < region.end
    }


def _declared(region: Region) -> set[str]:
    """The names that a region declares or sets."""
    names = set()
    for node in walk(region.node, _LAMBDA):
        if node.type == "identifier" and region.start <= node.start_byte < region.end:
            parent = node.parent
            changed = parent is not None and (
                parent.type == "update_expression"
                or (
                    parent.type == "assignment_expression"
                    and parent.child_by_field_name("left") == node
                )
            )
            if changed or _declaration_of(node) is not None:
                names.add(text_of(node))
    return names


_DECLARATORS = frozenset(
    {"init_declarator", "pointer_declarator", "reference_declarator", "array_declarator"}
    | {"structured_binding_declarator"}
)


def _declaration_of(name: Node) -> Node | None:
    """The declaration that an identifier is declared in, if it is."""
    node = name
    while node.parent is not None and node.parent.type in _DECLARATORS:
        parent = node.parent
        if parent.type == "init_declarator" and parent.child_by_field_name("declarator") != node:
            return None
        if parent.type == "array_declarator" and parent.child_by_field_name("declarator") != node:
            return None
        node = parent
    owner = node.parent
    if owner is None:
        return None
    if owner.type in ("declaration", "parameter_declaration", "optional_parameter_declaration"):
        return owner if node in owner.children_by_field_name("declarator") else None
    if owner.type == "for_range_loop":
        return owner if owner.child_by_field_name("declarator") == node else None
    return None


def _in_scope(name: Node, region: Region) -> bool:
    """Whether the local that an identifier declares can be named where the region's check is."""
    declaration = _declaration_of(name)
    assert declaration is not None
    if declaration.start_byte >= region.end:
        return False
    if declaration == region.node:
        return region.node.type == "for_range_loop"
    holder = declaration if declaration.type == "for_range_loop" else _block(declaration)
    if holder.type in ("parameter_list", "init_statement", "condition_clause"):
        holder = next(
            (
                n
                for n in ancestors(holder)
                if n.type.endswith("_statement")
                or n.type in ("function_definition", "lambda_expression", "catch_clause")
            ),
            holder,
        )
    if holder.start_byte <= region.start and region.end <= holder.end_byte:
        early = region.node.type in _BEFORE
        return not (early and holder == region.node)
    return False
