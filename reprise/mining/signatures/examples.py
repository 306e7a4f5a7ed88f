"""ONNX's own examples of its operators: the node tests of the installed ``onnx`` package.

The reference evaluator is more lenient than the documentation of some operators, and what is
learned from it alone may be a signature of what it happens to accept. An operator's examples say
what it is for: a signature that accepts none of them is wrong.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np

from reprise.mining.signatures.hypothesis import Hypothesis
from reprise.mining.signatures.reading import Raw
from reprise.mining.signatures.trial import Trial
from reprise.uir.graph import Attribute

MOST_STORED = 64
"""Numbers of an operand's value that may stand for an attribute."""


@dataclass(frozen=True)
class Example:
    """One application: the operands' values (None: absent), and the attributes. ``form``: the
    names of the operands and attributes that its version of the operator has."""

    form: tuple[str, ...]
    values: tuple[Any, ...]
    attributes: Mapping[str, Attribute]


def examples(raw: Raw) -> Sequence[Example]:
    """The applications of an operator in ONNX's node tests, in versions with the same operands and
    attributes."""
    schema = raw.schema
    found = _all().get((schema.domain, schema.name), ())
    return [case for case in found if case.form == _form(schema)]


def refused(made: Hypothesis, cases: Sequence[Example]) -> int:
    """How many examples have the form of a signature, if it accepts none of these; else 0.

    What element types and how large numbers an attribute may hold is not asked: that a generator
    keeps to small ones is no fault. Nor are examples with what the signature does without.
    """
    trials = [as_trial(made.raw, case, made.stored) for case in cases]
    forms = [values for trial in trials if (values := made.values(trial)) is not None]
    if any(all(condition.may_hold(values) for condition in made.conditions) for values in forms):
        return 0
    return len(forms)


def as_trial(raw: Raw, case: Example, stored: Collection[str]) -> Trial:
    """An example as a trial: operands that are ``stored`` become attributes, if they are numbers or
    lists."""
    shapes: list[tuple[int, ...] | None] = []
    dtypes: dict[str, str] = {}
    attributes = dict(case.attributes)
    for operand, value in zip_longest(raw.operands, case.values):
        if operand is None or value is None:
            shapes.append(None)
        elif operand.name in stored and value.ndim <= 1 and value.size <= MOST_STORED:
            items = value.tolist()
            attributes[operand.name] = tuple(items) if value.ndim else items
            shapes.append(None)
        else:
            shapes.append(value.shape)
            if operand.dtype in raw.dtypes:
                dtypes[operand.dtype] = "string" if value.dtype.kind in "OU" else value.dtype.name
    given = tuple(sorted(attributes.items()))
    return Trial(tuple(shapes), tuple(sorted(dtypes.items())), given)


@cache
def _all() -> Mapping[tuple[str, str], Sequence[Example]]:
    """The node tests that are one node with tensors for operands."""
    from onnx.backend.test.case.node import collect_testcases

    found: dict[tuple[str, str], list[Example]] = defaultdict(list)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        cases = collect_testcases("")
    for case in cases:
        graph = case.model.graph if case.model is not None else None
        if graph is None or len(graph.node) != 1 or not case.data_sets:
            continue
        node = graph.node[0]
        given = dict(zip((i.name for i in graph.input), case.data_sets[0][0], strict=False))
        values = [given.get(name) for name in node.input]
        tensors = [isinstance(v, np.ndarray | np.generic) for v in values]
        if all(known or not name for known, name in zip(tensors, node.input, strict=True)):
            attributes = _attributes(node)
            if attributes is not None:
                form = _form(_schema(case.model, node))
                found[node.domain, node.op_type].append(Example(form, tuple(values), attributes))
    return found


def _schema(model: Any, node: Any) -> Any:
    """The definition of a model's operator, in the model's version."""
    from onnx import defs

    opset = next(o.version for o in model.opset_import if o.domain == node.domain)
    return defs.get_schema(node.op_type, opset, node.domain)


def _form(schema: Any) -> tuple[str, ...]:
    return (*(parameter.name for parameter in schema.inputs), *sorted(schema.attributes))


def _attributes(node: Any) -> dict[str, Attribute] | None:
    """The attributes as UIR has them; None if one is a tensor or a graph."""
    from onnx import helper

    found: dict[str, Attribute] = {}
    for attribute in node.attribute:
        value = helper.get_attribute_value(attribute)
        if isinstance(value, list):
            items = [v.decode() if isinstance(v, bytes) else v for v in value]
            if not all(isinstance(v, int | float | str) for v in items):
                return None
            found[attribute.name] = tuple(items)
        elif isinstance(value, bytes):
            found[attribute.name] = value.decode()
        elif isinstance(value, int | float):
            found[attribute.name] = value
        else:
            return None
    return found
