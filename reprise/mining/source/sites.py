"""One file's sites as facts: rows of the relations of ``rules/mining/facts.rules``.

Comes in: the bytes of a file and the extractor's queries. Goes out: :class:`FileFacts`, plain data
that can be kept and does not depend on other files. Sites are numbered from 0 in the order of their
places; whoever joins files adds an offset to every row's first column.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node, Parser, Query, Tree

from reprise.lang import ast
from reprise.mining.source.embedded import conditions
from reprise.mining.source.expressions import (
    MOST_CHARACTERS,
    Reader,
    Translation,
    Untranslatable,
    conjuncts,
    flat,
    last_name,
    negated,
    shown,
    text,
    value_of,
)
from reprise.mining.source.extractor import Extractor
from reprise.mining.source.facts import FileFacts, Row
from reprise.mining.source.limits import occurrences, words
from reprise.mining.source.queries import SITE, Match, Queries, cursor, language
from reprise.mining.source.syntax import (
    BLOCKS,
    CLASSES,
    FUNCTIONS,
    ancestors,
    assigned,
    bound,
    constants_beside,
    function_name,
    named,
    operand,
    perhaps,
)

MOST_TEXT = 400
"""Characters of a captured text that are kept."""

MOST_STATEMENT = 80
"""Characters of a statement that are quoted."""

MOST_SITES = 10_000
"""In one file: a table of a hundred thousand entries is generated, and says one thing."""

BEFORE = "before "
"""Starts a text in ``values`` that is to be evaluated before the site's statement."""

_COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}
_PROOFS = {"proves": 1, "proves_equal": 2, "proves_zero": 1}
"""Keyword sets of functions that prove a condition, and how many arguments they take."""
_ACTS = re.compile(
    "(?i:add|alloc|append|close|create|delete|emit|emplace|erase|exec|execute|extend|fread|fuse|fwrite|init|insert"
    "|load|make_unique|malloc|mutate|next|open|parse|pop|push|put|read|register|remove|replace"
    "|reset|run|seek|set|split|store|update|visit|write)(?![a-z])"
)
"""Functions whose names say that they do something: to call one again would change the compiler."""
_SCOPES = {
    "python": """
        (function_definition) @function
        (assignment left: (identifier) @name right: (_) @value) @definition
    """,
    "cpp": """
        (function_definition) @function
        (init_declarator declarator: (identifier) @name value: (_) @value) @definition
        (assignment_expression left: (identifier) @name operator: "=" right: (_) @value) @definition
    """,
}
_DEEP = "an expression that is nested too deeply"
_ERRORS = "[(ERROR) (MISSING)] @error"


@dataclass(frozen=True)
class _Definition:
    """An assignment; ``function``: where the innermost one around it begins and ends."""

    name: str
    start: int
    end: int
    line: int
    value: Node
    function: tuple[int, int] | None


class Miner:
    """Reads files of one language with one extractor."""

    def __init__(self, extractor: Extractor, name: str) -> None:
        self.extractor = extractor
        self.name = name
        grammar = language(name)
        self.queries = Queries(extractor, name)
        self._parser = Parser(grammar)
        self.scopes = Query(grammar, _SCOPES[name])
        self._errors = Query(grammar, _ERRORS)

    def facts(self, path: str, data: bytes) -> FileFacts:
        """The facts of one file; ``path`` is what its sites are said to be in."""
        tree = self._parser.parse(data)
        errors = 0
        if tree.root_node.has_error:
            captures = cursor(self._errors).captures(tree.root_node)
            errors = max(1, len(captures.get("error", ())))
        found = _File(self, path, tree)
        found.read()
        found.rows["occurs"] = sorted({*occurrences(data, tree.root_node)})
        lines = data.count(b"\n") + (not data.endswith(b"\n") and bool(data))
        return FileFacts(lines, errors, found.count, found.rows, found.left)


