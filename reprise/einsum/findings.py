"""What a kernel's finding has in its folder besides what every finding has.

kernel.json      the kernel that shows it, reduced if it could be (with what it reads, if it
                 reads the outputs of others: then one kernel on a line)
variants.json    the kernel of the test with its variants
repro.py         the compiler, numpy, and the kernel: exit code 1: it still fails, 0: it does not
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence

import numpy as np

from reprise.campaign.bench import Examination
from reprise.campaign.repro import ELSEWHERE
from reprise.einsum.data import Array, materialise
from reprise.einsum.json_form import dumps, to_json
from reprise.einsum.kernel import Kernel
from reprise.einsum.reference import bounds, reference
from reprise.einsum.testing import KernelTest
from reprise.einsum.translate.script import Translator, function, preamble
from reprise.lang.display import shortened
from reprise.targets.interface import Ended

_OWN = frozenset(sys.stdlib_module_names)


def kernel_files(
    test: KernelTest, examination: Examination, translator: Translator
) -> dict[str, bytes]:
    """The files, by name."""
    kernels: Sequence[Kernel] = examination.shown or (test.kernel,)
    variants = [
        {
            "name": name,
            "relation": variant.relation,
            "note": variant.note,
            "kernels": [to_json(kernel) for kernel in variant.kernels],
        }
        for name, variant in test.variants.items()
    ]
    files = {
        "kernel.json": "".join(f"{dumps(kernel)}\n" for kernel in kernels).encode(),
        "variants.json": (json.dumps(variants, indent=1) + "\n").encode(),
    }
    if examination.judgement.verdict.is_finding:
        files["repro.py"] = reproducer(kernels, examination, translator).encode()
    return files


def reproducer(kernels: Sequence[Kernel], examination: Examination, translator: Translator) -> str:
    """The script that shows a finding with the compiler and numpy alone."""
    outcome = examination.outcome
    ends = outcome is not None and outcome.ended is not Ended.ANSWERED
    head = ["Exit code 1: it still fails; 0: it does not; 2: it cannot run here.", ""]
    told = examination.judgement.evidence  # the title is of the kernel before it was reduced
    what = examination.judgement.title
    if "shown" in told:
        says = told.get("says") or f"{told['type']}: {told['message']}"
        what = f"{told['shown']}: {says}"
    head += [shortened(" ".join(what.split()), 300)]
    comments = "".join(f"# {line}".rstrip() + "\n" for line in head)
    own = "import os\n" + ("import subprocess\n" if ends else "")
    own += 'import sys\nimport warnings\n\nwarnings.simplefilter("ignore")  # of features in beta\n'
    own += _CANNOT
    rows = "".join(f"    {row},\n" for row in _expected(kernels))
    parts = [
        f"{comments}{own}\n{preamble(translator)}",
        function(translator, "kernel", kernels),
        f"EXPECTED = [  # each kernel's output by numpy, and how far from it is right\n{rows}]\n",
        ELSEWHERE if ends else "",
        _versions(translator),
        _CHECK,
    ]
    return "\n\n".join(part.strip("\n") + "\n" for part in parts if part)


def _versions(translator: Translator) -> str:
    """Lines that print the versions of what the script imports; some only their packages tell."""
    modules = ["np", *re.findall(r"^import (\w+)", translator.imports, re.M)]
    listed = ", ".join(dict.fromkeys(name for name in modules if name not in _OWN))
    return (
        "from importlib import metadata\n\n"
        f"for module in ({listed},):\n"
        "    name, told = module.__name__, getattr(module, '__version__', '')\n"
        "    package = metadata.packages_distributions().get(name, [name])[0]\n"
        "    print(name, told or metadata.version(package), flush=True)\n"
    )


def _expected(kernels: Sequence[Kernel]) -> list[str]:
    outputs: dict[str, Array] = {}
    rows = []
    for kernel in kernels:
        stored = materialise(kernel, outputs)
        value, bound = reference(kernel, stored), bounds(kernel, stored)
        outputs[kernel.output.tensor] = value
        limit = float(np.max(bound, initial=0.0))
        written = value.astype("float64")
        text = f"np.zeros({value.shape})" if not value.size else f"np.array({written.tolist()})"
        rows.append(f"({text}, {limit!r})")
    return rows


_CANNOT = '''

def cannot(kind, error, trace):
    """What is raised outside of the kernel, such as for a compiler that is missing."""
    print(f"cannot run here: {kind.__name__}: {error}", file=sys.stderr)
    os._exit(2)


sys.excepthook = cannot
'''

_CHECK = '''
def difference(coordinates, values, expected, bound):
    """How a result differs from what is expected, or None."""
    if coordinates.ndim == 2:
        listed = [tuple(int(i) for i in c) for c in coordinates]
        if len(set(listed)) < len(listed):
            return f"coordinates are listed twice: {listed}"
        dense = np.zeros(expected.shape)
        for coordinate, value in zip(listed, values):
            if any(not 0 <= i < n for i, n in zip(coordinate, expected.shape)):
                return f"entry at {coordinate}, outside of {expected.shape}"
            dense[coordinate] = value
    else:
        dense = np.asarray(values)
    if dense.shape != expected.shape:
        return f"shape {dense.shape}, expected {expected.shape}"
    near = np.abs(dense - expected) <= bound
    return None if near.all() else f"got {dense.tolist()}, expected {expected.tolist()}"


try:
    results = [np.asarray(array) for array in kernel()]
except Exception as error:
    print(f"FAILS: {type(error).__name__}: {error}")
    sys.exit(1)
found = []
for number, (expected, bound) in enumerate(EXPECTED):
    found.append(difference(*results[2 * number : 2 * number + 2], expected, bound))
    print(f"kernel {number}:", found[-1] or "as expected")
sys.exit(1 if any(found) else 0)
'''
