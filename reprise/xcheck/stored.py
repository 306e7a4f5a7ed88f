"""Operands that signatures know as attributes, as the tensors that ONNX has in their place.

A mined signature asks for an operand whose value decides shapes as an attribute that bears its name
(``onnx.AffineGrid(theta, size=[1, 1, 2, 2])``). In a model, and to constraints, which are about
models, it is an operand: a stored tensor. :func:`as_written` puts such tensors in place of the
attributes, :func:`as_signed` says what the signature is to be asked of the node. Both know these
tensors by their names: that of the node, a stroke, that of the operand.

So a constraint may name either. One that names the operand is looked for in programs that have
the attribute (:func:`as_searched`); one that names the attribute is judged where the attribute
still is (``keep`` of :func:`as_written`). Models read back have both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from reprise.facts.onnx_apply import Step, Stored, is_foreign, opset_of, steps_of
from reprise.lang import core
from reprise.lower.onnx import DEFAULT_OPSET
from reprise.solve.signatures import Signatures
from reprise.uir.graph import Attribute, Graph, Node, Tensor, TensorType


def sources_of(graph: Graph) -> tuple[Graph, dict[str, Tensor]]:
    """A graph with the sources of another and no nodes yet, and its tensors by name."""
    made = Graph(graph.name, dict(graph.opsets))
    tensors = {
        tensor.name: made.add_input(tensor.name, tensor.type)
        if tensor.value is None
        else made.add_initializer(tensor.name, tensor.type, tensor.value)
        for tensor in graph.tensors
        if tensor.producer is None
    }
    return made, tensors


def as_searched(body: Sequence[core.Literal], signatures: Signatures) -> tuple[core.Literal, ...]:
    """A guard's body, of programs as signatures have them: an attribute in place of each operand
    that they know as one. What the body says of such an operand itself is left out: it is to be
    asked of the graph as it is written."""
    sets = {x.expr: x.values for x in body if isinstance(x, core.Member) and not x.negated}
    ops: dict[core.Expr, tuple[core.Value, ...]] = {}
    for literal in body:
        if isinstance(literal, core.Atom) and literal.relation == "node" and not literal.negated:
            node, op = literal.terms
            ops[node] = (op.value,) if isinstance(op, core.Const) else sets.get(op, ())
    found: list[core.Literal] = []
    gone: set[str] = set()
    for literal in body:
        match literal:
            case core.Atom("input", (core.Var(owner), core.Const(int(i)), tensor), negated=False):
                name = _attribute_at(ops.get(core.Var(owner), ()), i, signatures)
                if name is not None:
                    value = core.Var(f"{owner}_{name}")
                    literal = core.Atom("attr", (core.Var(owner), core.Const(name), value))
                    gone.update(core.variables(tensor))
        found.append(literal)
    # With the operand goes what is known only of it: its element type, and what is said of that.
    while True:
        left = [x for x in found if gone.isdisjoint(core.variables(x))]
        lost = [x for x in found if not gone.isdisjoint(core.variables(x))]
        bound = {v for x in left if isinstance(x, core.Atom) for v in core.variables(x)}
        more = {v for x in lost for v in core.variables(x)} - bound - gone
        if not more:
            return tuple(left)
        gone |= more


def _attribute_at(ops: Iterable[core.Value], i: int, signatures: Signatures) -> str | None:
    """The name of operand ``i`` if all of these operators know it as an attribute."""
    names = set()
    for op in ops:
        plan = signatures[str(op)].plan if str(op) in signatures else None
        params = () if plan is None else plan.decl.params
        name = params[i].name.text if i < len(params) else None
        known = plan is not None and name in {a.name for a in plan.attributes}
        names.add(name if known else None)
    return names.pop() if len(names) == 1 else None


def as_written(graph: Graph, keep: Collection[str] = ()) -> Graph:
    """The graph with stored tensors as operands where attributes stand for them, but for the
    attributes called ``keep``."""
    steps = {node.name: step for node in graph.nodes if (step := _step(graph, node)) is not None}
    if not steps:
        return graph
    made, tensors = sources_of(graph)
    for node in graph.nodes:
        operands = [None if t is None else tensors[t.name] for t in node.inputs]
        attributes = dict(node.attributes)
        if node.name in steps:
            # An operand that stands for itself is in its own place; so is what a graph captures.
            asked = steps[node.name].operands
            operands += [None] * (len(asked) - len(operands))
            for i, operand in enumerate(asked):
                if isinstance(operand, Stored) and operand.name not in keep:
                    operands[i] = _stored(made, node, operand)
                    del attributes[operand.name]
        while operands and operands[-1] is None:
            operands.pop()
        copy = made.add_node(
            node.op,
            operands,
            [None if t is None else (t.name, t.type) for t in node.outputs],
            attributes,
            name=node.name,
            given=frozenset(node.given & attributes.keys()),
        )
        tensors |= {t.name: t for t in copy.outputs if t is not None}
    made.outputs = [tensors[t.name] for t in graph.outputs]
    return made


def is_stored_operand(node: Node, tensor: Tensor) -> bool:
    """Whether the node's signature knows the tensor as an attribute."""
    return tensor.value is not None and tensor.name.startswith(f"{node.name}/")


def as_signed(node: Node) -> tuple[list[Tensor | None], dict[str, Attribute]]:
    """The operands that the node's signature is asked about, and the attributes besides the node's
    own."""
    operands: list[Tensor | None] = []
    more: dict[str, Attribute] = {}
    for tensor in node.inputs:
        if tensor is not None and is_stored_operand(node, tensor):
            value = tensor.value.tolist()  # type: ignore[union-attr]
            name = tensor.name.removeprefix(f"{node.name}/")
            more[name] = tuple(value) if isinstance(value, list) else value
            tensor = None
        operands.append(tensor)
    while operands and operands[-1] is None:
        operands.pop()
    return operands, more


def _step(graph: Graph, node: Node) -> Step | None:
    """How ONNX has the node, if it has it as one node and attributes stand for operands."""
    if not is_foreign(node.op):
        return None
    opset = opset_of([node.op], graph.opsets.get("", DEFAULT_OPSET))
    steps = steps_of(node.op, len(node.inputs), node.attributes, opset)
    if steps is None or len(steps) != 1:
        return None
    return steps[0] if any(isinstance(o, Stored) for o in steps[0].operands) else None


def _stored(graph: Graph, node: Node, operand: Stored) -> Tensor:
    value = operand.value
    type = TensorType(operand.dtype, tuple(value.shape))
    return graph.add_initializer(f"{node.name}/{operand.name}", type, value)
