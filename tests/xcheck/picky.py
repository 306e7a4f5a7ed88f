"""A compiler for tests, with known passes and known bugs.

import   refuses an Add that has not two operands
types    knows no element type beyond float64, but asks only the first operand (bug)
memory   refuses what is larger than its memory of 1 MiB; computes sizes in 32 bits (bug)
codegen  dies of an extent of 13, never ends with one of 17 (bugs)
"""

from __future__ import annotations

import ctypes
import time

import onnx

NAME = "picky"
LOWERING = "onnx"
MODES = ("compiled",)
DEVICES = ("board",)
MEMORY = 1 << 20
BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8}


class Runner:
    def __init__(self, device, announce):
        self.announce = announce

    def versions(self):
        return {"picky": "1.0"}

    def run(self, model, inputs, mode, disabled):
        graph = onnx.load_from_string(model).graph
        for name in ("import", "types", "memory", "codegen"):
            self.announce.begin(name)
            getattr(self, f"pass_{name}")(graph)
            self.announce.end(name)
        return ()

    def pass_import(self, graph):
        for node in graph.node:
            if node.op_type == "Add" and len(node.input) != 2:
                raise ValueError(f"Add takes 2 operands, not {len(node.input)}")

    def pass_types(self, graph):
        if graph.input[0].type.tensor_type.elem_type not in BYTES:
            raise TypeError("unknown element type")

    def pass_memory(self, graph):
        for value in graph.input:
            kind = value.type.tensor_type
            size = BYTES.get(kind.elem_type, 1)
            for dim in kind.shape.dim:
                size = size * dim.dim_value % 2**32
            if size > MEMORY:
                raise RuntimeError(f"Invalid storage capacity: {size} bytes")

    def pass_codegen(self, graph):
        dims = [d.dim_value for v in graph.input for d in v.type.tensor_type.shape.dim]
        if 13 in dims:
            ctypes.string_at(0)
        if 17 in dims:
            time.sleep(600)

    def passes(self, model):
        return ()

    def is_unsupported(self, error):
        return False
