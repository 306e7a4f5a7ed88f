"""Run programs eagerly and compiled by Inductor, and say how they differ. Runs inside an
interpreter that has torch and numpy.

Reads a list of tasks (JSON) from standard input; a task is a program (``programs.py``). Each runs
on several inputs: ordinary ones, tiny ones, zeros of either sign, all positive, all negative. The
first symptom counts.
"""

import json
import os
import sys

import numpy as np
import outcomes

os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
sys.stderr = open(os.devnull, "w")  # noqa: SIM115
import torch  # noqa: E402

torch.set_num_threads(1)
F = torch.nn.functional


def say(**what):
    print("@ " + json.dumps(what), flush=True)


def dtype_of(name):
    return getattr(torch, name)


BINARY = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "pow": torch.pow,
    "matmul": torch.matmul,
    "equal": torch.eq,
    "not_equal": torch.ne,
    "less": torch.lt,
    "less_equal": torch.le,
    "greater": torch.gt,
    "greater_equal": torch.ge,
    "atan2": torch.atan2,
}
UNARY = {
    "relu": torch.relu,
    "exp": torch.exp,
    "log": torch.log,
    "expm1": torch.expm1,
    "selu": F.selu,
    "atanh": torch.atanh,
    "erf": torch.erf,
    "tanh": torch.tanh,
    "floor": torch.floor,
    "ceil": torch.ceil,
    "trunc": torch.trunc,
    "round": torch.round,
    "reciprocal": torch.reciprocal,
    "rsqrt": torch.rsqrt,
    "abs": torch.abs,
    "neg": torch.neg,
    "identity": torch.clone,
    "relu6": F.relu6,
    "sign": torch.sign,
}


def apply(node, operands):
    op, a = node["op"], node["attributes"]
    x = operands[0] if operands else None
    axes, keep = a.get("axes"), bool(a.get("keepdims"))
    if op in BINARY:
        return BINARY[op](*operands)
    if op in UNARY:
        return UNARY[op](x)
    match op:
        case "elu" | "celu":
            return getattr(F, op)(x, alpha=a["alpha"])
        case "softmax":
            return torch.softmax(x, a["axis"])
        case "sum":
            dtype = dtype_of(a["dtype"]) if "dtype" in node["given"] else None
            return torch.sum(x, axes, keepdim=keep, dtype=dtype)
        case "prod":
            dtype = dtype_of(a["dtype"]) if "dtype" in node["given"] else None
            if len(axes) == x.dim() and x.dim() != 1:
                return torch.prod(x, dtype=dtype)
            return torch.prod(x, axes[0], keepdim=keep, dtype=dtype)
        case "max" | "min":
            return getattr(torch, "a" + op)(x, axes, keepdim=keep)
        case "argmin" | "argmax":
            if x.dtype is torch.bool:  # torch.argmin refuses booleans; Tensor.min(dim) does not
                return getattr(x, op[3:])(a["axis"], keepdim=keep)[1]
            return getattr(torch, op)(x, a["axis"], keepdim=keep)
        case "log_sum_exp":
            return torch.logsumexp(x, axes, keepdim=keep)
        case "cumsum":
            dtype = dtype_of(a["dtype"]) if "dtype" in node["given"] else None
            axis, backwards = a["axis"], a.get("reverse") and x.dim()
            if backwards:
                x = torch.flip(x, (axis,))
            if a.get("exclusive"):  # a zero in front; a scalar is the last element, which falls off
                if x.dim():
                    kept = x.narrow(axis, 0, x.shape[axis] - 1)
                    x = torch.cat((torch.zeros_like(x.narrow(axis, 0, 1)), kept), axis)
                else:
                    x = torch.full_like(x, 0)
            done = torch.cumsum(x, axis, dtype=dtype)
            return torch.flip(done, (axis,)) if backwards else done
        case "cast":
            return x.to(dtype_of(a["to"]))
        case "clip":
            return torch.clamp(x, min=a.get("min"), max=a.get("max"))
        case "hard_tanh":
            return F.hardtanh(x, a["low"], a["high"])
        case "transpose":
            return x.permute(a["perm"])
        case "dropout":
            return F.dropout(x, a["ratio"], training=False)
        case "full":
            dtype = dtype_of(a["dtype"])
            value = a["value"] if dtype.is_floating_point else int(a["value"])
            return torch.full(a["shape"], value, dtype=dtype)
    raise NotImplementedError(op)


def constant(tensor):
    """Made inside the compiled function, so that it is one for the compiler too."""
    values = set(map(str, tensor["value"]))
    dtype = dtype_of(tensor["dtype"])
    if len(values) == 1:
        value = tensor["value"][0]
        return torch.full(
            tensor["shape"], value if dtype.is_floating_point else int(value), dtype=dtype
        )
    return torch.tensor(tensor["value"], dtype=dtype).reshape(tensor["shape"])


def scalar(tensor, program):
    """A constant of no axes that scales a product: Python's number, as a person writes it."""
    users = [n["op"] for n in program["nodes"] if tensor["name"] in n["inputs"]]
    return tensor["shape"] == [] and set(users) <= {"mul", "div"} and len(users) > 0


def function_of(program):
    def function(*arguments):
        values = dict(zip([t["name"] for t in program["inputs"]], arguments, strict=True))
        for tensor in program["constants"]:
            number = scalar(tensor, program)
            values[tensor["name"]] = tensor["value"][0] if number else constant(tensor)
        for node in program["nodes"]:
            operands = [values[name] for name in node["inputs"] if name is not None]
            values[node["outputs"][0]["name"]] = apply(node, operands)
        return [values[name] for name in program["outputs"] if name in values]

    return function


KINDS = ("ordinary", "again", "tiny", "zero", "negative zero", "positive", "negative")


def inputs_for(program, kind):
    random = np.random.default_rng(KINDS.index(kind))
    arguments = []
    for tensor in program["inputs"]:
        shape, dtype = tensor["shape"], dtype_of(tensor["dtype"])
        if dtype is torch.bool:
            array = random.random(shape) > 0.3
        elif kind == "tiny":
            array = -np.logspace(-12, -7.3, max(int(np.prod(shape)), 1)).reshape(shape)
        elif "zero" in kind:
            array = np.full(shape, -0.0 if "negative" in kind else 0.0)
        elif kind in ("positive", "negative"):
            array = random.uniform(1, 100, shape) * (1 if kind == "positive" else -1)
        else:
            array = random.standard_normal(shape)
        if dtype is torch.uint8:
            array = np.abs(array)
        arguments.append(torch.from_numpy(np.asarray(array)).to(dtype))
    return arguments


def outcome(program):
    function = function_of(program)
    torch._dynamo.reset()
    kinds = KINDS if program["inputs"] else KINDS[:1]
    with torch.no_grad():
        for kind in kinds:
            arguments = inputs_for(program, kind)
            try:
                wanted = function(*arguments)
            except NotImplementedError as error:
                if "No operator" not in str(error) and len(str(error)) < 30:
                    return f"cannot build: {error}"
                raise
            try:
                got = torch.compile(function, fullgraph=True)(*arguments)
            except Exception:
                return "crash_at_compile"
            symptom = outcomes.difference([t.numpy() for t in got], [t.numpy() for t in wanted])
            if symptom:
                return symptom
    return "ok"


if __name__ == "__main__":
    say(version=torch.__version__.split("+")[0])
    for task in json.load(sys.stdin):
        say(key=task["key"], outcome=outcome(task["program"]))
