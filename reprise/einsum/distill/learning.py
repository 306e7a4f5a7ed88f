"""Lessons of findings that are about kernels, for :mod:`reprise.distill.learn`."""

from __future__ import annotations

from pathlib import Path

from reprise.distill.learn import Teaching, lesson_name
from reprise.distill.reduce import Budget
from reprise.einsum.distill.distilling import distill_kernel
from reprise.einsum.distill.subject import read_kernel_subject


def teach_kernel(folder: Path, place: Path, teaching: Teaching) -> str | tuple[str, str]:
    """A rule's name and text, or why there is none: see :data:`reprise.distill.learn.Teach`."""
    made, _, _ = distill_kernel(
        read_kernel_subject(folder, None),
        place,
        limits=teaching.limits,
        budget=Budget(seconds=teaching.seconds),
        seed=teaching.seed,
        name=lesson_name(folder),
        neighbours=teaching.neighbours,
    )
    if made.discarded:
        assert made.tightened is not None
        return f"the rule was discarded: {made.tightened.reason}"
    return made.draft.name, made.text
