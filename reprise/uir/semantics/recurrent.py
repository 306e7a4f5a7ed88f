"""Recurrent layers over a sequence, as ONNX defines them.

Where ``lengths`` are given, a sequence's outputs after its end are 0, its last state is the one at
its end, and a reverse direction starts there. ``clip`` bounds what goes into every activation.
"""
# ruff: noqa: D103  (what each operator means is said where it is declared, in rules/ops)

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from reprise.uir.semantics.activation import (
    elu,
    hard_sigmoid,
    leaky_relu,
    relu,
    sigmoid,
    softplus,
    softsign,
    thresholded_relu,
)
from reprise.uir.semantics.registry import UndefinedError, Values, kernel

Activation = Callable[[Values], Values]
Step = Callable[[Values, tuple[Values, ...]], tuple[Values, ...]]

_ACTIVATIONS: dict[str, tuple[Callable[..., Values], float, float]] = {
    "relu": (lambda x, a, b: relu(x), 0.0, 0.0),
    "tanh": (lambda x, a, b: np.tanh(x), 0.0, 0.0),
    "sigmoid": (lambda x, a, b: sigmoid(x), 0.0, 0.0),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: leaky_relu(x, alpha=a), 0.01, 0.0),
    "thresholdedrelu": (lambda x, a, b: thresholded_relu(x, alpha=a), 1.0, 0.0),
    "scaledtanh": (lambda x, a, b: a * np.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: hard_sigmoid(x, alpha=a, beta=b), 0.2, 0.5),
    "elu": (lambda x, a, b: elu(x, alpha=a), 1.0, 0.0),
    "softsign": (lambda x, a, b: softsign(x), 0.0, 0.0),
    "softplus": (lambda x, a, b: softplus(x), 0.0, 0.0),
}
"""ONNX's activations, with the defaults of their parameters."""

_ALPHA = frozenset({"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"})
_BETA = frozenset({"affine", "scaledtanh", "hardsigmoid"})


def _chosen(
    op: str,
    defaults: Sequence[str],
    directions: int,
    activations: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    clip: float | None,
) -> list[list[Activation]]:
    """The activations of each direction. Parameters are listed in the order in which activations
    that have them need them."""
    names = [name.lower() for name in activations or list(defaults) * directions]
    alpha, beta = list(alphas or ()), list(betas or ())
    made: list[Activation] = []
    for name in names:
        if name not in _ACTIVATIONS:
            raise UndefinedError(op, f"no activation is called {name}")
        function, a, b = _ACTIVATIONS[name]
        if name in _ALPHA and alpha:
            a = alpha.pop(0)
        if name in _BETA and beta:
            b = beta.pop(0)
        made.append(_activation(function, a, b, clip))
    each = len(defaults)
    return [made[i * each : (i + 1) * each] for i in range(directions)]


def _activation(
    function: Callable[..., Values], a: float, b: float, clip: float | None
) -> Activation:
    if clip is None or clip <= 0:
        return lambda x: function(x, a, b)
    return lambda x: function(np.clip(x, -clip, clip), a, b)


def _layer(
    x: Values,
    direction: str,
    lengths: Values | None,
    steps: Sequence[Step],
    given: tuple[Values | None, ...],
    hidden: int,
    layout: int,
) -> tuple[Values, ...]:
    """Run each direction's step over the sequence: all outputs [L, B, N, H], then last states.
    With ``layout`` 1 the batch axis comes first, everywhere."""
    if layout:
        x = np.swapaxes(x, 0, 1)
        given = tuple(None if state is None else np.swapaxes(state, 0, 1) for state in given)
    zero = np.zeros((x.shape[1], hidden), x.dtype)
    outputs: list[Values] = []
    lasts: list[tuple[Values, ...]] = []
    for number, step in enumerate(steps):
        backwards = direction == "reverse" or number == 1
        first = tuple(zero if state is None else state[number] for state in given)
        outputs.append(_run(x, backwards, lengths, step, first, lasts))
    y = np.stack(outputs, 1)
    states = [np.stack(each, 0) for each in zip(*lasts, strict=True)]
    if layout:
        return (y.transpose(2, 0, 1, 3), *(np.swapaxes(state, 0, 1) for state in states))
    return (y, *states)


