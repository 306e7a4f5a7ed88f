"""The conformance matrix: what it says of a target that is wrong in known ways, that it goes on
after an interruption, and that what was recorded is explained."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reprise.campaign.conformance.cases import MAIN, Cases
from reprise.campaign.conformance.columns import resolve
from reprise.campaign.conformance.differences import explained, load_explanations
from reprise.campaign.conformance.matrix import (
    EMPTY,
    FINITE,
    NON_FINITE,
    Cell,
    Column,
    Matrix,
    MatrixError,
    State,
    regressions,
)
from reprise.campaign.conformance.measure import Settings, measure
from reprise.campaign.conformance.page import MATRIX, page, signs_of
from reprise.data import data_path
from reprise.synth.options import OptionsError
from reprise.targets.discover import TargetError
from reprise.uir.semantics import KERNELS
from tests.conftest import ROOT, Run

LIAR = """
import os

NAME = "liar"
LOWERING = "onnx"
MODES = ("optimised", "unoptimised")
DEVICES = ("cpu",)
VERSION = "1"


class Runner:
    def __init__(self, device, announce):
        import numpy
        import onnx.reference

        self.onnx = onnx
        self.numpy = numpy
        self.announce = announce

    def versions(self):
        return {"liar": VERSION}

    def run(self, model, inputs, mode, disabled):
        assert mode == "unoptimised"
        program = self.onnx.load_from_string(model)
        (first, *_) = (node.op_type for node in program.graph.node)
        x = next(iter(inputs.values()))
        self.announce("run")
        if first == "Exp" and x.dtype == "float64":
            raise NotImplementedError("no exp of doubles")
        if first == "Log":
            raise ValueError("log is broken at 0x7f1234567890 in /tmp/xyz/log.c")
        if first == "Abs" and x.dtype == "float16":
            os.abort()
        with self.numpy.errstate(all="ignore"):
            (y,) = self.onnx.reference.ReferenceEvaluator(program).run(None, inputs)
        y = self.numpy.asarray(y)
        if first == "Sqrt" and x.dtype == "float32":
            return [y * self.numpy.float32(1.01)]
        if first == "Neg":
            return [y + self.numpy.zeros((), y.dtype)]
        if first == "Ceil":
            return [y.reshape(-1)]
        return [y]

    def passes(self, model):
        return []

    def is_unsupported(self, error):
        return isinstance(error, NotImplementedError)
