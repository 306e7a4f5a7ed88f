"""XCheck's notation as rules, and rules as XCheck's notation.

Comes in: a :class:`~reprise.lang.xcheck_notation.Notation`, or a parsed rule file. Goes out: the
other one. What XCheck's names stand for is data, ``extractors/xcheck/names.toml``; the same table
is used in both directions.

A tuple says things that a declaration has no place for: how it spells an operator, the order of
its arguments. So an imported declaration carries the tuple in its documentation, as a line
``/// xcheck: (…)``. Export believes such a line only if importing it again gives the same
declaration; otherwise the declaration has been edited, and its notation is made anew. The
invariant of both directions: what is written, read back, is what it was, or there is a diagnostic.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from reprise.data import data_path
from reprise.lang import ast
from reprise.lang.diagnostics import Diagnostic, RulesError, Severity, Span
from reprise.lang.dtypes import DTYPES
from reprise.lang.parse import parse_text
from reprise.lang.xcheck_notation import (
    Assertions,
    Constraint,
    Definition,
    Entry,
    Notation,
    NotWritable,
    assertion_text,
    names,
    parse_notation,
    relation_text,
    rewrite,
    rewrite_condition,
    write_item,
    write_notation,
)

NOTE = "xcheck:"
"""Starts a documentation line that keeps a piece of notation."""

_NAME = re.compile(r"[a-z][A-Za-z0-9_]*")
_ARGUMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(?:-[A-Za-z0-9_.]+)*")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")

Decl = ast.ConstraintDecl | ast.MonitorDecl


@dataclass(frozen=True, slots=True)
class Imported:
    """A rule file, with warnings about names that nothing is known of."""

    file: ast.RuleFile
    warnings: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Exported:
    """Notation, with warnings (an edited declaration) and errors (one that has no such form)."""

    text: str
    diagnostics: tuple[Diagnostic, ...]


# --- the table -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Operand:
    """What an assertion's operand means, and the pass and class of monitor that it points to."""

    meaning: ast.Expr
    pass_name: str | None = None
    klass: str | None = None


class Names:
    """``names.toml``, with its expressions parsed when asked for."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.table = table

    def operator(self, word: str | None) -> str:
        """The rule language's operator for XCheck's; ``any`` for one that is elided."""
        if word is None:
            return "any"
        plain = word.replace("-", "_")
        lowered = plain if "." in plain else plain.lower()
        return str(self.table["operators"].get(word, lowered))

    def operator_word(self, operator: str) -> str | None:
        """The other way round; None stands for an elided operator."""
        if operator == "any":
            return None
        words = [word for word, name in self.table["operators"].items() if name == operator]
        return words[0] if words else operator

    def klass(self, identifier: str | None) -> str | None:
        """The class that an identifier's first word gives."""
        prefix = (identifier or "").split("-")[0].lower()
        classes: dict[str, str] = self.table["classes"]
        return classes.get(prefix, prefix if prefix in classes.values() else None)

    def node_properties(self, word: str | None) -> dict[str, str]:
        """Properties that a node of XCheck's operator ``word`` has, as source text."""
        return {**self.table["node_of"].get(word, {}), **self.table["node"]}

    def tensor_properties(self, word: str | None) -> dict[str, str]:
        """Properties of the tensors that such a node reads and makes."""
        return {**self.table["tensor"], **self.table["tensor_of"].get(word, {})}

    def device(self, argument: str) -> ast.Expr | None:
        """``dram-size`` or ``device-foo``."""
        if argument in self.table["device"]:
            return expression(self.table["device"][argument])
        rest = argument.removeprefix("device-").replace("-", "_")
        return look_up("device", rest) if argument.startswith("device-") else None

    def operand(self, word: str) -> Operand | None:
        """The meaning of an assertion's operand."""
        table = self.table["assertion"]
        if word in table["names"]:
            known = table["names"][word]
            return Operand(expression(known["meaning"]), known["pass"], known["class"])
        for infix in ("Before", "After"):
            parts = re.fullmatch(rf"(\w+?){infix}(\w+)Pass", word)
            if parts:
                meaning = look_up(table["around"][infix], _snake(parts[1]))
                return Operand(meaning, _snake(parts[2]), table["around"]["class"])
        for prefix, function in table["prefixes"].items():
            rest = word.removeprefix(prefix)
            if word.startswith(prefix) and rest[:1].isupper():
                return Operand(look_up(function, _snake(rest)))
        return None

    def operand_words(self, pass_name: str) -> Iterator[tuple[ast.Expr, str]]:
        """Each meaning that has a fixed word, with that word."""
        for word, known in self.table["assertion"]["names"].items():
            yield expression(known["meaning"]), word

    def spelled(self, function: str, name: str, pass_name: str) -> str | None:
        """A word for ``function(name)`` that :meth:`operand` understands, if there is one."""
        table = self.table["assertion"]
        for infix in ("Before", "After"):
            if table["around"][infix] == function:
                return f"{_camel(name)}{infix}{_camel(pass_name)}Pass"
        prefixes: dict[str, str] = table["prefixes"]
        for prefix, meant in prefixes.items():
            if meant == function:
                return prefix + _camel(name)
        return None


