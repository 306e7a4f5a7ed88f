"""Kernels for tensora: the statement as text, and a format string for every tensor."""

from __future__ import annotations

from reprise.einsum.data import Stored
from reprise.einsum.kernel import Access, Format, Kernel, Level, Tensor
from reprise.einsum.translate.script import Untranslatable, entry_list

imports = "import tensora"
helpers = '''
def entries(tensor):
    """Coordinates and values of all that is stored, as the tensor lists it."""
    found = list(tensor.items())
    rank = len(tensor.dimensions)
    coordinates = np.array([c for c, _ in found], "int64").reshape(len(found), rank)
    return coordinates, np.array([v for _, v in found], "float64")
'''


def operand(kernel: Kernel, tensor: Tensor, stored: Stored) -> list[str]:
    """``B = tensora.Tensor.from_dok({(0, 1): 2.0}, dimensions=(3, 4), format="ds")``."""
    given, shape = entry_list(stored.canonical()), stored.shape
    how = f'dimensions={shape}, format="{format_text(tensor.format)}"'
    return [f"{tensor.name} = tensora.Tensor.from_dok({given}, {how})"]


def computed(kernel: Kernel, tensor: Tensor) -> list[str]:
    """An earlier result is read as it is."""
    return []


def compute(kernel: Kernel) -> list[str]:
    """``A = tensora.evaluate("A(i,k) = B(i,j) * C(j,k)", "ds", B=B, C=C)``."""
    if kernel.dtype != "float64":
        raise Untranslatable(f"tensora has float64 only, not {kernel.dtype}")
    given = ", ".join(f"{t.name}={t.name}" for t in kernel.operands)
    output = kernel.output.tensor
    stored = format_text(kernel.tensors[0].format)
    return [f'{output} = tensora.evaluate("{statement(kernel)}", "{stored}", {given})']


def result(kernel: Kernel) -> str:
    """The entries of the output, as tensora lists them."""
    return f"entries({kernel.output.tensor})"


def statement(kernel: Kernel) -> str:
    """The statement in TACO's notation, scalars without their parentheses."""
    terms = (" * ".join(_access(f) for f in term.factors) for term in kernel.terms)
    return f"{_access(kernel.output)} = {' + '.join(terms)}"


def format_text(stored: Format) -> str:
    """``ds``, ``d1s0``."""
    for level in stored.levels:
        if level not in (Level.DENSE, Level.COMPRESSED):
            raise Untranslatable(f"tensora has no {level} levels")
    if stored.is_ordered:
        return "".join(level.letter for level in stored.levels)
    pairs = zip(stored.levels, stored.order, strict=True)
    return "".join(f"{level.letter}{position}" for level, position in pairs)


def _access(access: Access) -> str:
    return str(access)
