"""TVM: its default pipeline against the least that still runs.

Takes a Relax program, or an ONNX model through TVM's own ONNX frontend: whichever the bytes are.
Runs in a worker (see ``interface``): imports nothing but the standard library, numpy and TVM (and
onnx, which TVM's frontend reads, if a model comes).

"optimised" is TVM's default pipeline for the device, at its highest level. (``relax.build`` itself
takes that for GPUs only; its own default for CPUs neither fuses nor folds.) "unoptimised" legalises
every operator by itself and lowers what is left without fusing, folding or planning memory, at
level 0; LLVM too generates code at its level 0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

NAME = "tvm"
LOWERING = "relax"
MODES = ("optimised", "unoptimised")
DEVICES = ("cpu", "cuda")
ENVIRONMENT = {"MALLOC_PERTURB_": "188"}
"""The C library fills new memory with 0x43 (more than zero, finite, in every type), so that what a
kernel leaves unset is as wrong in a new process as in an old one. Costs a fiftieth of a test. TVM
must not keep memory itself for that (``memory_cfg``)."""

KINDS = {"cpu": "llvm", "cuda": "cuda"}
"""TVM's name of each device's target."""

CONTAINERS = frozenset({"sequential", "_pipeline", "f_zero_pipeline"})
"""Passes that only run others: leaving one out leaves out everything."""

ESSENTIAL = frozenset(
    {"DispatchSortScan", "LegalizeOps", "ToNonDataflow", "CallTIRRewrite", "LowerAllocTensor"}
    | {"LowerRuntimeBuiltin", "AttachGlobalSymbol", "tirx.BindTarget", "s_tir.LowerInitBlock"}
    | {"s_tir.ConvertBlocksToOpaque", "s_tir.LowerOpaqueBlock", "tirx.FlattenBuffer"}
    | {"tirx.MakePackedAPI", "tirx.Filter", "tirx.LowerTVMBuiltin"}
)
"""Passes without which nothing compiles (measured, on 0.25 and 0.27): they lower, they do not
optimise."""

LIKELY = ("FuseOps", "FuseTIR", "FoldConstant", "StaticPlanBlockMemory", "RewriteDataflowReshape")
"""The optimisations on Relax, which a defect is most often due to."""

_UNSUPPORTED = frozenset(
    {"OpNotImplemented", "OpAttributeUnImplemented", "OpAttributeRequired", "NotImplementedError"}
)
_SAYS_SO = re.compile(r"operators? (is|are) not supported|not (yet )?implemented", re.I)


class Runner:
    """Builds and runs on one device, in a single thread."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        os.environ.setdefault("TVM_NUM_THREADS", "1")
        import tvm
        from tvm import relax

        self.tvm = tvm
        self.relax = relax
        self.announce = announce
        self.kind = KINDS[device]
        self.device = tvm.cpu() if device == "cpu" else tvm.cuda(0)
        if not self.device.exist:
            raise RuntimeError(f"this TVM finds no {device} device")
        self._warm_up()

    def versions(self) -> dict[str, str]:
        return {"apache-tvm": self.tvm.__version__}

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        self.announce("load")
        module, order = self.load(model)
        self.announce("compile")
        executable = self.build(module, mode, skipping(self.tvm, disabled))
        self.announce("run")
        machine = self.relax.VirtualMachine(executable, self.device, memory_cfg="naive")
        # Contiguous arrays only, of rank 0 too (numpy's ascontiguousarray makes those rank 1).
        arrays = [inputs[name].copy(order="C") for name in order]
        given = [self.tvm.runtime.tensor(array, self.device) for array in arrays]
        results = machine["main"](*given)
        several = [results] if hasattr(results, "numpy") else results
        return [result.numpy() for result in several]

    def passes(self, model: bytes) -> Sequence[str]:
        """The passes that ran and can be left out. Optimisations on Relax come first, then the
        others in the order of their first run; if one fails, it comes before all, and then those
        that ran before it, the latest first."""
        module, _ = self.load(model)
        ran = listing(self.tvm)
        failed = False
        try:
            self.build(module, MODES[0], ran)
        except Exception:
            failed = True
        seen = [name for name in ran.names if name not in CONTAINERS | ESSENTIAL]
        if failed:
            return list(dict.fromkeys(reversed(seen)))
        return sorted(dict.fromkeys(seen), key=lambda name: name not in LIKELY)

    def is_unsupported(self, error: Exception) -> bool:
        if type(error).__name__ in _UNSUPPORTED:
            return True
        return in_frontend(error) and bool(_SAYS_SO.search(str(error)))

    def load(self, model: bytes) -> tuple[Any, tuple[str, ...]]:
        """The program as an ``IRModule``, and its inputs' names in the order of ``main``'s
        parameters."""
        if model.startswith(b'"""'):
            space: dict[str, Any] = {}
            exec(compile(model, "<program>", "exec"), space)
            return space["build"](), space["INPUTS"]
        import onnx
        from tvm.relax.frontend.onnx import from_onnx

        graph = onnx.load_from_string(model)
        stored = {tensor.name for tensor in graph.graph.initializer}
        names = tuple(value.name for value in graph.graph.input if value.name not in stored)
        module = from_onnx(graph, keep_params_in_input=False)
        return self.relax.transform.DecomposeOpsForInference()(module), names

    def build(self, module: Any, mode: str, *instruments: Any) -> Any:
        """The module compiled in one of the modes."""
        if mode == MODES[0]:
            target = self.tvm.target.Target(self.kind)
            with self.tvm.transform.PassContext(opt_level=3, instruments=list(instruments)):
                pipeline = self.relax.get_default_pipeline(target)
                return self.relax.build(module, target=target, relax_pipeline=pipeline)
        options = {"kind": self.kind, **({"opt-level": 0} if self.kind == "llvm" else {})}
        target = self.tvm.target.Target(options)
        with self.tvm.transform.PassContext(opt_level=0):
            return self.relax.build(module, target=target, relax_pipeline=self._least(target))

    def _least(self, target: Any) -> Any:
        """The passes that Relax cannot do without, and on a GPU a schedule for each kernel."""
        transform, backend = self.relax.transform, self.relax.backend
        passes = [
            backend.DispatchSampling(),
            backend.DispatchSortScan(),
            transform.LegalizeOps(),
            *self._schedules(),
            transform.ToNonDataflow(),
            transform.RemovePurityChecking(),
            transform.CallTIRRewrite(),
            transform.LowerAllocTensor(),
            transform.LowerRuntimeBuiltin(),
            transform.ComputePrimValue(),
            transform.VMShapeLower(),
            transform.AttachGlobalSymbol(),
        ]
        sequence = self.tvm.transform.Sequential(passes)

        @self.tvm.transform.module_pass(opt_level=0, name="least")  # type: ignore[untyped-decorator]
        def least(module: Any, context: Any) -> Any:
            with target:
                return sequence(module)

        return least

    def _schedules(self) -> list[Any]:
        if self.kind == "llvm":
            return []
        from tvm.s_tir import dlight

        return [dlight.ApplyDefaultSchedule(dlight.gpu.Fallback())]

    def _warm_up(self) -> None:
        """Compile something, so that what TVM does only once is not charged to a program."""
        relax = self.relax
        kind = getattr(relax, "TensorStructInfo", None) or relax.TensorType
        block = relax.BlockBuilder()
        x = relax.Var("x", kind((2,), "float32"))
        with block.function("main", [x]):
            with block.dataflow():
                y = block.emit_output(relax.op.add(x, x))
            block.emit_func_output(y)
        for mode in MODES:
            self.build(block.get(), mode)


def skipping(tvm: Any, names: tuple[str, ...]) -> Any:
    """A pass instrument that leaves out the passes called so."""
    left_out = frozenset(names)

    @tvm.ir.instrument.pass_instrument
    class Skipping:
        def should_run(self, module: Any, info: Any) -> bool:
            return info.name not in left_out

    return Skipping()


def listing(tvm: Any) -> Any:
    """A pass instrument that keeps the names of the passes that ran, in ``names``."""

    @tvm.ir.instrument.pass_instrument
    class Listing:
        def __init__(self) -> None:
            self.names: list[str] = []

        def run_before_pass(self, module: Any, info: Any) -> None:
            self.names.append(info.name)

    return Listing()


def in_frontend(error: BaseException) -> bool:
    """Whether an exception comes out of TVM's importer."""
    return "frontend/onnx" in _where(error)


def _where(error: BaseException) -> str:
    """The files that an exception went through."""
    files = []
    trace = error.__traceback__
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    return " ".join(files).replace(os.sep, "/")
