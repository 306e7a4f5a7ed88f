"""z3's solvers as Reprise uses them: limited in time, and deaf to Ctrl-C.

z3 takes the interrupt for itself while it searches: the search ends with `unknown` and Python never
hears of it, so that the program goes on as if nothing had been asked of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import z3


def new_solver(milliseconds: int, context: z3.Context | None = None) -> z3.SimpleSolver:
    """A solver without tactics, whose answers depend on its seed alone unless time runs out."""
    import z3

    solver = z3.SimpleSolver(ctx=context)
    limit(solver, milliseconds)
    solver.set("random_seed", 0)
    return solver


def limit(solver: z3.Solver, milliseconds: int) -> None:
    """Stop each search after some time, and leave Ctrl-C to Python, which sees it by then."""
    solver.set("timeout", milliseconds)
    solver.set("ctrl_c", False)
