"""What measurements at some versions say of a rule's ``affects``.

A rule's versions are a range, most often from the oldest release that was tried to the newest one,
or to the release that fixed it. A measurement is about one version, so it moves a bound only as far
as it must: a version that fires is included (with those between it and the range: a bug rarely
goes and comes back), one that does not is excluded if it is at an end of the range, and what
lies beyond the measured versions keeps what the rule says of it. Where the bug fires at no version
that was measured, nothing shows that its witnesses could. A version that does not fire in
the middle of the range, or a bound that an exclusive end (``<1.30``: somebody saw it fixed there)
contradicts, is for a person: :func:`updated` says so and changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version


@dataclass(frozen=True, slots=True)
class Range:
    """An interval of versions; None: no bound on that side."""

    low: Version | None = None
    low_in: bool = True
    high: Version | None = None
    high_in: bool = True

    def __str__(self) -> str:
        if self.low is not None and self.low == self.high:
            return f"=={self.low}"
        parts = []
        if self.low is not None:
            parts.append(f"{'>=' if self.low_in else '>'}{self.low}")
        if self.high is not None:
            parts.append(f"{'<=' if self.high_in else '<'}{self.high}")
        return ",".join(parts)

    def below(self, version: Version) -> bool:
        """Whether a version is below the range."""
        return self.low is not None and (
            version < self.low or (version == self.low and not self.low_in)
        )

    def above(self, version: Version) -> bool:
        """Whether a version is above the range."""
        return self.high is not None and (
            version > self.high or (version == self.high and not self.high_in)
        )

    def __contains__(self, version: Version) -> bool:
        return not self.below(version) and not self.above(version)

    @property
    def is_empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (
            self.low == self.high and not (self.low_in and self.high_in)
        )


@dataclass(frozen=True, slots=True)
class Update:
    """The new specifier (the old one if nothing changes), and in words why it does or does not."""

    text: str
    reason: str = ""


def includes(affects: str | None, version: str) -> bool | None:
    """Whether a specifier includes a version as a target reports it; None if there is none."""
    if affects is None:
        return None
    return SpecifierSet(affects).contains(public(version), prereleases=True)


def public(version: str) -> Version:
    """A version without what a build adds: ``2.13.0+cpu`` is 2.13.0."""
    return Version(Version(version).public)


def read_range(text: str) -> Range | None:
    """The interval that a specifier describes; None if it is none (``!=``, ``==1.*``, ``~=``)."""
    found = Range()
    try:
        specifiers = list(SpecifierSet(text))
    except InvalidSpecifier:
        return None
    for one in specifiers:
        if one.operator not in ("==", "<", "<=", ">", ">=") or "*" in one.version:
            return None
        version, included = Version(one.version), "=" in one.operator
        if one.operator in ("==", ">", ">="):
            if found.low is not None:
                return None
            found = Range(version, included, found.high, found.high_in)
        if one.operator in ("==", "<", "<="):
            if found.high is not None:
                return None
            found = Range(found.low, found.low_in, version, included)
    return found


def updated(affects: str, fires: Collection[Version], silent: Collection[Version]) -> Update:
    """``affects`` after measurements: versions at which the bug fires and at which it does not."""
    old = read_range(affects)
    if old is None:
        return Update(affects, f'"{affects}" is no plain range: left alone')
    if not fires:
        said = f"fires at none of {_listed(silent)}: is it fixed, or do the witnesses miss it?"
        return Update(affects, f"{said} Left alone" if any(v in old for v in silent) else "")
    if set(fires) & set(silent):
        return Update(affects, "the same version both fires and does not: left alone")
    new = _narrowed(_extended(old, fires, silent), fires, silent)
    if isinstance(new, str):
        return Update(affects, f"{new}: left alone")
    text = str(new)
    if new == old or new.is_empty or not text:
        empty = "no version is left" if new.is_empty else ""
        return Update(affects, f"{empty}: left alone" if empty else "")
    reasons = []
    if moved := sorted(v for v in fires if v not in old):
        reasons.append(f"fires at {_listed(moved)}")
    if moved := sorted(v for v in silent if v in old):
        reasons.append(f"does not at {_listed(moved)}")
    return Update(text, "; ".join(reasons))


def _extended(old: Range, fires: Collection[Version], silent: Collection[Version]) -> Range | str:
    """The range with every version that fires."""
    low, low_in, high, high_in = old.low, old.low_in, old.high, old.high_in
    newer = [v for v in fires if old.above(v)]
    older = [v for v in fires if old.below(v)]
    if newer:
        assert high is not None
        if not high_in and high not in fires:
            return f"fires at {_listed(newer)}, but <{high} says that it was fixed at {high}"
        high, high_in = max(newer), True
    if older:
        assert low is not None
        if not low_in and low not in fires:
            return f"fires at {_listed(older)}, but >{low} says that it was not there at {low}"
        low, low_in = min(older), True
    return Range(low, low_in, high, high_in)


def _narrowed(
    new: Range | str, fires: Collection[Version], silent: Collection[Version]
) -> Range | str:
    """The range without the versions at its ends that do not fire."""
    if isinstance(new, str):
        return new
    measured = sorted({*fires, *silent})
    inside = [v for v in measured if v in new]
    top = new.high if new.high is not None and new.high_in else None
    bottom = new.low if new.low is not None and new.low_in else None
    first = last = None
    for version in reversed(inside):  # from the newest down, as long as none fires
        if version in fires:
            break
        last = version
    if last is not None and new.high is not None and top not in silent:
        last = None  # the end itself was not measured: it keeps what the rule says
    for version in inside:
        if version in fires or version == last:
            break
        first = version
    if first is not None and (new.low is None or bottom not in silent):
        first = None
    if last is not None and first is not None and first >= last:
        return f"fires at none of {_listed(inside)}"
    kept = Range(
        *((first, False) if first is not None else (new.low, new.low_in)),
        *((last, False) if last is not None else (new.high, new.high_in)),
    )
    odd = [v for v in silent if v in kept]
    if odd:
        return f"does not fire at {_listed(odd)}, inside {kept}"
    return kept


def _listed(versions: Collection[Version]) -> str:
    return ", ".join(map(str, sorted(versions)))
