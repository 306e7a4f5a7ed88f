"""The operators as a page of documentation: ``python -m reprise.solve.catalogue``.

Comes in: the shipped signatures. Goes out: Markdown, a table for each category and one for the
shape functions; nothing in it is written by hand but the words around the tables.
"""

from __future__ import annotations

from collections.abc import Iterator

from reprise.lang import ast
from reprise.lang.format import show
from reprise.solve.plan import variables
from reprise.solve.shapes import FUNCTIONS
from reprise.solve.signatures import Signatures

INTRODUCTION = """\
# Operators

UIR has {operators} operators in {categories} categories. Their signatures are data, in
`rules/ops/`: which operands an operator takes, which results and attributes it has, and what must
hold. A category may stand in a rule wherever a set of operators may.

Dimensions that have the same name are equal; `*D` is any number of them; `b?` may be absent,
`xs...` stands for one operand or more. An attribute without a default must be given; one marked `?`
may be missing. For list attributes called `axes`, `strides`, `pads`, `dilations` and `kernel` there
is a short spelling, `axis`, `stride`, `pad`, `dilation` and `kernel_size`: one number, which stands
for a list of equal items. Where an operand has the name of an attribute, it is the same thing,
known only at run time.

This page is written by `python -m reprise.solve.catalogue`.
"""

FUNCTIONS_TEXT = """\
## Shape functions

What a signature may call, besides arithmetic. Every function takes what is symbolic or unknown as
well, and answers what follows.

| function | meaning |
|---|---|
"""

CONDITIONS_TEXT = """\
## Conditions

Besides comparisons and memberships, a signature may say:

| condition | meaning |
|---|---|
| `axis(A, n)` | A is an axis of a tensor of rank n; negative ones are resolved |
| `axis_or_end(A, n)` | the same, or n itself: a place between axes |
| `axes(A, n)` | A lists different axes; negative ones are resolved |
| `axis_set(A, n)` | the same, and the list is sorted |
| `present(b)` | the optional operand, or the variable of an optional attribute, is there |

`or_else(a, b)` is a, or b where a depends on something absent.
"""


def page(signatures: Signatures) -> str:
    """The page, as Markdown."""
    by_category: dict[str, list[ast.OpDecl]] = {}
    for op in signatures:
        by_category.setdefault(signatures[op].category, []).append(signatures[op].plan.decl)
    parts = [INTRODUCTION.format(operators=len(signatures), categories=len(by_category))]
    for category, decls in sorted(by_category.items()):
        rows = "\n".join(map(_row, sorted(decls, key=lambda decl: decl.name.text)))
        title = category.replace("_", " ")
        head = "| operator | element types | attributes | |\n|---|---|---|---|"
        parts.append(f"## {title[0].upper()}{title[1:]}\n\n`{category}`\n\n{head}\n{rows}\n")
    functions = "\n".join(_function_row(name) for name in sorted(FUNCTIONS))
    parts += [CONDITIONS_TEXT, FUNCTIONS_TEXT + functions + "\n"]
    return "\n".join(parts)


def _row(decl: ast.OpDecl) -> str:
    params = ", ".join(map(show, decl.params))
    results = ", ".join(
        (f"{name}: " if name is not None else "") + show(type_) for name, type_ in decl.results
    )
    cells = [
        f"`{decl.name}({params}) -> {results}`",
        ", ".join(f"`{show(condition)}`" for condition in _types(decl)),
        ", ".join(f"`{text}`" for text in _attributes(decl)),
        " ".join([*decl.doc, *(f"*{flag}*" for flag in decl.flags)]).replace("_", "\\_"),
    ]
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _types(decl: ast.OpDecl) -> Iterator[ast.Condition]:
    """The conditions on element types alone."""
    dtypes = {p.type.dtype.name for p in decl.params if isinstance(p.type.dtype, ast.Variable)}
    dtypes |= {t.dtype.name for _, t in decl.results if isinstance(t.dtype, ast.Variable)}
    for condition in decl.where:
        mentioned = {variable.name for variable in variables(condition)}
        if mentioned and mentioned <= dtypes and not isinstance(condition, ast.AtomCond):
            yield condition


def _attributes(decl: ast.OpDecl) -> Iterator[str]:
    for attribute in decl.attributes:
        text = f"{attribute.name}: {attribute.type}"
        match attribute.default:
            case None:
                yield text
            case ast.Name("absent"):
                yield f"{text}?"
            case default:
                yield f"{text} = {show(default)}"


def _function_row(name: str) -> str:
    spelled, _, meaning = FUNCTIONS[name].doc.partition(": ")
    return f"| {spelled.replace('``', '`')} | {' '.join(meaning.split()).replace('``', '`')} |"


if __name__ == "__main__":
    print(page(Signatures.load()), end="")
