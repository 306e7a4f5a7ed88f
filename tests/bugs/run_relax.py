"""Build programs with TVM and say what happens. Runs inside an interpreter that has TVM and numpy.

Reads a list of tasks (JSON) from standard input and writes one line for each. A task is a program
(``programs.py``) for the target "cuda", which is compiled only, or "llvm", which is run on several
inputs and compared with numpy; or an ONNX model with inputs and expected outputs (``test_tvm.py``).
"""

import base64
import io
import json
import os
import sys

import numpy as np
import outcomes

sys.stderr = open(os.devnull, "w")  # noqa: SIM115
import tvm  # noqa: E402
from tvm import relax  # noqa: E402

R = relax.op
TensorType = getattr(relax, "TensorStructInfo", None) or relax.TensorType


def say(**what):
    print("@ " + json.dumps(what), flush=True)


def compiled(module, target):
    build = getattr(relax, "build", None) or tvm.compile
    return build(module, target=tvm.target.Target(target))


def run(executable, arrays):
    machine = relax.VirtualMachine(executable, tvm.cpu())
    tensor = getattr(tvm.runtime, "tensor", None) or tvm.nd.array
    results = machine["main"](*[tensor(np.ascontiguousarray(a)) for a in arrays])
    return [r.numpy() for r in ([results] if hasattr(results, "numpy") else results)]


# --- programs -------------------------------------------------------------------------------------

BINARY = {
    "add": R.add,
    "sub": R.subtract,
    "mul": R.multiply,
    "div": R.divide,
    "pow": R.power,
    "maximum": R.maximum,
    "minimum": R.minimum,
    "matmul": R.matmul,
}
UNARY = {
    "relu": R.nn.relu,
    "tanh": R.tanh,
    "exp": R.exp,
    "neg": R.negative,
    "logical_not": R.logical_not,
}
REDUCTIONS = {"sum": R.sum, "mean": R.mean, "max": R.max, "min": R.min, "prod": R.prod}


def emit(block, node, operands):
    """The node as an expression of Relax."""
    op, a = node["op"], node["attributes"]
    x = operands[0] if operands else None
    if op in BINARY:
        return BINARY[op](*operands)
    if op in UNARY:
        return UNARY[op](x)
    if op in REDUCTIONS:
        return REDUCTIONS[op](x, axis=a.get("axes"), keepdims=bool(a.get("keepdims")))
    if op == "sum_square":
        return R.sum(block.emit(R.multiply(x, x)), axis=a["axis"], keepdims=bool(a.get("keepdims")))
    if op in ("argmin", "argmax"):
        # UIR has one axis; TVM reduces all of them to a scalar if none is given
        return getattr(R, op)(x, axis=a["axis"], keepdims=bool(a.get("keepdims")))
    if op == "einsum":
        return R.einsum(tuple(operands), a["equation"])
    if op == "identity":
        return x
    if op == "reciprocal":
        return R.divide(relax.const(1.0, "float32"), x)
    if op == "where":
        return R.where(*operands)
    if op == "cast":
        return R.astype(x, a["to"])
    if op == "conv2d":
        keys = {"strides": a["strides"], "padding": a["pads"], "dilation": a["dilations"]}
        return R.nn.conv2d(*operands[:2], groups=a["groups"], **keys)
    if op in ("avg_pool2d", "max_pool2d"):
        pool = getattr(R.nn, op)
        return pool(x, a["kernel"], strides=a["strides"], padding=a["pads"])
    if op.startswith("adaptive_avg_pool"):
        return getattr(R.nn, op)(x, a["output_size"])
    if op == "batch_norm":
        axis = min(1, len(x.struct_info.shape) - 1) if hasattr(x, "struct_info") else 1
        training = bool(a.get("training"))
        normal = block.emit(R.nn.batch_norm(*operands, axis=axis, training=training))
        return relax.TupleGetItem(normal, 0)
    raise NotImplementedError(op)


def module_of(program):
    block = relax.BlockBuilder()
    values = {}
    parameters = []
    for tensor in program["inputs"]:
        kind = TensorType(tensor["shape"], tensor["dtype"])
        values[tensor["name"]] = relax.Var(tensor["name"], kind)
        parameters.append(values[tensor["name"]])
    for tensor in program["constants"]:
        array = np.array(tensor["value"]).astype(tensor["dtype"]).reshape(tensor["shape"])
        values[tensor["name"]] = relax.const(array)
    with block.function("main", parameters):
        with block.dataflow():
            for node in program["nodes"]:
                operands = [values[name] for name in node["inputs"] if name is not None]
                values[node["outputs"][0]["name"]] = block.emit(emit(block, node, operands))
            outputs = [values[name] for name in program["outputs"] if name in values]
            result = outputs[0] if len(outputs) == 1 else relax.Tuple(outputs)
            result = block.emit_output(result)
        block.emit_func_output(result)
    return block.get()


