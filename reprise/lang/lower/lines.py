"""SSA lines: nodes, flow and attributes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from reprise.lang import ast, core
from reprise.lang.diagnostics import Span
from reprise.lang.lower.auxiliary import Ops
from reprise.lang.lower.domains import Domains
from reprise.lang.lower.expressions import NodeSpec, constant_list, plain


class Lines(Domains):
    """Adds the nodes and flow of a pattern to the conjunction."""

    def lines(self, lines: Sequence[ast.Bind]) -> None:
        """Add nodes and flow. Forward references are fine: names are entered first."""
        start, outside = len(self.specs), self._in_structure
        self._in_structure = True
        for line in lines:
            self._declare(line)
        for line in lines:
            self._bind(line)
        self._distinct(start, lines[0].span if lines else None)
        self._in_structure = outside

    def _declare(self, line: ast.Bind) -> None:
        first = line.names[0]
        for ident in line.names:
            if ident.text in self.scope:
                self.report.error(
                    "defined-twice",
                    f"`{ident.text}` is defined by two lines",
                    ident.span,
                    "every line defines a new name",
                )
        self.scope.nodes[first.text] = core.Var(f"N_{first.text}")
        for index, ident in enumerate(line.names[1:], 1):
            self.scope.outputs[ident.text] = (first.text, index)
        if line.types and any(t is not None for t in line.types):
            self.report.error(
                "typed-line",
                "types are stated in tests and programs only",
                line.span,
                f"write `where {first.text}.dtype == …` in a pattern",
            )

    def _bind(self, line: ast.Bind) -> None:
        name = line.names[0].text
        call = line.calls[self.choices.pick(len(line.calls))] if line.calls[1:] else line.calls[0]
        self.scope.ops[name] = self._call(call, self.scope.nodes[name], line)

    def _call(self, call: ast.Call, node: core.Var, line: ast.Bind | None = None) -> Ops:
        ops = self.operators(call.ops)
        spec = NodeSpec(node, ops)
        self.specs.append(spec)
        self._node_atom(node, ops, call)
        operands = list(call.operands)
        rest = [i for i, o in enumerate(operands) if isinstance(o, ast.RestOperands)]
        if rest and rest != [len(operands) - 1]:
            self.report.error("misplaced-rest", "`...` comes last", operands[rest[0]].span)
        listed = [o for o in operands if not isinstance(o, ast.RestOperands)]
        for position, operand in self._positions(listed, call):
            self._operand(node, position, operand, spec)
        self._arity(node, listed, bool(rest), ops, call)
        if line is not None and len(line.names) > 1:
            for _, ident in enumerate(line.names):
                self.tensor_of(ident.text, ident.span)
        self._in_structure = False
        for attribute in call.attributes:
            self._attribute(node, ops, attribute)
        self._in_structure = True
        return ops

    def _node_atom(self, node: core.Var, ops: Ops, call: ast.Call) -> None:
        span = call.ops[0].span
        if ops.any:
            self.emit(core.Atom("node", (node, self.fresh()), span=span))
        elif len(ops.values) == 1:
            self.emit(core.Atom("node", (node, core.Const(ops.values[0])), span=span))
        else:
            op = self.fresh("Op")
            self.emit(core.Atom("node", (node, op), span=span))
            self.emit(core.Member(op, ops.values, span=span))

    def _positions(
        self, operands: Sequence[ast.Operand], call: ast.Call
    ) -> list[tuple[int, ast.Operand]]:
        if not call.unordered or len(operands) < 2:
            return list(enumerate(operands))
        if len(operands) > 4:
            self.report.error("too-many-alternatives", "at most 4 operands in any order", call.span)
            return list(enumerate(operands))
        orders = list(dict.fromkeys(itertools.permutations(operands)))
        return list(enumerate(orders[self.choices.pick(len(orders))]))

    def _operand(self, node: core.Var, position: int, operand: ast.Operand, spec: NodeSpec) -> None:
        at = core.Const(position)
        match operand:
            case ast.AnyOperand(optional=True) | ast.RestOperands():
                return
            case ast.AnyOperand():
                self.emit(core.Atom("input", (node, at, self.fresh()), span=operand.span))
            case ast.AbsentOperand():
                absent = core.Atom("input", (node, at, self.fresh()), True, operand.span)
                self.emit(absent)
            case _:
                tensor = self._source(operand)
                spec.reads.append(tensor)
                self.emit(core.Atom("input", (node, at, tensor), span=operand.span))

    def _source(self, operand: ast.Operand) -> core.Var:
        """The variable of the tensor that an operand names."""
        match operand:
            case ast.TensorRef(name, output):
                if name.text not in self.scope:
                    self.scope.tensors[name.text] = core.Var(f"T_{name.text}")
                return self.tensor_of(name.text, operand.span, output)
            case ast.Call():
                node = self.fresh("N_")
                self._call(operand, node)
                out = self.fresh("T_")
                self.emit(core.Atom("output", (node, core.Const(0), out), span=operand.span))
                return out
            case ast.Via():
                return self._via(operand)
            case _:
                raise AssertionError(operand)

    def _via(self, via: ast.Via) -> core.Var:
        if isinstance(via.operand, ast.AnyOperand):
            source = self.fresh("T_")
        else:
            source = self._source(via.operand)
        ops = self.op_domain(via.domain)
        if via.path is None:
            if self.choices.pick(2) == 0:
                return source
            passed = self.fresh("T_")
            relation = self.auxiliary.passed_on(ops)
            self.emit(core.Atom(relation, (source, passed), span=via.span))
            return passed
        low, high = via.path
        for _ in range(low + self.choices.pick(high - low + 1)):
            node, op, out = self.fresh("N_"), self.fresh("Op"), self.fresh("T_")
            self.emit(core.Atom("node", (node, op), span=via.span))
            self.emit(core.Member(op, ops.values, span=via.span))
            self.emit(core.Atom("input", (node, core.Const(0), source), span=via.span))
            self.emit(core.Atom("output", (node, core.Const(0), out), span=via.span))
            source = out
        return source

    def _arity(
        self, node: core.Var, listed: Sequence[ast.Operand], rest: bool, ops: Ops, call: ast.Call
    ) -> None:
        """Without ``...`` the operands listed are all; what a signature implies is left out."""
        present = list(listed)
        while present and _may_be_absent(present[-1]):
            present.pop()
        signatures = self._signatures(ops)
        misfits = [
            s
            for s in signatures
            if (s.most is not None and len(present) > s.most)
            or (not rest and len(listed) < s.least)
        ]
        if misfits and len(misfits) == len(ops.values):  # of a set, the others may still match
            signature = misfits[0]
            count = str(signature.least)
            if signature.most != signature.least:
                count += f" to {signature.most}" if signature.most else " or more"
            self.report.error(
                "wrong-arity",
                f"`{signature.name}` takes {count} operand{'' if count == '1' else 's'}, "
                f"not {len(present)}",
                call.span,
                "end the list with `...` to leave the further operands open",
            )
        if rest:
            return
        fixed = bool(signatures) and len(signatures) == len(ops.values)
        if fixed and all(s.least == s.most == len(present) for s in signatures):
            return
        self._in_structure = False  # a near miss should say that the operands are not these
        count_var = self.lookup("arity", (node,), "C", call.span)
        if any(isinstance(o, ast.AnyOperand) and o.optional for o in listed[len(present) :]):
            self.emit(core.Compare("<=", count_var, core.Const(len(listed)), call.span))
        else:
            self.emit(core.Compare("==", count_var, core.Const(len(present)), call.span))
        self._in_structure = True

    def _distinct(self, start: int, span: Span | None) -> None:
        """Two lines never match one node: say so where nothing else implies it."""
        before = self._ancestors()
        if before is None:
            self.report.error(
                "cyclic-pattern", "the lines form a cycle: no graph has one", span or ast.NOWHERE
            )
            return
        for i, first in enumerate(self.specs):
            for second in self.specs[max(i + 1, start) :]:
                overlap = (
                    first.ops.any
                    or second.ops.any
                    or not set(first.ops.values).isdisjoint(second.ops.values)
                )
                ordered = first.var in before[second.var] or second.var in before[first.var]
                if overlap and not ordered:
                    self.emit(core.Compare("!=", first.var, second.var))

    def _ancestors(self) -> dict[core.Var, set[core.Var]] | None:
        """For each node variable, the ones whose outputs reach it; None if they form a cycle."""
        made_by: dict[core.Expr, core.Expr] = {
            x.terms[2]: x.terms[0]
            for x in self.literals
            if isinstance(x, core.Atom) and x.relation == "output" and not x.negated
        }
        sources = {
            s.var: {m for t in s.reads if isinstance(m := made_by.get(t), core.Var)}
            for s in self.specs
        }
        before: dict[core.Var, set[core.Var]] = {}
        try:
            for var in TopologicalSorter(sources).static_order():
                direct = sources.get(var, set())
                before[var] = direct.union(*(before[source] for source in direct))
        except CycleError:
            return None
        return before

    def _attribute(self, node: core.Var, ops: Ops, argument: ast.AttributeArg) -> None:
        name = core.Const(argument.name.text)
        kind = self._attribute_type(ops, argument.name.text, argument.name.span)
        span, value = argument.span, argument.value
        if isinstance(value, ast.Name) and value.text == "absent":
            self.emit(core.Atom("attr_given", (node, name), True, span))
            return
        if isinstance(value, ast.Wildcard):
            self.emit(core.Atom("attr", (node, name, self.fresh()), span=span))
            return
        if isinstance(value, ast.ListExpr) and not constant_list(value):
            self._list_attribute(node, name, value, span)
            return
        if isinstance(value, ast.Variable):
            self._note_type(value, plain(kind))
            self.emit(core.Atom("attr", (node, name, self._variable(value)), span=span))
            return
        held = self.lookup("attr", (node, name), "A", span)
        if isinstance(value, ast.SetDomain | ast.RangeDomain | ast.NamedDomain):
            self.membership(held, plain(kind), value, False, span)
            return
        expr, found = self.expr(value, plain(kind))
        self._comparable(plain(kind), found, "==", span, f"attribute `{name.value}`")
        self._attribute_domain(ops, argument, expr)
        if name.value == "axis" and isinstance(expr, core.Const) and _is_negative(expr.value):
            self.report.error(
                "never-matches",
                "axes are counted from the front: a negative one never matches",
                span,
                f"write `axis=A` and `where A == x.rank - {abs(int(expr.value))}`",
            )
        self.emit(core.Compare("==", held, expr, span))

    def _attribute_domain(self, ops: Ops, argument: ast.AttributeArg, expr: core.Expr) -> None:
        """Refuse a value that the operator's own declaration excludes."""
        if not isinstance(expr, core.Const) or not isinstance(expr.value, int | float):
            return
        for signature in self._signatures(ops):
            for declared in signature.decl.attributes:
                domain = declared.domain
                if declared.name.text != argument.name.text or not isinstance(
                    domain, ast.RangeDomain
                ):
                    continue
                low, high = domain.low, domain.high
                below = isinstance(low, ast.Number) and expr.value < low.value
                above = isinstance(high, ast.Number) and expr.value > high.value
                if below or above:
                    self.report.error(
                        "never-matches",
                        f"`{signature.name}` never has {argument.name.text}={expr.value}",
                        argument.span,
                        f"its signature ({declared.span}) says otherwise",
                    )

    def _list_attribute(
        self, node: core.Var, name: core.Const, value: ast.ListExpr, span: Span
    ) -> None:
        count = self.lookup("attr_len", (node, name), "L", span)
        self.emit(core.Compare("==", count, core.Const(len(value.items)), span))
        for i, item in enumerate(value.items):
            if isinstance(item, ast.Wildcard):
                continue
            held = self.lookup("attr_at", (node, name, core.Const(i)), "A", span)
            expr, _ = self.expr(item)
            self.emit(core.Compare("==", held, expr, span))


def _is_negative(value: core.Value) -> bool:
    return not isinstance(value, str) and value < 0


def _may_be_absent(operand: ast.Operand) -> bool:
    return isinstance(operand, ast.AbsentOperand) or (
        isinstance(operand, ast.AnyOperand) and operand.optional
    )
