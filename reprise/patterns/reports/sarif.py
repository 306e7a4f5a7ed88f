"""Check reports as SARIF 2.1.0 (OASIS), for code-scanning services.

A certain match is a ``warning`` (an ``error`` if the rule says ``severity: high``), a possible one
a ``note``. Models that could not be read and rules that do not load are tool notifications, and
make ``executionSuccessful`` false: a broken rule file never looks like a clean run.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from reprise import __version__
from reprise.lang.diagnostics import Diagnostic, Severity
from reprise.patterns.check import MatchReport, ModelReport

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "note"}


def to_sarif(
    reports: Sequence[ModelReport],
    rule_errors: Sequence[Diagnostic] = (),
    errors: Sequence[str] = (),
) -> dict[str, Any]:
    """A SARIF log with one run."""
    rules: dict[str, MatchReport] = {}
    for report in reports:
        for match in report.matches:
            rules.setdefault(match.rule, match)
    index = {name: i for i, name in enumerate(rules)}
    notifications = [_rule_notification(d) for d in rule_errors]
    notifications += [{"level": "error", "message": {"text": text}} for text in errors]
    notifications += [_model_notification(r, m) for r in reports for m, _ in r.errors]
    failed = any(n["level"] == "error" for n in notifications)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "reprise",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_descriptor(m) for m in rules.values()],
                    }
                },
                "invocations": [
                    {
                        "executionSuccessful": not failed,
                        "toolExecutionNotifications": notifications,
                    }
                ],
                "results": [
                    _result(report, match, index[match.rule])
                    for report in reports
                    for match in report.matches
                ],
            }
        ],
    }


def _descriptor(match: MatchReport) -> dict[str, Any]:
    descriptor: dict[str, Any] = {
        "id": match.rule,
        "shortDescription": {"text": match.title or match.rule},
        "fullDescription": {"text": match.doc or match.title or match.rule},
        "defaultConfiguration": {"level": _level(match)},
        "properties": {"tags": [*match.meta.get("target", ()), *match.meta.get("symptom", ())]},
    }
    advice = match.meta.get("advice", ("",))[0]
    if advice:
        descriptor["help"] = {"text": advice}
    url = next((b for b in map(bug_url, match.meta.get("bug", ())) if b), None)
    if url:
        descriptor["helpUri"] = url
    return descriptor


def bug_url(bug: str) -> str | None:
    """``owner/repo#12`` as an address, where the bug is written that way."""
    if bug.startswith("https://"):
        return bug
    repository, separator, number = bug.partition("#")
    if separator and number.isdigit() and repository.count("/") == 1:
        return f"https://github.com/{repository}/issues/{number}"
    return None


def _level(match: MatchReport) -> str:
    severity = match.meta.get("severity", ("medium",))[0]
    return _LEVELS.get(severity, "warning")


def _result(report: ModelReport, match: MatchReport, index: int) -> dict[str, Any]:
    nodes = ", ".join(f"{k} = {v}" for k, v in match.nodes.items())
    text = (match.title or match.rule) + (f" ({nodes})" if nodes else "")
    if match.reason:
        text += f"; possible: {match.reason}"
    key = "\0".join([match.rule, *match.nodes.values()])
    if match.kind == "deny":  # its rows need not be about nodes
        key = "\0".join([key, *(f"{k}={v}" for k, v in match.values.items())])
    return {
        "ruleId": match.rule,
        "ruleIndex": index,
        "level": "note" if match.certainty == "possible" else _level(match),
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": _uri(report.path)}},
                "logicalLocations": [
                    {"name": name, "fullyQualifiedName": name, "kind": "function"}
                    for name in match.nodes.values()
                ],
            }
        ],
        "partialFingerprints": {"repriseMatch/v1": hashlib.sha256(key.encode()).hexdigest()[:32]},
        "properties": {
            "kind": match.kind,
            "certainty": match.certainty,
            "values": dict(match.values),
        },
    }


def _uri(path: str) -> str:
    """A path as a URI reference: relative ones stay relative, so that they fit the repository."""
    if Path(path).is_absolute():
        return Path(path).as_uri()
    return quote(os.fsencode(Path(path).as_posix()))  # a name need not be UTF-8


def _rule_notification(diagnostic: Diagnostic) -> dict[str, Any]:
    span = diagnostic.span
    return {
        "level": "error" if diagnostic.severity is Severity.ERROR else "warning",
        "message": {"text": diagnostic.message},
        "descriptor": {"id": diagnostic.code},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(span.file)},
                    "region": {
                        "startLine": max(span.line, 1),
                        "startColumn": max(span.column, 1),
                        "endLine": max(span.end_line, 1),
                        "endColumn": max(span.end_column, 1),
                    },
                }
            }
        ],
    }


def _model_notification(report: ModelReport, message: str) -> dict[str, Any]:
    return {
        "level": "error",
        "message": {"text": f"{report.path}: {message}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(report.path)}}}],
    }
