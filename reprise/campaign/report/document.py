"""A report as JSON, for tools (``docs/formats.md`` has every key)."""

from __future__ import annotations

from typing import Any

from reprise.campaign.metrics import Redundancy
from reprise.campaign.report.figures import figures
from reprise.campaign.report.summary import Ranked, Report, relative
from reprise.campaign.store import finding_id
from reprise.oracle.verdict import Verdict

VERSION = 1


def document(report: Report) -> dict[str, Any]:
    """The whole report."""
    run = report.run
    return {
        "version": VERSION,
        "run": str(run.path),
        "target": run.info.target,
        "seed": run.info.seed,
        "guided": run.info.guided,
        "options": run.info.options,
        "rules": list(run.info.rules),
        "rules_hash": run.info.rules_hash,
        "versions": run.info.versions,
        "started": run.info.started,
        "state": report.state,
        "tests": run.tests,
        "seconds": run.seconds,
        "target_seconds": run.target_seconds,
        "tests_per_second": report.rate,
        "verdicts": {verdict.value: count for verdict, count in run.verdicts.items()},
        "defects": [_defect(ranked, report) for ranked in report.defects],
        "suppressed": {rule: rejected for rule, rejected, _ in report.suppressed},
        "completed": {rule: completed for rule, _, completed in report.suppressed if completed},
        "metrics": metrics(run.redundancy),
        "crash_metrics": metrics(run.redundancy_of(Verdict.CRASH)),
        "ours": [
            {
                "verdict": ours.signature.verdict.value,
                "signature": ours.signature.signature,
                "title": ours.signature.title,
                "count": ours.signature.count,
                "first_test": ours.signature.first_index,
                "folder": None if ours.folder is None else relative(ours.folder, run),
            }
            for ours in report.ours
        ],
    }


def metrics(found: Redundancy) -> dict[str, float | None]:
    """The paper's figures by name."""
    return {figure.key: figure.number for figure in figures(found)}


def _defect(ranked: Ranked, report: Report) -> dict[str, Any]:
    defect, finding = ranked.defect, ranked.finding
    folder = ranked.folder
    confirmation = None if finding is None else finding.confirmation
    return {
        "id": defect.id,
        "key": defect.key,
        "count": defect.count,
        "known_rule": ranked.rule,
        "learned_rules": list(ranked.learned),
        "verdict": defect.verdicts[0].value,
        "verdicts": [verdict.value for verdict in defect.verdicts],
        "severity": defect.severity.value,
        "signature": defect.signatures[0].signature,
        "signatures": [s.signature for s in defect.signatures],
        "title": defect.title,
        "bugs": [] if ranked.pattern is None else list(ranked.pattern.meta.get("bug", ())),
        "first_test": defect.first_index,
        "first_finding": finding_id(defect.first_index),
        "first_seconds": defect.first_at,
        "flaky": None if confirmation is None else confirmation.flaky,
        "folder": None if folder is None else relative(folder, report.run),
        "command": None if folder is None else report.command(folder),
    }
