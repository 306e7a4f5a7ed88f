"""Writes a bug report in Markdown, in the shape that the target's project asks for.

Everything in it comes from the finding's folder. The parts (what is expected, what happens, the
script, the evidence, versions) are the same for every project; which headings they go under is
data, read off the projects' own issue forms. What the person who files it has to do first stands in
a comment at the top, which trackers do not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reprise.campaign.report.summary import in_line
from reprise.campaign.triage.failing import Failing
from reprise.campaign.triage.novelty import Item
from reprise.lang.display import shortened
from reprise.oracle.compare import Kind
from reprise.oracle.verdict import Severity, Verdict
from reprise.patterns.truth import Truth
from reprise.targets.discover import Target

SCRIPT_CHARACTERS = 12_000
"""A script of up to this size is part of the report; a longer one is attached."""
_PROGRAM_LINES = 40
_OPERATORS = 5
_BY_VALUE = (Kind.VALUES.value, Kind.SIGN_OF_ZERO.value)
"""Kinds of differences that a tolerance decides about."""
_OF_VALUES = (Verdict.WRONG_RESULT, Verdict.REFERENCE_DISAGREEMENT)


@dataclass(frozen=True, slots=True)
class Shape:
    """A project's issue form: ``sections`` are headings with the parts that go under each (a part
    in quotes is itself the text); ``prefix`` starts the title; ``before``: what its maintainers ask
    of whoever files."""

    project: str
    prefix: str
    sections: tuple[tuple[str, tuple[str, ...]], ...]
    before: tuple[str, ...] = ()
    log: bool = False


_ONNXRUNTIME = Shape(
    "microsoft/onnxruntime",
    "",
    (
        ("Describe the issue", ("summary", "expected", "actual", "evidence", "program")),
        ("To reproduce", ("script", "files")),
        ("Urgency", ("'No deadline: found by a fuzzer.'",)),
        ("Platform", ("system",)),
        ("OS Version", ("machine",)),
        ("ONNX Runtime Installation", ("'Released Package'",)),
        ("ONNX Runtime Version or Commit ID", ("version",)),
        ("ONNX Runtime API", ("'Python'",)),
        ("Architecture", ("architecture",)),
        ("Execution Provider", ("provider",)),
        ("Execution Provider Library Version", ("versions",)),
    ),
)
_PYTORCH = Shape(
    "pytorch/pytorch",
    "[Inductor] ",
    (
        (
            "🐛 Describe the bug",
            ("summary", "expected", "actual", "program", "script", "files", "evidence"),
        ),
        ("Error logs", ("log",)),
        ("Versions", ("versions", "'<!-- paste the output of collect_env.py here -->'")),
    ),
    (
        "the project's policy on contributions made with tools applies to reports too",
        "label it `topic: fuzzer`; its form asks for default tolerances, a float64 baseline and "
        "the same random state: see the evidence",
        "run `python collect_env.py` (from the project's repository) for the section Versions",
    ),
    log=True,
)
_TVM = Shape(
    "apache/tvm",
    "[Bug] ",
    (
        ("Expected behavior", ("summary", "expected")),
        ("Actual behavior", ("actual", "evidence", "log")),
        ("Environment", ("versions",)),
        ("Steps to reproduce", ("script", "files", "program")),
        ("Triage", ("'* needs-triage'",)),
    ),
    log=True,
)
_PLAIN = Shape(
    "",
    "",
    (
        ("What happens", ("summary", "actual", "log")),
        ("What should happen", ("expected",)),
        ("To reproduce", ("script", "files", "program")),
        ("Evidence", ("evidence",)),
        ("Versions", ("versions",)),
    ),
    log=True,
)
_OF_KERNELS = {
    "taco": "tensor-compiler/taco",
    "tensora": "drhagen/tensora",
    "mlir-sparse": "llvm/llvm-project",
    "pydata-sparse": "pydata/sparse",
    "scipy-sparse": "scipy/scipy",
    "torch-sparse": "pytorch/pytorch",
}
SHAPES = {
    "onnxruntime": _ONNXRUNTIME,
    "inductor": _PYTORCH,
    "tvm": _TVM,
    "tvm-cuda-compile": _TVM,
    **{name: replace(_PLAIN, project=project) for name, project in _OF_KERNELS.items()},
}
"""By target; others get a plain one."""


@dataclass(frozen=True, slots=True)
class BugReport:
    """A report's title and text, and the files of the finding's folder that go with it."""

    title: str
    text: str
    files: tuple[str, ...]
    project: str


def bug_report(item: Item, target: Target) -> BugReport:
    """The report on a defect of ``target``."""
    shape = SHAPES.get(target.name, _PLAIN)
    kinds = _KernelParts if target.lowering == "einsum" else _Parts
    parts = kinds(item, target)
    title = shape.prefix + parts.title()
    lines = [f"# {title}", "", *_before(item, shape, parts), ""]
    for heading, names in shape.sections:
        body = [text for name in names if (text := parts.part(name))]
        if heading == "Error logs" and not body:
            body = ["None: nothing fails, the result is wrong."]
        lines += [f"### {heading}", "", "\n\n".join(body) or "Not known.", ""]
    return BugReport(title, "\n".join(lines), parts.attached(), shape.project)


def _before(item: Item, shape: Shape, parts: _Parts) -> Iterator[str]:
    """What the person who files has to know and do."""
    yield "<!--"
    yield "Before filing (this comment is not shown):"
    if item.detail.verdict is Verdict.REFERENCE_DISAGREEMENT:
        yield "- THE REFERENCE MAY BE WRONG, not the target: read the operator's definition"
    if item.is_flaky:
        yield "- IT DOES NOT HAPPEN EVERY TIME: file it only if repro.py shows it to you"
    yield "- run repro.py with the newest release, three times; it exits with 1 if it still fails"
    words = parts.words()
    tracker = f"https://github.com/{shape.project}/issues" if shape.project else "the tracker"
    yield f"- look for it in {tracker}: {words}"
    for near in item.nearest:
        bugs = ", ".join(near.bugs)
        match near.certainty:
            case Truth.YES:
                yield f"- it matches the rule {near.rule} ({bugs}): is it that?"
            case Truth.UNKNOWN:
                yield f"- it may match the rule {near.rule} ({bugs}): {_line(near.why)}"
            case Truth.NO:
                yield f"- near the rule {near.rule} ({bugs}), but: {_line(near.why)}"
    if item.rule is not None and not item.nearest:
        yield f"- it is what the rule {item.rule} is about"
    for asked in shape.before:
        yield f"- {asked}"
    if not parts.is_reduced():
        yield "- the program was not reduced: `reprise reduce` makes it smaller"
    yield "-->"


class _Parts:
    """The parts of a report, from a finding's folder."""

    def __init__(self, item: Item, target: Target) -> None:
        self.item = item
        self.target = target.name
        self.fails = Failing.of(item.detail, target.modes)
        self.detail = item.detail
        self.evidence: Mapping[str, Any] = item.detail.evidence
        self.versions = item.detail.versions
        self.compiler = next(iter(item.detail.versions), target.name)

    def part(self, name: str) -> str:
        """One part's text; empty where there is nothing to say."""
        if name.startswith("'"):
            return name.strip("'")
        text: str = getattr(self, f"_{name}")()
        return text

    def title(self) -> str:
        """One line: the symptom, the pass to blame, the operators."""
        where = " + ".join(self.item.blamed)
        after = f" after {where}" if where else ""
        if self.fails == Failing(tested=False, baseline=True):
            after = " without optimisation"
        times = " (not every time)" if self.item.is_flaky else ""
        operators = ", ".join(_operators(self.item))
        return shortened(f"{self._symptom()}{after}{times}: {operators}", 200)

    def words(self) -> str:
        """What to look for in a tracker."""
        return " ".join(dict.fromkeys([*self.item.blamed, *_operators(self.item)]))

    def is_reduced(self) -> bool:
        """Whether what is reported was made smaller."""
        return self.item.is_reduced

    def attached(self) -> tuple[str, ...]:
        """The files to attach: what the script reads, and what people can look at."""
        wanted = (
            *("repro.py", "model.onnx", "model.py", "inputs.npz", "expected.npz", "target.py"),
            *("program.uir", "kernel.json"),
        )
        return tuple(name for name in wanted if (self.item.folder / name).is_file())

    # --- one line ---------------------------------------------------------------------------------

    def _symptom(self) -> str:
        match self.detail.verdict:
            case Verdict.HANG:
                return "Compilation or execution does not end"
            case Verdict.REFERENCE_DISAGREEMENT:
                return "Result unlike numpy's"
            case Verdict.WRONG_RESULT:
                kinds = [d.get("kind") for d in self.evidence.get("differences", ())]
                if kinds[:1] == ["sign of zero"]:
                    return "Zero with the wrong sign"
                if kinds[:1] in (["shape"], ["dtype"], ["number of outputs"]):
                    return f"Result of the wrong {kinds[0]}"
                return "Wrong result"
        if self.evidence.get("signal"):
            return f"{self.evidence['signal']} ({self.evidence.get('stage') or 'run'})"
        kind = str(self.evidence.get("type") or "Failure")
        return f"{kind} at {self.evidence.get('stage') or 'run'}"

    def _version(self) -> str:
        return self.versions.get(self.compiler, "")

    def _system(self) -> str:
        return self.versions.get("machine", "").partition(" ")[0] or "Other / Unknown"

    def _machine(self) -> str:
        return self.versions.get("machine", "")

    def _architecture(self) -> str:
        machine = self.versions.get("machine", "").rpartition(" ")[2]
        return {"x86_64": "X64", "aarch64": "ARM64", "arm64": "ARM64"}.get(machine, machine)

    def _provider(self) -> str:
        return "CUDA" if ":cuda" in self.detail.target else "Default CPU"

    def _versions(self) -> str:
        return "\n".join(f"- {name} {text}" for name, text in self.versions.items())

    # --- paragraphs -------------------------------------------------------------------------------

    def _summary(self) -> str:
        passes = self.item.blamed
        modes = f", {self.fails}" if str(self.fails) else ""
        said = f"{self._symptom()} with {self.compiler} {self._version()}{modes}."
        if passes:
            names = " and ".join(f"`{name}`" for name in passes)
            said += f" {_left_out(self.target, passes)} cures it: {names} is to blame."
        confirmation = self.detail.confirmation
        if confirmation is not None and confirmation.flaky:
            said += (
                f" **It does not happen every time**: of {confirmation.runs} more runs, "
                f"{confirmation.agreed} came to the same."
            )
        if self.detail.raw.get("severity") == Severity.LOW.value:
            said += " (Minor: the sign of a zero, or a rounding error that a step makes visible.)"
        return said

    def _expected(self) -> str:
        if self.detail.verdict not in _OF_VALUES:
            return f"It compiles and runs{self.fails.as_elsewhere}."
        rows = [
            f"- output {d['output']}{_place(d)}: `{d['expected']}`" for d in self._differences()
        ]
        side = self.evidence.get("float64_sides_with")
        grounds = "as without optimisation"
        if self.detail.verdict is Verdict.REFERENCE_DISAGREEMENT:
            grounds = "evaluated with numpy"
        elif side:
            grounds += f"; evaluated in float64 with numpy, it sides with: {side}"
        return "\n".join([f"Expected ({grounds}):", "", *rows])

    def _actual(self) -> str:
        if self.detail.verdict in _OF_VALUES:
            rows = [
                f"- output {d['output']}{_place(d)}: `{d['actual']}`{_extent(d)}"
                for d in self._differences()
            ]
            modes = "optimised" if self.detail.verdict is Verdict.WRONG_RESULT else "in every mode"
            return "\n".join([f"Actual ({modes}):", "", *rows])
        if self.detail.verdict is Verdict.HANG:
            return f"No end within {self.evidence.get('seconds', 0):.0f} s."
        if self.evidence.get("signal"):
            return f"The process ends: {self.evidence['signal']}."
        message = str(self.evidence.get("message") or self.detail.title).strip()
        return f"```text\n{self.evidence.get('type', '')}: {shortened(message, 2000)}\n```"

    def _differences(self) -> Sequence[Mapping[str, Any]]:
        found: Sequence[Mapping[str, Any]] = self.evidence.get("differences", ())
        return found[:3]

    def _evidence(self) -> str:
        rows = list(self._rows())
        return "\n".join(["Evidence:", "", *(f"- {row}" for row in rows)]) if rows else ""

    def _rows(self) -> Iterator[str]:
        """What maintainers ask of a fuzzer's reports, as far as it was measured."""
        confirmation = self.detail.confirmation
        if confirmation is not None:
            yield f"run {confirmation.runs} more times in another process: the same " + (
                "every time" if not confirmation.flaky else f"{confirmation.agreed} times"
            )
        ablation = self.evidence.get("ablation")
        if ablation:
            cures = ", ".join(ablation["cures"])
            if self.item.is_flaky or not ablation.get("stable", True):
                yield (
                    "no pass can be blamed: run again with every pass, it did not fail every time"
                )
            elif cures:
                yield f"pass ablation ({ablation['runs']} runs): cured without {cures}"
            else:
                yield f"pass ablation ({ablation['runs']} runs): no single pass is to blame"
        if self.detail.verdict not in _OF_VALUES:
            return
        tolerances = self.detail.raw.get("tolerances", ())
        for difference in self._differences():
            number = difference["output"]
            if difference.get("kind") not in _BY_VALUE or number >= len(tolerances):
                continue
            one = tolerances[number]
            zeros = ", signs of zeros counted" if one.get("strict_zero") else ""
            yield (
                f"tolerance of output {number}, by its type and the length of its sums: "
                f"{one['absolute']:.3g} absolute and {one['relative']:.3g} relative, both "
                f"exceeded{zeros}"
            )
        elements = self.evidence.get("elements")
        if elements and self.detail.verdict is Verdict.WRONG_RESULT:
            yield (
                f"error against float64: optimised {self.evidence.get('tested_error_to_float64')}, "
                f"unoptimised {self.evidence.get('baseline_error_to_float64')}; elements that are "
                f"wrong beyond rounding: {elements['wrong']}, closer to float64 than the "
                f"unoptimised result: {elements['closer_to_float64']}"
            )
            yield (
                "conditioning: one unit in the last place more or less in each step moves the "
                f"float64 result by {self.evidence.get('noise_of_rounding')}; moving the inputs so "
                "did not explain the difference"
            )
        signs = self.evidence.get("signs_on_perturbed_inputs")
        if signs:
            above, below = signs
            yield f"on perturbed inputs the optimised result is above {above} times, below {below}"

    def _program(self) -> str:
        lines = [shortened(line, 160) for line in self.item.text.rstrip().splitlines()]
        more = len(lines) - _PROGRAM_LINES
        shown = lines[:_PROGRAM_LINES] + ([f"// {more} more lines"] if more > 0 else [])
        return "\n".join(["The program:", "", "```text", *shown, "```"]) if lines else ""

    def _script(self) -> str:
        path = self.item.folder / "repro.py"
        if not path.is_file():
            return ""
        text = path.read_text("utf-8", "replace").rstrip()
        if len(text) > SCRIPT_CHARACTERS:
            return "`repro.py` (attached) shows it: exit code 1 if it still fails."
        return f"```python\n{text}\n```"

    def _files(self) -> str:
        """What the script reads beside itself."""
        path = self.item.folder / "repro.py"
        text = path.read_text("utf-8", "replace") if path.is_file() else ""
        reads = [name for name in self.attached() if f'"{name}"' in text]
        if len(text) > SCRIPT_CHARACTERS:
            reads.insert(0, "repro.py")
        if not reads:
            return "The script needs no other file."
        return "Attached: " + ", ".join(f"[`{name}`]({name})" for name in reads) + "."

    def _log(self) -> str:
        outcome = self.detail.raw.get("outcome") or {}
        log = str(outcome.get("log") or self.evidence.get("log") or "").strip()
        if not log and self.detail.verdict is Verdict.CRASH and "message" in self.evidence:
            log = "\n".join([str(self.evidence["message"]).strip(), *self.evidence["frames"]])
        return f"```text\n{log[-3000:]}\n```" if log else ""


