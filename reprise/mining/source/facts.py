"""The facts of one file: rows of the relations of ``rules/mining/facts.rules``, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

Row = tuple[int | str, ...]


@dataclass(frozen=True)
class FileFacts:
    """``rows``: facts by relation; the first column is a site's number, from 0 in the order of
    their places. ``errors``: places that do not parse. ``left``: sites of a generated file that
    were not looked at."""

    lines: int
    errors: int
    sites: int
    rows: dict[str, list[Row]]
    left: int = 0
