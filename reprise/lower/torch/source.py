"""From a graph to the text of a module: names, one line for each node, the functions it needs.

Comes in: a graph whose nodes all have a form. Goes out: Python source that imports torch alone.
Functions of ``library`` are copied into the text if a line calls them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from reprise.lower.payload import Names
from reprise.lower.torch import values
from reprise.lower.torch.call import Call, Emitted, Many, dtype, literal, shape
from reprise.lower.torch.module_names import MODULE_ATTRIBUTES
from reprise.lower.torch.table import FORMS
from reprise.uir.graph import Array, Graph, Node, Role, Tensor

_USED_BY_THE_SOURCE = (
    *("torch", "F", "Tensor", "Callable", "Sequence", "base64", "zlib", "math"),
    *("Model", "WEIGHTS", "weight", "self"),
)


def write(graph: Graph) -> str:
    """The whole text. Raises KeyError for an operator that has no form."""
    return _Writer(graph).text()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A top-level statement of ``library``: its text and the other pieces that it mentions."""

    text: str
    needs: frozenset[str]


@cache
def _library() -> dict[str, _Piece]:
    """The functions and constants that may be copied, by name, in the order of the file."""
    text = Path(__file__).with_name("library.py").read_text("utf-8")
    tops: dict[str, ast.stmt] = {}
    for statement in ast.parse(text).body:
        match statement:
            case ast.FunctionDef(name=name):
                tops[name] = statement
            case ast.Assign(targets=[ast.Name(id=name)]):
                tops[name] = statement
    pieces = {}
    for name, statement in tops.items():
        mentioned = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        segment = ast.get_source_segment(text, statement) or ""
        pieces[name] = _Piece(segment, frozenset(mentioned & tops.keys() - {name}))
    return pieces


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        reserved = frozenset((*_USED_BY_THE_SOURCE, *_library(), *MODULE_ATTRIBUTES))
        self.names = Names(reserved)
        self.spelled: dict[int, str] = {}
        self.inputs = [t for t in graph.tensors if t.role is Role.INPUT]
        read = {t.id for node in graph.nodes for t in node.inputs if t is not None}
        self.used = read | {t.id for t in graph.outputs}
        self.constants: list[tuple[Tensor, str]] = []
        self.buffers: list[Tensor] = []
        for tensor in graph.tensors:
            taken = self.names.take(tensor.name, f"t{tensor.id}")
            self.spelled[tensor.id] = taken
            if tensor.role is not Role.INITIALIZER:
                continue
            written = values.tensor(_data(tensor), tensor.type.dtype or "")
            if written is None:
                self.buffers.append(tensor)
                self.spelled[tensor.id] = f"self.{taken}"
            else:
                self.constants.append((tensor, written))

    def text(self) -> str:
        body, weights, library = self._model(), self._weights(), _library()
        wanted = _closure(_called(body) & library.keys())
        parts = [library[name].text for name in library if name in wanted]
        if weights:
            parts.append(_DECODER)
        parts.append(body)
        if weights:
            parts.append("\n".join(["WEIGHTS = {", *weights, "}"]))
        return "\n\n\n".join([_imports("\n".join(parts)), *parts]) + "\n"

    # --- the class -------------------------------------------------------------------------------

    def _model(self) -> str:
        lines = ["class Model(torch.nn.Module):"]
        types = ", ".join(f'{literal(t.name)}: "{t.type}"' for t in self.inputs)
        lines.append(f"    inputs = {{{types}}}")
        if self.buffers:
            lines += ["", "    def __init__(self):", "        super().__init__()"]
            lines += [self._buffer(tensor) for tensor in self.buffers]
        arguments = ", ".join(["self", *(self.spelled[t.id] for t in self.inputs)])
        lines += ["", f"    def forward({arguments}):"]
        lines += [f"        {line}" for line in self._forward()]
        return "\n".join(lines)

    def _forward(self) -> list[str]:
        """Constants that something reads by name, then nodes, then the results."""
        lines = [line for node in self.graph.nodes for line in self._node(node)]
        results = ", ".join(self.spelled[t.id] for t in self.graph.outputs)
        comma = "," if len(self.graph.outputs) == 1 else ""
        lines.append(f"return ({results}{comma})")
        read = _called("\n".join(["def forward():", *(f"    {line}" for line in lines)]))
        named = [(self.spelled[t.id], written) for t, written in self.constants]
        return [*(f"{name} = {written}" for name, written in named if name in read), *lines]

    def _buffer(self, tensor: Tensor) -> str:
        name = self.spelled[tensor.id].removeprefix("self.")
        of = f"{shape(_data(tensor).shape)}, {dtype(tensor.type.dtype or '')}"
        return f'        self.register_buffer("{name}", weight("{name}", {of}))'

    def _weights(self) -> list[str]:
        """Entries of the table at the end of the source."""
        lines = []
        for tensor in self.buffers:
            name = self.spelled[tensor.id].removeprefix("self.")
            lines += [f'    "{name}": """', *values.encoded(_data(tensor)), '""",']
        return lines

    # --- nodes -----------------------------------------------------------------------------------

    def _node(self, node: Node) -> list[str]:
        call = Call(
            node.op,
            [None if t is None else t.type for t in node.inputs],
            node.attributes,
            [None if t is None else self.spelled[t.id] for t in node.inputs],
            [None if t is None else t.type for t in node.outputs],
            [t is not None and t.id in self.used for t in node.outputs],
            {
                i: t.value
                for i, t in enumerate(node.inputs)
                if t is not None and t.value is not None
            },
        )
        emitted = FORMS[node.op].emit(call)
        targets = [
            self.spelled[t.id] if t is not None and t.id in self.used else "_" for t in node.outputs
        ]
        return _assign(targets, emitted)


