"""What a harness must get right before what it finds may be called a compiler's.

Before a campaign the target computes kernels in which next to nothing can go wrong but how we call
it: a product of dense tensors, the identity ``A(i,j) = B(i,j)`` from every format that it takes to
a dense output, and back, and the first of them again after all others, in the same process, so that
memory that is let go too early shows. A wrong value there is the harness's until somebody shows
otherwise, and no campaign begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

from reprise.einsum.kernel import (
    Access,
    Drawn,
    Format,
    Kernel,
    Level,
    Structure,
    Term,
    assemble,
)
from reprise.einsum.results import is_ours, judged
from reprise.einsum.testing import alone
from reprise.einsum.translate.backends import BACKENDS
from reprise.einsum.translate.script import Untranslatable, function, script
from reprise.targets.discover import Target, TargetError
from reprise.targets.interface import Job
from reprise.targets.process import Jobs

DENSE = "dense product"
AGAIN = "dense product, again"


def checks() -> Iterator[tuple[str, Kernel]]:
    """The kernels, by what they show."""
    a, b, c = Access("A", ("i", "k")), Access("B", ("i", "j")), Access("C", ("j", "k"))
    extents = {"i": 3, "j": 4, "k": 2}
    dense = assemble(a, [Term((b, c))], extents, {}, {"B": _data(1), "C": _data(2)})
    yield DENSE, dense
    for rank in (1, 2):
        for stored in _formats(rank):
            yield f"unpack {stored}", _identity(Format.dense(rank), stored)
            yield f"pack {stored}", _identity(stored, stored)
    yield AGAIN, dense


def self_check(target: Target, process: Jobs) -> None:
    """Raises TargetError, which says what failed. What the target declares not to do, and any
    exception of its own on a sparse format, is no failure of the harness; one out of our functions
    that pack and read is."""
    backend = BACKENDS[target.name]
    translator = backend.translator
    said: dict[str, Kernel] = {}
    for name, kernel in checks():
        try:
            function(translator, "kernel", (kernel,))
        except Untranslatable:
            continue
        said[name] = kernel
    numbered = {f"check_{n}": name for n, name in enumerate(said)}
    model = script(translator, {mode: (said[name],) for mode, name in numbered.items()})
    outcome = process.run(Job(model, {}, tuple(numbered)))
    for mode, name in numbered.items():
        if mode not in outcome.results:
            how = outcome.signal or outcome.ended.value
            raise _failed(target, name, said[name], f"the target's process ended: {how}")
        ran = judged((said[name],), alone(said[name]), outcome, mode)
        if ran.wrong is not None:
            raise _failed(target, name, said[name], ran.wrong.text)
        if ran.failure is not None and (name in (DENSE, AGAIN) or is_ours(ran.failure)):
            raise _failed(target, name, said[name], f"{ran.failure.type}: {ran.failure.message}")


def _failed(target: Target, name: str, kernel: Kernel, text: str) -> TargetError:
    return TargetError(
        f"{target.name}: the self-check failed at {name} ({kernel.statement}): "
        f"{' '.join(text.split())[:300]}; mend that first, for its findings could not be told from "
        "the compiler's"
    )


def _identity(output: Format, operand: Format) -> Kernel:
    indices = ("i", "j")[: operand.rank]
    terms = [Term((Access("B", indices),))]
    formats = {"A": output, "B": operand}
    return assemble(Access("A", indices), terms, {"i": 3, "j": 4}, formats, {"B": _data(3)})


def _formats(rank: int) -> Iterator[Format]:
    for levels in product((Level.DENSE, Level.COMPRESSED), repeat=rank):
        for order in permutations(range(rank)):
            yield Format(levels, order)


def _data(seed: int) -> Drawn:
    return Drawn(Structure.UNIFORM, 0.5, seed)
