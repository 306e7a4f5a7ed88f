"""Writes ``repro.py``: a script that shows a finding with the target alone, to paste into a report.

The script imports numpy and the compiler, nothing of ours. It says what the program is and where
it comes from, holds the model and its inputs (as text if they are small, else it reads the files
beside it), prints versions, and ends with exit code 1 if it still fails, 0 if it does not. What
takes its process with it is shown from another process.

How a target is called is one of the pieces below; a target that has none is called through its own
file, which needs nothing of ours either and is put beside the script as ``target.py``.
"""

from __future__ import annotations

import ast
import base64
import textwrap
from dataclasses import dataclass

from reprise.campaign.bench import Exhibit
from reprise.campaign.records import Record, RunInfo
from reprise.lang.display import shortened
from reprise.lower.payload import encoded, literal
from reprise.oracle.verdict import Verdict
from reprise.targets.discover import Target
from reprise.targets.interface import Ended
from reprise.uir.graph import Array

MODEL_BYTES = 6_000
"""A binary model of up to this size is part of the script."""
INPUT_BYTES = 4_000
"""Inputs of up to this size, all together, are too."""
PROGRAM_LINES = 60

_SECONDS = 120
"""How long a script waits for what does not end."""
ELSEWHERE = f"""
if sys.argv[1:] != ["--inside"]:  # the failure ends the process that it happens in
    command = [sys.executable, os.path.abspath(__file__), "--inside"]
    try:
        code = subprocess.run(command, timeout={_SECONDS}).returncode
    except subprocess.TimeoutExpired:
        code = "no end within {_SECONDS} s"
    print("no failure" if code == 0 else f"FAILS: exit code {{code}}")
    sys.exit(0 if code == 0 else 1)
""".strip("\n")
"""The part of a script that runs the rest of it in a process of its own."""
_ENDS_PROCESS = frozenset({Ended.DIED, Ended.HANG, Ended.MEMORY, Ended.GARBAGE})


@dataclass(frozen=True, slots=True)
class _Call:
    """How a target is called: ``imports``; ``body`` defines ``run(mode)``, which returns numpy
    arrays; ``versions`` is an expression; ``modes`` are the names that ``run`` knows."""

    imports: str
    body: str
    versions: str


def repro(record: Record, exhibit: Exhibit, info: RunInfo, target: Target) -> str:
    """The script for a finding. ``exhibit`` has a model and an outcome."""
    outcome = exhibit.outcome
    assert outcome is not None
    call = _call(exhibit, target)
    ends = outcome.ended in _ENDS_PROCESS or record.verdict is Verdict.HANG
    parts = [call.body.strip("\n") + "\n"]
    if "INPUTS" in parts[0].replace("INPUTS = ", ""):  # not where compiling is enough
        parts.append(_inputs(exhibit.inputs))
    if ends:
        parts.append(ELSEWHERE)
    parts.append(f'print({call.versions}, "| numpy", np.__version__, "| Python", PYTHON)')
    if record.verdict is Verdict.WRONG_RESULT:
        parts += [_COMPARE.strip("\n") + "\n", _wrong(target, exhibit)]
    elif record.verdict is Verdict.REFERENCE_DISAGREEMENT:
        parts += [_COMPARE.strip("\n") + "\n", _disagreement(target, exhibit)]
    else:
        parts.append(_crash(target.modes[0] if outcome.mode is None else outcome.mode, exhibit))
    body = "\n\n".join(parts) + "\n"
    return f"{_head(record, exhibit, info, target)}\n{_imports(call.imports, body)}\n\n\n{body}"


def _head(record: Record, exhibit: Exhibit, info: RunInfo, target: Target) -> str:
    version = next(iter(info.versions.items()), (target.name, ""))
    lines = [
        " ".join(record.title.split()) or record.verdict.value,
        f"Found by Reprise with {' '.join(version)}: seed {info.seed}, test {record.index}.",
        "Exit code 1: it still fails; 0: it does not; 2: what it needs is missing.",
        "",
        "The program:",
    ]
    text = next(iter(exhibit.files.values()), b"").decode("utf-8", "replace")
    program = text.rstrip().split("\n")
    lines += [f"  {shortened(line, 200)}" for line in program[:PROGRAM_LINES]]
    if len(program) > PROGRAM_LINES:
        lines.append(f"  ... ({len(program) - PROGRAM_LINES} more lines in program.uir)")
    return "".join(f"# {_one_line(line)}".rstrip() + "\n" for line in lines)


def _one_line(text: str) -> str:
    """Text that cannot leave its comment."""
    return "".join(c if c.isprintable() else " " for c in text)


def _imports(theirs: str, body: str) -> str:
    """What the script imports, and the constants that it shares."""
    own = [f"import {name}" for name in ("base64", "os", "subprocess") if f"{name}." in body]
    others = {"import numpy as np", *theirs.strip().splitlines()} - {"import base64"}
    if "ml_dtypes." in body:
        others.add("import ml_dtypes")
    lines = [
        *own,
        "import sys",
        "",
        "try:",
        *(f"    {line}" for line in sorted(others, key=_as_sorted)),
        "except ImportError as error:",
        '    print(f"cannot run here: {error}", file=sys.stderr)',
        "    sys.exit(2)",
        "",
        "PYTHON = sys.version.split()[0]",
    ]
    if "HERE" in body:
        lines.append("HERE = os.path.dirname(os.path.abspath(__file__))")
    return "\n".join(lines)