class _File:
    """Collects the rows of one file."""

    def __init__(self, miner: Miner, path: str, tree: Tree) -> None:
        self.miner = miner
        self.path = path
        self.root = tree.root_node
        self.rows: dict[str, list[Row]] = {}
        self.count = self.left = 0
        self.numbers: dict[tuple[int, int], int] = {}
        self._beginnings: dict[tuple[int, int], str] = {}

    def add(self, relation: str, *row: int | str) -> None:
        rows = self.rows.setdefault(relation, [])
        if row not in rows[-20:]:
            rows.append(row)

    def read(self) -> None:
        merged: dict[tuple[int, int, str], Match] = {}
        for match in self.miner.queries.matches(self.root):
            key = (match.node.start_byte, match.node.end_byte, match.kind)
            merged[key] = _merged(merged[key], match) if key in merged else match
        kept = list(merged.values())[:MOST_SITES]
        self.left = len(merged) - len(kept)
        self.count = len(kept)
        for number, match in enumerate(kept):
            self.numbers[match.node.start_byte, match.node.end_byte] = number
        for number, match in enumerate(kept):
            try:
                _Site(self, number, match).read()
            except RecursionError:  # thousands of operators in one expression
                self.add("untranslated", number, "condition", flat(match.node)[:MOST_TEXT], _DEEP)

    def beginning(self, statement: Node) -> str:
        """How a statement begins. Kept: in generated files thousands of sites share one, which is
        megabytes long."""
        where = (statement.start_byte, statement.end_byte)
        if where not in self._beginnings:
            self._beginnings[where] = flat(statement)[:MOST_STATEMENT]
        return self._beginnings[where]

    @cached_property
    def _definitions(self) -> dict[str, list[_Definition]]:
        """By name, in the order of their places."""
        functions: list[tuple[int, int]] = []
        assignments: list[tuple[Node, str, Node]] = []
        for _, captures in cursor(self.miner.scopes).matches(self.root):
            functions += ((n.start_byte, n.end_byte) for n in captures.get("function", ()))
            for node in captures.get("definition", ()):
                assignments.append((node, text(captures["name"][0]), captures["value"][0]))
        functions.sort(key=lambda f: (f[0], -f[1]))
        assignments.sort(key=lambda a: a[0].start_byte)
        definitions: dict[str, list[_Definition]] = {}
        around: list[tuple[int, int]] = []  # the functions around an assignment, outermost first
        started = 0
        for node, name, value in assignments:
            start = node.start_byte
            while started < len(functions) and functions[started][0] <= start:
                around = [f for f in around if f[1] > functions[started][0]]
                around.append(functions[started])
                started += 1
            around = [f for f in around if f[1] > start]
            definitions.setdefault(name, []).append(
                _Definition(
                    name,
                    start,
                    node.end_byte,
                    node.start_point[0] + 1,
                    value,
                    around[-1] if around else None,
                )
            )
        return definitions

    def definition(self, name: str, place: int) -> _Definition | None:
        """The last assignment to ``name`` before ``place`` that stands in a function around it,
        or in no function. What branches and loops do in between is not looked at."""
        candidates = self._definitions.get(name, [])
        for found in reversed(candidates[: bisect_left(candidates, place, key=lambda d: d.start)]):
            inside = found.function is None or found.function[0] <= place < found.function[1]
            if found.end <= place and inside:
                return found
        return None