@cache
def shipped_names() -> Names:
    """The table that ships with Reprise."""
    text = data_path("extractors/xcheck/names.toml").read_text(encoding="utf-8")
    return Names(tomllib.loads(text))


@cache
def expression(text: str) -> ast.Expr:
    """An expression of the rule language from its text."""
    file = parse_text(f"constraint c : c on {{ }} require {text} == 0", "names.toml")
    declaration = file.decls[0]
    assert isinstance(declaration, ast.ConstraintDecl)
    comparison = declaration.require[0]
    assert isinstance(comparison, ast.Comparison)
    return comparison.operands[0]


def look_up(function: str, name: str, span: Span = ast.NOWHERE) -> ast.CallExpr:
    """``function(name)``, quoted where the name could not stand bare."""
    argument: ast.Expr = ast.Name(name, span) if _NAME.fullmatch(name) else ast.String(name, span)
    return ast.CallExpr(ast.Ident(function, span), (argument,), span)


def _snake(word: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", word).lower()


def _camel(word: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in word.split("_"))


# --- the graph that a tuple speaks of --------------------------------------------------------


class Scope:
    """A chain of nodes, each reading the one before it, and the operands that were spoken of.

    One node is called ``n`` and its operands ``x1``, ``x2``, …; several are ``n1``, ``n2``, …,
    and the operands of ``n2`` are ``x2_1``, ``x2_2``, …. Where a relation speaks of ``x2_1``, which
    *is* what ``n1`` makes, a ``where`` says so: a constraint over one name for both could never
    be violated, and would be refused.
    """

    def __init__(self, operators: tuple[str, ...] | None, table: Names) -> None:
        self.words: tuple[str | None, ...] = (None,) if operators is None else operators
        self.table = table
        self.used: set[tuple[int, int]] = set()  # (node, operand), both from 0 and from 1

    def node(self, index: int) -> str:
        """The name of the ``index``-th node."""
        return "n" if len(self.words) == 1 else f"n{index + 1}"

    def operand(self, index: int, position: int) -> str:
        """The name of a node's operand, which the lines will then bind."""
        self.used.add((index, position))
        return f"x{position}" if index == 0 else f"x{index + 1}_{position}"

    def lines(self) -> tuple[ast.Bind, ...]:
        """The nodes, with the operands that anything spoke of."""
        return tuple(self._line(index, word) for index, word in enumerate(self.words))

    def _line(self, index: int, word: str | None) -> ast.Bind:
        last = max([p for i, p in self.used if i == index] + ([1] if index else []), default=0)
        operands: list[ast.Operand] = []
        for position in range(1, last + 1):
            if (index, position) in self.used:
                operands.append(ast.TensorRef(ast.Ident(self.operand(index, position))))
            elif index and position == 1:
                operands.append(ast.TensorRef(ast.Ident(self.node(index - 1))))
            else:
                operands.append(ast.AnyOperand())
        operands.append(ast.RestOperands())
        call = ast.Call((ast.Ident(self.table.operator(word)),), tuple(operands), ())
        return ast.Bind((ast.Ident(self.node(index)),), (call,))

    def where(self) -> tuple[ast.Condition, ...]:
        """That a node's first operand is the node before it, where the operand has a name."""
        return tuple(
            ast.Comparison(
                (ast.Name(self.operand(index, 1)), ast.Name(self.node(index - 1))), ("==",)
            )
            for index in range(1, len(self.words))
            if (index, 1) in self.used
        )

    def argument(self, argument: str) -> ast.Expr | None:
        """What an argument's name means, or None."""
        device = self.table.device(argument)
        if device is not None:
            return device
        for index, side, position, name in self._readings(argument):
            meaning = self._property(index, side, position, name)
            if meaning is not None:
                return meaning
        return None

    def _readings(self, argument: str) -> Iterator[tuple[int, str, int, str]]:
        """Ways to read a name, as (node, ``in``/``out``/``""``, operand, property)."""
        for index, word in reversed(list(enumerate(self.words))):
            for spelling in self._spellings(index, word):
                if argument.startswith(spelling + "-"):
                    rest = argument[len(spelling) + 1 :]
                    yield from ((index, *reading) for reading in _sided(rest))
                    yield index, "", 1, rest
        for side, position, name in _sided(argument):
            yield (len(self.words) - 1 if side == "out" else 0), side, position, name
        yield 0, "", 1, argument
        if numbered := re.fullmatch(r"(.+?)([1-9][0-9]?)", argument):
            yield 0, "in", int(numbered[2]), numbered[1].rstrip("-")

    def _spellings(self, index: int, word: str | None) -> list[str]:
        """How an argument may call a node: ``relu``, and ``relu2`` where it is the second one."""
        if word is None:
            return []
        same = [i for i, other in enumerate(self.words) if other == word]
        numbered = f"{word}{same.index(index) + 1}"
        return [word, numbered] if same[0] == index else [numbered]

    def _property(self, index: int, side: str, position: int, name: str) -> ast.Expr | None:
        word = self.words[index] if self.words else None
        if not side and self.words:
            source = self.table.node_properties(word).get(name)
            if source is not None:
                return self._placed(source, index, "in", position)
        source = self.table.tensor_properties(word).get(name)
        if source is None or not self.words or (side == "out" and position > 1):
            return None
        return self._placed(source, index, side or "in", position)

    def _placed(self, source: str, index: int, side: str, position: int) -> ast.Expr:
        """A table's expression with its ``x``, ``x2`` and ``n`` put in place."""

        def place(expr: ast.Expr) -> ast.Expr | None:
            match expr:
                case ast.Name("n"):
                    return ast.Name(self.node(index))
                case ast.Name("x"):
                    tensor = self.node(index) if side == "out" else self.operand(index, position)
                    return ast.Name(tensor)
                case ast.Name(text) if re.fullmatch(r"x[1-9]", text):
                    return ast.Name(self.operand(index, int(text[1:])))
                case _:
                    return None

        return rewrite(expression(source), place)

    def candidates(self) -> Iterator[str]:
        """Every argument name that can be made for this chain and the operands used in it."""
        operands = sorted(self.used)
        for index, word in enumerate(self.words):
            alone = len(self.words) == 1
            node = "" if alone else f"{self._spellings(index, word)[0]}-"
            yield from (node + name for name in self.table.node_properties(word))
            for name in self.table.tensor_properties(word):
                for _, position in [o for o in operands if o[0] == index]:
                    if not alone:
                        yield f"{node}in-{name}" if position == 1 else f"{node}in{position}-{name}"
                    elif operands == [(0, 1)]:
                        yield name
                    yield f"input{position}-{name}"
                yield f"output-{name}" if alone else f"{node}out-{name}"
        yield from self.table.table["device"]


def _sided(text: str) -> Iterator[tuple[str, int, str]]:
    """``in-shape``, ``input2-width``, ``out-dtype``: (side, position, property)."""
    if parts := re.fullmatch(r"(in|out)(?:put)?([1-9][0-9]?)?-(.+)", text):
        yield parts[1], int(parts[2] or 1), parts[3]


# --- notation to rules -----------------------------------------------------------------------


def import_notation(text: str, path: str, klass: str | None = None) -> Imported:
    """Read notation and say it in rules. ``klass`` overrides the class of every declaration.

    Raises RulesError if the notation cannot be read.
    """
    notation = parse_notation(text, path)
    importer = _Importer(shipped_names())
    decls: list[Decl] = []
    pending: list[Definition] = []
    for entry in notation.entries:
        if isinstance(entry.item, Definition):
            importer.definitions[entry.item.name] = entry.item
            pending.append(entry.item)
            continue
        used = importer.definitions_of(entry.item)
        noted = list(dict.fromkeys([*used, *pending]))
        decls.append(importer.take(entry, noted, klass))
        pending.clear()
    if pending:
        if not decls:
            importer.warnings.append(
                Diagnostic(
                    "xcheck-nothing-asserted", "definitions, but no assertion", pending[0].span
                )
            )
            raise RulesError(importer.warnings)
        decls[-1] = _with_notes(decls[-1], pending)
    if any(d.severity is Severity.ERROR for d in importer.warnings):
        raise RulesError(importer.warnings)
    comments = tuple((_after_all(path, i), f"// {c}") for i, c in enumerate(notation.trailing))
    file = ast.RuleFile(path, (), tuple(decls), comments)
    return Imported(file, (*notation.warnings, *importer.warnings))


def _after_all(path: str, index: int) -> Span:
    line = 10**6 + index
    return Span(path, line, 1, line, 2)


def _with_notes(decl: Decl, definitions: list[Definition]) -> Decl:
    notes = tuple(f"{NOTE} {write_item(d)}" for d in definitions)
    if isinstance(decl, ast.ConstraintDecl):
        return replace(decl, doc=(*decl.doc[:-1], *notes, decl.doc[-1]))
    return replace(decl, doc=(*decl.doc[:-1], *notes, decl.doc[-1]))


class _Importer:
    """Makes declarations one after another; ``used`` keeps their names apart."""

    def __init__(self, table: Names) -> None:
        self.table = table
        self.used: set[str] = set()
        self.definitions: dict[str, Definition] = {}
        self.warnings: list[Diagnostic] = []
        self._told: set[tuple[str, str]] = set()

    def take(self, entry: Entry, noted: list[Definition], klass: str | None) -> Decl:
        """The declaration for an entry, with its documentation."""
        decl = self.build(entry.item, dict(entry.directives), klass)
        self.used.add(decl.name.text)
        comments = tuple(_comment(line) for line in entry.comments)
        notes = tuple(f"{NOTE} {write_item(item)}" for item in (*noted, entry.item))
        return replace(decl, doc=(*comments, *notes))

    def build(
        self,
        item: Constraint | Definition | Assertions,
        directives: Mapping[str, str],
        klass: str | None = None,
    ) -> Decl:
        """The declaration without documentation; its name is not yet taken."""
        match item:
            case Constraint():
                return self._constraint(item, directives, klass)
            case Assertions():
                return self._monitor(item, directives, klass)
            case Definition():
                raise AssertionError(item)

    def _constraint(
        self, item: Constraint, directives: Mapping[str, str], klass: str | None
    ) -> ast.ConstraintDecl:
        scope = Scope(item.operators, self.table)

        def meaning(expr: ast.Expr) -> ast.Expr | None:
            match expr:
                case ast.Name(text, span) if text.startswith("%"):
                    found = scope.argument(text[1:])
                    if found is None:
                        self._unknown(text[1:], "param", span)
                        return look_up("param", text[1:], span)
                    return found
                case ast.Name(text, span):
                    return _word(text, span)
                case _:
                    return None

        condition = rewrite_condition(item.condition, meaning)
        require = condition.parts if isinstance(condition, ast.And) else (condition,)
        guessed = self.table.klass(item.identifier) or _class_of(condition, scope)
        chosen = directives.get("class") or klass or guessed
        lines = scope.lines()
        self._check_operators(lines, item.span)
        name = directives.get("name") or self._free(_name(item.identifier or chosen))
        ident = ast.Ident(name, item.span)
        where = scope.where()
        return ast.ConstraintDecl(ident, ast.Ident(chosen), lines, where, require, span=item.span)

    def _monitor(
        self, item: Assertions, directives: Mapping[str, str], klass: str | None
    ) -> ast.MonitorDecl:
        conditions = [rewrite_condition(c, self._inline) for c in item.conditions]
        operands = [self.table.operand(n.text) for c in conditions for n in names(c)]
        known = [operand for operand in operands if operand is not None]
        otherwise = self.table.table["assertion"]["otherwise"]
        passes = [o.pass_name for o in known if o.pass_name] + [otherwise["pass"]]
        classes = [o.klass for o in known if o.klass] + [otherwise["class"]]
        pass_name = directives.get("pass") or passes[0]
        chosen = directives.get("class") or klass or classes[0]

        def meaning(expr: ast.Expr) -> ast.Expr | None:
            if not isinstance(expr, ast.Name):
                return None
            found = self.table.operand(expr.text)
            around = found is not None and _is_around(found.meaning, self.table)
            if found is None or (around and found.pass_name != pass_name):
                self._unknown(expr.text, "value", expr.span)
                return look_up("value", expr.text, expr.span)
            return found.meaning

        asserts = tuple((rewrite_condition(c, meaning), None) for c in conditions)
        wish = _name(_snake(item.label)) if item.label else f"{chosen}_1"
        name = directives.get("name") or self._free(wish)
        ident = ast.Ident(name, item.span)
        return ast.MonitorDecl(ident, ast.Ident(chosen), pass_name, asserts, span=item.span)

    def _inline(self, expr: ast.Expr) -> ast.Expr | None:
        """A defined name's value, with the definitions inside it put in as well."""
        if isinstance(expr, ast.Name) and expr.text in self.definitions:
            return rewrite(self.definitions[expr.text].value, self._earlier(expr.text))
        return None

    def _earlier(self, name: str) -> Callable[[ast.Expr], ast.Expr | None]:
        """Put in definitions that stand before ``name``'s: so that none contains itself."""
        order = list(self.definitions)

        def put(expr: ast.Expr) -> ast.Expr | None:
            known = isinstance(expr, ast.Name) and expr.text in order[: order.index(name)]
            return self._inline(expr) if known else None

        return put

    def definitions_of(self, item: Constraint | Definition | Assertions) -> list[Definition]:
        """The definitions that assertions use, directly or through others, in order."""
        if not isinstance(item, Assertions):
            return []
        wanted = {leaf.text for condition in item.conditions for leaf in names(condition)}
        for definition in reversed(self.definitions.values()):
            if definition.name in wanted:
                wanted |= {leaf.text for leaf in names(definition.value)}
        return [d for d in self.definitions.values() if d.name in wanted]

    def _free(self, wish: str) -> str:
        """``wish``, or with a number the first such name that no declaration has."""
        stem = re.sub(r"_[0-9]+$", "", wish)
        number = 2
        while wish in self.used:
            wish, number = f"{stem}_{number}", number + 1
        return wish

    def _check_operators(self, lines: tuple[ast.Bind, ...], span: Span) -> None:
        for line in lines:
            operator = line.calls[0].ops[0].text
            if not all(_IDENTIFIER.fullmatch(part) for part in operator.split(".")):
                self.warnings.append(
                    Diagnostic("xcheck-operator", f'"{operator}" can be no operator', span)
                )

    def _unknown(self, word: str, function: str, span: Span) -> None:
        if (word, function) in self._told:
            return
        self._told.add((word, function))
        self.warnings.append(
            Diagnostic(
                "xcheck-unknown-name",
                f'nothing is known of "{word}": kept as {function}("{word}")',
                span,
                "extractors/xcheck/names.toml says what names mean",
                Severity.WARNING,
            )
        )


def _comment(line: str) -> str:
    return line.replace(NOTE, "xcheck :", 1) if line.startswith(NOTE) else line


def _word(text: str, span: Span) -> ast.Expr:
    """A word of a relation: a dtype, or else itself, as a symbol."""
    return ast.Name(text.lower(), span) if text.lower() in DTYPES else ast.String(text, span)


def _name(wish: str) -> str:
    """A declaration's name from an identifier: ``sem-matmul-k`` is ``sem_matmul_k``."""
    plain = re.sub(r"[^a-z0-9_]", "_", wish.lower())
    return plain if plain[:1].isalpha() else f"c_{plain}"


def _is_around(meaning: ast.Expr, table: Names) -> bool:
    around = table.table["assertion"]["around"]
    functions = (around["Before"], around["After"])
    return isinstance(meaning, ast.CallExpr) and meaning.function.text in functions


def _class_of(condition: ast.Condition, scope: Scope) -> str:
    """The class of a constraint whose identifier does not say it."""
    found: set[str] = set()

    def note(expr: ast.Expr) -> ast.Expr | None:
        match expr:
            case ast.CallExpr(function):
                found.add(function.text)
            case ast.Member(ast.Name(base), name):
                found.add(name.text)
                found.update({"attribute"} if base == scope.node(0) else ())
        return None

    rewrite_condition(condition, note)
    if "device" in found:
        return "resource"
    if "dtype" in found:
        return "data_representation"
    if len(scope.words) > 1:
        return "topology"
    return "parameter_bound" if "attribute" in found else "algebraic"


# --- rules to notation -----------------------------------------------------------------------


def export_rules(file: ast.RuleFile) -> Exported:
    """Write a file's constraints and monitors in XCheck's notation."""
    exporter = _Exporter(shipped_names())
    for decl in file.decls:
        exporter.take(decl)
    last = max((decl.span.end_line for decl in file.decls), default=0)
    trailing = tuple(text.lstrip("/ ") for span, text in file.comments if span.line > last)
    text = write_notation(Notation(tuple(exporter.entries), trailing))
    return Exported(text, tuple(exporter.diagnostics))


class _Exporter:
    """Writes declarations one after another, and reads each back to see that nothing was lost.

    ``reader`` is the importer that the text will meet: it knows the names taken so far.
    """

    def __init__(self, table: Names) -> None:
        self.table = table
        self.reader = _Importer(table)
        self.entries: list[Entry] = []
        self.diagnostics: list[Diagnostic] = []

    def take(self, decl: ast.Decl) -> None:
        """Write one declaration, if it is one that the notation has."""
        if not isinstance(decl, ast.ConstraintDecl | ast.MonitorDecl):
            self._say("xcheck-left-out", "no constraint and no monitor: left out", decl.span)
            return
        lines = [line.strip() for line in decl.doc]
        comments = tuple(line for line in lines if not line.startswith(NOTE))
        notes = [line.removeprefix(NOTE).strip() for line in lines if line.startswith(NOTE)]
        item = self._believed(decl, notes) if notes else None
        try:
            if item is None:
                item = self._made(decl, _outdated(notes))
        except NotWritable as failure:
            place = failure.part.span if failure.part.span is not ast.NOWHERE else decl.span
            self._say(
                "xcheck-no-form",
                f"`{decl.name.text}` cannot be said in XCheck's notation: {failure.why}",
                place,
                Severity.ERROR,
            )
            return
        self.entries.append(Entry(item, comments, self._directives(item, decl)))
        self.reader.used.add(decl.name.text)

    def _believed(
        self, decl: Decl, notes: list[str]
    ) -> Constraint | Definition | Assertions | None:
        """The item in a declaration's documentation, if the declaration is still what it says."""
        try:
            notation = parse_notation("\n".join(notes), decl.span.file)
        except RulesError:
            notation = Notation(())
        items = [entry.item for entry in notation.entries]
        last = items[-1] if items else None
        if last is not None and not isinstance(last, Definition):
            for definition in items[:-1]:
                self._define(definition)
            directives = {"pass": decl.pass_name} if isinstance(decl, ast.MonitorDecl) else {}
            if _substance(self.reader.build(last, directives)) == _substance(decl):
                return last
        self._say(
            "xcheck-edited",
            f"`{decl.name.text}` no longer says what its `{NOTE}` line says: written anew",
            decl.name.span,
        )
        return None

    def _define(self, definition: object) -> None:
        if isinstance(definition, Definition):
            if self.reader.definitions.get(definition.name) != definition:
                self.entries.append(Entry(definition))
            self.reader.definitions[definition.name] = definition

    def _directives(
        self, item: Constraint | Definition | Assertions, decl: Decl
    ) -> tuple[tuple[str, str], ...]:
        """What the item alone would not give back: class, pass and name, where they differ."""
        directives: dict[str, str] = {}
        if self.reader.build(item, directives).klass != decl.klass:
            directives["class"] = decl.klass.text
        read = self.reader.build(item, directives)
        if isinstance(decl, ast.MonitorDecl) and decl.pass_name != getattr(read, "pass_name", None):
            directives["pass"] = decl.pass_name
        if read.name != decl.name:
            directives["name"] = decl.name.text
        return tuple(directives.items())

    # declarations written by hand

    def _made(self, decl: Decl, outdated: Constraint | None) -> Constraint | Assertions:
        """Notation for a declaration, checked by reading it back. What it was before an edit
        still says how its author spells things."""
        if isinstance(decl, ast.ConstraintDecl):
            plain = _Plain(decl, self.table)
            item: Constraint | Assertions = plain.constraint(outdated)
            expected = _substance(plain.canonical())
            directives = {}
        else:
            item = self._assertions(decl)
            expected = _substance(decl)
            directives = {"pass": decl.pass_name}
        entries = parse_notation(write_item(item), decl.span.file).entries
        again = self.reader.build(entries[0].item, directives)
        if len(entries) != 1 or _substance(again) != expected:
            raise NotWritable(_condition_of(decl), "it would be read back as something else")
        return item

    def _assertions(self, decl: ast.MonitorDecl) -> Assertions:
        words = dict(reversed(list(self.table.operand_words(decl.pass_name))))

        def spell(expr: ast.Expr) -> ast.Expr | None:
            match _bare(expr):
                case ast.CallExpr(function, (ast.Name(text) | ast.String(text),)) as call:
                    word = words.get(call)
                    if word is None and function.text == "value" and _IDENTIFIER.fullmatch(text):
                        word = text
                    word = word or self.table.spelled(function.text, text, decl.pass_name)
                    return None if word is None else ast.Name(word, expr.span)
                case _:
                    return None

        conditions = []
        for condition, message in decl.asserts:
            conditions.append(rewrite_condition(condition, spell))
            assertion_text(conditions[-1])  # raises NotWritable
            if message is not None:
                self._say("xcheck-message", "the message is left out", condition.span)
        if not conditions:
            raise NotWritable(ast.Name("", decl.span), "it asserts nothing")
        if not re.fullmatch(r"[^\s=]+", decl.pass_name):
            raise NotWritable(ast.Name("", decl.span), "its pass's name holds a space or a `=`")
        return Assertions(_camel(decl.name.text), tuple(conditions))

    def _say(
        self, code: str, message: str, span: Span, severity: Severity = Severity.WARNING
    ) -> None:
        self.diagnostics.append(Diagnostic(code, message, span, severity=severity))


class _Plain:
    """A constraint over a chain of nodes, renamed as :class:`Scope` names things.

    Raises NotWritable for any other shape: the notation speaks of operators, not of patterns.
    """

    def __init__(self, decl: ast.ConstraintDecl, table: Names) -> None:
        self.decl = decl
        words = tuple(self._operator(line, table) for line in decl.lines)
        if None in words and len(words) > 1:
            raise NotWritable(_condition_of(decl), "`any` in a chain of operators")
        operators = tuple(word for word in words if word is not None)
        self.operators = None if words == (None,) else operators
        self.scope = Scope(self.operators, table)
        self.renamed: dict[ast.Expr, ast.Expr] = {}
        self.links: dict[tuple[str, str], ast.Condition] = {}
        for condition in decl.where:
            match condition:
                case ast.Comparison((ast.Name(operand), ast.Name(node)), ("==",)):
                    self.links[operand, node] = condition
                case _:
                    raise NotWritable(condition, "it has a `where`")
        for index, line in enumerate(decl.lines):
            self._line(index, line)
        for condition in self.links.values():
            raise NotWritable(condition, "it has a `where`")
        self.require = tuple(
            rewrite_condition(condition, lambda e: self.renamed.get(_bare(e)))
            for condition in decl.require
        )

    def _operator(self, line: ast.Bind, table: Names) -> str | None:
        call = line.calls[0]
        if len(line.calls) != 1 or len(call.ops) != 1 or len(line.names) != 1 or call.unordered:
            raise NotWritable(ast.Name("", line.span), "only lines `n = operator(x, …)` can be")
        return table.operator_word(call.ops[0].text)

    def _line(self, index: int, line: ast.Bind) -> None:
        call = line.calls[0]
        node = line.names[0].text
        for attribute in call.attributes:
            if not isinstance(attribute.value, ast.Variable):
                raise NotWritable(ast.Name("", attribute.span), "it fixes an attribute")
            member = ast.Member(ast.Name(self.scope.node(index)), attribute.name)
            self.renamed[attribute.value] = member
        for position, operand in enumerate(call.operands, 1):
            match operand:
                case ast.TensorRef(name, None):
                    before = self.decl.lines[index - 1].names[0].text
                    if index and position == 1 and name.text == before:
                        continue
                    if index and position == 1 and not self.links.pop((name.text, before), None):
                        raise NotWritable(ast.Name("", operand.span), "it is no chain")
                    if ast.Name(name.text) in self.renamed:
                        raise NotWritable(ast.Name("", operand.span), "it is no chain")
                    self.renamed[ast.Name(name.text)] = ast.Name(f"{index},{position}")
                case ast.AnyOperand(False) if not (index and position == 1):
                    continue
                case ast.RestOperands() if position == len(call.operands) and (
                    position > 1 or not index
                ):
                    continue
                case _:
                    raise NotWritable(ast.Name("", operand.span), "it says more of an operand")
        if index and not call.operands:
            raise NotWritable(ast.Name("", line.span), "it is no chain")
        self.renamed[ast.Name(node)] = ast.Name(self.scope.node(index))

    def canonical(self) -> ast.ConstraintDecl:
        """The declaration in the form in which it will be read back."""

        def place(expr: ast.Expr) -> ast.Expr | None:
            if isinstance(expr, ast.Name) and "," in expr.text:
                index, position = expr.text.split(",")
                return ast.Name(self.scope.operand(int(index), int(position)))
            return None

        require = tuple(rewrite_condition(c, place) for c in self.require)
        return replace(
            self.decl, lines=self.scope.lines(), where=self.scope.where(), require=require
        )

    def constraint(self, outdated: Constraint | None) -> Constraint:
        """The tuple, with the identifier and argument names of ``outdated`` where they fit."""
        require = self.canonical().require  # first: it notes which operands are spoken of
        words: dict[ast.Expr, str] = {}
        known = (outdated and outdated.arguments) or ()
        for candidate in [*known, *self.scope.candidates()]:
            meaning = Scope(self.operators, self.scope.table).argument(candidate)
            if meaning is not None:
                words.setdefault(_bare(meaning), candidate)

        def spell(expr: ast.Expr) -> ast.Expr | None:
            bare = _bare(expr)
            match bare:
                case _ if bare in words:
                    return ast.Name(f"%{words[bare]}", expr.span)
                case ast.CallExpr(ast.Ident("device"), (ast.Name(text),)):
                    return ast.Name("%device-" + text.replace("_", "-"), expr.span)
                case ast.CallExpr(ast.Ident("param"), (ast.Name(text) | ast.String(text),)) if (
                    _ARGUMENT.fullmatch(text)
                ):
                    return ast.Name(f"%{text}", expr.span)
                case _:
                    return None

        conditions = tuple(rewrite_condition(c, spell) for c in require)
        whole = conditions[0] if len(conditions) == 1 else ast.And(conditions, self.decl.span)
        text = relation_text(whole)
        spoken = [n.text[1:] for n in names(whole) if n.text.startswith("%")]
        named = (outdated and outdated.identifier) or self.decl.name.text.replace("_", "-")
        arguments = tuple(dict.fromkeys(spoken))
        return Constraint(named, self.operators, arguments, text, whole, self.decl.span)


def _outdated(notes: list[str]) -> Constraint | None:
    """The constraint in a note, believed or not, if there is one."""
    try:
        items = [entry.item for entry in parse_notation("\n".join(notes), "").entries]
    except RulesError:
        return None
    return items[-1] if items and isinstance(items[-1], Constraint) else None


def _condition_of(decl: Decl) -> ast.Expr:
    return ast.Name(decl.name.text, decl.name.span)


def _bare(expr: ast.Expr) -> ast.Expr:
    """``device("x")`` as ``device(x)``: the same look-up, written the shorter way."""

    def bare(part: ast.Expr) -> ast.Expr | None:
        match part:
            case ast.CallExpr(function, (ast.String(text),), span):
                return look_up(function.text, text, span)
            case _:
                return None

    return rewrite(expr, bare)


def _substance(decl: Decl) -> object:
    """What a declaration says, without its name, class and documentation."""

    def bare(condition: ast.Condition) -> ast.Condition:
        return rewrite_condition(condition, lambda e: b if (b := _bare(e)) != e else None)

    match decl:
        case ast.ConstraintDecl():
            require = [
                part
                for condition in decl.require
                for part in (condition.parts if isinstance(condition, ast.And) else [condition])
            ]
            return decl.lines, decl.where, tuple(bare(c) for c in require)
        case ast.MonitorDecl():
            return decl.pass_name, tuple(bare(condition) for condition, _ in decl.asserts)
