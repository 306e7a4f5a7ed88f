"""A finding's folder: the model, why it is one, and a script that shows it with the target alone.

model.onnx     what the compiler was given
repro.py       compiles it; exit code 1: as found, 0: no longer, 2: something that it needs is
               missing; imports nothing of Reprise
target.py      how the compiler is called, if that takes more than a few lines
README.md      what was violated, where that is written, and what happened
finding.json   the same, for tools
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reprise.data import data_root
from reprise.lang.declared import Constraint
from reprise.lang.display import printable
from reprise.lower.lowering import lowering
from reprise.targets.discover import Target
from reprise.xcheck.models import Made
from reprise.xcheck.passes import interface
from reprise.xcheck.passes.interface import StageReport
from reprise.xcheck.store import ModelRow
from reprise.xcheck.verdict import Verdict
from reprise.xcheck.write import read_model

_LOG = 4000


def source_of(constraint: Constraint) -> str:
    """Where a constraint is from: what it says itself, else where it is declared."""
    return ", ".join(constraint.meta.get("from", ())) or declared_at(constraint)


def declared_at(constraint: Constraint) -> str:
    """FILE:LINE of the declaration."""
    return f"{constraint.span.file}:{constraint.span.line}"


def program_line(made: Made) -> str:
    """A model's operators and types in a line: ``abs(float32[2, 3]) -> float32[2, 3]``."""
    parts = []
    for node in made.graph.nodes:
        operands = ", ".join("none" if t is None else str(t.type) for t in node.inputs)
        given = "".join(
            f", {name}={value}"
            for name, value in sorted(node.attributes.items())
            if name in node.given or name in made.asked
        )
        results = ", ".join("none" if t is None else str(t.type) for t in node.outputs)
        parts.append(f"{node.op}({operands}{given}) -> {results}")
    return "; ".join(parts)


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding and what it is told from. ``text``: the constraint as written; ``versions``: the
    compiler's."""

    row: ModelRow
    made: Made
    report: StageReport
    constraint: Constraint
    text: str
    target: Target
    versions: Mapping[str, str]


def finding_files(finding: Finding) -> dict[str, bytes]:
    """The files of a finding's folder."""
    made, target = finding.made, finding.target
    script, with_target = _repro(finding.row, target)
    files: dict[str, bytes] = {
        "model.onnx": made.model,
        "repro.py": script.encode(),
        "README.md": _readme(finding).encode(),
        "finding.json": _json(finding).encode(),
    }
    if target.lowering != "onnx":
        files["model.py"] = lowering(target.lowering).lower(read_model(made.model))
    if with_target:
        files |= {name: file.read_bytes() for name, file in _target_files(target).items()}
    return files


def _target_files(target: Target) -> dict[str, Path]:
    """The target's file, and those that it reads, by where they are in the finding's folder: as
    they are in the package, which is how they find each other."""
    file = target.file
    if file.parent != Path(interface.__file__).parent:
        return {"target/target.py": file}
    package = file.parents[2]
    found = {
        "reprise/xcheck/passes/python_hook.py": file.with_name("python_hook.py"),
        f"reprise/targets/{file.name}": package / "targets" / file.name,
        f"extractors/{target.name}/passes.toml": data_root()
        / f"extractors/{target.name}/passes.toml",
        "reprise/xcheck/passes/target.py": file,
    }
    return {f"target/{name}": path for name, path in found.items() if path.is_file()}


def _json(finding: Finding) -> str:
    row, made, report, constraint = finding.row, finding.made, finding.report, finding.constraint
    found = {
        "number": row.number,
        "verdict": row.verdict.value,
        "constraint": constraint.name,
        "class": constraint.klass,
        "from": list(constraint.meta.get("from", ())),
        "declared": declared_at(constraint),
        "kind": row.kind,
        "violated": sorted(made.violated),
        "possibly_violated": sorted(made.possible),
        "signatures_given_up": [str(clash) for clash in made.given_up],
        "program": row.program,
        "passes": row.passes,
        "stage": row.stage,
        "stopped_in": report.stopped_in,
        "completed": list(report.completed),
        "message": "" if report.failure is None else report.failure.message,
        "exception": None if report.failure is None else report.failure.type,
        "signal": report.signal,
        "warned": row.warned,
        "seconds": round(report.seconds, 3),
        "peak_mib": report.peak_mib,
        "log": report.log[-_LOG:],
        "target": str(finding.target),
        "versions": dict(finding.versions),
    }
    return json.dumps(found, indent=2) + "\n"


def _said(row: ModelRow) -> str:
    if row.message:
        return f"- Said: {row.message}"
    return "- Warned, in its log (`finding.json`)." if row.warned else "- Said nothing."


