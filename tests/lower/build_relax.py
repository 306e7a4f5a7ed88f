"""Build Relax sources and say what is wrong with them. Runs inside an interpreter that has TVM.

Reads JSON lines from standard input: ``key``, ``source`` and ``results``, the element type and
shape of each result. Writes a line for each: ``key`` and ``problem`` (null if there is none).
"""

import json
import os
import sys

sys.stderr = open(os.devnull, "w")  # noqa: SIM115
from tvm import relax  # noqa: E402


def returned(function):
    kind = getattr(function, "ret_struct_info", None) or function.ret_ty
    kinds = list(kind.fields) if hasattr(kind, "fields") else [kind]
    return [[str(k.dtype), [int(extent) for extent in k.shape]] for k in kinds]


def problem(task):
    space = {}
    try:
        exec(compile(task["source"], task["key"], "exec"), space)
        module = space["build"]()
        if relax.analysis.well_formed(module) is False:  # 0.27 raises
            return "not well-formed"
        made = returned(module["main"])
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:500]
    return None if made == task["results"] else f"returns {made}, not {task['results']}"


for line in sys.stdin:
    task = json.loads(line)
    print(json.dumps({"key": task["key"], "problem": problem(task)}), flush=True)
