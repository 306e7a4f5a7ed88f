"""The operators that somebody asks for by name, among those that a file declares."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from pathlib import Path

from reprise.facts.onnx_apply import is_foreign, parts
from reprise.mining.docs.mining import SIGNATURES_IN_UIR
from reprise.mining.docs.vocabulary import uir_names

_ALIKE = 0.8
"""How like a name must be to be the one that was meant; operators share many words."""


def names_in(given: Sequence[str]) -> list[str]:
    """The names in ``NAME,...`` options."""
    return [name.strip() for names in given for name in names.split(",") if name.strip()]


def full_name(name: str, known: Collection[str]) -> str:
    """``onnx.CenterCropPad`` for ``CenterCropPad`` or ``centercroppad``, if it is known; else the
    name as it is."""
    if name in known:
        return name
    same = sorted(op for op in known if is_foreign(op) and parts(op)[1].lower() == name.lower())
    return same[0] if same else name


def elsewhere(name: str, known: Collection[str], path: Path) -> str:
    """What to add where ``path`` does not declare an operator: the file beside it that does, UIR's
    name for it, or a name that is like it. May be empty."""
    domain, bare = parts(name)
    in_uir = uir_names(bare) if not domain else ()
    if in_uir:
        beside = path.with_name(SIGNATURES_IN_UIR)
        there = (
            f"; {beside} has its signature (--all)" if beside.is_file() and beside != path else ""
        )
        return f": UIR has it, as {', '.join(f'`{op}`' for op in in_uir)}{there}"
    lowered = {parts(op)[1].lower(): op for op in sorted(known)}
    alike = get_close_matches(bare.lower(), lowered, n=1, cutoff=_ALIKE)
    return f" (did you mean `{lowered[alike[0]]}`?)" if alike else ""
