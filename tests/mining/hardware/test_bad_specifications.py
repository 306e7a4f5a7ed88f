"""What is wrong with a specification is told with its line, and the rest is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.lang import core
from reprise.lang.ruleset import load_text
from reprise.mining.hardware.formats import load_formats, load_keys
from reprise.mining.hardware.mine import Mined, mine_specifications
from reprise.mining.hardware.write import rules_text

DATA = Path(__file__).parent / "data"
GENESYS = (DATA / "genesys_16x16.json").read_text()
EYERISS = (DATA / "eyeriss_v4.yaml").read_text()


def mine(tmp_path: Path, text: str, name: str = "spec.json") -> Mined:
    path = tmp_path / name
    path.write_text(text)
    return mine_specifications([path], load_formats())


def told(mined: Mined) -> list[tuple[str, int]]:
    return [(d.code, d.span.line) for d in mined.diagnostics]


def keys(mined: Mined) -> set[str]:
    return {fact.key for fact in mined.facts}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("-16", "`ARRAY_M`: a negative number is no size"),
        ("0", "`ARRAY_M`: zero"),
        ("true", "`ARRAY_M`: true where a number is expected"),
        ("[16]", "`ARRAY_M`: a list where a number is expected"),
        ("16.5", "`ARRAY_M`: 33/2 is not a whole number of bits or elements"),
        ('"wide"', "`ARRAY_M`: `wide` is no number, and nothing defines `wide`"),
        ("NaN", "`ARRAY_M`: `NaN` is no number, and nothing defines `NaN`"),
        ("-Infinity", "`ARRAY_M`: "),
        ('"16 parsecs"', "`ARRAY_M`: `parsecs` is no unit: "),
    ],
)
def test_a_value_that_is_no_size(tmp_path: Path, written: str, message: str) -> None:
    mined = mine(tmp_path, GENESYS.replace('"ARRAY_M": 16', f'"ARRAY_M": {written}'))
    assert mined.diagnostics[0].message.startswith(message)
    assert told(mined)[0] == ("spec-value", 2)
    assert "array_rows" not in keys(mined)
    assert {"array_cols", "dram_bytes"} <= keys(mined)


def test_a_size_where_a_count_is_expected(tmp_path: Path) -> None:
    mined = mine(tmp_path, GENESYS.replace('"ARRAY_M": 16', '"ARRAY_M": "16 KiB"'))
    assert any(
        "a size was found where elements are expected" in d.message for d in mined.diagnostics
    )
    assert "array_rows" not in keys(mined)


def test_an_unknown_key_gets_a_near_one(tmp_path: Path) -> None:
    mined = mine(tmp_path, GENESYS.replace("IBUF_DEPTH", "IBUF_DEPHT"))
    assert told(mined) == [("spec-unknown-key", 4), ("spec-incomplete", 3)][:1]
    assert mined.diagnostics[0].hint == "did you mean `IBUF_DEPTH`?"


def test_a_key_given_twice_has_its_last_value(tmp_path: Path) -> None:
    mined = mine(tmp_path, GENESYS.replace('"ARRAY_N": 16', '"ARRAY_N": 8, "ARRAY_N": 4'))
    assert ("spec-duplicate", 3) in told(mined)
    assert {f.value for f in mined.facts if f.key == "array_cols"} == {4}


def test_what_the_compiler_asserts_is_held_against_the_specification(tmp_path: Path) -> None:
    mined = mine(tmp_path, GENESYS.replace('"ARRAY_M"', '"ACC_WIDTH": 16, "ARRAY_M"'))
    assert told(mined) == [("spec-requirement", 2)]
    assert "data_bits * 4 == acc_bits (config_loader.py:43)" in mined.diagnostics[0].message


def test_of_a_file_that_is_cut_off_what_came_before_is_kept(tmp_path: Path) -> None:
    mined = mine(tmp_path, GENESYS[: GENESYS.index('"OBUF_DEPTH"')])
    assert mined.diagnostics[0].message == "the text ends in the middle"
    assert {"array_rows", "array_cols"} <= keys(mined)
    assert "dram_bytes" not in keys(mined)  # DRAM_DEPTH may be in the missing part


def test_of_yaml_that_is_cut_off_what_came_before_is_kept(tmp_path: Path) -> None:
    mined = mine(tmp_path, EYERISS[: EYERISS.index("PE_column")] + "x: {", "spec.yaml")
    assert mined.diagnostics[0].code == "spec-syntax"
    assert "sram_bytes_shared_glb" in keys(mined)


def test_a_pointer_of_git_lfs_is_called_what_it_is(tmp_path: Path) -> None:
    mined = mine(tmp_path, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n")
    assert told(mined) == [("spec-pointer", 1)]
    assert "git lfs pull" in (mined.diagnostics[0].hint or "")


@pytest.mark.parametrize("text", ["", "{}", '{"foo": 1}', "\x00"])
def test_a_file_of_no_known_format(tmp_path: Path, text: str) -> None:
    assert told(mine(tmp_path, text, "spec.txt")) == [("spec-unknown-format", 1)]


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("spec.json", '{\n  "rows": 16,\n  "cols" 16\n}', "3:10"),
        ("spec.yaml", "chip:\n  rows: [16\n  cols: 16\n", "3:7"),
        ("spec.cfg", '{"rows": ]}', "1:10"),
    ],
)
def test_of_a_file_of_no_known_format_a_mistake_in_its_syntax_is_told_too(
    tmp_path: Path, name: str, text: str, place: str
) -> None:
    syntax, unknown = mine(tmp_path, text, name).diagnostics
    assert (syntax.code, str(syntax.span)) == ("spec-syntax", f"{tmp_path / name}:{place}")
    assert unknown.code == "spec-unknown-format"


@pytest.mark.slow
@pytest.mark.timeout(20)
def test_aliases_that_expand_without_bound_are_stopped(tmp_path: Path) -> None:
    lines = ["nodes:", "- &a0 {depth: 1}"]
    lines += [f"- &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    mined = mine(tmp_path, "\n".join(lines), "spec.yaml")
    assert mined.diagnostics[0].code == "spec-size"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", ["nodes: " + "[" * 5000, "nodes: &x [*x]", "- nodes:\n" * 3])
def test_other_malicious_yaml(tmp_path: Path, text: str) -> None:
    assert mine(tmp_path, text, "spec.yaml").facts == ()


@pytest.mark.timeout(20)
def test_nesting_without_end(tmp_path: Path) -> None:
    mined = mine(tmp_path, '{"ARRAY_M": ' * 5000)
    assert mined.diagnostics[0].code == "spec-syntax"


@pytest.mark.timeout(20)
def test_a_registry_that_loops_without_end(tmp_path: Path) -> None:
    text = "def f(x):\n    f(x)\nL = [1, 2]\nf(1)\nregister_tag('a', {'kind': 'cuda'})\n"
    mined = mine(tmp_path, text, "tags.py")
    assert told(mined) == [("spec-size", 4)]


def test_definitions_that_refer_to_each_other(tmp_path: Path) -> None:
    text = "#define DIM ACC_ROWS\n#define ACC_ROWS DIM\n#define BANK_ROWS 4\n"
    mined = mine(tmp_path, text, "params.h")
    assert ("spec-value", 1) in told(mined)


def test_two_files_that_disagree_about_a_device(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / "dev.json", tmp_path / "b" / "dev.json"]
    for path, size in zip(paths, (16, 32), strict=True):
        path.parent.mkdir()
        path.write_text(GENESYS.replace('"ARRAY_N": 16', f'"ARRAY_N": {size}'))
    mined = mine_specifications(paths, load_formats())
    message = next(d.message for d in mined.diagnostics if d.message.startswith("array_cols"))
    assert (
        message == f"array_cols of `dev` is 32 here, and 16 by {paths[0]}:3: the first one counts"
    )
    assert {f.value for f in mined.facts if f.key == "array_cols"} == {16}


def test_a_folder_is_searched_and_what_is_no_specification_passed_over(tmp_path: Path) -> None:
    (tmp_path / "dev.json").write_text(GENESYS)
    (tmp_path / "other.json").write_text('{"name": "x"}')
    (tmp_path / "notes.txt").write_text("ARRAY_M")
    mined = mine_specifications([tmp_path], load_formats())
    assert mined.targets == ("dev",)
    assert mined.diagnostics == ()


def test_a_name_cannot_break_out_of_its_line(tmp_path: Path) -> None:
    name = r"a\nhw(x, y, 1). \"\\"
    text = f'{{"kind": "cuda", "tag": "{name}", "thread_warp_size": 32}}'
    rules = load_text(rules_text(mine(tmp_path, text), load_keys()))
    keys = [
        term.value
        for rule in rules.program.rules
        if rule.head.relation == "hw" and not rule.body
        if isinstance(term := rule.head.terms[1], core.Const)
    ]
    assert "threads_per_warp" in keys
    assert "y" not in keys


def test_numbers_that_no_device_has(tmp_path: Path) -> None:
    mined = mine(tmp_path, GENESYS.replace('"DRAM_DEPTH": 50000000', f'"DRAM_DEPTH": 1{"0" * 90}'))
    assert "`DRAM_DEPTH`: no device has so much" in [d.message for d in mined.diagnostics]
    load_text(rules_text(mined, load_keys()))


@pytest.mark.parametrize("line", ["x = -'a'", "for i in 3: pass", "a, b = 1", "d = {}\nd.get([])"])
def test_a_registry_that_would_fail_when_run(tmp_path: Path, line: str) -> None:
    text = f"{line}\nregister_tag('a', {{'kind': 'cuda'}})\n"
    mined = mine(tmp_path, text, "tags.py")
    assert [d.code for d in mined.diagnostics] == ["spec-unknown-value"]
    assert mined.targets == ("a",)


def test_a_mark_of_utf_8_and_numbers_without_end(tmp_path: Path) -> None:
    assert told(mine(tmp_path, "\ufeff" + GENESYS)) == []
    mined = mine(tmp_path, GENESYS.replace('"ARRAY_M": 16', f'"ARRAY_M": {"9" * 6000}'))
    assert mined.diagnostics[0].message == "`ARRAY_M`: no device has so much"


def test_a_specification_is_not_written_over(tmp_path: Path) -> None:
    from reprise.cli.main import Exit, run

    spec = tmp_path / "spec.json"
    spec.write_text(GENESYS)
    assert run(["mine", "hardware", str(spec), "--out", str(spec)]) == Exit.INPUT
    assert spec.read_text() == GENESYS


def test_facts_for_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    from reprise.cli.main import Exit, run

    spec = tmp_path / "spec.json"
    spec.write_text(GENESYS)
    assert run(["mine", "hardware", str(spec), "--format", "json"]) == Exit.OK
    said = json.loads(capsys.readouterr().out)
    assert {"array_rows", "dram_bytes"} <= {fact["key"] for fact in said["facts"]}
    assert said["problems"] == []
