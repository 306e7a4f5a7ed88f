"""GeneSys, in an interpreter that has it (`examples/genesys/environment.sh`)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from reprise.targets.discover import TargetError
from reprise.xcheck.passes.compiler import PassCounter, parse_compiler
from reprise.xcheck.passes.interface import Ending

PYTHON = os.environ.get("REPRISE_GENESYS_PYTHON")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="REPRISE_GENESYS_PYTHON names no interpreter"),
]

# The 16 passes of the second paper, in the order in which they begin.
STEPS = (
    *("sequence_nodes", "template_layout_pass", "template_pad_pass", "instantiate_all_codelets"),
    *("update_operand_dtypes", "remove_unused_variables", "insert_quantization"),
    *("instantiate_all_operations", "tile", "separate_ops", "hoist", "simd_typecast"),
    *("finalize_memory", "finalize_instructions", "finalize_instruction_memory"),
    "finalize_flex_params",
)


def model(
    operator: str, shapes: list[tuple[int, ...]], result: tuple[int, ...], dtype: int = 1
) -> bytes:
    """A model of one operator; nothing is allocated."""
    inputs = [f"x{'abc'[i]}" for i in range(len(shapes))]
    graph = helper.make_graph(
        [helper.make_node(operator, inputs, ["y"])],
        "g",
        [
            helper.make_tensor_value_info(name, dtype, shape)
            for name, shape in zip(inputs, shapes, strict=True)
        ],
        [helper.make_tensor_value_info("y", dtype, result)],
    )
    opset = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()


def add(*shape: int, dtype: int = TensorProto.FLOAT) -> bytes:
    return model("Add", [shape, shape], shape, dtype)


@pytest.fixture(scope="module")
def genesys() -> Iterator[PassCounter]:
    with PassCounter(parse_compiler(f"genesys@{PYTHON}")) as counter:
        assert {"codelets", "polymath", "onnx"} <= {*counter.start()}
        yield counter


def test_a_model_goes_through_sixteen_passes(genesys: PassCounter) -> None:
    report = genesys.compile(add(1, 16, 32, 32))
    assert report.ending is Ending.ACCEPTED
    assert report.completed == ("import", *STEPS)


def test_a_tensor_that_is_too_large_is_rejected_in_memory_finalisation(
    genesys: PassCounter,
) -> None:
    """The second paper's first observation."""
    report = genesys.compile(add(1, 16, 10048934087, 22145136773))
    assert (report.ending, report.stopped_in) == (Ending.REJECTED, "finalize_memory")
    assert report.failure is not None
    assert "Invalid storage capacity" in report.failure.message


def test_a_tensor_whose_size_overflows_passes_memory_finalisation(genesys: PassCounter) -> None:
    """The second paper's memory overflow: 16 * 302492402 * 1410389859 elements of 32 bits are
    negative as a 64-bit integer."""
    bits = 16 * 302492402 * 1410389859 * 32
    assert (bits + 2**63) % 2**64 - 2**63 < 0
    report = genesys.compile(add(1, 16, 302492402, 1410389859))
    assert "finalize_memory" in report.completed
    assert report.stopped_in == "finalize_instructions"


@pytest.mark.parametrize("dtype", [TensorProto.UINT64, 22, TensorProto.STRING])  # 22: INT4
def test_types_that_the_hardware_has_not_are_accepted(genesys: PassCounter, dtype: int) -> None:
    assert genesys.compile(add(1, 16, 32, 32, dtype=dtype)).ending is Ending.ACCEPTED


def test_monitors_in_a_copy_give_a_record_for_each_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figure 4 in the compiler itself: the padded extent is a placeholder when the monitor sees it,
    and satisfied once the codelet is instantiated."""
    from reprise.data import data_path
    from reprise.lang.ruleset import load_rules
    from reprise.mining.instrument.checks import read_checks
    from reprise.mining.instrument.copying import Checkout
    from reprise.mining.instrument.instrumenting import plan, write
    from reprise.mining.instrument.lazy import read_lazy

    checkout = Checkout(codelets())
    source = "codelets/examples/genesys/compilation_stages/stages.py"
    lines = checkout.read(source).decode().splitlines()
    padded = next(n for n, line in enumerate(lines, 1) if "new_inp_dim = pad_fn(" in line)
    (tmp_path / "figure4.rules").write_text(
        f"""
        monitor padded_shape : hardware_feasibility on pass "padding" {{
            from: "{source}:{padded}"
            assert value("new_inp_dim") % value("constr") == 0
        }}
        """
    )
    lazy = read_lazy([data_path("extractors/genesys/lazy.toml")])
    made = plan(checkout, read_checks(load_rules([tmp_path / "figure4.rules"])), {}, lazy)
    write(checkout, tmp_path / "copy", made)
    monkeypatch.setenv("REPRISE_GENESYS_CODELETS", str(tmp_path / "copy"))
    monkeypatch.setenv("REPRISE_MONITOR_OUT", str(tmp_path / "records.jsonl"))
    with PassCounter(parse_compiler(f"genesys@{PYTHON}")) as counter:
        assert counter.compile(add(1, 16, 32, 32)).ending is Ending.ACCEPTED
        gemm = model("Gemm", [(1, 512), (512, 1000), (1000,)], (1, 1000))
        assert counter.compile(gemm).ending is Ending.ACCEPTED
    records = [json.loads(line) for line in (tmp_path / "records.jsonl").open()]
    checks = [r["checks"]["padded_shape"] for r in records if r["kind"] == "run"]
    assert [check["verdict"] for check in checks] == ["not_reached", "satisfied"]
    assert checks[1]["first"]["satisfied"] == {"new_inp_dim": 512, "constr": 64}
    assert checks[1]["late"] == 1


def codelets() -> Path:
    """The checkout that the interpreter uses."""
    import subprocess

    code = "import importlib.util as u; print(u.find_spec('codelets').origin)"
    found = os.environ.get("REPRISE_GENESYS_CODELETS")
    if found is not None:
        return Path(found)
    done = subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=True)
    return Path(done.stdout.strip()).parents[1]


@pytest.mark.parametrize("platform", ["benchmark_17x17", "/no/such/file.json"])
def test_a_configuration_that_is_none_is_told(platform: str) -> None:
    with (
        PassCounter(parse_compiler(f"genesys:{platform}@{PYTHON}")) as counter,
        pytest.raises(TargetError, match="there is no configuration"),
    ):
        counter.start()


def test_a_model_that_is_none_completes_no_pass(genesys: PassCounter) -> None:
    report = genesys.compile(onnx.ModelProto().SerializeToString())
    assert report.ending is Ending.REJECTED
    assert report.completed == ()


def test_an_operation_that_it_has_not_is_unsupported(genesys: PassCounter) -> None:
    report = genesys.compile(model("MatMul", [(4, 3, 3, 2), (2,)], (4, 3, 3)))
    assert report.ending is Ending.REJECTED
    assert report.failure is not None and report.failure.unsupported