def _readme(finding: Finding) -> str:
    row, made, constraint = finding.row, finding.made, finding.constraint
    version = ", ".join(f"{name} {number}" for name, number in finding.versions.items())
    about = "keeps every constraint, that one too" if row.valid else "violates it"
    also = sorted(made.violated - {constraint.name})
    lines = [
        f"# {finding.target.name}: {row.words}",
        "",
        f"Model {row.number}, found with {version}.",
        "",
        f"- Constraint: `{constraint.name}` ({constraint.klass}); from {source_of(constraint)}",
        f"- The model {about}: `{row.program}`",
    ]
    if also:
        lines.append(f"- Violated with it, since it implies them: {', '.join(also)}")
    if made.given_up:
        lines.append("- What operators' signatures ask for and it does not have:")
        lines += [f"    - {clash}" for clash in made.given_up]
    lines += [
        f"- Passes completed: {row.passes}; stage reached: {row.stage}",
        _said(row),
        "",
        "`python repro.py`, with an interpreter that has the compiler, compiles `model.onnx`; exit",
        "code 1 means that it behaves as found, 0 that it does not, 2 that it cannot run.",
        "",
        "The constraint:",
        "",
        "```",
        finding.text.rstrip(),
        "```",
    ]
    return "".join(f"{printable(line)}\n" for line in "\n".join(lines).split("\n"))


# --- scripts -----------------------------------------------------------------------------------

_HEAD = """# {title}
# {program}
# Exit code 1: as found; 0: no longer; 2: what it needs is missing. Needs {needs}.
import os
import subprocess
import sys

MODEL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.onnx")


def compile_model():
{body}


if sys.argv[1:] != ["--inside"]:  # what it does may end its process, or never end
    command = [sys.executable, os.path.abspath(__file__), "--inside"]
    try:
        code = subprocess.run(command, timeout={seconds}).returncode
    except subprocess.TimeoutExpired:
        code = "no end within {seconds} s"
    if code == 2:
        print("needs {needs}", file=sys.stderr)
        sys.exit(2)
    answer = {{0: "accepted", 1: "rejected"}}.get(code, f"ended: {{code}}")
    print(f"{{answer}} (as found: {found})")
    expected = {{"accepted": code == 0, "rejected": code == 1}}.get("{found}", code not in (0, 1))
    sys.exit(1 if expected else 0)

try:
    compile_model()
except ImportError as error:
    print(error)
    sys.exit(2)
except Exception as error:
    print(f"{{type(error).__name__}}: {{error}}"[:2000])
    sys.exit(1)
"""

_ORT = """\
    import onnxruntime

    print("onnxruntime", onnxruntime.__version__)
    onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])"""

_TVM = """\
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    print("apache-tvm", tvm.__version__)
    module = from_onnx(onnx.load(MODEL), keep_params_in_input=False)
    target = tvm.target.Target("{device}")
    with target, tvm.transform.PassContext(opt_level=3):
        relax.build(module, target=target, relax_pipeline=relax.get_default_pipeline(target))"""

_FILE = """\
    import importlib.util

    class Announce:
        def __call__(self, stage):
            print("stage:", stage)

        def begin(self, name):
            print("pass:", name)

        def end(self, name):
            pass

    file = os.path.join(os.path.dirname(MODEL), {file!r})
    spec = importlib.util.spec_from_file_location("target", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    runner = module.Runner({device!r}, Announce())
    print(runner.versions())
    model = os.path.join(os.path.dirname(MODEL), {model!r})
    runner.run(open(model, "rb").read(), {{}}, {mode!r}, ())"""

_FOUND = {
    Verdict.ACCEPTED: "accepted",
    Verdict.COMPILED: "accepted",
    Verdict.VALID_REJECTED: "rejected",
    Verdict.REJECTED: "rejected",
    Verdict.INTERNAL: "rejected",
}
_SECONDS = 120


def _repro(row: ModelRow, target: Target) -> tuple[str, bool]:
    """The script, and whether it needs the target's file beside it."""
    beside = True
    body = _FILE.format(
        device=target.device,
        mode=target.modes[0],
        file=next(name for name in _target_files(target) if name.endswith("/target.py")),
        model="model.onnx" if target.lowering == "onnx" else "model.py",
    )
    needs = "numpy and the compiler"
    if target.name == "onnxruntime":
        body, needs, beside = _ORT, "onnxruntime", False
    elif target.name == "tvm" and not target.device.startswith("{"):
        body, needs, beside = _TVM.format(device=target.device), "apache-tvm and onnx", False
    script = _HEAD.format(
        title=f"{target.name}: {row.words}: {row.constraint}",
        program=printable(row.program),
        needs=needs,
        body=body,
        found=_FOUND.get(row.verdict, "ended"),
        seconds=_SECONDS,
    )
    return script, beside
