"""Every operator's form in torch, from the modules that hold them by kind."""

from __future__ import annotations

from reprise.lower.torch import (
    creation,
    elementwise,
    indexing,
    layers,
    layout,
    reductions,
    windows,
)
from reprise.lower.torch.call import Call, Emitted, Form


def _bodies(call: Call) -> str | None:
    return "the bodies of control flow are not lowered to torch"


def _never(call: Call) -> Emitted:
    raise ValueError(f"{call.op} has no form in torch")


FORMS: dict[str, Form] = {
    **elementwise.FORMS,
    **reductions.FORMS,
    **creation.FORMS,
    **layout.FORMS,
    **indexing.FORMS,
    **windows.FORMS,
    **layers.FORMS,
    **{op: Form(_never, _bodies) for op in ("if", "loop", "scan")},
}
