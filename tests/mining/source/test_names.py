"""The names of what was mined."""

from __future__ import annotations

from reprise.mining.source.write import _Names


def test_a_name_is_given_once() -> None:
    names = _Names()
    assert [names.name("Pad 3") for _ in range(2)] == ["pad_3", "pad_3_n2"]


def test_a_name_begins_with_a_letter() -> None:
    assert _Names().name("3 pads") == "n_3_pads"


def test_what_is_mined_can_be_loaded_beside_what_ships() -> None:
    assert _Names().name("tvm_resize_antialias") == "mined_tvm_resize_antialias"
