"""Names for a new extractor, found by what they are called and by what they do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from reprise.cli.mine_new import new
from reprise.mining.new.scaffold import ScaffoldError, layout, scaffold
from reprise.mining.new.suggest import Suggestions, suggest, wanted
from reprise.mining.source.extractor import load_extractor
from reprise.mining.source.mine import mine

CODEGEN = """\
import numpy as np

def to_multiple(n, m):
    return (n + m - 1) // m * m

def how_many(n, m):
    return -(-n // m)

def lower(ctx, shape, bandwidth, dims):
    factor = np.lcm(bandwidth, dims)
    padded = to_multiple(shape[0], factor)
    blocks = how_many(padded, 4)
    names = "a,b".split(",")
    assert padded % ctx.tile_size == 0
    assert ctx.shared_memory_size <= 49152
    if ctx.warp_size > 32:
        raise ValueError
    return blocks // vec_width

FUSED = {"layers": ["Conv", "Relu"], "more": ["Gemm", "Relu"]}

def table():
    return {
        # arithmetic
        "Add": Add, "Sub": Sub, "Mul": Mul, "Div": Div, "Relu": Relu,
    }
"""
LOWER = """\
#define CHECK_ALIGNED(x) x
int64_t blocks(int64_t n, int64_t tileSize) {
  CHECK_ALIGNED(n % tileSize == 0);
  CHECK_ALIGNED(n > 0);
#pragma unroll 4
  for (;;) {}
  return llvm::divideCeil(n, tileSize) * tileSize + n / tileSize;
}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for path, text in {
        "comp/codegen.py": CODEGEN,
        "src/lower.cc": LOWER,
        "tests/test_it.py": "def f(): return lcm(1, 2)",
        "README.md": "lcm",
    }.items():
        place = tmp_path / "checkout" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "checkout"


def look(checkout: Path) -> Suggestions:
    return suggest(layout(checkout).files, lambda done: None)


def test_where_a_checkout_has_its_sources(checkout: Path) -> None:
    found = layout(checkout)
    assert found.languages == ("python", "cpp")
    assert found.include == ("comp/**", "src/**")
    assert found.exclude == ("**/tests/**",)
    assert [source.path for source in found.files] == ["comp/codegen.py", "src/lower.cc"]


@pytest.mark.parametrize(
    ("keyword_set", "name", "place"),
    [
        ("pad_factor", "lcm", "comp/codegen.py:10"),
        ("tile", "tile_size", "comp/codegen.py:14"),
        ("unroll_factor", "vec_width", "comp/codegen.py:18"),
        ("memory", "shared_memory_size", "comp/codegen.py:15"),
        ("assert", "CHECK_ALIGNED", "src/lower.cc:3"),
        ("ceiling", "divideCeil", "src/lower.cc:7"),
    ],
)
def test_names_say_what_they_are(checkout: Path, keyword_set: str, name: str, place: str) -> None:
    found = {s.name: s for s in look(checkout).of(keyword_set)}
    assert found[name].sure
    assert found[name].places[0] == place


def test_functions_whose_names_say_nothing_are_known_by_what_they_do(checkout: Path) -> None:
    found = look(checkout)
    (pad,) = [s for s in found.of("pad") if s.name == "to_multiple"]
    assert pad.why == "what it does (comp/codegen.py:4)"
    assert "how_many" in {s.name for s in found.of("ceiling")}


def test_splitting_a_text_is_not_splitting_a_loop(checkout: Path) -> None:
    assert look(checkout).of("split") == ()


def test_tables_pragmas_and_devices(checkout: Path) -> None:
    found = look(checkout)
    (table,) = found.of("converter_table")
    assert (table.name, table.count) == ("table", 5)
    assert {s.name for s in found.of("fusion_table")} == set()  # each key occurs once
    assert found.pragmas == ("src/lower.cc:5: unroll 4",)
    assert found.device["warp_size"] == ("device(warp)", "comp/codegen.py:16")


@pytest.mark.slow
def test_the_extractor_that_is_written_mines_the_checkout(checkout: Path, tmp_path: Path) -> None:
    path, text = scaffold("comp", tmp_path / "extractors", layout(checkout), look(checkout))
    assert "#   lcm: 1 place, first comp/codegen.py:10" in text
    mined = mine(checkout, load_extractor(str(path.parent)))
    assert 'assert value("factor") % value("bandwidth") == 0' in mined.text


def test_without_a_checkout_every_set_is_explained(tmp_path: Path) -> None:
    path, text = scaffold("blank", tmp_path, None, None)
    assert "# pad_factor = []  # functions that compute the factor" in text
    assert load_extractor(str(path.parent)).target == "blank"


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    scaffold("mine", tmp_path, None, None)
    with pytest.raises(ScaffoldError, match="is there already"):
        scaffold("mine", tmp_path, None, None)


@pytest.mark.parametrize("name", ["../up", "A b", "", "1st"])
def test_a_name_is_a_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(ScaffoldError, match="small letters"):
        scaffold(name, tmp_path, None, None)


@pytest.mark.slow
def test_the_command_says_what_to_do_next(checkout: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["comp", "--suggest", str(checkout), "--dir", str(out)]
    result = CliRunner().invoke(new, arguments, standalone_mode=False)
    assert result.return_value == 0
    assert result.output.splitlines()[-1].endswith(f"--extractor {out / 'comp'}")
    again = CliRunner().invoke(new, arguments)
    assert again.exit_code == 1
    assert "is there already" in again.output


def test_a_checkout_without_sources(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match="there is no source here"):
        layout(tmp_path)


def test_functions_that_change_nothing_are_proposed_to_be_called_again(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "def round_up(n, m):\n    return (n + m - 1) // m * m\n"
        "def small(n):\n    return min(round_up(n, 4), 9)\n"
        "def take(n):\n    return n.pop()\n"
        "def mmap(n):\n    return libc.mmap(n)\n"
        "p = round_up(small(take(mmap(n))), 2)\n"
    )
    assert {s.name: s.sure for s in look(tmp_path).of("looks")} == {
        "round_up": True,
        "small": False,
    }


def test_what_an_extractor_would_not_find_is_not_suggested(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "def f(n):\n    msg('newBuffer')(n); msg('newBuffer')(n)\n"
        "    getattr(a, getattr(b, c)); getattr(a, getattr(b, c))\n"
        "    is_op('relax.add')(n); is_op('relax.add')(n)\n"
        "    if n < buf_size: g()\n"
        "    SetLoopUnrolling(n, 4)\n"
    )
    assert [(s.keyword_set, s.name) for s in look(tmp_path).names] == [("fusion_operator", "is_op")]


def test_every_set_that_is_asked_for_is_explained() -> None:
    from reprise.data import data_path

    queries = [p.read_text() for p in data_path("extractors/_common").glob("*.scm")]
    rules = [p.read_text() for p in data_path("rules/mining").glob("*.rules")]
    asked = {name for text in queries for name in re.findall(r"[$]([a-z_]+)", text)}
    asked |= {
        name
        for text in rules
        for name in re.findall(r'(?:keyword|calls)\([^()]*"([a-z_]+)"\)', text)
    }
    assert asked - {"called"} <= {want.name for want in wanted()[0]}
