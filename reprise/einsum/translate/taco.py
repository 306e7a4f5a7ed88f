"""Kernels for TACO: its command line, with operands as FROSTT files that begin with the extents.

The command is given the statement, a format for each tensor, and files: ``.ttx`` for operands,
since a ``.tns`` has no extents, and ``.tns`` for the output, since its own reader takes dense
``.ttx`` files transposed. An operand without entries gets one zero, which TACO needs.
"""

from __future__ import annotations

from reprise.einsum.data import Stored
from reprise.einsum.kernel import Access, Format, Kernel, Tensor
from reprise.einsum.translate.script import Untranslatable

imports = """\
import os
import re
import signal
import subprocess
import tempfile"""
helpers = '''
class Rejected(Exception):
    """TACO says that it does not do this."""


class Internal(Exception):
    """TACO fails inside, or generates C that does not compile."""


def failure(done):
    """What went wrong, by what TACO says. Of the C that it generates, the compiler's first error
    counts, without the names of tensors and indices in what is not declared."""
    said = done.stderr.strip()
    if "Compilation command failed" in said:
        error = re.search("error: (.*)", said)
        what = error[1] if error else "no error is told"
        undeclared = re.match("'([a-z]+)([A-Z])([0-9]*)([a-z_]*)' undeclared", what)
        if undeclared:
            kind = "position" if undeclared[1] == "p" else "coordinate"
            what = f"undeclared {kind}{undeclared[4]} (`{''.join(undeclared.groups())}`)"
        return Internal(f"the C that it generates does not compile: {what}")
    if "Error at" in said or "Temporary assumption broken" in said:
        return Rejected(said)
    code = done.returncode
    ended = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    return Internal(f"{ended}: {said}" if said else ended)


def evaluate(statement, formats, files, output, shape):
    """Coordinates and values of the output, as TACO writes them."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["taco", statement, *(f"-f={f}" for f in formats)]
        for name, text in files.items():
            path = os.path.join(folder, f"{name}.ttx")
            with open(path, "w") as file:
                file.write(text)
            command.append(f"-i={name}:{path}")
        written = os.path.join(folder, f"{output}.out.tns")
        command.append(f"-o={output}:{written}")
        flags = {"TACO_CFLAGS": "-O0 -std=c99", "LC_ALL": "C", "TMPDIR": folder}
        surroundings = {**os.environ, **flags}
        done = subprocess.run(command, env=surroundings, capture_output=True, text=True)
        if done.returncode != 0:
            raise failure(done)
        with open(written) as file:
            rows = [line.split() for line in file if line.strip() and line[0] != "#"]
    rank = len(shape)
    coordinates = np.array([[int(i) - 1 for i in row[:rank]] for row in rows], "int64")
    return coordinates.reshape(len(rows), rank), np.array([float(row[rank]) for row in rows])
'''


def operand(kernel: Kernel, tensor: Tensor, stored: Stored) -> list[str]:
    """``B = "%%MatrixMarket tensor coordinate real general\\\\n..."``."""
    return [f"{tensor.name} = {file_text(stored)!r}"]


def computed(kernel: Kernel, tensor: Tensor) -> list[str]:
    """Raises Untranslatable: a result is a file of another kind than an operand."""
    raise Untranslatable("a result is read again")


def compute(kernel: Kernel) -> list[str]:
    """``A = evaluate("A(i) = B(i,j) * C(j)", ["A:d", "B:ds", "C:d"], {"B": B, "C": C}, ...)``."""
    if kernel.dtype != "float64":
        raise Untranslatable("operands that are read from files are float64")
    output = kernel.output.tensor
    files = ", ".join(f'"{t.name}": {t.name}' for t in kernel.operands)
    formats = [f"{t.name}:{format_text(t.format)}" for t in kernel.tensors if t.format.rank]
    shape = kernel.shapes[output]
    given = f'{formats}, {{{files}}}, "{output}", {shape}'
    return [f'{output} = evaluate("{statement(kernel)}", {given})']


def result(kernel: Kernel) -> str:
    """The entries of the output."""
    return kernel.output.tensor


def statement(kernel: Kernel) -> str:
    """``A(i,k) = B(i,j) * C(j,k)``; a scalar is written without parentheses."""
    terms = (" * ".join(map(_access, term.factors)) for term in kernel.terms)
    return f"{_access(kernel.output)} = {' + '.join(terms)}"


def format_text(stored: Format) -> str:
    """``ds``, ``ds:1,0``; a singleton is ``q``, a level whose coordinates repeat ``u``."""
    return str(stored)


def file_text(stored: Stored) -> str:
    """The entries of an operand as a file, coordinates from 1."""
    if not stored.shape:
        raise Untranslatable("a scalar operand is read from no file")
    entries = stored.canonical()
    rows = [
        " ".join([*(str(int(i) + 1) for i in c), f"{value:g}"])
        for c, value in zip(entries.coordinates, entries.values, strict=True)
    ] or [" ".join(["1"] * len(stored.shape) + ["0"])]
    if 0 in stored.shape:
        raise Untranslatable("an extent of 0 has no entry to write")
    extents = " ".join(map(str, stored.shape))
    head = "%%MatrixMarket tensor coordinate real general"
    return "\n".join([head, f"{extents} {len(rows)}", *rows]) + "\n"


def _access(access: Access) -> str:
    return str(access) if access.indices else access.tensor