class _Site:
    """Collects the rows of one site."""

    def __init__(self, file: _File, number: int, match: Match) -> None:
        self.file, self.number, self.match = file, number, match
        self.node = match.node
        self.ancestors = ancestors(self.node, file.root)
        self.reader = Reader(file.miner.name, frozenset(bound(self.node, self.ancestors)))
        self.perhaps = perhaps(self.node, self.ancestors)

    def add(self, relation: str, *row: int | str) -> None:
        self.file.add(relation, self.number, *row)

    def read(self) -> None:
        statement, name = assigned(self.node, self.ancestors)
        functions = [a for a in self.ancestors if a.type in FUNCTIONS]
        self.add("site", self.match.kind, self.file.path, statement.start_point[0] + 1)
        self.add("statement", self.file.beginning(statement))
        self.add("in_pass", self._pass(functions))
        if functions:
            self.add("enclosing", function_name(functions[0]))
        classes = (a.child_by_field_name("name") for a in self.ancestors if a.type in CLASSES)
        for class_name in classes:
            if class_name is not None:
                self.add("in_class", text(class_name))
                break
        if statement.has_error or any(a.type == "ERROR" for a in self.ancestors):
            self.add("broken")
        if self.perhaps:
            self.add("perhaps")
        for parent in self.ancestors:
            around = self.file.numbers.get((parent.start_byte, parent.end_byte))
            if around is not None:
                self.add("within", around)
            if parent == statement:
                break
        if name is not None:
            self.expression("variable", name)
            written = shown(value_of(flat(name)))
            self.add("earlier", written, written.replace("value", "before", 1))
        elif self.match.kind not in ("assert", "raise", "refuse"):
            self._result()
        for role, nodes in sorted(self.match.captures.items()):
            if role.startswith(SITE):
                continue
            if role == "arguments":
                self._arguments(nodes[0])
            elif role == "embedded":
                self._embedded(nodes[0])
            elif role == "words":
                for index, word in enumerate(words(text(nodes[0]))):
                    self.add("captured", "word", index, word)
            elif role in ("condition", "unless"):
                for node in nodes:
                    self._conditions(node, role == "condition")
            else:
                for index, node in enumerate(nodes):
                    self.add("captured", role, index, flat(node)[:MOST_TEXT])
                    if role not in _NAMES:
                        self.expression(role, node)
        self._values(name)
        if self.match.kind == "limit":
            self._beside(statement)
        compare = self.match.captures.get("compare")
        if compare:
            self._compared(text(compare[0]))

    def _beside(self, statement: Node) -> None:
        """The integer constants that are declared right before and after this one."""
        for found in constants_beside(statement):
            self.add("beside", words(text(found[0]))[0], int(text(found[1]), 0))

    def _values(self, variable: Node | None) -> None:
        """What the pattern or extractor.toml says that the site says, besides its captures."""
        callee = self.match.captures.get("callee")
        settings = self.file.miner.extractor.values.get(text(callee[0]), {}) if callee else {}
        roles = {**self.match.values, **settings}
        if not roles:
            return
        known = {role: operand(nodes[0]) for role, nodes in self.match.captures.items()}
        if variable is not None:
            known["variable"] = flat(variable)
        arguments = self.match.captures.get("arguments")
        known.update(named(arguments[0]) if arguments else {})
        for role, template in roles.items():
            wanted = re.findall(r"\{(\w+)\}", template)
            if all(name in known for name in wanted):
                said = re.sub(r"\{(\w+)\}", lambda m: known[m[1]], template)
                self._said(role, said.removeprefix(BEFORE), said.startswith(BEFORE))

    def _said(self, role: str, said: str, before: bool) -> None:
        """An expression that is not in the source as it is; ``before``: before the statement."""
        if re.fullmatch(r"-?[0-9]+", said):
            self.add("expression", role, said)
            self.add("uses", said, "number")
            self.add("literal", said, int(said))
        elif '"' in said or "\\" in said or len(said) > MOST_CHARACTERS:
            self.add(
                "untranslated", role, said[:MOST_TEXT], "a long expression or one with a string"
            )
        else:
            found = shown(value_of(said))
            if before:
                found = found.replace("value", "before", 1)
            self.add("expression", role, found)
            self.add("mentions", found, found, said)
            for function in re.findall(r"(\w+)\(", said):
                if _ACTS.match(function):
                    self.add("acts", found, function)

    # --- where it stands -----------------------------------------------------------------------

    def _pass(self, functions: Sequence[Node]) -> str:
        how = self.file.miner.extractor.pass_named_by
        if how == "class":
            classes = [a for a in self.ancestors if a.type in CLASSES]
            name = classes[-1].child_by_field_name("name") if classes else None
            if name is not None:
                return text(name)
            if functions and "::" in (qualified := function_name(functions[-1])):
                return qualified.split("::")[-2]
        if how == "function" and functions:
            return function_name(functions[-1]).rpartition("::")[2]
        return self.file.path.rpartition("/")[2].partition(".")[0]

    # --- what it says ----------------------------------------------------------------------------

    def expression(self, role: str, node: Node) -> None:
        """``expression``, or ``untranslated`` where there is no counterpart."""
        if node.type == "preproc_arg":  # no tree of its own: a number, if anything
            if re.fullmatch(r"-?[0-9]+", flat(node)):
                self._said(role, flat(node), before=False)
            return
        notes = Translation()
        try:
            if self.perhaps:
                self.reader.refuse_guarded(node)
            found = shown(self.reader.expression(node, notes))
        except Untranslatable as error:
            self.add("untranslated", role, flat(node)[:MOST_TEXT], str(error))
            return
        self.add("expression", role, found)
        self._notes(found, notes)
        if node.type == "identifier":
            self._definition(text(node), found)

    def _result(self) -> None:
        notes = Translation()
        try:
            found = shown(self.reader.value(self.node, notes))
        except Untranslatable:
            return
        self.add("expression", "result", found)
        self._notes(found, notes)

    def _notes(self, found: str, notes: Translation, follow: bool = True) -> None:
        """What an expression is made of. ``follow``: look for definitions of device variables."""
        for operator in sorted(notes.operators):
            self.add("uses", found, operator)
        for function in sorted(notes.invoked):
            self.add("invokes", found, function)
            if _ACTS.match(function):
                self.add("acts", found, function)
        if re.fullmatch(r"-?[0-9]+", found):
            self.add("literal", found, int(found))
        for value, name in notes.values.items():
            self.add("mentions", found, value, name)
            if follow and name in self.file.miner.extractor.device:
                self._definition(name, value)

    def _definition(self, name: str, found: str) -> None:
        definition = self.file.definition(name, self.node.start_byte)
        if definition is None:
            return
        self.add("defined", found, definition.line)
        notes = Translation()
        try:
            value = shown(Reader(self.file.miner.name).expression(definition.value, notes))
        except Untranslatable:
            return
        self.add("defined_as", found, value)
        self._notes(value, notes, follow=False)

    def _arguments(self, node: Node) -> None:
        position = 0
        for child in node.named_children:
            if child.type == "comment":
                continue
            if child.type == "keyword_argument":
                name, value = (child.child_by_field_name(n) for n in ("name", "value"))
                if name is not None and value is not None:
                    self._argument("named_argument", text(name), value)
                continue
            self._argument("argument", position, child)
            position += 1
        self.add("argument_count", position)

    def _argument(self, relation: str, which: int | str, node: Node) -> None:
        inner = self.file.numbers.get((node.start_byte, node.end_byte))
        if inner is not None and relation == "argument":
            self.add("argument_site", which, inner)
        if self.match.kind == "pattern" and node.type != "identifier":
            return  # nothing is asked of it
        if node.type in ("list", "tuple"):
            for index, item in enumerate(node.named_children):
                self._item(which, index, item)
            return
        notes = Translation()
        try:
            found = shown(self.reader.expression(node, notes))
        except Untranslatable as error:
            self.add("untranslated", f"argument {which}", flat(node)[:MOST_TEXT], str(error))
            return
        self.add(relation, which, found)
        self._notes(found, notes)
        if node.type == "identifier":
            self._definition(text(node), found)

    def _item(self, which: int | str, index: int, node: Node) -> None:
        notes = Translation()
        try:
            found = shown(self.reader.expression(node, notes))
        except Untranslatable:
            return
        self.add("item", str(which), index, found)
        self._notes(found, notes)

    def _conditions(self, whole: Node, holds: bool) -> None:
        for number, (node, positive) in enumerate(conjuncts(whole, holds)):
            notes = Translation()
            proved = self._proved(node) if positive else None
            if proved is not None and proved[0] == "proves":
                self._conditions(proved[1][0], True)
                continue
            try:
                if number:
                    self.reader.refuse_guarded(node)
                if proved is None:
                    condition = self.reader.condition(node, notes)
                else:
                    condition = self._equal(proved[1], notes)
            except Untranslatable as error:
                written = flat(node)[:MOST_TEXT]
                self.add("untranslated", "condition", written, str(error))
                continue
            self._condition(condition if positive else negated(condition), notes)

    def _embedded(self, string: Node) -> None:
        """Conditions inside a text."""

        def find(name: str) -> Node | None:
            definition = self.file.definition(name, string.start_byte)
            if definition is None:
                return None
            block = next(
                (a for a in ancestors(definition.value, self.file.root) if a.type in BLOCKS),
                self.file.root,
            )
            in_it = block.start_byte <= string.start_byte < block.end_byte
            return definition.value if in_it else None  # another branch's is another text

        for condition, notes in conditions(string, self.reader, find):
            self._condition(condition, notes)

    def _proved(self, node: Node) -> tuple[str, list[Node]] | None:
        """The keyword set and arguments of a call that is true only if its argument holds, such as
        ``analyzer.can_prove(a % b == 0)``. (If it is false, nothing follows.)"""
        arguments = node.child_by_field_name("arguments")
        if node.type not in ("call", "call_expression") or arguments is None:
            return None
        name = last_name(node)
        given = [child for child in arguments.named_children if child.type != "comment"]
        for group, count in _PROOFS.items():
            if name in self.file.miner.extractor.keywords.get(group, ()) and len(given) == count:
                self.add("captured", "proof", 0, name)
                return group, given
        return None

    def _equal(self, nodes: Sequence[Node], notes: Translation) -> ast.Condition:
        """That two expressions are equal, or that one is 0."""
        sides = [self.reader.expression(node, notes) for node in nodes]
        if len(sides) == 1:
            sides.append(ast.Number(0))
            notes.operators.add("number")
        notes.operators.add("==")
        return ast.Comparison(tuple(sides), ("==",))

    def _compared(self, macro: str) -> None:
        """``ICHECK_EQ(left, right)``."""
        notes = Translation()
        operator = _COMPARISONS.get(macro.rpartition("_")[2])
        sides = [self.match.captures.get(side) for side in ("left", "right")]
        if operator is None or not sides[0] or not sides[1]:
            return  # a query of the extractor's own that says less than ours
        left, right = sides[0][0], sides[1][0]
        try:
            both = self.reader.expression(left, notes), self.reader.expression(right, notes)
        except Untranslatable as error:
            self.add("untranslated", "condition", flat(self.node)[:MOST_TEXT], str(error))
            return
        notes.operators.add(operator)
        self._condition(ast.Comparison(both, (operator,)), notes)

    def _condition(self, condition: ast.Condition, notes: Translation) -> None:
        found = shown(condition)
        self.add("condition", found)
        self._notes(found, notes)
        if isinstance(condition, ast.Comparison) and len(condition.ops) == 1:
            left, right = condition.operands
            self.add("compares", found, shown(left), condition.ops[0], shown(right))
            if condition.ops[0] == "==" and right == ast.Number(0):
                self._divides(found, left)

    def _divides(self, condition: str, left: ast.Expr) -> None:
        """``a % b == 0``: the two, and what they were assigned before."""
        if not isinstance(left, ast.Binary) or left.op != "%":
            return
        sides = shown(left.left), shown(left.right)
        self.add("divides_evenly", condition, *sides)
        for side in sides:
            name = re.fullmatch(r'value\("(\w+)"\)', side)
            if name is not None:
                self._definition(name[1], side)
            elif side.isdigit():
                self.add("literal", side, int(side))


_NAMES = (
    "callee",
    "constructor",
    "compare",
    "ceiling",
    "operator",
    "consumer",
    "refusal",
    "key",
    "name",
    "base",
    "table",
    "owner",
    "parameter",
    "early",
)
"""Roles of what is a name and no value of the compiler's."""


def _merged(first: Match, second: Match) -> Match:
    """Two matches of one site as one: a list's items are captured one by one."""
    captures = {role: list(nodes) for role, nodes in first.captures.items()}
    for role, nodes in second.captures.items():
        known = captures.setdefault(role, [])
        known += (node for node in nodes if node not in known)
    return Match(first.kind, first.node, captures, first.values)
