"""Recurrent layers, unrolled: one step after another, as ONNX defines them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reprise.lower.relax.application import Application, Form, number

_ALPHA = {
    "affine": 1.0, "leakyrelu": 0.01, "thresholdedrelu": 1.0, "scaledtanh": 1.0,
    "hardsigmoid": 0.2, "elu": 1.0,
}  # fmt: skip
_BETA = {"affine": 0.0, "scaledtanh": 1.0, "hardsigmoid": 0.5}

Activation = Callable[[str], str]
Cell = Callable[[str, Sequence[str]], "list[str]"]
"""The next states, out of the input at one time and the states before."""


def _activation(n: Application, name: str, alpha: float, beta: float) -> Activation:
    a, b, zero, one = n.const(alpha), n.const(beta), n.const(0.0), n.const(1.0)

    def bounded(form: Activation) -> Activation:
        clip = n.attr("clip")
        if clip is None or clip <= 0:
            return form
        return lambda x: form(f"R.clip({x}, {number(-clip)}, {number(clip)})")

    def named(form: Activation) -> Activation:
        """For forms that read their operand twice."""
        return lambda x: form(n.let(x, name))

    forms: dict[str, Activation] = {
        "relu": lambda x: f"R.nn.relu({x})",
        "tanh": lambda x: f"R.tanh({x})",
        "sigmoid": lambda x: f"R.sigmoid({x})",
        "affine": lambda x: f"R.add(R.multiply({a}, {x}), {b})",
        "leakyrelu": lambda x: f"R.nn.leakyrelu({x}, {alpha})",
        "thresholdedrelu": named(lambda x: f"R.where(R.greater({x}, {a}), {x}, {zero})"),
        "scaledtanh": lambda x: f"R.multiply({a}, R.tanh(R.multiply({b}, {x})))",
        "hardsigmoid": lambda x: f"R.clip(R.add(R.multiply({a}, {x}), {b}), 0.0, 1.0)",
        "elu": named(
            lambda x: (
                f"R.where(R.less({x}, {zero}), R.multiply({a}, R.subtract(R.exp({x}), {one})), {x})"
            )
        ),
        "softsign": named(lambda x: f"R.divide({x}, R.add({one}, R.abs({x})))"),
        "softplus": lambda x: f"R.nn.softplus({x})",
    }
    return bounded(forms[name])


ACTIVATIONS = frozenset(
    {"relu", "tanh", "sigmoid", "affine", "leakyrelu", "thresholdedrelu", "scaledtanh"}
    | {"hardsigmoid", "elu", "softsign", "softplus"}
)


def _chosen(n: Application, defaults: list[str], directions: int) -> list[list[Activation]]:
    """The activations of each direction; parameters are listed for those that have any."""
    names = [name.lower() for name in n.attr("activations") or defaults * directions]
    alphas, betas = list(n.attr("activation_alpha") or ()), list(n.attr("activation_beta") or ())
    made = []
    for name in names:
        alpha, beta = _ALPHA.get(name, 0.0), _BETA.get(name, 0.0)
        if name in _ALPHA and alphas:
            alpha = alphas.pop(0)
        if name in _BETA and betas:
            beta = betas.pop(0)
        made.append(_activation(n, name, alpha, beta))
    each = len(defaults)
    return [made[i * each : (i + 1) * each] for i in range(directions)]


@dataclass(frozen=True, slots=True)
class _Weights:
    """One direction's matrices, transposed, and biases (None: absent)."""

    w: str
    r: str
    bias: str | None
    inner: str | None


def _of_direction(n: Application, position: int, direction: int) -> str:
    """One direction's part of an operand, without that axis."""
    name = n[position]
    if n.shape_of(position)[0] > 1:
        name = f"R.strided_slice({name}, [0], [{direction}], [{direction + 1}])"
    return f"R.squeeze({name}, [0])"


def _columns(n: Application, x: str, begin: int, end: int) -> str:
    return f"R.strided_slice({x}, [-1], [{begin}], [{end}])"


def _weights(n: Application, direction: int, gates: int) -> _Weights:
    w = n.let(f"R.permute_dims({_of_direction(n, 1, direction)}, [1, 0])", "w")
    r = n.let(f"R.permute_dims({_of_direction(n, 2, direction)}, [1, 0])", "r")
    if not n.has(3):
        return _Weights(w, r, None, None)
    half = gates * n.attr("hidden_size")
    both = n.let(_of_direction(n, 3, direction), "biases")
    outer = n.let(f"R.strided_slice({both}, [0], [0], [{half}])", "bias")
    inner = n.let(f"R.strided_slice({both}, [0], [{half}], [{2 * half}])", "inner_bias")
    return _Weights(w, r, outer, inner)


def _plus(x: str, bias: str | None) -> str:
    return x if bias is None else f"R.add({x}, {bias})"


def _rnn_cell(n: Application, direction: int, chosen: list[Activation]) -> Cell:
    weights, (f,) = _weights(n, direction, 1), chosen

    def cell(x: str, states: Sequence[str]) -> list[str]:
        total = f"R.add(R.matmul({x}, {weights.w}), R.matmul({states[0]}, {weights.r}))"
        return [n.let(f(_plus(_plus(total, weights.bias), weights.inner)), "h")]

    return cell


