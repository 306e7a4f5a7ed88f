"""Model files as graphs, whatever their format."""

from __future__ import annotations

from pathlib import Path

from reprise.facts.errors import ModelError
from reprise.lang.diagnostics import RulesError
from reprise.lang.ruleset import RuleSet
from reprise.uir.graph import Graph


def read_model(path: Path, rules: RuleSet) -> Graph:
    """The graph in an ONNX or ``.uir`` file; the latter's types follow from the signatures among
    ``rules``. Raises ModelError, and nothing else, if the file cannot be used.
    """
    if path.suffix != ".uir":
        from reprise.facts.onnx_import import load_onnx

        return load_onnx(path)
    from reprise.lang.source import read_source
    from reprise.solve.signatures import Signatures
    from reprise.uir.text import parse_uir

    try:
        return parse_uir(read_source(path), str(path), Signatures.of_symbols(rules.symbols))
    except RulesError as error:
        first = error.diagnostics[0]
        where = f"line {first.span.line}, column {first.span.column}: "
        unread = first.code == "unreadable-file"
        raise ModelError(path, ("" if unread else where) + first.message, first.hint) from error
