"""What is wrong with a kernel, where and what to do; and the commands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reprise.cli.einsum import gen
from reprise.einsum.asked import read_options
from reprise.einsum.check import check_text
from reprise.einsum.json_form import dumps
from reprise.einsum.options import Options
from reprise.einsum.reading import is_text
from reprise.einsum.settings import PERMISSIONS, USUAL, Settings
from reprise.einsum.text import parse
from reprise.einsum.validity import Validity, load_kernel_rules
from tests.conftest import Run

RULES = load_kernel_rules()
STRICT = Settings(
    (("most_operands", 2), ("most_indices", 2)), USUAL - {"diagonals", "empty"}, ("taco",)
)


@pytest.mark.parametrize(
    ("text", "underlined", "code", "hint"),
    [
        ("ij,kj->i", "k", "lonely-index", "`--allow reductions` permits it"),
        ("ij,jk->ikx", "x", "unbound-output", "give it to an operand"),
        ("ij,jj->i", "j", "diagonal", "`--allow diagonals`"),
        ("ij,j->ii", "i", "repeated-output", "once"),
        ("A(i) = B(i) * C(i) * D(i)", "D(i)", "too-many-operands", "raise --operands"),
        ("A(i) = B(i,j,k) * C(j,k)", "k", "rank-over-limit", "raise --rank"),
        ("A(i) = B(i) where i=0", "i", "empty-extent", "1 or more"),
        ("ij,j->i where B: ds[3,4], C: s[5]", "C", "extents-differ", "one extent"),
        ("ij->ij where B: dss", "B", "superfluous-level", "and no other"),
        ("A(j,i) = B(i,j) where A: ss, B: ss", "", "taco-cycle", ""),
    ],
)
def test_a_violation_is_shown_where_it_is(text: str, underlined: str, code: str, hint: str) -> None:
    found = check_text(text, Validity(RULES, STRICT))
    (first, *_) = [d for d in found if d.code == code]
    span = first.span
    assert underlined in text[span.column - 1 : span.end_column - 1]
    assert hint in (first.hint or "")


def test_what_rules_do_not_speak_of_is_said_too() -> None:
    everything = Validity(RULES, Settings(allowed=frozenset(PERMISSIONS)))
    assert check_text("A(i) = B(i) * C(i)", everything) == []
    (found,) = check_text("A(i) = B(i", everything)
    assert found.code == "kernel-syntax"


def test_check_says_what_is_wrong(reprise: Run) -> None:
    good = reprise("einsum", "check", "ij,jk->ik", "A(i) = B(i) + C(i)")
    assert (good.returncode, good.stdout) == (0, "2 kernels: valid\n")
    bad = reprise("einsum", "check", "ij,kl->ik")
    assert bad.returncode == 1
    assert bad.stdout == "1 kernel: 1 not valid\n"
    assert bad.stderr == (
        "<kernel>:1:2: error[lonely-index]: index j is summed over, but only one operand of term 0"
        " has it\n"
        " 1 | ij,kl->ik\n"
        "   |  ^\n"
        "   = hint: give the output this index, or another operand of the term; "
        "`--allow reductions` permits it\n"
        "<kernel>:1:5: error[lonely-index]: index l is summed over, but only one operand of term 0"
        " has it\n"
        " 1 | ij,kl->ik\n"
        "   |     ^\n"
        "   = hint: give the output this index, or another operand of the term; "
        "`--allow reductions` permits it\n"
    )
    assert reprise("einsum", "check", "ij,kl->ik", "--allow", "reductions").returncode == 0


def test_check_answers_in_json(reprise: Run) -> None:
    ran = reprise("einsum", "check", "ij,jk->ik", "i->ij", "--format", "json")
    assert ran.returncode == 1
    good, bad = json.loads(ran.stdout)
    assert good == {
        "kernel": "ij,jk->ik", "file": "<kernel>", "line": 1, "valid": True, "diagnostics": [],
    }  # fmt: skip
    assert [d["code"] for d in bad["diagnostics"]] == ["unbound-output"]


@pytest.mark.slow
def test_files_of_kernels_are_checked(reprise: Run, tmp_path: Path) -> None:
    file = tmp_path / "kernels.jsonl"
    made = reprise("einsum", "gen", "--count", "40", "--seed", "3", "--out", file)
    assert (made.returncode, made.stdout) == (0, f"40 kernels written to {file}\n")
    assert reprise("einsum", "check", file).stdout == "40 kernels: valid\n"
    with file.open("a") as more:
        more.write('{"version": 7}\n')
    bad = reprise("einsum", "check", file)
    assert bad.returncode == 1
    assert "kernels.jsonl:41:1: error[kernel-json]: version: expected 1, found 7" in bad.stderr
    strict = reprise("einsum", "check", file, "--operands", "2", "--forbid", "units")
    assert "error[too-many-operands]" in strict.stderr
    assert "error[unit-extent]" in strict.stderr
    assert reprise("einsum", "check", tmp_path / "none.jsonl").returncode == 2


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("none.jsonl", "\n\n", "there is no kernel in it"),
        ("none.json", "", "there is no kernel in it"),
        ("mine.rules", 'deny d(T) "d" :- output_tensor(T).', "given by `--rules`"),
        ("notes", "i->i\n", "kernels are in files .json or .jsonl"),
    ],
)
def test_a_file_without_a_kernel_is_told(
    reprise: Run, tmp_path: Path, name: str, text: str, message: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    for command in (["check", file, "i->i"], ["vary", file], ["convert", "--to", "text", file]):
        done = reprise("einsum", *command)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"reprise: {file}: " in done.stderr and message in done.stderr


@pytest.mark.slow
def test_outputs_that_are_read_are_computed_before(reprise: Run, tmp_path: Path) -> None:
    first, second = "T(i) = B(i)", "A(i) = T(i) where T: s computed(T)"
    (found,) = check_text(second, Validity(RULES, Settings()))
    assert found.message == "tensor T: no kernel before this one computes T"
    assert second[found.span.column - 1 :].startswith("T: s computed")
    assert reprise("einsum", "check", first, second).stdout == "2 kernels: valid\n"
    other = reprise("einsum", "check", f"{first} where i=3", second)
    assert (other.returncode, "T has shape (3,), not (4,)" in other.stderr) == (1, True)
    file = tmp_path / "kernels.jsonl"
    lines = [dumps(parse(text).kernel()) for text in (first, second)]
    for order, code in ((lines, 0), (lines[::-1], 1)):
        file.write_text("\n".join(order))
        assert reprise("einsum", "check", file).returncode == code


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_by_the_file_s_name(reprise: Run, tmp_path: Path) -> None:
    (tmp_path / "full.jsonl").symlink_to("/dev/full")
    (tmp_path / "B.tns").symlink_to("/dev/full")
    for command, name in (
        (["gen", "--count", "3", "--out", tmp_path / "full.jsonl"], "full.jsonl"),
        (["convert", "i->i", "--to", "tensure", "--out", tmp_path], "B.tns"),
    ):
        done = reprise("einsum", *command)
        assert done.returncode == 2
        assert done.stderr == f"reprise: {tmp_path / name}: No space left on device\n"


def test_a_kernel_stays_one_where_a_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("i->i").touch()
    assert is_text("i->i")
    assert is_text("i" * 5000)


def test_options_reach_the_kernels(reprise: Run, tmp_path: Path) -> None:
    ran = reprise(
        "einsum", "gen", "--count", "50", "--out", "-", "--operands", "2", "--ranks", "2..3",
        "--sums", "0", "--levels", "compressed", "--dense-outputs", "0", "--orders", "0",
        "--structures", "row=1,banded=2", "--densities", "0.5", "--extents", "3", "--units", "0",
        "--empty", "0", "--scalars", "0", "--dtypes", "float32",
    )  # fmt: skip
    assert ran.returncode == 0
    for line in ran.stdout.splitlines():
        kernel = json.loads(line)
        assert kernel["dtype"] == "float32"
        assert set(kernel["extents"].values()) == {3}
        assert [len(term) for term in kernel["terms"]] == [2]
        for tensor in kernel["tensors"]:
            assert set(tensor["levels"]) <= {"compressed"}
        for tensor in kernel["tensors"][1:]:
            assert tensor["data"]["structure"] in ("row", "banded")
            assert 2 <= len(tensor["levels"]) <= 3


def test_what_goes_without_an_option_is_told_as_it_is() -> None:
    asked = {}
    for option in gen.params:
        told = re.search(r"\[default: (.*)\]", getattr(option, "help", None) or "")
        if told and told[1] != "any":
            asked[option.name or ""] = option.type.convert(told[1], option, None)
    assert set(asked) >= {"operands", "sums", "structures", "values", "iterations"}
    assert read_options(asked) == Options()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--operands", "3..2"], "operands: 3 to 2 is no range"),
        (["--ranks", "x"], "--ranks: 'x' is no range: write 2..4"),
        (["--levels", "dense,loose"], "--levels: 'loose' is none of dense, compressed"),
        (["--structures", "full=x"], "--structures: 'x' is no number"),
        (["--densities", "2"], "a density is between 0 and 1"),
        (["--dtypes", "int7"], "dtypes: float64"),
        (["--elements", "9..3"], "--elements: 9..3 is no range"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    reprise: Run, options: list[str], message: str
) -> None:
    ran = reprise("einsum", "gen", "--count", "5", "--out", "-", *options)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert message in ran.stderr


@pytest.mark.slow
def test_rules_of_ones_own_hold_too(reprise: Run, tmp_path: Path) -> None:
    rules = tmp_path / "mine.rules"
    rules.write_text('deny no_k(O, I) "operand {O} has {I}" :- operand_index(O, _, I), I == "k".\n')
    bad = reprise("einsum", "check", "ij,jk->ik", "--rules", rules)
    assert bad.returncode == 1
    assert "<kernel>:1:5: error[no-k]: operand 1 has k" in bad.stderr
    made = reprise("einsum", "gen", "--count", "20", "--out", "-", "--rules", rules)
    assert made.returncode == 0 and '"k"' not in made.stdout
    rules.write_text('/// A is the output.\ndeny a(A) "no {A}" :- output_tensor(A).\n')
    assert "hint: A is the output" in reprise("einsum", "check", "i->i", "--rules", rules).stderr
    broken = tmp_path / "broken.rules"
    broken.write_text("deny x(\n")
    assert reprise("einsum", "gen", "--out", "-", "--rules", broken).returncode == 2


@pytest.mark.slow
def test_what_leaves_no_kernel_leaves_the_file_as_it_is(reprise: Run, tmp_path: Path) -> None:
    file = tmp_path / "kernels.jsonl"
    file.write_text("kept\n")
    for options in (["--elements", "0"], ["--levels", "singleton"], ["--ranks", "9"]):
        done = reprise("einsum", "gen", "--out", file, "--empty", "0", *options)
        assert done.returncode == 2
    assert file.read_text() == "kept\n"


def test_what_a_file_s_kernel_cannot_be_is_said_of_its_line(reprise: Run, tmp_path: Path) -> None:
    file = tmp_path / "kernels.jsonl"
    kernels = [parse(text).kernel() for text in ("ij->ij", "ij->ij where B: ds:1,0")]
    file.write_text("".join(f"{dumps(kernel)}\n" for kernel in kernels))
    done = reprise(
        "einsum", "convert", str(file), "--to", "tensure", "--out", str(tmp_path / "art")
    )
    assert done.returncode == 2 and f"{file}:2: tensor B: the artifact" in done.stderr
    done = reprise("einsum", "convert", str(file), "--to", "json", "--out", str(tmp_path / "x"))
    assert done.returncode == 2 and "--out is for --to tensure" in done.stderr
    done = reprise("einsum", "vary", str(file), "--relation", "scale")
    heads = [line for line in done.stdout.splitlines() if line.endswith(":")]
    assert heads == [f"{file}:1:", f"{file}:2:"]
