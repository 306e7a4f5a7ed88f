"""Where ``device(key)`` in a monitor has its value from."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.facts.hardware import DeviceError
from reprise.lang.ruleset import RuleSet, load_rules
from reprise.mining.instrument.device import device_values
from reprise.mining.instrument.errors import InstrumentError
from tests.mining.instrument.conftest import Workshop, monitor

FACTS = """
hw("chip", array_rows, 16).
hw("chip", channel_bits, 512).
hw("chip", dram_bytes, 3200000000).
"""


def facts(folder: Path, text: str = FACTS) -> RuleSet:
    path = folder / "hw.rules"
    path.write_text(text)
    return load_rules([path])


def test_facts_give_values_in_bits_and_bytes_and_under_other_names(tmp_path: Path) -> None:
    values = device_values(facts(tmp_path), None, [])
    assert values["array_m"] == values["array_rows"] == 16
    assert values["channel_bytes"] == 64
    assert values["dram_bits"] == 25_600_000_000


def test_values_given_one_by_one_come_first(tmp_path: Path) -> None:
    values = device_values(facts(tmp_path), "chip", ["array_m=32", "isa=avx2", "clock-ghz=1.5"])
    assert (values["array_m"], values["isa"], values["clock_ghz"]) == (32, "avx2", 1.5)


def test_a_value_that_is_given_counts_in_every_unit_and_under_every_name(tmp_path: Path) -> None:
    described = facts(tmp_path, FACTS + 'hw("chip", dram_bits, 25600000000).\n')
    values = device_values(described, None, ["dram_bytes=4", "array_m=32", "l1_bits=12"])
    assert (values["dram_bits"], values["array_rows"]) == (32, 32)
    assert "l1_bytes" not in values


def test_of_several_targets_one_must_be_named(tmp_path: Path) -> None:
    both = facts(tmp_path, FACTS + 'hw("board", array_rows, 8).\n')
    with pytest.raises(DeviceError, match="--device board or chip"):
        device_values(both, None, [])
    assert device_values(both, "board", [])["array_m"] == 8
    with pytest.raises(DeviceError, match="there are board, chip"):
        device_values(both, "toaster", [])


def test_of_hundreds_of_devices_a_message_names_a_few_and_those_that_are_near(
    tmp_path: Path,
) -> None:
    many = [f'hw("maker/{kind}-{n}", array_rows, 8).' for kind in ("gpu", "npu") for n in range(99)]
    described = facts(tmp_path, "\n".join(many))
    with pytest.raises(DeviceError, match=r"maker/gpu-0 or .* or 190 more") as told:
        device_values(described, None, [])
    assert len(str(told.value)) < 250
    with pytest.raises(DeviceError, match="`npu-77`: maker/npu-77 has it in the name; there are"):
        device_values(described, "npu-77", [])
    with pytest.raises(DeviceError, match="did you mean `maker/npu-77`"):
        device_values(described, "maker/nqu-77", [])


def test_a_value_without_a_key_is_told() -> None:
    with pytest.raises(InstrumentError, match="KEY=VALUE"):
        device_values(None, None, ["16"])


def test_a_value_becomes_a_number_in_the_source(workshop: Workshop) -> None:
    workshop.put({"a.py": "x = 48\n"})
    workshop.make(monitor('value("x") % device(array_m) == 0', "a.py:1"), {"array_m": 16})
    assert "lambda x: x % 16 == 0)" in workshop.text("a.py")
    assert workshop.python() == {"m": "satisfied"}
