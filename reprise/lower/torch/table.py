"""Every operator's form in torch, from the modules that hold them by kind."""

from __future__ import annotations

from reprise.lower.torch import elementwise
from reprise.lower.torch.call import Form

FORMS: dict[str, Form] = {
    **elementwise.FORMS,
}
