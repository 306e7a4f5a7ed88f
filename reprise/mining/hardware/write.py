"""Mined facts as a rule file: ``hw`` facts with their lines, monitors, resource constraints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from reprise.lang.display import printable
from reprise.lang.format import format_text, quoted
from reprise.mining.hardware.expressions import names_in
from reprise.mining.hardware.facts import HardwareFact
from reprise.mining.hardware.formats import Format, Keys
from reprise.mining.hardware.mine import Mined


def rules_text(mined: Mined, keys: Keys) -> str:
    """A rule file, formatted: facts by target, then what follows for graphs and passes."""
    lines = [
        "// What hardware descriptions say, mined by `reprise mine hardware`.",
        "// `--env device=NAME` chooses the device that `device(key)` asks about.",
        "",
    ]
    for target in mined.targets:
        about = [d for d in mined.devices if d.target == target]
        titles = (f"// {target}: {d.format.title}, {d.place.file}" for d in about)
        lines += dict.fromkeys(map(printable, titles))
        lines += [_fact(fact) for fact in mined.facts if fact.target == target]
        lines.append("")
    for fmt in mined.formats:
        lines += _declarations(mined, fmt, keys)
    return format_text("\n".join(lines) + "\n", "mined.rules")


def as_json(mined: Mined) -> dict[str, Any]:
    """The facts and problems, for tools."""
    return {
        "facts": [
            {
                "target": printable(fact.target),
                "key": fact.key,
                "value": fact.value,
                "from": [printable(str(place)) for place in fact.places],
                "notes": list(fact.notes),
            }
            for fact in mined.facts
        ],
        "problems": [
            {
                "code": d.code,
                "severity": d.severity.value,
                "from": printable(f"{d.span.file}:{d.span.line}:{d.span.column}"),
                "message": printable(d.message),
            }
            for d in mined.diagnostics
        ],
    }


def _fact(fact: HardwareFact) -> str:
    lines: dict[str, list[str]] = {}
    for place in fact.places:
        lines.setdefault(PurePath(place.file).name, []).append(str(place.line))
    said = [f"{file}:{','.join(dict.fromkeys(numbers))}" for file, numbers in lines.items()]
    where = "; ".join([", ".join(said), *fact.notes] if said else fact.notes)
    return f"hw({quoted(printable(fact.target))}, {fact.key}, {fact.value}). // {printable(where)}"


def _declarations(mined: Mined, fmt: Format, keys: Keys) -> Iterator[str]:
    devices = [device for device in mined.devices if device.format.name == fmt.name]
    known = {fact.key: fact for device in reversed(devices) for fact in device.facts}
    for rule in (*keys.rules, *fmt.rules):
        if all(need in known for need in rule.needs):
            places = [p for need in rule.needs for p in known[need].places]
            origin = str(places[0]) if places else known[rule.needs[0]].notes[0]
            yield rule.text.replace("{format}", fmt.name).replace(
                "{from}", quoted(printable(origin))[1:-1]
            )
    number = 0
    for requirement in fmt.requirements:
        if all(keys.knows(name) for name in names_in(requirement.test)):
            number += 1
            text = re.sub(r"[a-z]\w*", r"device(\g<0>)", requirement.text)
            yield (
                f"monitor {fmt.name}_requires_{number} : hardware_feasibility\n"
                f'    on pass "load configuration" {{\n'
                f"    from: {quoted(printable(requirement.source))}\n    template: hardware\n"
                f"    assert {text}\n}}"
            )
