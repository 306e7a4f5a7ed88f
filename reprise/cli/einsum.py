"""``reprise einsum``: kernels for sparse tensor compilers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from reprise.cli.main import Exit
from reprise.cli.output import counted, counting, show_diagnostics, show_json, text_or_json

_Command = TypeVar("_Command", bound=Callable[..., Any])

_TARGET_NAMES = (
    *("taco", "tensora", "mlir-sparse", "finch", "finch-julia"),
    *("pydata-sparse", "torch-sparse", "scipy-sparse"),
    *("mlir", "pydata", "torch", "scipy"),
)
_PERMISSIONS = (
    "diagonals",
    "reductions",
    "broadcasts",
    "outer_products",
    "scalars",
    "sums",
    "repeated_tensors",
    "empty",
    "units",
)


def _rule_names(
    context: click.Context, option: click.Parameter, given: tuple[str, ...]
) -> tuple[str, ...]:
    from reprise.einsum.translate.backends import rule_names

    return rule_names(given) if given else ()


_target = click.option(
    "--target", "targets", multiple=True, type=click.Choice(_TARGET_NAMES), callback=_rule_names,
    help="Keep to this compiler's limits too; may be repeated.",
)  # fmt: skip
_rules = click.option(
    "--rules", multiple=True, type=click.Path(exists=True, path_type=Path),
    help="Further deny rules over the facts of kernels: a file or folder; may be repeated.",
)  # fmt: skip


@click.group(short_help="Check, generate and vary kernels for sparse tensor compilers.")
def einsum() -> None:
    """Kernels for sparse tensor compilers: einsum statements with formats and data.

    A kernel is written as in einsum, 'ij,jk->ik', or as in TACO, 'A(i,k) = B(i,j) * C(j,k)'; what
    follows `where` says the rest: 'ij,jk->ik where i=3, B: ds, C: ds:1,0'.
    """


@einsum.command(short_help="Say what is wrong with kernels.")
@click.argument("kernels", nargs=-1, required=True, metavar="KERNEL...")
@_target
@_rules
@click.option(
    "--allow", multiple=True, type=click.Choice(_PERMISSIONS),
    help="Permit this as well; may be repeated.",
)  # fmt: skip
@click.option(
    "--forbid", multiple=True, type=click.Choice(_PERMISSIONS),
    help="Do not permit this; may be repeated.",
)  # fmt: skip
@click.option("--operands", type=click.IntRange(1), metavar="N", help="At most so many operands.")
@click.option("--terms", type=click.IntRange(1), metavar="N", help="At most so many terms.")
@click.option(
    "--rank",
    type=click.IntRange(0),
    metavar="N",
    help="Of an operand and of the output, indices at most.",
)
@click.option("--elements", type=click.IntRange(1), metavar="N", help="Of each tensor, at most.")
@click.option("--iterations", type=click.IntRange(1), metavar="N", help="Of all loops, at most.")
@text_or_json
def check(
    kernels: tuple[str, ...],
    targets: tuple[str, ...],
    rules: tuple[Path, ...],
    allow: tuple[str, ...],
    forbid: tuple[str, ...],
    form: str,
    **limits: int | None,
) -> int:
    """Say what is wrong with each KERNEL, where, and what to do about it.

    A KERNEL is a text, or a file of JSON kernels (.json, .jsonl). All that is permitted if nothing
    is said: everything but reductions (an index that is summed over and in one operand only) and
    broadcasts (a term without an index of the output).

    Exit code: 0 all are valid; 1 something is wrong with one; 2 a file or an option is bad.
    """
    from reprise.einsum.batch import checked
    from reprise.einsum.settings import USUAL, Settings
    from reprise.einsum.validity import Validity, load_kernel_rules

    names = {"operands": "most_operands", "terms": "most_terms", "rank": "most_indices",
             "elements": "most_elements", "iterations": "most_iterations"}  # fmt: skip
    settings = Settings(
        tuple((names[name], value) for name, value in limits.items() if value is not None),
        (USUAL | set(allow)) - set(forbid),
        targets,
    )
    validity = Validity(load_kernel_rules(rules), settings)
    count = wrong = 0
    documents = []
    for result in checked(kernels, validity):
        count += 1
        wrong += bool(result.diagnostics)
        if form == "json":
            documents.append(result.document())
        elif result.diagnostics:
            show_diagnostics(result.diagnostics, texts=result.texts)
    if form == "json":
        show_json(documents)
    else:
        said = f"{wrong} not valid" if wrong else "valid"
        click.echo(f"{counted(count, 'kernel')}: {said}")
    return Exit.FOUND if wrong else Exit.OK


# Options of generation: what each says, and what goes without it (as in ``Options``, tested).
_RANGES = {
    "operands": ("Operands, all terms together.", "2..3"),
    "ranks": ("Indices of an operand; the output has at most as many.", "1..3"),
    "terms": ("Terms of a kernel that has several.", "2"),
    "extents": ("Extents of indices, but for empty and unit ones.", "2..5"),
}
_SHARES = {
    "keep": ("How often an index is in the output.", "0.5"),
    "sums": ("Share of kernels with several terms.", "0.1"),
    "diagonals": ("Share of operands with an index twice.", "0.05"),
    "scalars": ("Share of operands that are scalars; 0: outputs are none either.", "0.02"),
    "reductions": ("Share of kernels that may sum over an index of one operand.", "0"),
    "broadcasts": ("Share of further terms that may lack indices of the output.", "0"),
    "outer-products": ("Share of kernels whose operands may have no index in common.", "1"),
    "repeated-tensors": ("Share of operands that are an earlier operand's tensor.", "0.05"),
    "empty": ("Share of indices with extent 0.", "0.01"),
    "units": ("Share of indices with extent 1.", "0.05"),
    "dense-outputs": ("Share of outputs that are dense whatever --levels.", "0.25"),
    "orders": ("Share of tensors whose levels are not in the order of positions.", "0.25"),
    "zeros": ("Share of operands with explicit zeros.", "0.1"),
    "duplicates": ("Share of operands with entries that are stored twice.", "0.05"),
    "unsorted": ("Share of operands whose entries are listed in any order.", "0.05"),
}
_NAMES = {
    "levels": (
        "How levels may be stored: dense, compressed, nonunique, singleton.",
        "dense,compressed",
    ),
    "structures": (
        "Where entries lie, and how often: uniform, empty, full, banded, row.",
        "uniform=12,full=2,banded=2,row=2,empty=1",
    ),
    "densities": ("Densities to draw from.", "0.1,0.3,0.5,0.8"),
    "dtypes": ("Element types: float64, float32, int64, int32.", "float64"),
}
_METAVARS = {"levels": "NAME,...", "structures": "NAME=N,...", "densities": "D,...",
             "dtypes": "NAME,..."}  # fmt: skip
_BUDGETS = {
    "elements": ("Elements of each tensor: at most N, or from N to M.", "65536"),
    "iterations": ("Product of all extents: at most N, or from N to M.", "1048576"),
    "entries": ("Expected stored entries of all operands: at most N, or from N to M.", "any"),
    "memory": ("Bytes of all tensors together, if they were dense: at most N.", "any"),
}


def _kernel_options(command: _Command) -> _Command:
    """Add the options that say which kernels; ``reprise.einsum.asked`` reads them."""
    share = click.FloatRange(0, 1)
    letters, values = click.IntRange(1, 26), click.Choice(["integers", "reals"])
    options = [
        _kernel_option("indices", ("Indices to draw from.", "5"), type=letters, metavar="N"),
        *(_kernel_option(name, said, metavar="N..M") for name, said in _RANGES.items()),
        *(
            _kernel_option(name, said, type=share, metavar="SHARE")
            for name, said in _SHARES.items()
        ),
        *(_kernel_option(name, said, metavar=_METAVARS[name]) for name, said in _NAMES.items()),
        _kernel_option("values", ("What entries are.", "integers"), type=values),
        *(_kernel_option(name, said, metavar="N..M") for name, said in _BUDGETS.items()),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _kernel_option(name: str, said: tuple[str, str], **more: Any) -> Callable[[_Command], _Command]:
    """An option, and in its help what goes without it; None, then, to who reads it."""
    return click.option(f"--{name}", help=f"{said[0]} [default: {said[1]}]", **more)


@einsum.command(short_help="Write kernels, one a line.")
@click.option(
    "--count", default=1000, show_default=True, type=click.IntRange(1), metavar="N",
    help="How many.",
)  # fmt: skip
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**31 - 1), metavar="S"
)
@click.option(
    "-j", "--jobs", default=1, show_default=True, type=click.IntRange(0), metavar="N",
    help="Processes; 0: one for each processor. The kernels are the same.",
)  # fmt: skip
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE", help="Where to; `-`: standard output.",
)  # fmt: skip
@_target
@_rules
@_kernel_options
def gen(
    count: int,
    seed: int,
    jobs: int,
    out: Path,
    targets: tuple[str, ...],
    rules: tuple[Path, ...],
    **asked: Any,
) -> int:
    """Write N valid kernels to FILE as JSON, one a line.

    The same seed, rules and options give the same bytes, whatever --jobs. With --target or
    --rules, every part of a kernel is proposed to the rules as it is drawn, and taken back if they
    object; without, kernels are valid by construction. What is interrupted leaves the kernels so
    far.

    Exit code: 0 written; 2 a rule or an option is bad, or nothing keeps to them all.
    """
    import os

    from reprise.cache import naming
    from reprise.einsum.asked import read_options
    from reprise.einsum.generate import Request, generate

    given = {name: value for name, value in asked.items() if value is not None}
    request = Request(count, seed, read_options(given, targets), rules)
    written = 0
    with (
        naming(out if str(out) != "-" else "standard output"),
        click.open_file(str(out), "w", lazy=True) as file,
        counting(count, "kernel") as done,
    ):
        for block in generate(request, jobs or len(os.sched_getaffinity(0))):
            file.write(block)
            written += block.count("\n")
            done(written)
    if str(out) != "-":
        click.echo(f"{counted(written, 'kernel')} written to {out}")
    return Exit.OK


@einsum.command(short_help="Write variants of a kernel that compute the same.")
@click.argument("kernel", metavar="KERNEL")
@click.option(
    "--relation", "names", multiple=True, metavar="NAME",
    help="By this relation only; may be repeated. [default: all that apply]",
)  # fmt: skip
@click.option(
    "--count", default=1, show_default=True, type=click.IntRange(1), metavar="N",
    help="Variants by each relation.",
)  # fmt: skip
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(0, 2**31 - 1), metavar="S"
)
@_target
@text_or_json
def vary(
    kernel: str,
    names: tuple[str, ...],
    count: int,
    seed: int,
    targets: tuple[str, ...],
    form: str,
) -> int:
    """Write variants of a KERNEL, and by which relation each is one.

    The dense reference of each is compared with the kernel's. With --target, variants are left out
    that this compiler does not take.

    Exit code: 0 all compute the same; 2 the kernel or an option is bad; 3 one does not.
    """
    from reprise.einsum.varying import varied

    found = list(varied(kernel, names, count, seed, targets))
    if form == "json":
        show_json([variant.document() for variant in found])
    else:
        of = ""
        for variant in found:
            if variant.of != of:
                of = variant.of
                click.echo(f"{of}:")
            click.echo(f"{variant.relation} ({variant.note}): {variant.verdict}")
            for line in variant.texts:
                click.echo(f"    {line}")
    return Exit.OK if all(variant.is_same for variant in found) else Exit.FAULT


@einsum.command(short_help="Write kernels in another form.")
@click.argument("kernels", nargs=-1, required=True, metavar="KERNEL...")
@click.option(
    "--to", "form", required=True, type=click.Choice(["text", "json", "tensure"]),
    help="TACO's notation; JSON, one a line; the form of TENSURE's artifact, with data files.",
)  # fmt: skip
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="For tensure: the folder for kernel.json and the data; with several kernels, one each.",
)  # fmt: skip
def convert(kernels: tuple[str, ...], form: str, out: Path | None) -> int:
    """Read each KERNEL, a text or a file, and write it in another form.

    Files: .jsonl, a JSON kernel on each line; .json, one, or kernels as TENSURE's artifact has
    them.

    Exit code: 0 written; 2 a kernel cannot be read, or the form cannot say it.
    """
    from reprise.einsum import tensure
    from reprise.einsum.json_form import dumps
    from reprise.einsum.reading import located
    from reprise.einsum.text import print_text

    read = [each for named in kernels for each in located(named)]
    if form == "tensure":
        if out is None:
            raise click.UsageError("--out DIR is missing: where should the files go?")
        for number, (where, kernel) in enumerate(read):
            folder = out if len(read) == 1 else out / str(number)
            for path in tensure.write(kernel, folder / "kernel.json", where):
                click.echo(path)
        return Exit.OK
    if out is not None:
        raise click.UsageError(f"--out is for --to tensure: redirect what --to {form} writes")
    for _, kernel in read:
        click.echo(dumps(kernel) if form == "json" else print_text(kernel))
    return Exit.OK


@einsum.command(short_help="List what rules know of a kernel.")
@click.argument("kernel", metavar="KERNEL")
def facts(kernel: str) -> int:
    """List the facts of a KERNEL: what rules are written over.

    Exit code: 0 listed; 2 the kernel cannot be read.
    """
    from reprise.einsum.facts import facts_of
    from reprise.einsum.reading import read_kernels

    for each in read_kernels(kernel):
        for relation, row in facts_of(each):
            click.echo(f"{relation}({', '.join(map(str, row))}).")
    return Exit.OK
