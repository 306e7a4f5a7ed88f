"""Figure 4 of the second paper: guards around GeneSys's padding."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.mining.instrument.conftest import Workshop

EXCERPT = (Path(__file__).parent / "data" / "genesys_padding.txt").read_text()

MONITORS = """
monitor padding_factor : hardware_feasibility on pass "padding" {
    from: "stages.py:LCM"
    assert value("constr") % value("bandwidth") == 0
    assert value("constr") % value("sys_dims") == 0
}
monitor padded_shape : hardware_feasibility on pass "padding" {
    from: "stages.py:PAD"
    assert value("new_inp_dim") % value("constr") == 0
}
"""

RUN = """
from types import SimpleNamespace as S
{lazy}
def dim(name): return S(name=name)
def program(rows, bits, bandwidth):
    edge = S(bandwidth_bytes=bandwidth)
    hag = S(get_subgraph_node=lambda name: S(dimensions=[rows]), meta_cfg={{"DATA_WIDTH": bits}})
    hag.edge_map = {{("DRAM", "IBUF"): edge}}
    return S(hag=hag)
def template(width):
    op = S(param_map={{"target": "pe_array", "op_name": "MVMUL",
                      "sources": [S(operand_shape_list=[dim("N")])],
                      "dests": [S(operand_shape_list=[dim("P")])]}})
    node = S(inputs=[S(shape=[1, width]), S(shape=[width, 10])])
    return S(get_ops_by_type=lambda kind: [op], node=node, update_dummy_op=lambda name, dim: None)
from stages import template_pad_pass
template_pad_pass(program(16, 8, 24), template({width}))
"""


def line_of(text: str) -> int:
    (found,) = [n for n, line in enumerate(EXCERPT.splitlines(), 1) if text in line]
    return found


def monitors() -> str:
    factor, padded = line_of("np.lcm("), line_of("new_inp_dim = ")
    return MONITORS.replace("LCM", str(factor)).replace("PAD", str(padded))


def test_the_guards_stand_where_the_figure_has_them(workshop: Workshop) -> None:
    workshop.put({"stages.py": EXCERPT})
    workshop.make(monitors())
    added = [line.strip() for line in workshop.text("stages.py").splitlines()]
    plain = [line.strip() for line in EXCERPT.splitlines()]
    for line in plain:
        at = added.index(line)
        assert at >= 0
    after_lcm = added.index("constr = np.lcm(bandwidth, sys_dims)")
    assert added[after_lcm + 1].endswith("constr, bandwidth: constr % bandwidth == 0)")
    assert added[after_lcm + 2].endswith("constr, sys_dims: constr % sys_dims == 0)")
    assert added[after_lcm + 3] == ""
    after_pad = added.index("new_inp_dim = pad_fn(dummy_inp_dim, constr)")
    assert added[after_pad + 1].endswith("new_inp_dim, constr: new_inp_dim % constr == 0)")


def test_nothing_else_changes(workshop: Workshop) -> None:
    workshop.put({"stages.py": EXCERPT})
    workshop.make(monitors())
    kept = [line for line in workshop.text("stages.py").splitlines(True) if "_reprise" not in line]
    assert "".join(kept) == EXCERPT


def test_concrete_shapes_satisfy_the_guards(workshop: Workshop) -> None:
    workshop.put({"stages.py": EXCERPT, "run.py": RUN.format(lazy="", width=100)})
    workshop.make(monitors())
    satisfied = {"padding_factor/1", "padding_factor/2", "padded_shape"}
    assert workshop.verdicts(sys.executable, "run.py") == dict.fromkeys(satisfied, "satisfied")


# A placeholder as GeneSys has it: arithmetic gives placeholders, and comparing two is False.
LAZY = """
class Dummy:
    evaluations = 0
    def __init__(self, body): self.body = body
    def __floordiv__(self, other): return Dummy(f"({self.body}//{other})")
    def __mul__(self, other): return Dummy(f"({self.body}*{other})")
    __rmul__ = __mul__
    def __mod__(self, other): raise SystemExit("a monitor computed with a placeholder")
    def __getattr__(self, name): raise SystemExit(f"a monitor asked a placeholder for {name}")
    def evaluate(self, width): return eval(self.body, {"w": width})
"""


def lazy_run(then: str) -> str:
    made = RUN.format(lazy=LAZY, width='Dummy("w")')
    kept = made.replace("update_dummy_op=lambda name, dim: None", "update_dummy_op=remember")
    return (
        kept.replace(
            "def dim(name)", "seen = {}\ndef remember(name, d): seen[name] = d\ndef dim(name)"
        )
        + then
    )


def test_a_placeholder_is_unknown_and_left_alone(workshop: Workshop) -> None:
    workshop.put({"stages.py": EXCERPT, "run.py": lazy_run("")})
    workshop.make(monitors())
    assert workshop.verdicts(sys.executable, "run.py")["padded_shape"] == "unknown"


def test_a_placeholder_is_known_once_the_compiler_evaluates_one_that_is_the_same(
    workshop: Workshop,
) -> None:
    then = "same = Dummy(seen['N'].body)\nassert same.evaluate(100) == 144\n"
    workshop.put({"stages.py": EXCERPT, "run.py": lazy_run(then)})
    workshop.make(
        monitors(), lazy=[{"class": "__main__.Dummy", "concrete": "evaluate", "same": "body"}]
    )
    records = workshop.run(sys.executable, "run.py")[1]
    check = records[-1]["checks"]["padded_shape"]
    assert check["verdict"] == "satisfied"
    assert check["late"] == 1
    assert check["first"] == {"satisfied": {"new_inp_dim": 144, "constr": 48}}
