"""What a target does not do, by operator and element types of the operands.

A table is data (``rules/targets/NAME.toml``), measured by ``reprise targets probe`` and read by the
generator, so that programs are valid for the target. What depends on more than element types
(ranks, attributes) stands beside it in ``rules/targets/NAME.rules``: constraints and deny rules
whose violations make a program invalid.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from reprise.data import data_path
from reprise.lang.ruleset import RuleSet

Key = tuple[str, tuple[str | None, ...]]
"""An operator and its operands' element types; None for an operand that is absent. ``REST`` at the
end stands for whatever optional operands follow."""

REST = "..."
_ABSENT = "-"


@dataclass(frozen=True, slots=True)
class Support:
    """A target's table: the target's words for each application that it declines. ``versions``,
    ``mode``, ``seed`` and ``instances`` say how it was measured."""

    target: str
    versions: Mapping[str, str] = field(default_factory=dict)
    mode: str = ""
    seed: int = 0
    instances: int = 0
    table: Mapping[Key, str] = field(default_factory=dict)

    @classmethod
    def load(cls, target: str, folder: Path | None = None) -> Support:
        """The table of the target called ``target``; an empty one if there is none (targets from
        elsewhere). That of operators which only have mined signatures is called ``NAME.mined``.
        Raises tomllib.TOMLDecodeError, KeyError."""
        path = (folder or data_path("rules") / "targets") / f"{target}.toml"
        if not path.is_file():
            return cls(target)
        data = tomllib.loads(path.read_text("utf-8"))
        table = {
            (op, read_dtypes(dtypes)): reason
            for op, reasons in data["unsupported"].items()
            for dtypes, reason in reasons.items()
        }
        measured = (data["versions"], data["mode"], data["seed"], data["instances"])
        return cls(data["target"], *measured, table)

    @classmethod
    def whole(cls, target: str) -> Support:
        """The target's table together with that of mined operators. Raises as :meth:`load`."""
        shipped, mined = cls.load(target), cls.load(f"{target}.mined")
        return replace(shipped, table={**shipped.table, **mined.table})

    def why_not(self, op: str, dtypes: Sequence[str | None]) -> str | None:
        """Why the target does not apply ``op`` to operands of these types, or None if it does (or
        nobody knows)."""
        reason = self.table.get(table_key(op, dtypes))
        if reason is None:
            for end in range(len(dtypes), -1, -1):
                reason = self.table.get((op, (*dtypes[:end], REST)))
                if reason is not None:
                    break
        return reason

    def text(self) -> str:
        """The table as a file."""
        lines = [
            f"# What {self.target} does not do: an operator with operands of these element types,",
            "# and its words. Written by `reprise targets probe`.",
            f"target = {_quoted(self.target)}",
            f"mode = {_quoted(self.mode)}",
            f"seed = {self.seed}",
            f"instances = {self.instances}",
            "",
            "[versions]",
            *(f"{_quoted(name)} = {_quoted(text)}" for name, text in self.versions.items()),
            "",
            "[unsupported]",
        ]
        last = ""
        for (op, dtypes), reason in sorted(self.table.items(), key=lambda e: _order(e[0])):
            if op != last:
                name = _quoted(op) if "." in op else op
                lines += ["", f"[unsupported.{name}]"]
                last = op
            lines.append(f"{_quoted(show_dtypes(dtypes))} = {_quoted(reason)}")
        return "\n".join(lines) + "\n"


def target_rules(target: str) -> list[Path]:
    """The file with what the table cannot say, where the target has one."""
    path = data_path("rules") / "targets" / f"{target}.rules"
    return [path] if path.is_file() else []


def forbidden(rules: RuleSet, files: Sequence[Path]) -> list[str]:
    """The relations, of those that ``files`` declare, whose rows make a program invalid for the
    target: violations of constraints, and deny rules."""
    paths = {str(path) for path in files}
    constraints = [c.name for c in rules.constraints.values() if c.span.file in paths]
    denies = [name for name, many in rules.denies.items() if many[0].span.file in paths]
    return [*constraints, *denies]


def table_key(op: str, dtypes: Sequence[str | None]) -> Key:
    """The table's key for an application: trailing operands that are absent, or of the same type
    as the one before them, are left out, since how many there are never mattered."""
    end = len(dtypes)
    while end > 1 and dtypes[end - 1] in (None, dtypes[end - 2]):
        end -= 1
    return op, tuple(dtypes[:end])


def show_dtypes(dtypes: Sequence[str | None]) -> str:
    """``float32, -, int64``"""
    return ", ".join(_ABSENT if dtype is None else dtype for dtype in dtypes)


def read_dtypes(text: str) -> tuple[str | None, ...]:
    """The inverse of :func:`show_dtypes`."""
    if not text:
        return ()
    return tuple(None if dtype == _ABSENT else dtype for dtype in text.split(", "))


def _quoted(text: str) -> str:
    """A TOML string: as JSON's, but without pairs of surrogates, and without a bare DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _order(key: Key) -> tuple[str, list[str]]:
    return key[0], [dtype or "" for dtype in key[1]]
