"""``reprise mine``: constraints from what others wrote."""

from __future__ import annotations

import click

from reprise.cli.lazy import LazyGroup


@click.group(
    cls=LazyGroup,
    lazy={
        "docs": ("reprise.cli.mine_docs:mine_docs", "Mine ONNX's operator documentation."),
        "hardware": (
            "reprise.cli.mine_hardware:hardware",
            "Read hardware specifications into facts and constraints.",
        ),
        "source": (
            "reprise.cli.mine_source:source",
            "Mine a compiler's sources for constraints and monitors.",
        ),
        "signatures": (
            "reprise.cli.mine_signatures:signatures",
            "Complete mined signatures by asking ONNX.",
        ),
        "reach": (
            "reprise.cli.mine_reach:reach",
            "Count the ONNX operators that programs have.",
        ),
        "new": (
            "reprise.cli.mine_new:new",
            "Start an extractor for another compiler.",
        ),
    },
    short_help="Mine constraints from documents and sources.",
)
def mine() -> None:
    """Mine constraints from operator documentation, hardware specifications and compilers."""