class _KernelParts(_Parts):
    """The parts of a report on an einsum kernel, which numpy alone judges."""

    def title(self) -> str:
        """One line: the symptom and the kernel."""
        times = " (not every time)" if self.item.is_flaky else ""
        return shortened(f"{self._symptom()}{times}: {self._shown()}", 200)

    def words(self) -> str:
        """What went wrong: a kernel is found by nobody who has the same defect with another."""
        return in_line(self._says(), 100)

    def is_reduced(self) -> bool:
        """A campaign makes kernels smaller itself."""
        return self.item.is_reduced or bool(self.evidence.get("reduced in"))

    def _shown(self) -> str:
        return str(self.evidence.get("shown") or self.detail.title)

    def _kernel(self) -> str:
        """The kernel of the test, before it was reduced."""
        return str(self.evidence.get("kernel") or self._shown())

    def _says(self) -> str:
        if self.evidence.get("says"):
            return str(self.evidence["says"])
        said = [str(self.evidence[key]) for key in ("type", "message") if self.evidence.get(key)]
        return ": ".join(said) or self.detail.title

    def _symptom(self) -> str:
        match self.detail.verdict:
            case Verdict.WRONG_RESULT:
                return "Wrong result"
            case Verdict.HANG:
                return "Compilation or execution does not end"
        return "Crash"

    def _summary(self) -> str:
        return f"{super()._summary()}\n\n```text\n{self._shown()}\n```"

    def _expected(self) -> str:
        if self.detail.verdict in _OF_VALUES:
            return "What dense numpy computes: `EXPECTED` in the script."
        return super()._expected()

    def _actual(self) -> str:
        return f"```text\n{shortened(self._says().strip(), 2000)}\n```"

    def _log(self) -> str:
        return ""

    def _program(self) -> str:
        return ""

    def _rows(self) -> Iterator[str]:
        yield from super()._rows()
        if self.evidence.get("relation"):
            note = f" ({self.evidence['note']})" if self.evidence.get("note") else ""
            yield f"found by: {self.evidence['relation']}{note}, of `{self._kernel()}`"
        right = self.evidence.get("right") or self.evidence.get("accepted")
        if right:
            yield f"variants that compute the same, and are right: {', '.join(right)}"


def _operators(item: Item) -> list[str]:
    if item.graph is None:
        return []
    names = list(dict.fromkeys(node.op for node in item.graph.nodes))
    return names[:_OPERATORS]


def _left_out(target: str, passes: Sequence[str]) -> str:
    if target == "onnxruntime":
        return f"`disabled_optimizers={list(passes)!r}`"
    return "Leaving out " + ("this pass" if len(passes) == 1 else "these passes")


def _place(difference: Mapping[str, Any]) -> str:
    index = difference.get("first_index")
    return f", element {index}" if index is not None else ""


def _extent(difference: Mapping[str, Any]) -> str:
    if "count" not in difference:
        return ""
    return (
        f" ({difference['count']} of {difference['total']} elements differ, by up to "
        f"{difference['max_absolute_error']} absolute, {difference['max_relative_error']} relative)"
    )


def _line(text: str) -> str:
    return in_line(text, 300).replace("-->", "")
