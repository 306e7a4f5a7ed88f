"""The files of a new extractor: ``extractor.toml`` with what was found in a checkout, or with what
each setting is for, where there is none."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reprise.lang.display import counted
from reprise.mining.new.suggest import Suggestion, Suggestions, wanted
from reprise.mining.source.extractor import FILE, Extractor
from reprise.mining.source.files import MOST_BYTES, SUFFIXES, Source, sources

_WIDTH = 96

_ELSEWHERE = re.compile(
    r"^(?P<top>docs?|examples?|benchmarks?)/"
    r"|(?:^|/)(?P<any>tests?|testing|autogen|generated|3rdparty|third_?party)/"
)
"""Folders that hold no part of a compiler. GeneSys is in ``codelets/examples/genesys``."""


class ScaffoldError(ValueError):
    """An extractor that cannot be made."""


@dataclass(frozen=True)
class Layout:
    """Where a checkout's sources are."""

    languages: tuple[str, ...]
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    files: tuple[Source, ...]


def layout(checkout: Path) -> Layout:
    """The languages and folders of a checkout that hold its sources, apart from tests and the like.

    Raises ScaffoldError: it has no sources in a language that is read.
    """
    everything = Extractor(
        "", "new", tuple(SUFFIXES), ("**",), (), "file", {}, {}, {}, {}, {}, checkout / FILE
    )
    found, _ = sources(checkout, everything, MOST_BYTES)
    elsewhere = {source.path: _ELSEWHERE.search(source.path) for source in found}
    files = [source for source in found if elsewhere[source.path] is None]
    exclude = sorted(
        {
            f"**/{where['any']}/**" if where["any"] else f"{where['top']}/**"
            for where in elsewhere.values()
            if where is not None
        }
    )
    if not files:
        endings = ", ".join(end for ends in SUFFIXES.values() for end in ends[:1])
        raise ScaffoldError(f"{checkout}: there is no source here ({endings}, …)")
    sizes: Counter[str] = Counter()
    folders: Counter[str] = Counter()
    for source in files:
        sizes[source.language] += source.size
        folders[source.path.split("/")[0] if "/" in source.path else ""] += source.size
    whole = sum(sizes.values())
    languages = tuple(name for name in SUFFIXES if sizes[name] * 50 > whole)
    large = sorted(name for name, size in folders.items() if size * 50 > whole and name)
    include = tuple(f"{name}/**" for name in large)
    if not include or folders[""] * 5 > whole:
        include = ("**",)
    kept = [s for s in files if s.language in languages]
    return Layout(languages, include, tuple(exclude), tuple(kept))


def scaffold(
    name: str, folder: Path, where: Layout | None, found: Suggestions | None
) -> tuple[Path, str]:
    """Write ``folder/name/extractor.toml``; returns its path and text.

    Raises ScaffoldError: the name is none, or the file is already there.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", name):
        raise ScaffoldError(f"`{name}`: a name is made of small letters, digits, `-` and `_`")
    path = folder / name / FILE
    if path.exists():
        raise ScaffoldError(f"{path} is there already: remove it, or choose another name")
    text = extractor_text(name, where, found)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path, text


def extractor_text(name: str, where: Layout | None, found: Suggestions | None) -> str:
    """The text of ``extractor.toml``."""
    languages = where.languages if where else ("python", "cpp")
    include = where.include if where else ("src/**",)
    lines = [
        f"# What to look for in {name}. docs/mining-source.md explains every setting.",
        f'target = "{name.replace("-", "_")}"',
        f"languages = {_list(languages)}",
        f"include = {_list(include)}",
        f"exclude = {_list(where.exclude if where else ('**/tests/**',))}",
        'pass = "file"  # or "function", "class": what names the pass that a site belongs to',
        "",
        "[keywords]",
    ]
    for want in wanted()[0]:
        suggestions = found.of(want.name) if found else ()
        lines += _set(want.name, want.holds, suggestions)
    lines += ["", "# What a variable's name stands for on the device.", "[device]"]
    if found:
        lines += [f'{n} = "{means}"  # {place}' for n, (means, place) in found.device.items()]
    else:
        lines.append('# warp_size = "device(warp)"')
    return "\n".join(lines) + "\n"


def _set(name: str, holds: str, suggestions: Sequence[Suggestion]) -> Iterator[str]:
    """A keyword set: what is sure as its value, with places; what may belong in it as a comment."""
    sure = [s for s in suggestions if s.sure]
    maybe = [s for s in suggestions if not s.sure]
    if not suggestions:
        yield f"# {name} = []  # {holds}"
        return
    yield f"# {name}: {holds}."
    for one in suggestions[:3]:
        yield f"#   {one.name}: {counted(one.count, 'place')}, first {one.places[0]}"[:_WIDTH]
    if sure:
        yield f"{name} = {_list([s.name for s in sure])}"
    else:
        yield f"# {name} = []"
    if maybe:
        listed = f"# perhaps also: {', '.join(s.name for s in maybe)}"
        yield textwrap.shorten(listed, _WIDTH, placeholder=" …")


def _list(items: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"
