"""What the two languages share in finding places: regions, and how a place refuses a check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from tree_sitter import Language, Node, Parser, Tree

from reprise.mining.instrument.checks import Check, Site
from reprise.mining.instrument.edits import Insertion


class NoPlace(Exception):
    """Why a check cannot stand at its site; for people."""


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of source that a site's line may mean: a simple statement, or the part of a
    compound one before its body. ``start`` and ``end`` are offsets; ``node`` is the statement."""

    node: Node
    start: int
    end: int


class SourceFile(Protocol):
    """A file that checks can be put into."""

    def place(self, check: Check, site: Site) -> list[Insertion]:
        """The insertions that make ``check`` run at ``site``. Raises NoPlace, Untranslatable."""
        ...

    def preamble(self) -> Insertion:
        """What the checks of this file need before the first of them."""
        ...


def parse(language: Language, source: bytes) -> Tree:
    """The tree of a source of any 8-bit encoding; offsets are the source's own.

    Bytes that are not UTF-8 are read as letters, which they are in the encodings that have them.
    """
    try:
        source.decode()
    except UnicodeDecodeError:
        source = bytes(byte if byte < 0x80 else ord("x") for byte in source)
    return Parser(language).parse(source)


def walk(node: Node, skip: frozenset[str] = frozenset()) -> Iterator[Node]:
    """A node and all below it, in order of the source; not what is below types in ``skip``."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        if node.type not in skip:
            waiting.extend(reversed(node.children))


def ancestors(node: Node) -> Iterator[Node]:
    """The nodes around a node, the innermost first."""
    above = node.parent
    while above is not None:
        yield above
        above = above.parent


def unreadable(region: Region) -> bool:
    """Whether the grammar could not read a region, or what it is in."""
    within = [n for n in walk(region.node) if region.start <= n.start_byte < region.end]
    return any(n.is_error for n in ancestors(region.node)) or any(
        n.is_error or n.is_missing for n in within
    )


def text_of(node: Node) -> str:
    """A node's source; for names, which are compared and never written back."""
    return (node.text or b"").decode("utf-8", "replace")


def errors_in(tree: Tree) -> int:
    """How many pieces of a source the grammar could not read."""
    if not tree.root_node.has_error:
        return 0
    return sum(node.is_error or node.is_missing for node in walk(tree.root_node))


def choose(found: list[tuple[Region, set[str], set[str]]], wanted: set[str]) -> Region:
    """Which statement of a line is meant: the last one that binds a value of the check, else the
    first that mentions one (of ``if x % 2: return x``, the guard). Each region comes with the names
    that it binds and mentions. Raises NoPlace."""
    if not found:
        raise NoPlace("there is no statement on that line")
    binding = [region for region, bound, _ in found if bound & wanted]
    mentioning = [region for region, _, mentioned in found if mentioned & wanted]
    if binding:
        return binding[-1]
    if mentioning:
        return mentioning[0]
    listed = ", ".join(f"`{name}`" for name in sorted(wanted))
    raise NoPlace(f"the statement on that line mentions none of {listed}")
