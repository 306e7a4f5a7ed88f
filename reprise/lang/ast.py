"""The rule language as data: what the parser makes and what everything else reads.

Names are as written (no resolution has happened yet); every part knows its :class:`Span`, and
spans never take part in equality, so that "formatting does not change a file" is ``==``.

Conventions of the language: an uppercase identifier is a *value variable*; a lowercase one is a
*name* (a node or tensor in scope, an operator, dtype, set, relation or attribute).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reprise.lang.diagnostics import Span

NOWHERE = Span("<none>", 1, 1, 1, 1)


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ident:
    """A name with the place where it was written."""

    text: str
    span: Span = _span()

    def __str__(self) -> str:
        return self.text


# --- expressions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """``A``: a value variable."""

    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Wildcard:
    """``_``: some value, no matter which."""

    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Number:
    """``3``, ``10_000``, ``1.5e-3``, ``inf``, ``nan`` (the last two as floats)."""

    value: int | float
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class String:
    """``"linear"``: a symbol in quotes."""

    value: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Boolean:
    """``true`` or ``false``."""

    value: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Name:
    """``x``, ``float32``, ``onnx.Foo``: something in scope or declared."""

    text: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Member:
    """``x.rank``, ``s.axis``."""

    base: Expr
    name: Ident
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Index:
    """``x.dim[-1]``, ``s.perm[0]``."""

    base: Expr
    index: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class CallExpr:
    """``bits(x.dtype)``, ``device(dram_bits)``, ``prod(D)``, ``env(isa)``."""

    function: Ident
    args: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Binary:
    """``left op right`` with op in ``+ - * / %``."""

    op: str
    left: Expr
    right: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Negate:
    """``-expr``."""

    operand: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ListExpr:
    """``[0, 2, 1]``: a list value."""

    items: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AggregateExpr:
    """``count{ W : edge(V, W, _) }``; ``value`` is None in ``count{ body }``."""

    kind: str  # count sum min max prod
    value: Expr | None
    body: tuple[Condition, ...]
    span: Span = _span()


Expr = (
    Variable
    | Wildcard
    | Number
    | String
    | Boolean
    | Name
    | Member
    | Index
    | CallExpr
    | Binary
    | Negate
    | ListExpr
    | AggregateExpr
)

# --- domains ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetDomain:
    """``{relu, tanh}``, ``{1, 2}``."""

    items: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class RangeDomain:
    """``low..high``, both included."""

    low: Expr
    high: Expr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class NamedDomain:
    """A declared set or operator category, by name."""

    name: Ident
    span: Span = _span()


Domain = SetDomain | RangeDomain | NamedDomain

# --- conditions (rule bodies, where, graph, require) -----------------------------------------


@dataclass(frozen=True, slots=True)
class Comparison:
    """A chain ``e0 op0 e1 op1 e2 …``: ``0 <= A < R``; ops in ``== != < <= > >=``."""

    operands: tuple[Expr, ...]
    ops: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Membership:
    """``expr in domain`` or ``expr not in domain``."""

    expr: Expr
    domain: Domain
    negated: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AtomCond:
    """``relation(args…)``."""

    relation: Ident
    args: tuple[Expr, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Context:
    """``downstream[1..3](s) in set``: an operator of ``domain`` stands in that place of the graph.

    ``word``: ``downstream``/``upstream`` (any distance, or within ``path``), ``user``/``producer``
    (distance one), ``elsewhere`` (any other node of the graph).
    """

    word: str
    path: tuple[int, int] | None
    subject: Ident
    domain: Domain
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Exists:
    """``exists { c = cast(t) where c.dtype == float16 }``: a sub-pattern, or plain conditions."""

    lines: tuple[Bind, ...]
    conditions: tuple[Condition, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Not:
    """``not condition``."""

    condition: Condition
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class And:
    """``a and b`` (a comma between conditions means the same at the top level)."""

    parts: tuple[Condition, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Or:
    """``a or b``."""

    parts: tuple[Condition, ...]
    span: Span = _span()


Condition = Comparison | Membership | AtomCond | Context | Exists | Not | And | Or

# --- SSA lines -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TensorRef:
    """``x`` or ``x[1]``: a tensor by its name, or the n-th output of a node."""

    name: Ident
    output: int | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AnyOperand:
    """``_``: an operand that is present, no matter which. ``_?``: present or absent."""

    optional: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AbsentOperand:
    """``none``: an optional operand that is not there."""

    span: Span = _span()


@dataclass(frozen=True, slots=True)
class RestOperands:
    """``...``: any number of further operands."""

    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Via:
    """``via {identity, cast}(x)``: ``x`` itself, or ``x`` passed on by operators of ``domain``
    (each reading it as its first operand). ``via[0..1] …`` bounds the number of steps."""

    domain: Domain
    path: tuple[int, int] | None
    operand: Operand
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AttributeArg:
    """``axis=A``, ``perm=[1, 0]``, ``axis=in 0..1``: ``value`` is an expression or a domain.

    ``absent`` stands for ``alpha=absent``: the source did not give the attribute.
    """

    name: Ident
    value: Expr | Domain
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """``add(a, b, alpha=1)``, ``add{a, b}``, ``relu|tanh(x)``, ``any(x)``, ``reduction(x)``.

    ``ops``: alternatives; each an operator, a set, a category, or ``any``. ``unordered``: braces,
    operands in any order.
    """

    ops: tuple[Ident, ...]
    operands: tuple[Operand, ...]
    attributes: tuple[AttributeArg, ...]
    unordered: bool = False
    span: Span = _span()


Operand = TensorRef | AnyOperand | AbsentOperand | RestOperands | Via | Call


@dataclass(frozen=True, slots=True)
class Bind:
    """``s = softmax(x, axis=A)``; several names for a node with several outputs
    (``v, i = topk(x)``); several calls for alternatives at one position
    (``g = gemm(a, b) or add{matmul(a, b), c}``). ``type`` (tests and ``.uir`` only) states the
    outputs' types: ``y: float32[2, 3] = onnx.Foo(x)``."""

    names: tuple[Ident, ...]
    calls: tuple[Call, ...]
    types: tuple[TypeExpr | None, ...] = ()
    span: Span = _span()