def _run(
    x: Values,
    backwards: bool,
    lengths: Values | None,
    step: Step,
    state: tuple[Values, ...],
    lasts: list[tuple[Values, ...]],
) -> Values:
    """One direction: its outputs [L, N, H]; the last state is appended to ``lasts``."""
    made = np.zeros((x.shape[0], *state[0].shape), x.dtype)
    times = range(x.shape[0])
    for time in reversed(times) if backwards else times:
        following = step(x[time], state)
        if lengths is None:
            state = following
            made[time] = state[0]
            continue
        alive = (time < lengths)[:, None]
        state = tuple(np.where(alive, new, old) for new, old in zip(following, state, strict=True))
        made[time] = np.where(alive, state[0], x.dtype.type(0))
    lasts.append(state)
    return made


@kernel("rnn")
def rnn(
    x: Values,
    w: Values,
    r: Values,
    b: Values | None = None,
    lengths: Values | None = None,
    h0: Values | None = None,
    *,
    hidden_size: int,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    layout: int = 0,
) -> tuple[Values, ...]:
    chosen = _chosen(
        "rnn", ["tanh"], w.shape[0], activations, activation_alpha, activation_beta, clip
    )

    def cell(i: int) -> Step:
        (f,) = chosen[i]
        bias: Any = 0 if b is None else b[i, :hidden_size] + b[i, hidden_size:]
        return lambda now, state: (f(now @ w[i].T + state[0] @ r[i].T + bias),)

    cells = [cell(i) for i in range(w.shape[0])]
    return _layer(x, direction, lengths, cells, (h0,), hidden_size, layout)


@kernel("gru")
def gru(
    x: Values,
    w: Values,
    r: Values,
    b: Values | None = None,
    lengths: Values | None = None,
    h0: Values | None = None,
    *,
    hidden_size: int,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    layout: int = 0,
    linear_before_reset: bool = False,
) -> tuple[Values, ...]:
    defaults = ["sigmoid", "tanh"]
    chosen = _chosen(
        "gru", defaults, w.shape[0], activations, activation_alpha, activation_beta, clip
    )

    def cell(i: int) -> Step:
        f, g = chosen[i]
        biases = np.zeros(6 * hidden_size, x.dtype) if b is None else b[i]
        of_input, of_state = biases[: 3 * hidden_size], biases[3 * hidden_size :]
        kept = r[i].T[:, 2 * hidden_size :]  # of the candidate state

        def step(now: Values, state: tuple[Values, ...]) -> tuple[Values, ...]:
            (h,) = state
            gates = np.split(now @ w[i].T + of_input, 3, -1)
            update, reset = np.split(
                h @ r[i].T[:, : 2 * hidden_size] + of_state[: 2 * hidden_size], 2, -1
            )
            update, reset = f(gates[0] + update), f(gates[1] + reset)
            bias = of_state[2 * hidden_size :]
            memory = reset * (h @ kept + bias) if linear_before_reset else (reset * h) @ kept + bias
            candidate = g(gates[2] + memory)
            return ((1 - update) * candidate + update * h,)

        return step

    cells = [cell(i) for i in range(w.shape[0])]
    return _layer(x, direction, lengths, cells, (h0,), hidden_size, layout)


@kernel("lstm")
def lstm(
    x: Values,
    w: Values,
    r: Values,
    b: Values | None = None,
    lengths: Values | None = None,
    h0: Values | None = None,
    c0: Values | None = None,
    p: Values | None = None,
    *,
    hidden_size: int,
    direction: str = "forward",
    activations: Sequence[str] | None = None,
    activation_alpha: Sequence[float] | None = None,
    activation_beta: Sequence[float] | None = None,
    clip: float | None = None,
    layout: int = 0,
    input_forget: bool = False,
) -> tuple[Values, ...]:
    defaults = ["sigmoid", "tanh", "tanh"]
    chosen = _chosen(
        "lstm", defaults, w.shape[0], activations, activation_alpha, activation_beta, clip
    )

    def cell(i: int) -> Step:
        f, g, h = chosen[i]
        half = 4 * hidden_size
        bias: Any = 0 if b is None else b[i, :half] + b[i, half:]
        peep = np.zeros(3 * hidden_size, x.dtype) if p is None else p[i]
        of_input, of_output, of_forget = np.split(peep, 3)

        def step(now: Values, state: tuple[Values, ...]) -> tuple[Values, ...]:
            hidden, memory = state
            gates = now @ w[i].T + hidden @ r[i].T + bias
            enter, leave, forget, candidate = np.split(gates, 4, -1)
            enter = f(enter + of_input * memory)
            forget = 1 - enter if input_forget else f(forget + of_forget * memory)
            memory = forget * memory + enter * g(candidate)
            return f(leave + of_output * memory) * h(memory), memory

        return step

    cells = [cell(i) for i in range(w.shape[0])]
    return _layer(x, direction, lengths, cells, (h0, c0), hidden_size, layout)
