"""What each format's specifications come to, and a format that is added as data only."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from reprise.lang.ruleset import load_text
from reprise.mining.hardware.formats import FormatError, load_format, load_formats, load_keys
from reprise.mining.hardware.mine import Mined, mine_specifications
from reprise.mining.hardware.write import rules_text

DATA = Path(__file__).parent / "data"


def mine(*names: str, formats: Path | None = None) -> Mined:
    return mine_specifications(
        [DATA / name for name in names], load_formats([formats] if formats else [])
    )


def values(mined: Mined, target: str) -> Mapping[str, int]:
    return {fact.key: fact.value for fact in mined.facts if fact.target == target}


def test_genesys_writes_few_values_and_its_loader_fills_in_the_rest() -> None:
    found = values(mine("genesys_16x16.json"), "genesys_16x16")
    assert found["array_rows"] == found["array_m"] == 16
    assert found["data_bits"] == 8  # by default
    assert (found["channel_bits"], found["channel_bytes"]) == (512, 64)
    # depth x width x banks, and banks = channel / width: 50,000,000 x 8 x 64 bits
    assert (found["dram_bits"], found["dram_bytes"]) == (25_600_000_000, 3_200_000_000)
    assert found["sram_bytes_wbuf"] == 4096 * 16 * 16
    assert found["sram_bytes_vmem"] == 1023 * 16 * 4


def test_every_fact_says_its_lines_and_the_defaults_that_took_part() -> None:
    mined = mine("genesys_16x16.json")
    facts = {fact.key: fact for fact in mined.facts}
    assert [p.line for p in facts["dram_bytes"].places] == [10, 9]
    assert facts["dram_bytes"].notes[0] == "DRAM_WIDTH by default: config_loader.py:102"
    text = rules_text(mined, load_keys())
    assert 'hw("genesys_16x16", array_rows, 16).  // genesys_16x16.json:2\n' in text


def test_a_count_of_instances_says_the_lines_that_they_are_counted_in() -> None:
    mined = mine("eyeriss_v3.yaml")
    facts = {fact.key: fact for fact in mined.facts}
    text = (DATA / "eyeriss_v3.yaml").read_text().splitlines()
    for key in ("sram_instances_ifmap_spad", "array_rows"):
        lines = [text[place.line - 1] for place in facts[key].places]
        assert any("PE[0..167]" in line for line in lines), key


def test_both_versions_of_timeloop_describe_the_same_array() -> None:
    mined = mine("eyeriss_v3.yaml", "eyeriss_v4.yaml")
    old, new = values(mined, "eyeriss_v3"), values(mined, "eyeriss_v4")
    same = ["array_rows", "array_cols", "data_bits", "sram_bytes_shared_glb", "dram_width_bits"]
    assert [old[key] for key in same] == [new[key] for key in same] == [12, 14, 16, 131072, 64]
    assert old["sram_bytes_ifmap_spad"] == new["sram_bytes_ifmap_spad"] == 24
    assert old["sram_instances_ifmap_spad"] == 168  # the count is in a name: PE[0..167]


def test_a_c_header_is_read_through_its_macros_and_typedefs() -> None:
    found = values(mine("gemmini_params.h"), "gemmini_params")
    assert (found["array_rows"], found["data_bits"], found["acc_bits"]) == (16, 8, 32)
    assert found["sram_bytes_scratchpad"] == 4 * 4096 * 16
    assert found["sram_bytes_accumulator"] == 1024 * 16 * 4


def test_a_target_as_tvm_exports_it_leaves_its_host_out() -> None:
    found = values(mine("cuda.json"), "nvidia/nvidia-h100")
    assert found["shared_bytes"] == 49152
    assert found["warp"] == found["threads_per_warp"] == 32
    assert "cores" not in found


def test_a_registry_in_python_is_followed_without_being_run(tmp_path: Path) -> None:
    registry = tmp_path / "tags.py"
    registry.write_text((DATA / "tags.txt").read_text())
    mined = mine_specifications([registry], load_formats())
    assert values(mined, "vendor/one")["shared_bytes"] == 49152
    assert values(mined, "vendor/two")["shared_bytes"] == 101376
    assert values(mined, "vendor/two")["l2_bytes"] == 52428800
    assert values(mined, "dsp/v68") == {"vtcm_bytes": 4 << 20, "cores": 4}
    assert values(mined, "dsp/v69") == {"vtcm_bytes": 8 << 20, "cores": 6}
    assert values(mined, "vendor/three")["threads_per_block"] == 512
    assert values(mined, "vendor/three")["shared_bytes"] == 32768  # what the kind has by default
    (told,) = mined.diagnostics
    assert "`is_known` is not defined in this file" in told.message


@pytest.mark.slow
def test_tvms_own_tags_have_the_values_that_tvm_says() -> None:
    python = os.environ.get("REPRISE_TVM_PYTHON")
    if python is None:
        pytest.skip("REPRISE_TVM_PYTHON is not set")
    program = (
        "import json, os, tvm; from tvm.target import list_tags; "
        "print(json.dumps([os.path.dirname(tvm.__file__), {t: {k: int(v) for k, v in "
        "dict(T.attrs).items() if isinstance(v, int)} for t, T in list_tags().items()}]))"
    )
    run = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    folder, tags = json.loads(run.stdout.splitlines()[-1])
    mined = mine_specifications([Path(folder, "target"), Path(folder, "backend")], load_formats())
    fmt = next(fmt for fmt in load_formats() if fmt.name == "tvm_tags")
    keys = {
        key: derivation.key
        for derivation in fmt.derivations
        for word in fmt.words.values()
        for key in word.keys
        if derivation.key in ("threads_per_block", "threads_per_warp", "shared_bytes", "cores")
        if getattr(derivation.value, "id", None) == word.name
    }
    said = [
        (tag, keys[name], value)
        for tag, attributes in tags.items()
        for name, value in attributes.items()
        if name in keys and value > 0
    ]
    have = {(fact.target, fact.key, fact.value) for fact in mined.facts}
    assert len(said) > 500
    assert [one for one in said if one not in have] == []


def test_a_format_is_added_by_a_grammar_and_a_keyword_map_alone() -> None:
    mined = mine("board.plate", formats=DATA / "formats")
    assert values(mined, "small") == {
        "array_rows": 8,
        "array_cols": 8,
        "data_bits": 8,
        "dram_bytes": 3 << 29,
        "dram_bits": 3 << 32,
        "array_m": 8,
        "array_n": 8,
    }
    messages = [d.message for d in mined.diagnostics]
    assert "`width`: 8 of what? there is no unit" in messages
    assert any("array_rows % 4 == 0 (plate.c:14), but array_rows is 6" in m for m in messages)
    assert values(mined, "odd")["array_cols"] == 4  # what can be read is kept


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (('is = "cols"', 'is = "colz"'), "`colz` is no word; did you mean `cols`?"),
        (('key = "dram_bytes"', 'key = "dram_byte"'), "did you mean `dram_bytes`?"),
        (('syntax = "grammar"', 'syntax = "toml"'), "`syntax` is one of json, yaml"),
        (('unit = "elements"', 'unit = "feet"'), "`feet` is no unit"),
        (("plate.lark", "plato.lark"), "there is no grammar 'plato.lark'"),
        (("files = [", "file = ["), "`file` is nothing that a format has; did you mean `files`?"),
    ],
)
def test_a_mistake_in_a_format_is_told(
    tmp_path: Path, change: tuple[str, str], complaint: str
) -> None:
    text = (DATA / "formats" / "plate.toml").read_text()
    (tmp_path / "plate.lark").write_text((DATA / "formats" / "plate.lark").read_text())
    (tmp_path / "plate.toml").write_text(text.replace(*change))
    with pytest.raises(FormatError) as caught:
        load_format(tmp_path / "plate.toml")
    assert complaint in str(caught.value)


def test_what_is_mined_is_a_rule_file_whose_device_a_run_chooses() -> None:
    text = rules_text(mine("genesys_16x16.json", "cuda.json"), load_keys())
    rules = load_text(text)
    constraint = rules.constraints["genesys_memory_holds_result"]
    assert constraint.meta["template"] == ("hardware",)
    assert constraint.meta["from"][0].endswith("genesys_16x16.json:10")
    assert "tvm_shared_memory_fits" in rules.monitors
    assert "tvm_memory_holds_result" not in rules.constraints  # TVM's targets say no such size
