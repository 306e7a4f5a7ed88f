"""Kernels for Finch.jl, by finch-tensor: the scripts of :mod:`~reprise.einsum.translate.finch`,
compiled by ``COMPILE_JULIA``."""

from __future__ import annotations

from reprise.einsum.translate.finch import (
    compute,
    computed,
    helpers_with,
    imports,
    operand,
    result,
)

helpers = helpers_with("finch.autoschedule.COMPILE_JULIA")

__all__ = ["compute", "computed", "helpers", "imports", "operand", "result"]
