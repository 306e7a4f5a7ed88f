"""What files of signatures are not, and what operators may have been meant, is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.cli.main import Exit, run
from reprise.data import data_path
from reprise.mining.signatures.asked import full_name

MINED = data_path("rules") / "mining" / "onnx.rules"
OTHER = "set numbers = {1, 2}\n"
RAW = "op onnx.HannWindow(size: T1[...]) -> float32[...] { where T1 in {int32, int64} }\n"


@pytest.mark.parametrize("command", ["mine", "gen"])
@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("none.rules", None, "there is no file"),
        ("page.md", "# Operators\n", "is no rule file"),
        ("other.rules", OTHER, "declares no operators"),
        ("folder", None, "is a folder; give"),
    ],
)
def test_another_kind_of_file_is_refused_with_where_to_get_one(
    command: str,
    file: str,
    text: str | None,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, out = tmp_path / file, tmp_path / "out.rules"
    if text is not None:
        path.write_text(text)
    elif file == "folder":
        path.mkdir()
        (path / "signatures.rules").write_text(RAW)
    arguments = {
        "mine": ["mine", "signatures", str(path), "--out", str(out)],
        "gen": ["gen", "--signatures", str(path), "--out", str(out)],
    }[command]
    assert run(arguments) == Exit.INPUT
    error = capsys.readouterr().err
    assert said in error and "signatures.rules" in error
    assert not out.exists()


@pytest.mark.slow
def test_signatures_that_are_not_completed_are_no_signatures_to_generate_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, out = tmp_path / "raw.rules", tmp_path / "out"
    raw.write_text(RAW)
    assert run(["gen", "--signatures", str(raw), "--out", str(out)]) == Exit.INPUT
    error = capsys.readouterr().err
    assert f"{raw}:1:4: `onnx.HannWindow`" in error and "reprise mine signatures" in error
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ops", "HannWindow"], "HannWindow (did you mean `onnx.HannWindow`?)"),
        (["--ops", "binarizer"], "did you mean `ai.onnx.ml.Binarizer`?"),
        (["--ops", "Relu"], "Relu (`relu` here)"),
        (["--ops", "reluu"], "did you mean `relu`?"),
        (["--ops", "onnx.NoSuch"], "come from a file: --signatures"),
        (["--ops", "non_zero"], "--also data_dependent?"),
        (["--also", "untyped"], "also: not data_dependent or random: untyped"),
    ],
)
def test_what_may_have_been_meant_by_a_name(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    common = ["gen", "--no-guidance", "--signatures", str(MINED), "--out", str(out)]
    assert run([*common, *arguments]) == Exit.INPUT
    assert said in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("BitwiseNot", "UIR has it, as `bitwise_not`; {folder}/signatures_in_uir.rules has its"),
        ("HanWindow", "(did you mean `onnx.HannWindow`?)"),
        ("StringNormalizer", "declares no operator `StringNormalizer`\n"),
    ],
)
def test_an_operator_that_is_not_declared_is_told_where_it_is(
    name: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "signatures.rules"
    path.write_text(RAW)
    (tmp_path / "signatures_in_uir.rules").write_text(RAW)
    out = str(tmp_path / "out.rules")
    assert run(["mine", "signatures", str(path), "--ops", name, "-o", out]) == Exit.INPUT
    assert said.format(folder=tmp_path) in capsys.readouterr().err


def test_the_domain_may_be_left_out() -> None:
    known = {"onnx.HannWindow", "ai.onnx.ml.Scaler"}
    assert [full_name(n, known) for n in ("HannWindow", "scaler", "x")] == [
        "onnx.HannWindow",
        "ai.onnx.ml.Scaler",
        "x",
    ]