def _as_sorted(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line


def _inputs(inputs: dict[str, Array]) -> str:
    small = sum(array.nbytes for array in inputs.values()) <= INPUT_BYTES
    if not small or any(a.dtype.kind not in "biuf" for a in inputs.values()):
        rows = [f"    {name!r}: {_stored(name, array)}," for name, array in inputs.items()]
        return "\n".join(
            ['FILE = np.load(os.path.join(HERE, "inputs.npz"))', "INPUTS = {", *rows, "}"]
        )
    rows = [f"    {name!r}: {_spelled(array)}," for name, array in inputs.items()]
    return "\n".join(["INPUTS = {", *rows, "}"]) if rows else "INPUTS = {}"


def _stored(name: str, array: Array) -> str:
    if array.dtype.kind in "biufcU":
        return f"FILE[{name!r}]"
    if array.dtype.kind == "O":
        return f"FILE[{name!r}].astype(object)"
    return f"FILE[{name + ':' + array.dtype.name!r}].view(ml_dtypes.{array.dtype.name})"


def _spelled(array: Array) -> str:
    short = literal(array)
    if short is not None:
        return f'np.array({short}, "{array.dtype.name}")'
    data = f'base64.b64decode("{encoded(array)}")'
    return f'np.frombuffer({data}, "{array.dtype.name}").reshape({array.shape}).copy()'


# --- how targets are called ----------------------------------------------------------------------


def _call(exhibit: Exhibit, target: Target) -> _Call:
    match target.name:
        case "onnxruntime":
            return _onnxruntime(exhibit, target)
        case "inductor":
            return _torch(exhibit, target)
        case "tvm" | "tvm-cuda-compile" if target.lowering == "relax":
            return _tvm(exhibit, target)
    return _target_file(exhibit, target)


def _binary(data: bytes, file: str) -> str:
    """An expression for a model's bytes."""
    if len(data) > MODEL_BYTES:
        return f'open(os.path.join(HERE, "{file}"), "rb").read()'
    text = textwrap.fill(base64.b64encode(data).decode(), 96)
    return f'base64.b64decode("""\n{text}\n""")'


_ORT = """
MODEL = {model}


def run(mode):
    options = ort.SessionOptions()
    level = ort.GraphOptimizationLevel
    options.graph_optimization_level = (
        level.ORT_ENABLE_ALL if mode == "optimised" else level.ORT_DISABLE_ALL
    )
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(MODEL, options, providers={providers})
    return session.run(None, INPUTS)
"""


def _onnxruntime(exhibit: Exhibit, target: Target) -> _Call:
    providers = ["CPUExecutionProvider"]
    if target.device == "cuda":
        providers.insert(0, "CUDAExecutionProvider")
    body = _ORT.format(model=_binary(exhibit.model, "model.onnx"), providers=providers)
    return _Call("import onnxruntime as ort", body, '"onnxruntime", ort.__version__')


_TORCH = """

def run(mode):
    torch.manual_seed(0)
    model = Model().eval()
    if mode != "{eager}":
        model = torch.compile(model)
    with torch.no_grad():
        outputs = model(*[torch.from_numpy(INPUTS[name]).to("{device}") for name in Model.inputs])
    return [output.cpu().numpy() for output in outputs]
"""


def _torch(exhibit: Exhibit, target: Target) -> _Call:
    source = exhibit.model.decode()
    imports, body = _split_imports(source)
    body += _TORCH.format(eager=target.modes[-1], device=target.device)
    return _Call(imports, body, '"torch", torch.__version__')


_TVM = """{order}

def run(mode):
    target = tvm.target.Target("{kind}")
    if mode == "unoptimised":
        with tvm.transform.PassContext(opt_level=0):
            built = relax.build(build(), target=target)
    else:
        with tvm.transform.PassContext(opt_level=3):
            pipeline = relax.get_default_pipeline(target)
            built = relax.build(build(), target=target, relax_pipeline=pipeline)
    {then}
"""

_TVM_RUN = """machine = relax.VirtualMachine(built, {device})
    given = [tvm.runtime.tensor(INPUTS[name].copy(order="C"), {device}) for name in ORDER]
    results = machine["main"](*given)
    return [r.numpy() for r in ([results] if hasattr(results, "numpy") else results)]"""


def _tvm(exhibit: Exhibit, target: Target) -> _Call:
    imports, body = _split_imports(exhibit.model.decode())
    cuda = target.device == "cuda"
    compile_only = target.name == "tvm-cuda-compile"
    kind = "cuda" if cuda or compile_only else "llvm"
    then = _TVM_RUN.format(device="tvm.cuda(0)" if cuda else "tvm.cpu()")
    order = ""
    if compile_only:
        then = "return []  # compiling is enough, and needs no GPU"
    else:
        order = "\nORDER = INPUTS  # of the parameters\n"
    body += _TVM.format(kind=kind, then=then, order=order)
    return _Call(imports, body, '"apache-tvm", tvm.__version__')


def _split_imports(source: str) -> tuple[str, str]:
    """A module's imports at its top, one a line, and what follows them."""
    tree = ast.parse(source)
    lines = source.splitlines()
    end, imports = 0, []
    for statement in tree.body:
        match statement:
            case ast.Import() | ast.ImportFrom():
                imports.append(ast.unparse(statement))
            case ast.Expr(ast.Constant(str())) if not imports:
                pass  # its docstring
            case _:
                break
        end = statement.end_lineno or 0
    return "\n".join(imports), "\n".join(lines[end:]).strip("\n") + "\n"


_FILE = """
MODEL = open(os.path.join(HERE, "{model}"), "rb").read()
SPEC = importlib.util.spec_from_file_location("target", os.path.join(HERE, "target.py"))
TARGET = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TARGET)
RUNNER = TARGET.Runner("{device}", lambda stage: None)


def run(mode):
    inputs = {{name: array.copy() for name, array in INPUTS.items()}}
    return [np.asarray(output) for output in RUNNER.run(MODEL, inputs, mode, ())]
"""


def _target_file(exhibit: Exhibit, target: Target) -> _Call:
    model = "model.onnx" if target.lowering == "onnx" else "model.py"
    body = _FILE.format(model=model, device=target.device)
    versions = '*(f"{name} {version}" for name, version in RUNNER.versions().items())'
    return _Call("import importlib.util", body, versions)


# --- what is shown -------------------------------------------------------------------------------

_COMPARE = '''
def difference(expected, actual, absolute, relative, signs):
    """How two results differ, or None. NaN equals NaN; numbers differ if they are further apart
    than ``absolute`` and than ``relative`` times the larger one; ``signs``: +0 and -0 differ."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return f"{actual.dtype}{actual.shape}, expected {expected.dtype}{expected.shape}"
    differs = expected != actual
    if expected.dtype.kind not in "biuOU":
        x, y = expected.astype("float64"), actual.astype("float64")
        with np.errstate(all="ignore"):
            largest = np.maximum(np.abs(x), np.abs(y))
            near = np.abs(x - y) <= np.maximum(absolute, relative * largest)
        near &= np.isfinite(x) & np.isfinite(y)
        differs = ~(near | (x == y) | (np.isnan(x) & np.isnan(y)))
        if signs:
            differs |= (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
    if not differs.any():
        return None
    place = tuple(int(i) for i in np.argwhere(differs)[0])
    return (
        f"{int(differs.sum())} of {differs.size} elements differ, first at {list(place)}: "
        f"{actual[place]}, expected {expected[place]}"
    )
'''


def _tolerances(exhibit: Exhibit) -> str:
    rows = [f"    ({t.absolute!r}, {t.relative!r}, {t.strict_zero})," for t in exhibit.tolerances]
    return "\n".join(
        ["TOLERANCES = [  # absolute, relative, signs of zeros; by output", *rows, "]"]
    )


def _wrong(target: Target, exhibit: Exhibit) -> str:
    tested, baseline = target.modes[0], target.modes[-1]
    return f'''
{_tolerances(exhibit)}
found = []
results = zip(run("{baseline}"), run("{tested}"), TOLERANCES)
for number, (expected, actual, tolerance) in enumerate(results):
    found.append(difference(expected, actual, *tolerance))
    print(f"output {{number}}:", found[-1] or "as expected")
sys.exit(1 if any(found) else 0)
'''.strip("\n")


def _disagreement(target: Target, exhibit: Exhibit) -> str:
    """Compare the outputs in the most and the least optimised mode with the reference's, which are
    in the file beside the script."""
    modes = tuple(dict.fromkeys((target.modes[-1], target.modes[0])))
    rows = [f"    {n}: {_stored(str(n), array)}," for n, array in exhibit.expected.items()]
    table = "\n".join(["EXPECTED = {  # by output; evaluated with numpy", *rows, "}"])
    return f"""
{_tolerances(exhibit)}
FILE = np.load(os.path.join(HERE, "expected.npz"))
{table}
found = []
for mode in {modes!r}:
    results = run(mode)
    for number, expected in EXPECTED.items():
        found.append(difference(expected, results[number], *TOLERANCES[number]))
        print(f"{{mode}}, output {{number}}:", found[-1] or "as expected")
sys.exit(1 if any(found) else 0)
""".strip("\n")


def _crash(mode: str, exhibit: Exhibit) -> str:
    """Run the mode that failed (the first that did, unless the process ended in another)."""
    outcome = exhibit.outcome
    assert outcome is not None
    failed = [name for name, result in outcome.results.items() if result.failure is not None]
    shown = failed[0] if failed else mode
    return f'''
try:
    run("{shown}")
except Exception as error:
    print(f"FAILS ({shown}): {{type(error).__name__}}: {{error}}")
    sys.exit(1)
print("{shown}: no failure")
'''.strip("\n")