# --- what numpy says ------------------------------------------------------------------------------


def adaptive(x, size):
    result = np.zeros((*x.shape[:2], *size), x.dtype)
    for i in range(size[0]):
        for j in range(size[1]):
            rows = slice(i * x.shape[2] // size[0], -(-(i + 1) * x.shape[2] // size[0]))
            columns = slice(j * x.shape[3] // size[1], -(-(j + 1) * x.shape[3] // size[1]))
            result[:, :, i, j] = x[:, :, rows, columns].mean((2, 3))
    return result


def expected(program, arrays):
    """The outputs by numpy, or None if an operator is not among those that are run."""
    values = dict(zip([t["name"] for t in program["inputs"]], arrays, strict=True))
    for t in program["constants"]:
        values[t["name"]] = np.array(t["value"]).astype(t["dtype"]).reshape(t["shape"])
    for node in program["nodes"]:
        a = node["attributes"]
        x, *rest = (values[name] for name in node["inputs"])
        axes = tuple(a["axes"]) if a.get("axes") is not None else None
        match node["op"]:
            case "tanh" | "exp" as op:
                y = getattr(np, op)(x)
            case "relu":
                y = np.maximum(x, 0)
            case "reciprocal":
                y = np.float32(1) / x
            case "neg":
                y = -x
            case "identity":
                y = x
            case "cast":
                y = x.astype(a["to"])
            case "where":
                y = np.where(x, *rest)
            case "max" | "min" as op:
                y = getattr(np, op)(x, axis=axes, keepdims=bool(a.get("keepdims")))
            case "argmax" | "argmin" as op:
                y = getattr(np, op)(x, axis=a["axis"], keepdims=bool(a.get("keepdims")))
            case "adaptive_avg_pool2d":
                y = adaptive(x, a["output_size"])
            case _:
                return None
        values[node["outputs"][0]["name"]] = y
    return [values[name] for name in program["outputs"]]


def inputs_for(program, kind):
    """Arrays of one kind: ordinary, all zero (false), all negative zero (true)."""
    random = np.random.default_rng(0)
    arrays = []
    for tensor in program["inputs"]:
        shape, dtype = tensor["shape"], np.dtype(tensor["dtype"])
        truth = dtype.kind == "b"
        if kind != "ordinary":
            array = np.full(shape, 0.0 if kind == "zero" else 1.0 if truth else -0.0)
        elif truth:
            array = random.uniform(0, 1, shape) > 0.5
        else:
            array = random.uniform(-3, 3, shape)
        arrays.append(np.asarray(array).astype(dtype))
    return arrays


def program_outcome(task):
    try:
        module = module_of(task["program"])
    except NotImplementedError as error:
        return f"cannot build: {error}"
    try:
        executable = compiled(module, task["target"])
    except Exception:
        return "crash_at_compile"
    if task["target"] == "cuda":
        return "ok"
    for kind in ("ordinary", "zero", "negative zero"):
        arrays = inputs_for(task["program"], kind)
        with np.errstate(all="ignore"):
            wanted = expected(task["program"], arrays)
        if wanted is None:
            return "ok"
        symptom = outcomes.difference(run(executable, arrays), wanted)
        if symptom:
            return symptom
    return "ok"


# --- ONNX models ----------------------------------------------------------------------------------


def model_outcome(task):
    import onnx
    from tvm.relax.frontend.onnx import from_onnx

    model = onnx.load_from_string(base64.b64decode(task["model"]))
    data = np.load(io.BytesIO(base64.b64decode(task["data"])))
    arrays = [data[f"input{i}"] for i in range(sum(k.startswith("input") for k in data.files))]
    wanted = [data[f"output{i}"] for i in range(sum(k.startswith("output") for k in data.files))]
    try:
        module = from_onnx(model, keep_params_in_input=False)
        module = relax.transform.DecomposeOpsForInference()(module)
        executable = compiled(relax.transform.LegalizeOps()(module), "llvm")
    except Exception:
        return "crash_at_compile"
    try:
        return outcomes.difference(run(executable, arrays), wanted) or "ok"
    except Exception:
        return "crash_at_run"


if __name__ == "__main__":
    say(version=tvm.__version__)
    for task in json.load(sys.stdin):
        outcome = model_outcome if "model" in task else program_outcome
        say(key=task["key"], outcome=outcome(task))
