"""Trials of a target that fails where a deny rule matches, and nowhere else: what distilling should
come back to is known."""

from __future__ import annotations

from pathlib import Path
from random import Random
from threading import Lock

from reprise.distill.trials import Shown
from reprise.einsum.distill.generalise import Effort, Generaliser
from reprise.einsum.distill.trials import Asker
from reprise.einsum.distill.walk import Walker
from reprise.einsum.kernel import Kernel
from reprise.einsum.options import Options
from reprise.einsum.settings import PERMISSIONS, USUAL, Settings
from reprise.einsum.text import parse
from reprise.einsum.validity import Validity, load_kernel_rules

OPTIONS = Options()
WALKER = Walker(Validity(load_kernel_rules(), Settings((), USUAL)), OPTIONS)


class Planted:
    """``rule``: deny rules with one called ``planted``, over the facts of kernels."""

    values_matter = False

    def __init__(self, rule: str, folder: Path, jobs: int = 1) -> None:
        self.jobs = jobs
        self.runs = 0
        self._lock = Lock()
        file = folder / "planted.rules"
        file.write_text(f'import "einsum/roles.rules"\n{rule}\n')
        self._validity = Validity(load_kernel_rules((file,)), Settings((), frozenset(PERMISSIONS)))

    def is_hit(self, kernel: Kernel) -> bool:
        return any(found.rule == "planted" for found in self._validity.of(kernel))

    def shown(self, kernel: Kernel) -> Shown:
        with self._lock:
            self.runs += 1
            return Shown.SAME if self.is_hit(kernel) else Shown.NOTHING


def generaliser(text: str, trials: Planted, seed: int = 1, samples: int = 6) -> Generaliser:
    """One that has not begun."""
    return Generaliser(
        parse(text).kernel(), Asker(trials), WALKER, Random(seed), effort=Effort(samples, 16)
    )
