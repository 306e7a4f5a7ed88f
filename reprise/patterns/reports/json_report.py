"""Check reports as JSON: the format is stable, and described in ``docs/formats.md``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reprise.lang.diagnostics import Diagnostic
from reprise.lang.render import to_json as diagnostics_to_json
from reprise.patterns.check import MatchReport, ModelReport

FORMAT_VERSION = 1


def to_json(
    reports: Sequence[ModelReport],
    rule_errors: Sequence[Diagnostic] = (),
    errors: Sequence[str] = (),
) -> dict[str, Any]:
    """The whole run: one entry a model, and what was wrong with the rules or the command, if
    anything (``rule_errors``, ``errors``: present in every report, so that a tool cannot overlook
    them)."""
    return {
        "version": FORMAT_VERSION,
        "models": [_model(r) for r in reports],
        "rule_errors": diagnostics_to_json(list(rule_errors)),
        "errors": list(errors),
    }


def _model(report: ModelReport) -> dict[str, Any]:
    return {
        "path": report.path,
        "nodes": report.nodes,
        "matches": [_match(m) for m in report.matches],
        "near": [_match(m) for m in report.near],
        "errors": [{"message": m, "hint": h} for m, h in report.errors],
    }


def _match(match: MatchReport) -> dict[str, Any]:
    def first(key: str) -> str | None:
        return match.meta[key][0] if match.meta.get(key) else None

    return {
        "rule": match.rule,
        "kind": match.kind,
        "title": match.title,
        "certainty": match.certainty,
        "nodes": match.nodes,
        "values": {name.lower(): value for name, value in match.values.items()},
        "target": first("target"),
        "affects": first("affects"),
        "bugs": list(match.meta.get("bug", ())),
        "symptom": list(match.meta.get("symptom", ())),
        "verdict": first("verdict"),
        "severity": first("severity"),
        "pass": first("pass"),
        "advice": first("advice"),
        "reason": match.reason or None,
        "rule_file": match.rule_file,
        "rule_line": match.rule_line,
        "explanation": [
            {
                "line": line.line,
                "text": line.text,
                "truth": line.truth.value,
                "facts": list(line.facts),
            }
            for line in match.explanation
        ],
    }
