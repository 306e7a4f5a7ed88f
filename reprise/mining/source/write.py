"""What was derived, as one ``.rules`` file in the formatter's layout.

Every declaration says where it comes from. Equal constraints of several sites become one, which
names them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from reprise.data import data_path
from reprise.lang.display import printable
from reprise.lang.format import format_text, metadata_value, quoted
from reprise.lang.layout import WIDTH
from reprise.lang.ruleset import rule_files
from reprise.mining.source.bounds import AttributeBound, SizeBound, declarations, documented
from reprise.mining.source.derive import Derived, Found, assertion
from reprise.mining.source.extractor import Extractor


def written(derived: Derived, extractor: Extractor, commit: str | None, about: str) -> str:
    """The text of the file; ``about`` is its first line."""
    names = _Names()
    blocks = [f"// {about}"]
    for found in derived.found:
        if found.asserted:
            blocks.append(_monitor(found, extractor, commit, names))
    blocks += [_elsewhere(found) for found in derived.found if found.elsewhere]
    blocks += _constraints([f for f in derived.found if f.agreeing], extractor, commit, names)
    blocks += declarations(
        derived.beyond,
        extractor.target,
        names.name,
        lambda bound: _meta_of(bound, extractor, commit),
    )
    return "\n\n".join(blocks) + "\n"


_NAMED = re.compile(r"^(?:pattern|constraint|monitor)\s+(\w+)", re.MULTILINE)


@cache
def _shipped() -> frozenset[str]:
    """The names of the patterns, constraints and monitors that ship: what is mined is to be loaded
    beside them."""
    texts = (path.read_text("utf-8") for path in rule_files([data_path("rules")]))
    return frozenset(name for text in texts for name in _NAMED.findall(text))


class _Names:
    """Gives every declaration a name of its own."""

    def __init__(self) -> None:
        self.taken: dict[str, int] = {}

    def name(self, wanted: str) -> str:
        base = re.sub(r"[^a-z0-9]+", "_", wanted.lower()).strip("_")
        if not base[:1].isalpha():
            base = f"n_{base}"
        if base in _shipped():
            base = f"mined_{base}"
        count = self.taken.get(base, 0) + 1
        self.taken[base] = count
        return base if count == 1 else self.name(f"{base}_n{count}")


def _meta_of(
    bound: AttributeBound | SizeBound, extractor: Extractor, commit: str | None
) -> Iterator[str]:
    yield f"target: {extractor.target}"
    yield f"from: {quoted(f'{bound.place.file}:{bound.place.line}')}"
    if commit is not None:
        yield f"commit: {metadata_value(commit)}"
    yield f"template: {bound.template}"
    yield f"confidence: {bound.confidence}"
    for where in bound.agrees:
        yield f"agrees: {metadata_value(where)}"


def _meta(founds: Sequence[Found], extractor: Extractor, commit: str | None) -> Iterator[str]:
    first = founds[0]
    yield f"target: {extractor.target}"
    for where in dict.fromkeys(f"{f.place.file}:{f.place.line}" for f in founds):
        yield f"from: {quoted(where)}"
    if commit is not None:
        yield f"commit: {metadata_value(commit)}"
    yield f"template: {first.template}"
    yield f"confidence: {first.confidence}"
    for key in ("agrees", "clashes"):
        for where in dict.fromkeys(w for f in founds for w in getattr(f, key)):
            yield f"{key}: {metadata_value(where)}"


def _monitor(found: Found, extractor: Extractor, commit: str | None, names: _Names) -> str:
    place = found.place
    stem = place.file.rpartition("/")[2].partition(".")[0]
    name = names.name(f"{extractor.target}_{found.template}_{stem}_{place.line}")
    lines = [printable(f"/// `{place.statement}`"), *_reasons(found.reasons)]
    lines.append(f"monitor {name} : {found.klass} on pass {quoted(place.pass_name)} {{")
    lines += (f"    {entry}" for entry in _meta([found], extractor, commit))
    lines += (_asserted(assertion(*parts)) for parts in found.asserted)
    return "\n".join([*lines, "}"])


def _reasons(reasons: Iterable[str]) -> list[str]:
    """Lines of a declaration's documentation: why its confidence is what it is."""
    return [documented(why) for why in reasons]


def _elsewhere(found: Found) -> str:
    """What is asserted of values that the site has not, as a comment."""
    place = found.place
    lines = [f"// {found.template}: {place.file}:{place.line}: `{place.statement}`:"]
    lines += (f"//     {condition}" for condition in found.elsewhere)
    return "\n".join(printable(line) for line in lines)


def _asserted(condition: str) -> str:
    """The line of a monitor, broken as the formatter does where it is too long."""
    line = f"    assert {condition}"
    if len(line) <= WIDTH:
        return line
    monitor = f'monitor m : execution_safety on pass "p" {{\n{line}\n}}\n'
    return "\n".join(format_text(monitor).splitlines()[1:-1])


def _constraints(
    founds: Sequence[Found], extractor: Extractor, commit: str | None, names: _Names
) -> Iterator[str]:
    """One for each pair of operators and what they agree in."""
    same: dict[tuple[str, tuple[str, str, str]], list[Found]] = {}
    for found in founds:
        for pair in found.agreeing:
            same.setdefault((found.klass, pair), []).append(found)
    for (klass, (producer, consumer, what)), group in sorted(same.items(), key=lambda x: x[0]):
        name = names.name(f"{extractor.target}_{group[0].template}_{producer}_{consumer}_{what}")
        lines = [f"/// `{consumer}` fused with the `{producer}` that it reads."]
        lines += _reasons(dict.fromkeys(why for found in group for why in found.reasons))
        lines.append(f"constraint {name} : {klass} on {{")
        lines += (f"    {entry}" for entry in _meta(group, extractor, commit))
        lines += [f"    p = {producer}(...)", f"    c = {consumer}{{p, ...}}"]
        lines.append(f"}} require c.{what} == p.{what}")
        yield "\n".join(lines)
