"""Support tables: what is written is what is read, and what is asked of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reprise.data import data_path
from reprise.solve.signatures import Signatures
from reprise.targets.support import Support, read_dtypes, show_dtypes, table_key

DTYPE = st.none() | st.sampled_from(["float32", "float64", "int64", "bool", "..."])


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def support(table: dict) -> Support:
    return Support("toy", {"toy": "1"}, "slow", 0, 3, table)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["erf", "where"]), st.lists(DTYPE, max_size=4).map(tuple)),
        st.text(st.characters(exclude_categories=["Cs"])),
    )
)
def test_a_table_that_is_written_is_the_one_that_is_read(tables: Path, table: dict) -> None:
    (tables / "toy.toml").write_text(support(table).text(), "utf-8")
    assert Support.load("toy", tables) == support(table)


@given(st.lists(DTYPE, max_size=5).map(tuple))
def test_dtypes_as_text(dtypes: tuple) -> None:
    assert read_dtypes(show_dtypes(dtypes)) == dtypes


def test_a_target_without_a_table_declines_nothing(tmp_path: Path) -> None:
    assert Support.load("toy", tmp_path).why_not("erf", ["float64"]) is None


def test_an_application_is_looked_up_by_its_operands() -> None:
    table = support({("erf", ("float64",)): "no", ("where", ("bool", "int8")): "never"})
    assert table.why_not("erf", ["float64"]) == "no"
    assert table.why_not("erf", ["float32"]) is None
    assert table.why_not("where", ["bool", "int8", "int8"]) == "never"
    assert table.why_not("where", ["bool", "int16", "int16"]) is None
    assert table.why_not("abs", ["float64"]) is None


def test_open_entries_cover_whatever_optional_operands_follow() -> None:
    table = support(
        {
            (
                "rnn",
                ("float64", "float64", "..."),
            ): "no"
        }
    )
    for rest in ([], ["float64"], [None, "int32"], ["int32", None, "float64"]):
        assert table.why_not("rnn", ["float64", "float64", *rest]) == "no"
    assert table.why_not("rnn", ["float64"]) is None
    whole = support({("image", ("...",)): "no"})
    assert whole.why_not("image", []) == whole.why_not("image", [None]) == "no"
    assert table.why_not("rnn", ["float64", "float32", "float64"]) is None


def test_how_many_equal_operands_there_are_does_not_matter() -> None:
    assert table_key("concat", ["int8", "int8", "int8"]) == ("concat", ("int8",))
    assert table_key("clip", ["int8", None, None]) == ("clip", ("int8",))
    assert table_key("gather", ["int8", "int64"]) == ("gather", ("int8", "int64"))


@pytest.mark.parametrize(
    "path", sorted(data_path("rules/targets").glob("*.toml")), ids=lambda p: p.stem
)
def test_shipped_tables_are_about_operators_that_there_are(path: Path) -> None:
    signatures = Signatures.load(sorted(data_path("rules/mining").glob("onnx*.rules")))
    loaded = Support.load(path.stem)
    assert loaded.target == path.stem.removesuffix(".mined") and loaded.versions
    assert path.read_text("utf-8") == loaded.text(), "written by the probe, not by hand"
    for (op, dtypes), reason in loaded.table.items():
        assert op in signatures and reason
        assert len(dtypes) <= signatures[op].ports + 1


def test_onnxruntime_has_no_erf_in_float64() -> None:
    loaded = Support.load("onnxruntime")
    assert "Erf" in (loaded.why_not("erf", ["float64"]) or "")
    assert loaded.why_not("erf", ["float32"]) is None
    assert loaded.why_not("matmul", ["float64", "float64"]) is None