def _assign(targets: Sequence[str], emitted: Emitted) -> list[str]:
    match emitted:
        case str():
            return [f"{targets[0]} = {emitted}"]
        case Many(text, results):
            targets = [*targets, *["_"] * ((results or 0) - len(targets))]
            return [f"{', '.join(targets)}{',' * (len(targets) == 1)} = {text}"]
        case _:
            wanted = [(t, e) for t, e in zip(targets, emitted, strict=False) if t != "_"]
            if not wanted:
                return [f"_ = {emitted[0]}"]
            names, expressions = zip(*wanted, strict=True)
            return [f"{', '.join(names)} = {', '.join(expressions)}"]


def _data(tensor: Tensor) -> Array:
    if tensor.value is None:
        raise ValueError(f"initializer {tensor.name!r} has no data")
    return tensor.value


def _called(text: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}


def _closure(names: set[str]) -> set[str]:
    library, todo, found = _library(), list(names), set(names)
    while todo:
        for name in library[todo.pop()].needs - found:
            found.add(name)
            todo.append(name)
    return found


_IMPORTS: tuple[tuple[set[str], str], ...] = (
    ({"base64"}, "import base64"),
    ({"math"}, "import math"),
    ({"zlib"}, "import zlib"),
    ({"Callable", "Sequence"}, "from collections.abc import {}"),
    (set(), ""),
    ({"torch"}, "import torch"),
    ({"F"}, "import torch.nn.functional as F"),
    ({"Tensor"}, "from torch import Tensor"),
)


def _imports(text: str) -> str:
    """The imports that ``text`` needs, as ``ruff`` would order them."""
    used = _called(text)
    lines = []
    for names, line in _IMPORTS:
        if names & used or not names:
            lines.append(line.format(", ".join(sorted(names & used))))
    return "\n".join(lines).strip("\n")


_DECODER = '''def weight(name, shape, dtype):
    """A tensor from its bytes (little-endian, compressed, in base64) at the end of this file."""
    data = bytearray(zlib.decompress(base64.b64decode(WEIGHTS[name])))
    return torch.frombuffer(data, dtype=dtype).reshape(shape)'''
