"""What mining documentation came to, for people: a summary and the table of agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from reprise.lang.display import counted
from reprise.mining.alike import ALIKE
from reprise.mining.docs.agreement import Agreement, Kind
from reprise.mining.docs.mining import Mined, in_uir
from reprise.mining.docs.model import Documentation

Row = Sequence[str]

UNKNOWN_LAYOUT = (
    "most of it could not be read: the layout is neither that of `Operators.md` and "
    "`Changelog.md` as ONNX writes them now, nor that of the pages on onnx.ai"
)


def unknown_layout(documentation: Documentation) -> bool:
    """Whether what could not be read is so much that the layout must be another one: more is wrong
    than the few lines that are shown whole, and half of the versions are not whole."""
    damaged = sum(bool(e.damaged) for e in documentation.entries)
    enough = len(documentation.diagnostics) > ALIKE + 1
    return enough and 2 * damaged >= len(documentation.entries)


def summary(mined: Mined) -> Iterator[str]:
    """A few lines: what was read, and what follows from it."""
    documentation = mined.documentation
    operators = {(e.domain, e.name) for e in documentation.entries}
    damaged = sum(bool(e.damaged) for e in documentation.entries)
    lost = f", {damaged} of them not whole" if damaged else ""
    yield (
        f"{counted(documentation.files, 'document')}: "
        f"{counted(len(documentation.entries), 'version')} of "
        f"{counted(len(operators), 'operator')}{lost} ({documentation.seconds:.1f} s)"
    )
    classes = Counter(c.klass for c in mined.constraints)
    listed = ", ".join(f"{klass} {count}" for klass, count in sorted(classes.items()))
    yield f"{counted(len(mined.constraints), 'constraint')}" + (f": {listed}" if listed else "")
    known = sum(in_uir(s.entry) for s in mined.signatures)
    yield (
        f"{counted(len(mined.signatures), 'signature')}: {known} of operators that UIR has, "
        f"{len(mined.signatures) - known} of others; {len(mined.left_out)} left out"
    )


def as_json(mined: Mined, agreement: Agreement | None) -> dict[str, Any]:
    """The same for tools: counts, what has no signature, and the comparison."""
    documentation = mined.documentation
    said: dict[str, Any] = {
        "documents": documentation.files,
        "versions": len(documentation.entries),
        "operators": len({(e.domain, e.name) for e in documentation.entries}),
        "damaged": [e.title for e in documentation.entries if e.damaged],
        "constraints": dict(sorted(Counter(c.klass for c in mined.constraints).items())),
        "signatures": {
            "in_uir": sum(in_uir(s.entry) for s in mined.signatures),
            "others": sum(not in_uir(s.entry) for s in mined.signatures),
        },
        "left_out": {missing.entry.title: missing.reason for missing in mined.left_out},
        "problems": [
            {
                "code": d.code,
                "from": f"{d.span.file}:{d.span.line}:{d.span.column}",
                "message": d.message,
            }
            for d in documentation.diagnostics
        ],
    }
    if agreement is not None:
        said["check"] = {
            "onnx": agreement.onnx,
            "facts": {
                kind.value: {"stated": count, "agree": agreement.agreeing[kind]}
                for kind, count in agreement.stated.items()
                if count
            },
            "differences": [
                {
                    "subject": d.subject,
                    "fact": d.kind.value,
                    "documented": d.documented,
                    "actual": d.actual,
                    "from": str(d.place),
                    "explanation": d.explanation,
                }
                for d in agreement.differences
            ],
            "absent": list(agreement.absent),
            "not_compared": list(agreement.unread),
        }
    return said


def left_out(mined: Mined) -> Iterator[str]:
    """Each operator without a signature, and why."""
    for missing in mined.left_out:
        yield f"  {missing.entry.title}: {missing.reason}"


def agreement_table(agreement: Agreement) -> list[Row]:
    """A row for each kind of fact that the documents state: stated, agreeing, share."""
    rows: list[Row] = [("fact", "stated", "agree", "")]
    kinds = [kind for kind in Kind if agreement.stated[kind]]
    for kind in kinds:
        rows.append(_row(kind.value, agreement.stated[kind], agreement.agreeing[kind]))
    if kinds:
        total = sum(agreement.stated.values())
        rows.append(_row("all", total, sum(agreement.agreeing.values())))
    return rows


def _row(name: str, stated: int, agreeing: int) -> Row:
    # Rounded down: 100 % means every one.
    share = agreeing * 10_000 // stated / 100
    return name, str(stated), str(agreeing), f"{share:.2f} %"


def differences(agreement: Agreement) -> Iterator[str]:
    """Each difference with its place, and what explains it."""
    for d in agreement.differences:
        why = d.explanation or "not explained"
        yield (
            f"{d.place}: {d.subject}: {d.kind.value} is {d.documented} in the documents, "
            f"{d.actual} in onnx {agreement.onnx} ({why})"
        )
    if agreement.absent:
        shown = ", ".join(agreement.absent[:10])
        more = f" and {len(agreement.absent) - 10} more" if len(agreement.absent) > 10 else ""
        yield f"in onnx {agreement.onnx} and not in the documents: {shown}{more}"
    for text in agreement.unread:
        yield f"not compared: {text}"
