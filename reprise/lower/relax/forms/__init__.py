"""How each operator is written in Relax: one table a family of operators."""

from __future__ import annotations

from reprise.lower.relax.application import Form
from reprise.lower.relax.forms import activation, binary, elementwise

FORMS: dict[str, Form] = {
    **activation.FORMS,
    **binary.FORMS,
    **elementwise.FORMS,
}
