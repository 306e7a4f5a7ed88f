"""Python text for rows, keys and values, and for what is done with a head row that was found.

The vocabulary of generated code below the level of plans. Invariant: values are compared and
converted here and in :mod:`reprise.datalog.arithmetic` only, so types are kept apart in one place.
"""

from __future__ import annotations

from reprise.datalog.layout import Layout
from reprise.datalog.values import is_entity


def insertion(layout: Layout, row: str, fixed: bool, often: bool, unbounded: bool) -> str:
    """Add a head row: in line, or by a call where that is rare. ``fixed``: no variable in it.

    Two loops or more may find any number of rows before the evaluator counts them, so there the
    limit is checked row by row. A row made of variables is a new object, so one look-up tells
    whether it is the one that the primary holds now; a fixed one is the same object each time.
    """
    if not often and not unbounded:
        return f"found({layout.store}, {row})"
    check = f"    if len({layout.new}) > ROOM[0]: overflow({layout.store})" if unbounded else ""
    entered = (
        f"if row not in {layout.rows}:\n    {layout.rows}[row] = None\n"
        if fixed
        else f"if {layout.rows}.setdefault(row, row) is row:\n"
    )
    return (
        f"row = {row}\n{entered}"
        f"    if not {layout.new}: touched.append({layout.store})\n"
        f"    {layout.new}.append(row)\n"
        f"{check}"
    ).rstrip("\n")


def deletion(layout: Layout, row: str) -> str:
    """Mark a head row as possibly underivable, if it is there."""
    return f"row = {row}\nif row in {layout.rows}:\n    doom({layout.store}, row)"


def identical(left: str, right: str, type_: str) -> str:
    """A test that two stored values are the same; NaN is itself, as it is to dictionaries."""
    if type_ not in ("float", "any") or right[0] in "-'\"0123456789":
        return f"{left} == {right}"
    return f"({left} == {right} or {left} is {right})"


def admit(text: str, column_type: str, variable_type: str) -> tuple[str | None, str]:
    """How a column's value becomes a variable's: a run-time type test, and the value's text."""
    if column_type != "any" or variable_type == "any":
        return None, text
    match variable_type:
        case "float":
            return f"isinstance({text}, float)", f"float({text})"
        case "sym":
            return f"type({text}) is str", text
        case "bool":
            return f"{text} in ('true', 'false')", text
        case _:
            return f"type({text}) is int", text


def coercion(from_type: str, to_type: str) -> str:
    """The run-time conversion of a computed value for a typed column."""
    if to_type == "float":
        return "float" if from_type == "any" else "number"
    return "int" if to_type == "int" or is_entity(to_type) else to_type


def both_integers(left: str, right: str) -> bool:
    """Whether values of one type are stored by the other as they are: ints and ids."""
    return left in ("int", right) and (right == "int" or is_entity(right))


def key_text(texts: list[str]) -> str:
    """A dictionary key of some values: the value itself if there is one."""
    return texts[0] if len(texts) == 1 else row_text(texts)


def row_text(texts: list[str]) -> str:
    """A row of some values."""
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
