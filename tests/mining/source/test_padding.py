"""Padding, as in the paper's Figures 3 and 4."""

from __future__ import annotations

from pathlib import Path

from tests.mining.source.conftest import DATA, Mine, assertions, monitors

FIRST = 107
"""The line of stages.py that the excerpt begins with, after its head."""


def genesys() -> dict[str, str | bytes]:
    """The excerpt, with every line where it is in GeneSys."""
    head, body = (DATA / "genesys_stages.txt").read_text().split("(program, template):\n")
    lines = head.count("\n") + 1
    return {"stages.py": "\n" * (FIRST - 1 - lines) + f"{head}(program, template):\n{body}"}


def test_figure_4_comes_out_of_genesys(mined: Mine) -> None:
    found = mined(genesys())
    by_line = {m.meta["from"]: m for m in monitors(found).values()}
    assert [
        line for line in assertions(found) if line.endswith("== 0") and "device" not in line
    ] == [
        'value("constr") % value("bandwidth") == 0',
        'value("constr") % value("sys_dims") == 0',
        'value("new_inp_dim") % value("constr") == 0',
        'value("new_out_dim") % value("constr") == 0',
    ]
    factor = by_line[("stages.py:124",)]
    assert factor.pass_name == "template_pad_pass"
    assert factor.klass == "hardware_feasibility"
    assert factor.meta["template"] == ("padding",)


def test_figure_3_holds_the_factor_against_the_device(mined: Mine) -> None:
    lines = assertions(mined(genesys()))
    assert 'value("constr") % device(channel_bytes) == 0' in lines
    assert 'value("constr") % (device(array_m) * device(data_bits) / 8) == 0' in lines


def test_a_padded_extent_is_not_smaller(mined: Mine) -> None:
    lines = assertions(mined(genesys()))
    assert 'value("new_inp_dim") >= value("dummy_inp_dim")' in lines


def test_a_hardware_description_that_has_the_keys_is_referred_to(
    mined: Mine, tmp_path: Path
) -> None:
    hardware = tmp_path / "device.rules"
    hardware.write_text('\nhw("g", channel_bytes, 64).\n')
    found = mined(genesys(), hardware=[hardware])
    assert monitors(found)["genesys_padding_stages_124"].meta["agrees"] == ("device.rules:2",)