"""

OPS = ("exp", "log", "abs", "sqrt", "neg", "ceil", "floor", "relu")


class Quiet:
    """A watch that counts rows, and can stop after some."""

    def __init__(self, most: int = 10_000) -> None:
        self.most = most
        self.rows: list[str] = []
        self.missing: list[str] = []

    def began(self, column: str, version: str, rows: int) -> None:
        pass

    def row(self, column: str, op: str) -> None:
        self.rows.append(op)
        if len(self.rows) == self.most:
            raise KeyboardInterrupt

    def skipped(self, column: str, reason: str) -> None:
        self.missing.append(reason)


@pytest.fixture
def liar(tmp_path: Path) -> Path:
    file = tmp_path / "liar.py"
    file.write_text(LIAR)
    return file


@pytest.fixture(scope="module")
def column(tmp_path_factory: pytest.TempPathFactory) -> Column:
    file = tmp_path_factory.mktemp("liar") / "liar.py"
    file.write_text(LIAR)
    return measure(Settings((str(file),), OPS), Quiet()).columns["liar"]


# --- cases ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cases() -> Cases:
    return Cases()


@pytest.mark.slow
def test_every_operator_with_semantics_has_cases_that_mean_something(cases: Cases) -> None:
    assert set(cases.operators) == set(KERNELS)
    for op in cases.operators:
        drawings = cases.of(op)
        assert drawings, op
        for drawing in drawings.values():
            case = drawing.case(0)
            assert case is not None and not case.broken, op


@pytest.mark.parametrize("op", ["add", "softmax", "where", "conv2d", "cast", "gather", "topk"])
def test_the_main_element_type_is_the_one_asked_for(cases: Cases, op: str) -> None:
    place = 1 if op == "where" else 0
    for dtype, drawing in cases.of(op).items():
        case = drawing.case(0)
        assert case is not None
        operand = case.operands[place]
        assert operand is not None and operand.dtype == dtype


def test_operators_without_operands_go_by_their_result(cases: Cases) -> None:
    for dtype, drawing in cases.of("full").items():
        case = drawing.case(0)
        assert case is not None
        assert case.expected[0].dtype == np.dtype(dtype)
    assert set(cases.of("full")) == set(MAIN)


def test_cases_go_round_in_four_kinds(cases: Cases) -> None:
    for op in ("add", "softmax", "matmul", "transpose"):
        drawing = cases.of(op)["float32"]
        made = [drawing.case(n) for n in range(80)]
        kinds = [[c for c in made[kind::4] if c is not None] for kind in range(4)]
        inputs = [[x for c in kind for x in c.program.inputs.values()] for kind in kinds]
        assert all(np.isfinite(x).all() for kind in (0, FINITE, EMPTY) for x in inputs[kind])
        tiny = np.finfo(np.float32).tiny
        assert any(((x != 0) & (np.abs(x) < tiny)).any() for x in inputs[FINITE])
        assert any(np.signbit(x[x == 0]).any() for x in inputs[FINITE])
        assert any(np.isnan(x).any() for x in inputs[NON_FINITE])
        assert any(np.isinf(x).any() for x in inputs[NON_FINITE])
        assert all(
            any(0 in (t.shape or ()) for t in c.operands if t is not None) for c in kinds[EMPTY]
        )


def test_a_case_follows_from_its_name_alone(cases: Cases) -> None:
    first, again = cases.of("conv2d")["float32"], Cases().of("conv2d")["float32"]
    for number in (3, 1, 2, 0):
        a, b = first.case(number), again.case(number)
        assert a is not None and b is not None and str(a) == str(b)
        assert all(
            np.array_equal(a.program.inputs[name], b.program.inputs[name], equal_nan=True)
            for name in a.program.inputs
        )
    other = Cases(seed=1).of("conv2d")["float32"].case(0)
    assert str(other) != str(first.case(0))


def test_demanded_values_stay_inside_their_domain(cases: Cases) -> None:
    for op in ("gather", "embedding", "one_hot", "bit_shift"):
        for drawing in cases.of(op).values():
            for number in range(8):
                case = drawing.case(number)
                assert case is None or not case.broken


def test_unknown_operators_are_named_with_a_suggestion(cases: Cases) -> None:
    with pytest.raises(OptionsError, match="did you mean `softmax`"):
        cases.chosen(["sofmax"])
    assert "tanh" in cases.chosen(["activation"])


# --- a column ------------------------------------------------------------------------------------


def states(column: Column, op: str) -> dict[str, State]:
    return {dtype: cell.state for dtype, cell in column.rows[op].items()}


@pytest.mark.slow
def test_what_is_right_agrees(column: Column) -> None:
    assert set(states(column, "floor").values()) == {State.AGREE}
    assert states(column, "abs")["int8"] is State.AGREE


@pytest.mark.slow
def test_a_wrong_value_differs_with_a_small_example_and_its_error(column: Column) -> None:
    assert states(column, "sqrt") == {
        "float16": State.AGREE,
        "float32": State.DIFFER,
        "float64": State.AGREE,
    }
    cell = column.rows["sqrt"]["float32"]
    assert cell.kind == "values"
    assert math.isclose(cell.relative, 0.01, rel_tol=0.05)
    assert cell.example.startswith("sqrt(float32[") and "expected" in cell.example
    assert " of [" in cell.example or " of 0." in cell.example, "small enough to be written out"


def test_a_lost_sign_of_zero_is_a_kind_of_its_own(column: Column) -> None:
    cell = column.rows["neg"]["float32"]
    assert (cell.state, cell.kind) == (State.DIFFER, "sign of zero")
    assert column.rows["neg"]["int32"].state is State.AGREE


def test_another_shape_differs(column: Column) -> None:
    assert column.rows["ceil"]["float64"].kind == "shape"


def test_what_the_target_says_it_does_not_do_is_declined(column: Column) -> None:
    cell = column.rows["exp"]["float64"]
    assert cell.state is State.DECLINED and "no exp of doubles" in cell.reason
    assert states(column, "exp")["float32"] is State.AGREE


def test_an_exception_fails_and_its_message_has_nothing_that_varies(column: Column) -> None:
    cell = column.rows["log"]["float32"]
    assert (cell.state, cell.kind) == (State.FAILS, "failure")
    assert "log is broken at 0x... in log.c" in cell.example


def test_the_end_of_the_process_fails_and_the_rest_goes_on(column: Column) -> None:
    cell = column.rows["abs"]["float16"]
    assert cell.state is State.FAILS and "SIGABRT" in cell.example
    assert states(column, "abs")["float64"] is State.AGREE


def test_implementation_defined_values_are_not_compared(column: Column) -> None:
    # relu of NaN: the case with infinities and NaN is not judged.
    marks = [cell.marks[NON_FINITE] for cell in column.rows["relu"].values()]
    assert State.FRAGILE in marks and State.DIFFER not in marks


@pytest.mark.slow
def test_the_lowerings_table_says_what_is_unsupported() -> None:
    made = measure(Settings(("onnxruntime",), ("erf", "bit_shift")), Quiet()).columns["onnxruntime"]
    assert states(made, "erf")["float64"] is State.UNSUPPORTED
    assert "Could not find an implementation" in made.rows["erf"]["float64"].reason
    assert states(made, "erf")["float32"] is State.AGREE


# --- the matrix ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_result_is_the_same_whatever_the_jobs(liar: Path) -> None:
    one, two = (measure(Settings((str(liar),), OPS, jobs=jobs), Quiet()).text() for jobs in (1, 2))
    assert one == two


def test_a_file_reads_back_as_it_was(column: Column, tmp_path: Path) -> None:
    matrix = Matrix(0, 4, {"liar": column})
    file = tmp_path / "matrix.json"
    file.write_text(matrix.text())
    assert Matrix.load(file).text() == matrix.text()
    json.loads(matrix.text())


@pytest.mark.parametrize("text", ["", "[]", '{"version": 1}', '{"version": 7}', "not json"])
def test_what_is_no_matrix_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "matrix.json"
    file.write_text(text)
    with pytest.raises(MatrixError):
        Matrix.load(file)


@pytest.mark.slow
def test_an_interrupted_measurement_goes_on_where_it_was(liar: Path, tmp_path: Path) -> None:
    settings = Settings((str(liar),), OPS)
    parts = tmp_path / "parts"
    with pytest.raises(KeyboardInterrupt):
        measure(settings, Quiet(3), parts)
    with parts.open("a") as file:
        file.write('{"key": {"seed": 0')  # a line that was being written
    rest = Quiet()
    resumed = measure(settings, rest, parts)
    assert len(rest.rows) == len(OPS) - 3
    assert resumed.text() == measure(settings, Quiet()).text()


@pytest.mark.slow
def test_parts_of_another_version_or_seed_are_measured_again(liar: Path, tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    settings = Settings((str(liar),), ("abs", "floor"))
    measure(settings, Quiet(), parts)
    for changed, left in ((settings, 0), (replace(settings, seed=1), 2)):
        watch = Quiet()
        measure(changed, watch, parts)
        assert len(watch.rows) == left
    liar.write_text(LIAR.replace('VERSION = "1"', 'VERSION = "2"'))
    watch = Quiet()
    measure(settings, watch, parts)
    assert len(watch.rows) == 2


@pytest.mark.slow
def test_a_budget_leaves_out_what_there_is_no_time_for(liar: Path) -> None:
    watch = Quiet()
    made = measure(Settings((str(liar),), budget=1.0), watch).columns["liar"]
    assert 0 < len(made.rows) < len(KERNELS)


@pytest.mark.slow
def test_a_target_that_does_not_work_is_skipped(liar: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.py"
    missing.write_text(LIAR.replace("import numpy\n", "import a_missing_compiler\n"))
    watch = Quiet()
    matrix = measure(Settings((str(missing), str(liar)), ("abs",)), watch)
    assert set(matrix.columns) == {"liar"}
    assert "a_missing_compiler" in watch.missing[0]
    with pytest.raises(TargetError, match="no target works"):
        measure(Settings((str(missing),), ("abs",)), Quiet())


def test_only_what_is_worse_than_recorded_is_a_regression() -> None:
    agree, differ = Cell((State.AGREE,)), Cell((State.DIFFER,), "values", "e")
    zero = Cell((State.DIFFER,), "sign of zero", "e")
    unsupported = Cell((State.UNSUPPORTED,))

    def worse(before: Cell | None, after: Cell) -> bool:
        old = Column({}, "m", {} if before is None else {"op": {"int8": before}})
        new = Column({}, "m", {"op": {"int8": after}})
        return bool(regressions(Matrix(0, 1, {"t": old}), Matrix(0, 1, {"t": new})))

    assert worse(agree, differ) and worse(agree, zero) and worse(zero, differ)
    assert worse(agree, unsupported) and worse(None, differ)
    assert not worse(differ, agree) and not worse(differ, differ) and not worse(None, agree)


# --- what was recorded ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> Matrix:
    return Matrix.load(data_path(MATRIX))


def test_all_operators_were_measured_on_all_targets(recorded: Matrix) -> None:
    assert set(recorded.columns) == {"onnx-reference", "onnxruntime", "inductor", "tvm"}
    assert recorded.operators == sorted(KERNELS)
    for name, column in recorded.columns.items():
        assert len(column.rows) == len(KERNELS), name
        assert column.totals[State.AGREE] > sum(column.totals.values()) / 2


def test_every_recorded_difference_is_explained(recorded: Matrix) -> None:
    found = list(explained(recorded, load_explanations()))
    open_ = [f"{e.column} {e.op} {e.dtype}" for e in found if e.explanation is None]
    assert not open_


def test_every_explanation_explains_something(recorded: Matrix) -> None:
    explanations = load_explanations()
    used = Counter(e.explanation for e in explained(recorded, explanations))
    idle = [e for e in explanations if not used[e] and not e.unstable]
    assert not idle


def test_the_page_shows_what_was_recorded(recorded: Matrix) -> None:
    made = page(recorded, load_explanations())
    assert (ROOT / "docs" / "conformance.md").read_text() == made


@pytest.mark.slow
def test_cells_know_whether_they_answer_the_same_questions(liar: Path) -> None:
    settings = Settings((str(liar),), ("sqrt",), ("float32", "float64"))
    first, again, other = (
        measure(s, Quiet()).columns["liar"].rows["sqrt"]
        for s in (settings, settings, replace(settings, seed=1))
    )
    for dtype, cell in first.items():
        assert cell.drawn == again[dtype].drawn != other[dtype].drawn


def test_a_row_of_signs_tells_empty_tensors_apart() -> None:
    good, bad = State.AGREE, State.FAILS
    row = {
        "float16": Cell((good,) * 4),
        "float32": Cell((good, good, good, bad), "failure", "e"),
        "bool": Cell((bad, good, good, bad), "failure", "e"),
    }
    assert signs_of(row) == "+f. .... . F"


@pytest.mark.slow
def test_nothing_is_worse_than_recorded(reprise: Run) -> None:
    done = reprise("conformance", "--check", data_path(MATRIX), "--budget", "50", "--jobs", "2")
    assert done.returncode == 0, done.stdout
    assert "onnx-reference: " in done.stdout and "onnxruntime: " in done.stdout
    assert ": 0 of " not in done.stdout


# --- the command ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_writes_a_matrix_and_checks_it(
    reprise: Run, liar: Path, tmp_path: Path
) -> None:
    out = tmp_path / "matrix.json"
    arguments = ("--target", liar, "--ops", "floor,abs", "--dtypes", "float32,float64")
    done = reprise("conformance", *arguments, "--out", out)
    assert done.returncode == 0, done.stderr
    assert "floor" in done.stdout and ".++ .... . ." in done.stdout
    assert "4 agree" in done.stdout
    assert Matrix.load(out).columns["liar"].totals == {State.AGREE: 4}
    assert not list(tmp_path.glob("*.part"))
    again = reprise("conformance", *arguments, "--check", out)
    assert again.returncode == 0 and "4 of 4 cells checked" in again.stdout
    liar.write_text(LIAR.replace('first == "Ceil"', 'first == "Floor"'))
    worse = reprise("conformance", *arguments, "--check", out)
    assert worse.returncode == 1
    assert "liar, floor, float32: differ, was agree" in worse.stdout


@pytest.mark.slow
def test_the_command_tells_differences_that_nobody_explained(reprise: Run, liar: Path) -> None:
    done = reprise("conformance", "--target", liar, "--ops", "sqrt", "--dtypes", "float32")
    assert done.returncode == 1
    assert "1 cell without an explanation" in done.stdout and "liar, sqrt, float32" in done.stdout
    as_json = reprise("conformance", "--target", liar, "--ops", "sqrt", "--format", "json")
    assert json.loads(as_json.stdout)["targets"]["liar"]["cells"]["sqrt"]["float32"]["kind"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ops", "sofmax"], "did you mean `softmax`"),
        (["--dtypes", "float23"], "float23"),
        (["--target", "onnxruntme"], "did you mean `onnxruntime`"),
        (["--target", "onnx-reference@/no/python"], "no interpreter"),
        (["--check", __file__], "is no conformance matrix"),
    ],
)
def test_the_command_explains_mistakes(reprise: Run, arguments: list[str], says: str) -> None:
    done = reprise("conformance", *arguments)
    assert done.returncode == 2 and says in done.stderr
    assert "Traceback" not in done.stderr


def test_the_reference_evaluator_is_a_target() -> None:
    target = resolve(f"onnx-reference@{sys.executable}")
    assert (target.name, target.lowering, target.python) == (
        "onnx-reference",
        "onnx",
        sys.executable,
    )
