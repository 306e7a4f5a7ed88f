"""torch.compile: Inductor against eager execution.

Runs in a worker (see ``interface``): imports nothing but the standard library, numpy and torch (and
ml_dtypes, if arrays of bfloat16 and the like come). A program is the source that
``reprise.lower.torch`` writes.

"optimised" is what ``torch.compile`` does by default, without its caches; "emulated" the same, but
16-bit floats are rounded where eager execution rounds them; "unoptimised" is eager execution.

What can be disabled is of five kinds. ``pattern``: a rewrite of Inductor's pattern matcher that
matched. ``pre_grad_passes``, ``joint_graph_passes``, ``post_grad_passes``: a pass over the graph.
``config``: what :data:`CONFIG` lists. ``decomposition``: an operator is not decomposed.
``lowerings``: an operator is called instead of being compiled. Passes, decompositions and lowerings
are those that torch's own bisection tool asks about (``CompilerBisector.disable_subsystem``).
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import logging
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

NAME = "inductor"
LOWERING = "torch"
MODES = ("optimised", "emulated", "unoptimised")
DEVICES = ("cpu", "cuda")

CONFIG: dict[str, dict[str, object]] = {
    "vectorization": {"cpp.vec_isa_ok": False},
    "fusion": {"max_fusion_size": 1, "epilogue_fusion": False, "cpp.max_horizontal_fusion_size": 1},
    "loop_ordering": {"loop_ordering_after_fusion": False, "pick_loop_orders": False},
    "inplace_buffers": {"inplace_buffers": False, "allow_buffer_reuse": False},
    "split_reductions": {"split_reductions": False},
    "unroll_reductions": {"unroll_reductions_threshold": 1},
    "index_propagation": {"constant_and_index_propagation": False},
    "pointwise_cat": {"max_pointwise_cat_inputs": 0},
    "scatter_upon_constant": {"optimize_scatter_upon_const_tensor": False},
    "layout_optimization": {"layout_optimization": False},
    "comprehensive_padding": {"comprehensive_padding": False},
    "tiling_heuristics": {"cpp.enable_tiling_heuristics": False},
    "loop_tail_vectorization": {"cpp.enable_loop_tail_vec": False},
    "redundant_loops": {"cpp.no_redundant_loops": False},
    "weight_prepack": {"cpp.weight_prepack": False},
}
"""Optimisations that settings of ``torch._inductor.config`` switch: how each is left out. What a
torch has no setting for is passed over."""

_ALWAYS: dict[str, object] = {"compile_threads": 1, "fx_graph_cache": False}

_ORDER = (
    *("pattern", "joint_graph_passes", "post_grad_passes", "pre_grad_passes"),
    *("config", "decomposition", "lowerings"),
)
"""Kinds of what can be disabled, the likeliest first."""

_BITS = {
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e4m3fnuz": "float8_e4m3fnuz",
    "float8_e5m2": "float8_e5m2",
    "float8_e5m2fnuz": "float8_e5m2fnuz",
}
"""Element types that go between numpy and torch by their bits; ml_dtypes and torch name them
alike."""


class Runner:
    """Runs modules on one device, in a single thread."""

    def __init__(self, device: str, announce: Callable[[str], None]) -> None:
        self.cache = Path(tempfile.mkdtemp(prefix="reprise-inductor-"))
        atexit.register(shutil.rmtree, self.cache, ignore_errors=True)
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(self.cache)
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        import torch
        import torch._inductor.compile_fx
        from torch._inductor.compiler_bisector import CompilerBisector

        self.torch: Any = torch
        self.config: Any = torch._inductor.config
        self.announce = announce
        self.device = device
        torch.set_num_threads(1)
        if device != "cpu":
            torch.zeros(1, device=device)  # raises if there is no such device
            torch.set_default_device(device)
        torch._dynamo.config.capture_dynamic_output_shape_ops = True
        torch._functorch.config.enable_autograd_cache = False
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)  # graphs, at length; errors are exceptions as well
        self.switches = Switches()
        self.switches.install(CompilerBisector, torch._inductor.pattern_matcher)
        self.last: tuple[bytes, dict[str, Any]] = (b"", {})
        self.warm_up()

    def versions(self) -> dict[str, str]:
        found = {"torch": str(self.torch.__version__)}
        if self.device == "cuda":
            found["cuda"] = str(self.torch.version.cuda)
        return found

    def run(
        self, model: bytes, inputs: dict[str, Any], mode: str, disabled: tuple[str, ...]
    ) -> Sequence[Any]:
        self.announce("load")
        self.last = (model, inputs)
        module, arguments = self.load(model, inputs)
        if mode == MODES[-1]:
            self.announce("run")
            with self.torch.no_grad():
                return [_to_numpy(result) for result in module(*arguments)]
        self.announce("compile")
        with self.compiling(disabled, emulate=mode == "emulated"):
            compiled = self.torch.compile(
                module, fullgraph=True, dynamic=False, backend=self.backend
            )
            return [_to_numpy(result) for result in compiled(*arguments)]

    def passes(self, model: bytes) -> Sequence[str]:
        """What matched, ran, was decomposed and was lowered when the first mode compiled the
        program, as far as it came."""
        module, arguments = self.load(model, None)
        seen: dict[str, None] = {}
        with self.compiling((), seen=seen), contextlib.suppress(Exception):
            self.torch.compile(module, fullgraph=True, dynamic=False, backend=_stop)(*arguments)
        settings = [f"config {name}" for name in CONFIG]
        return sorted([*seen, *settings], key=lambda name: _ORDER.index(name.partition(" ")[0]))

    def is_unsupported(self, error: Exception) -> bool:
        """What dynamo does not trace, and what eager execution has no kernel for either."""
        if type(error).__name__ == "Unsupported":
            return True
        if "not implemented for '" not in str(error):
            return False
        try:
            self.run(*self.last, MODES[-1], ())
        except NotImplementedError:
            return True
        except Exception:
            return False
        return False

    def load(self, model: bytes, inputs: dict[str, Any] | None) -> tuple[Any, list[Any]]:
        """The module, and its arguments as tensors: zeros if there are no inputs."""
        space: dict[str, Any] = {"__name__": "model"}
        exec(compile(model, "<program>", "exec"), space)
        module = space["Model"]().eval().to(self.device)
        if inputs is None:
            return module, [self.zeros(type_) for type_ in module.inputs.values()]
        return module, [_to_torch(inputs[name]).to(self.device) for name in module.inputs]

    def zeros(self, type_: str) -> Any:
        """A tensor of a type that is written ``float32[2, 3]``."""
        dtype, _, extents = type_.rstrip("]").partition("[")
        dtype = re.sub(r"^float8(?=e)", "float8_", dtype)
        shape = [int(extent) for extent in extents.split(", ") if extent]
        return self.torch.zeros(shape, dtype=getattr(self.torch, dtype), device=self.device)

    def backend(self, graph: Any, examples: Any) -> Any:
        """Inductor, which says when it has compiled."""
        compiled = self.torch._inductor.compile_fx.compile_fx(graph, examples)

        def call(*arguments: Any) -> Any:
            self.announce("run")
            return compiled(*arguments)

        return call

    @contextlib.contextmanager
    def compiling(
        self,
        disabled: tuple[str, ...],
        *,
        emulate: bool = False,
        seen: dict[str, None] | None = None,
    ) -> Iterator[None]:
        """Compile without what is ``disabled``, and forget everything afterwards. ``seen`` takes
        the names of what could be."""
        settings = {**_ALWAYS, "emulate_precision_casts": emulate}
        for name in disabled:
            kind, _, rest = name.partition(" ")
            settings.update(CONFIG.get(rest, {}) if kind == "config" else {})
        known = {name: value for name, value in settings.items() if _has(self.config, name)}
        self.switches.set(frozenset(disabled), seen)
        try:
            with self.torch.no_grad(), self.config.patch(known):
                yield
        finally:
            self.switches.set(frozenset(), None)
            self.forget()

    def forget(self) -> None:
        """Drop what was compiled, in memory and on disk. Headers that are compiled once stay."""
        self.torch._dynamo.reset()
        self.torch._inductor.codecache.PyCodeCache.cache_clear()
        for entry in self.cache.iterdir():
            if entry.name != "precompiled_headers":
                shutil.rmtree(entry, ignore_errors=True)
        gc.collect()

    def warm_up(self) -> None:
        """Compile something: the first compilation costs as much as ten others."""
        module = self.torch.nn.Sequential(self.torch.nn.Tanh())
        with self.compiling(()):
            compiled = self.torch.compile(
                module, fullgraph=True, dynamic=False, backend=self.backend
            )
            compiled(self.torch.zeros(3, 5, device=self.device))


class Switches:
    """What Inductor asks before each pass, decomposition, lowering and rewrite."""

    def __init__(self) -> None:
        self.set(frozenset(), None)

    def set(self, disabled: frozenset[str], seen: dict[str, None] | None) -> None:
        self.disabled = disabled
        self.seen = seen

    def off(self, name: str) -> bool:
        """Whether ``name`` is disabled; takes note of it."""
        if self.seen is not None:
            self.seen.setdefault(name)
        return name in self.disabled

    def install(self, bisector: Any, matcher: Any) -> None:
        """Have torch ask us. An operator that is not decomposed and that Inductor cannot lower is
        called."""
        from torch._inductor.lowering import lowerings
        from torch._inductor.virtualized import V

        def disable_subsystem(
            backend: str, subsystem: str, debug_info: Callable[[], str] | None = None
        ) -> bool:
            if subsystem == "lowerings":
                operator = getattr(V.current_node, "target", None)
                whole = f"decomposition {operator}" in self.disabled and operator not in lowerings
                return self.off(f"lowerings {operator}") or whole
            return subsystem in _ORDER and self.off(f"{subsystem} {_name(debug_info)}")

        bisector.disable_subsystem = staticmethod(disable_subsystem)
        for kind in ("LoweringPatternEntry", "GraphPatternEntry", "ReplacementPatternEntry"):
            entry = getattr(matcher, kind)
            entry.apply = self._asking(entry.apply)

    def _asking(self, apply: Callable[..., None]) -> Callable[..., None]:
        def ask(entry: Any, match: Any, graph: Any, node: Any) -> None:
            if not self.off(f"pattern {_pattern(entry)}"):
                apply(entry, match, graph, node)

        return ask


def _name(debug_info: Callable[[], str] | None) -> str:
    """What is asked about: a pass, or an operator (``aten.elu.default``)."""
    said = "" if debug_info is None else debug_info()
    operator = re.search(r"op='([^']*)', overload='([^']*)'", said)
    return ".".join(operator.groups()) if operator else said


def _pattern(entry: Any) -> str:
    """A rewrite's name: its function's after the file that defines it. Those that replace one graph
    by another come in many variants; they go by the file alone (``fuse_attention``)."""
    function = getattr(entry, "handler", None)
    if function is not None:
        return f"{_module(function)}.{getattr(function, '__name__', '?')}"
    check = entry.extra_check
    closed = dict(zip(check.__code__.co_freevars, check.__closure__ or ()))  # noqa: B905
    cell = closed.get("search_fn")
    return _module(cell.cell_contents) if cell is not None else "replacement"


def _module(function: Any) -> str:
    return str(getattr(function, "__module__", "?")).rpartition(".")[2]


class _Compiled(Exception):
    """The program is compiled: there is no need to run it."""


def _stop(graph: Any, examples: Any) -> Any:
    """A backend that compiles and goes no further."""
    import torch._inductor.compile_fx

    torch._inductor.compile_fx.compile_fx(graph, examples)
    raise _Compiled


def _has(config: Any, name: str) -> bool:
    for part in name.split("."):
        if not hasattr(config, part):
            return False
        config = getattr(config, part)
    return True


def _to_torch(array: Any) -> Any:
    import numpy as np
    import torch

    name = array.dtype.name
    if name not in _BITS:
        return torch.from_numpy(array)
    bits = array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
    return torch.from_numpy(bits).view(getattr(torch, _BITS[name]))


def _to_numpy(tensor: Any) -> Any:
    import torch

    name = str(tensor.dtype).rpartition(".")[2]
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    if name not in _BITS:
        return plain.numpy()
    import ml_dtypes

    bits = plain.view(torch.uint16 if plain.element_size() == 2 else torch.uint8)
    return bits.numpy().view(getattr(ml_dtypes, _BITS[name]))
