"""The dimensions in order, then the joint check."""

from __future__ import annotations

from collections.abc import Callable

from reprise.distill.conditions import holds_all
from reprise.distill.generalise import attributes, context, joint, shapes, structure
from reprise.distill.generalise.trying import Trying

STEPS: tuple[tuple[str, Callable[[Trying], None]], ...] = (
    ("lines", structure.lines),
    ("opset", context.opset),
    ("outputs and readers", context.context),
    ("further results", structure.results),
    ("operands that are one tensor", structure.splits),
    ("values", context.values),
    ("where values come from", context.roles),
    ("operands", structure.operands),
    ("attributes", attributes.attributes),
    ("extents", shapes.extents),
    ("single elements", shapes.single_elements),
    ("ranks", shapes.ranks),
    ("scalar results", shapes.scalar_results),
    ("empty axes", shapes.empty_axes),
    ("attributes again", attributes.attributes),
    ("order of operands", structure.orders),
    ("element types", shapes.dtypes),
    ("operators", structure.operators),
    ("what follows from the rest", joint.implied),
    ("all at once", joint.joint),
    ("bounds again", joint.bounds_again),
    ("what follows from the rest", joint.implied),
)
"""The dimensions, in an order that makes later samples cheap: context that does not matter goes
first."""


class Generaliser(Trying):
    """Generalises one program. :attr:`draft` always holds what is known so far: a run that is cut
    short leaves a pattern that is too narrow, never one that is too wide."""

    def run(self) -> None:
        """All dimensions, then the joint check. Raises Spent, TargetError; KeyboardInterrupt passes
        through. Whatever ends it, :attr:`draft` is the best pattern so far."""
        step = ""
        try:
            for step, generalise in STEPS:
                self.progress(step, self.asker.asked, self.draft)
                before = self.draft
                generalise(self)
                if not holds_all(self.draft.conditions, self.place):
                    self.draft = before
                    why = "gave a rule that the program itself does not match: taken back"
                    self.record.add(step, "", "", (), False, why)
            self.record.complete = True
        finally:
            self.record.interrupted = "" if self.record.complete else step
            self.record.asked = self.asker.asked
            self.record.runs = self.asker.runs
            self.record.seconds = self.asker.seconds