# --- declarations ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Import:
    """``import "std/flow.rules"``: a file of the library, or relative to this one."""

    path: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class SetDecl:
    """``set floats = {float16, float32}`` (members may name other sets: their members join)."""

    name: Ident
    items: tuple[Expr, ...]
    doc: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ColumnDecl:
    """``dst: node key``."""

    name: Ident
    type: Ident
    key: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Flag:
    """``@entity``, ``@older(src)``, ``@same(t)``."""

    name: Ident
    args: tuple[Ident, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class RelationDecl:
    """``relation edge(src: node, dst: node key) @entity @older(src)``."""

    name: Ident
    columns: tuple[ColumnDecl, ...]
    flags: tuple[Flag, ...] = ()
    doc: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class RuleDecl:
    """``head(args) :- conditions.`` (no conditions: a fact)."""

    head: AtomCond
    body: tuple[Condition, ...]
    doc: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class DenyDecl:
    """``deny head(args) "message with {A}" :- conditions.``: each derived fact is a violation."""

    head: AtomCond
    message: str
    body: tuple[Condition, ...]
    doc: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class MetaEntry:
    """``bug: "pytorch/pytorch#189787"``; keys: bug target affects symptom verdict severity since
    fixed status owner advice found_by pass. A key may be repeated (one defect, several reports)."""

    key: Ident
    value: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class PatternDecl:
    """A known bug: nodes and flow (``lines``), values (``where``) and context (``graph``)."""

    name: Ident
    title: str
    meta: tuple[MetaEntry, ...]
    lines: tuple[Bind, ...]
    where: tuple[Condition, ...] = ()
    graph: tuple[Condition, ...] = ()
    doc: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Splat:
    """``*D``: a sequence of extents; ``*drop(D, A)``: one computed from others."""

    expr: Variable | CallExpr
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class TypeExpr:
    """``T[N, C / G, *D]``, ``float32[4, 17]``, ``float32[?, N]``; ``shape`` None for ``[...]``
    (unknown rank). A dimension ``Wildcard`` is an unknown extent (written ``?``)."""

    dtype: Variable | Name
    shape: tuple[Expr | Splat, ...] | None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Param:
    """An operator's input: ``x: T[*D]``; ``optional`` for ``b?: T[K]``; ``variadic`` for
    ``xs...: T[*D]`` (one or more operands)."""

    name: Ident
    type: TypeExpr
    optional: bool = False
    variadic: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AttrDecl:
    """``attr stride as St: int in 1..3 = 1``. ``type``: int float bool sym dtype ints floats syms.
    ``required`` when no default is given."""

    name: Ident
    variable: str | None
    type: Ident
    domain: Domain | None = None
    default: Expr | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class OpDecl:
    """A typed operator signature. ``results``: ``(name or None, type)``. Flags such as
    ``commutative`` or ``random`` are ``flags``."""

    name: Ident
    params: tuple[Param, ...]
    results: tuple[tuple[Ident | None, TypeExpr], ...]
    category: Ident | None
    attributes: tuple[AttrDecl, ...]
    where: tuple[Condition, ...]
    flags: tuple[Ident, ...] = ()
    doc: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ConstraintDecl:
    """``constraint name : class on { lines [where …] } require conditions``; ``meta`` says where
    a mined constraint comes from."""

    name: Ident
    klass: Ident
    lines: tuple[Bind, ...]
    where: tuple[Condition, ...]
    require: tuple[Condition, ...]
    meta: tuple[MetaEntry, ...] = ()
    doc: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class MonitorDecl:
    """``monitor name : class on pass "padding" { assert … }``; each assert with its message."""

    name: Ident
    klass: Ident
    pass_name: str
    asserts: tuple[tuple[Condition, str | None], ...]
    meta: tuple[MetaEntry, ...] = ()
    doc: tuple[str, ...] = ()
    span: Span = _span()


# --- tests -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InputLine:
    """``x: float32[4, 17]``; ``const w: float32[4] = 0.0`` (a number: every element; a list: the
    elements in order; nothing: unknown data)."""

    name: Ident
    type: TypeExpr
    constant: bool = False
    value: Expr | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class OutputLine:
    """``output s``: makes a tensor a graph output (tensors nobody reads are outputs anyway)."""

    name: Ident
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Given:
    """A fact taken as given, such as ``opset("", 17)`` or ``env(isa, avx512)``."""

    fact: AtomCond
    span: Span = _span()


Line = InputLine | Bind | OutputLine | Given


@dataclass(frozen=True, slots=True)
class Case:
    """``match { … }``; kind: match no_match possible todo_match todo_no_match holds violates."""

    kind: str
    lines: tuple[Line, ...]
    title: str = ""
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class TestDecl:
    """``test NAME { cases }`` for a pattern, constraint, deny rule or relation."""

    __test__ = False  # not a pytest class

    subject: Ident
    cases: tuple[Case, ...]
    doc: tuple[str, ...] = ()
    span: Span = _span()


Decl = (
    SetDecl
    | RelationDecl
    | RuleDecl
    | DenyDecl
    | PatternDecl
    | OpDecl
    | ConstraintDecl
    | MonitorDecl
    | TestDecl
)


@dataclass(frozen=True, slots=True)
class RuleFile:
    """One parsed file: imports first, then declarations in order; ``comments`` are the plain
    ``//`` comments, for the formatter."""

    path: str
    imports: tuple[Import, ...]
    decls: tuple[Decl, ...]
    comments: tuple[tuple[Span, str], ...] = field(default=(), compare=False)


Node = Ident | Expr | Domain | Condition | Operand | AttributeArg | Line | Splat | TypeExpr | Param
"""What can be shown on a line of its own: all but declarations and their parts."""