def _gru_cell(n: Application, direction: int, chosen: list[Activation]) -> Cell:
    weights, hidden, (f, g) = _weights(n, direction, 3), n.attr("hidden_size"), chosen
    linear = bool(n.attr("linear_before_reset"))
    kept = n.let(f"R.strided_slice({weights.r}, [1], [{2 * hidden}], [{3 * hidden}])", "kept")
    turned = n.let(f"R.strided_slice({weights.r}, [1], [0], [{2 * hidden}])", "turned")
    of_gates = of_memory = None
    if weights.inner is not None:
        of_gates = f"R.strided_slice({weights.inner}, [0], [0], [{2 * hidden}])"
        of_memory = f"R.strided_slice({weights.inner}, [0], [{2 * hidden}], [{3 * hidden}])"

    def part(x: str, i: int) -> str:
        return f"R.strided_slice({x}, [1], [{i * hidden}], [{(i + 1) * hidden}])"

    def cell(x: str, states: Sequence[str]) -> list[str]:
        (h,) = states
        outer = n.let(_plus(f"R.matmul({x}, {weights.w})", weights.bias), "outer")
        inner = n.let(_plus(f"R.matmul({h}, {turned})", of_gates), "inner")
        update = n.let(f(f"R.add({part(outer, 0)}, {part(inner, 0)})"), "update")
        reset = n.let(f(f"R.add({part(outer, 1)}, {part(inner, 1)})"), "reset")
        if linear:
            memory = f"R.multiply({reset}, {_plus(f'R.matmul({h}, {kept})', of_memory)})"
        else:
            memory = _plus(f"R.matmul(R.multiply({reset}, {h}), {kept})", of_memory)
        candidate = g(f"R.add({part(outer, 2)}, {memory})")
        fresh = f"R.multiply(R.subtract({n.const(1.0)}, {update}), {candidate})"
        return [n.let(f"R.add({fresh}, R.multiply({update}, {h}))", "h")]

    return cell


def _lstm_cell(n: Application, direction: int, chosen: list[Activation]) -> Cell:
    weights, hidden, (f, g, h) = _weights(n, direction, 4), n.attr("hidden_size"), chosen
    peep = n.let(_of_direction(n, 7, direction), "peepholes") if n.has(7) else None

    def part(x: str, i: int) -> str:
        return f"R.strided_slice({x}, [1], [{i * hidden}], [{(i + 1) * hidden}])"

    def peeped(x: str, i: int, memory: str) -> str:
        if peep is None:
            return x
        view = f"R.strided_slice({peep}, [0], [{i * hidden}], [{(i + 1) * hidden}])"
        return f"R.add({x}, R.multiply({view}, {memory}))"

    def cell(x: str, states: Sequence[str]) -> list[str]:
        state, memory = states
        total = f"R.add(R.matmul({x}, {weights.w}), R.matmul({state}, {weights.r}))"
        gates = n.let(_plus(_plus(total, weights.bias), weights.inner), "gates")
        enter = n.let(f(peeped(part(gates, 0), 0, memory)), "enter")
        if n.attr("input_forget"):
            forget = f"R.subtract({n.const(1.0)}, {enter})"
        else:
            forget = f(peeped(part(gates, 2), 2, memory))
        fresh = f"R.multiply({enter}, {g(part(gates, 3))})"
        memory = n.let(f"R.add(R.multiply({forget}, {memory}), {fresh})", "c")
        leave = f(peeped(part(gates, 1), 1, memory))
        return [n.let(f"R.multiply({leave}, {h(memory)})", "h"), memory]

    return cell


def _layer(
    build: Callable[[Application, int, list[Activation]], Cell],
    defaults: list[str],
    first_states: Sequence[int],
) -> Form:
    """``first_states``: the operands that hold the states before the first step."""

    def form(n: Application) -> list[str]:
        length, batch = n.shape[:2]
        hidden, directions = n.attr("hidden_size"), n.shape_of(1)[0]
        chosen = _chosen(n, defaults, directions)
        zero = n.let(f'R.zeros({(batch, hidden)}, "{n.dtype}")', "zero")
        steps = [
            n.let(f"R.squeeze(R.strided_slice({n[0]}, [0], [{t}], [{t + 1}]), [0])", f"x{t}")
            for t in range(length)
        ]
        outputs: list[list[str]] = []
        lasts: list[list[str]] = []
        for direction in range(directions):
            cell = build(n, direction, chosen[direction])
            states = [
                n.let(_of_direction(n, i, direction), "first") if n.has(i) else zero
                for i in first_states
            ]
            backwards = n.attr("direction") == "reverse" or direction == 1
            made = [zero] * length
            for t in reversed(range(length)) if backwards else range(length):
                following = cell(steps[t], states)
                made[t] = following[0]
                if n.has(4):
                    late = f'R.less(relax.const({t}, "int32"), {n[4]})'
                    alive = n.let(f"R.expand_dims({late}, [1])", "alive")
                    following = [
                        n.let(f"R.where({alive}, {new}, {old})", "state")
                        for new, old in zip(following, states, strict=True)
                    ]
                    made[t] = n.let(f"R.where({alive}, {following[0]}, {zero})", "y")
                states = following
            outputs.append(made)
            lasts.append(states)
        y = f'R.zeros({n.result_shape()}, "{n.dtype}")'
        if length:
            sides = [n.let(f"R.stack([{', '.join(made)}], axis=0)", "side") for made in outputs]
            y = f"R.stack([{', '.join(sides)}], axis=1)"
        ends = [
            f"R.stack([{', '.join(states[i] for states in lasts)}], axis=0)"
            for i in range(len(first_states))
        ]
        return [y, *ends]

    return form


FORMS: dict[str, Form] = {
    "rnn": _layer(_rnn_cell, ["tanh"], (5,)),
    "gru": _layer(_gru_cell, ["sigmoid", "tanh"], (5,)),
    "lstm": _layer(_lstm_cell, ["sigmoid", "tanh", "tanh"], (5, 6)),
}
