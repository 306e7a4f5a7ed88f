"""``reprise mine docs`` from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from reprise.cli.main import Exit, run
from tests.mining.docs.conftest import DATA


@pytest.mark.slow
def test_a_folder_of_documents_becomes_files_of_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mine", "docs", str(DATA), "--check", "--out", str(tmp_path / "new")]) == Exit.OK
    out = capsys.readouterr().out
    assert "7 documents: 26 versions of 20 operators" in out
    assert "parameter's type" in out
    assert "Selu-6 alpha" in out
    written = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert written == ["constraints.rules", "signatures.rules", "signatures_in_uir.rules"]
    assert run(["rules", "lint", str(tmp_path / "new")]) == Exit.OK
    assert run(["rules", "fmt", "--check", str(tmp_path / "new")]) == Exit.OK


@pytest.mark.slow
def test_all_rules_may_go_to_one_file(tmp_path: Path) -> None:
    out = tmp_path / "all.rules"
    assert run(["mine", "docs", str(DATA), "--out", str(out)]) == Exit.OK
    assert run(["rules", "lint", str(out)]) == Exit.OK
    text = out.read_text(encoding="utf-8")
    assert "constraint onnx_concat_13_inputs" in text
    assert "op onnx.AffineGrid" in text


@pytest.mark.slow
def test_without_a_folder_the_installed_package_is_documented(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["mine", "docs", "--save-docs", str(tmp_path)]) == Exit.OK
    assert {path.name for path in tmp_path.iterdir()} == {
        "Changelog.md",
        "Changelog-ml.md",
        "Operators.md",
        "Operators-ml.md",
    }
    made = capsys.readouterr().out
    assert run(["mine", "docs", str(tmp_path)]) == Exit.OK
    assert capsys.readouterr().out.split("(")[0] == made.split("(")[0]


def test_a_broken_line_is_shown_and_the_rest_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DATA / "pages" / "onnx__Concat.md").read_text(encoding="utf-8")
    (tmp_path / "onnx__Concat.md").write_text(page.replace("(required) :", "(requird) :", 1))
    out = tmp_path / "out"
    assert run(["mine", "docs", str(tmp_path), "--out", str(out)]) == Exit.INPUT
    shown = capsys.readouterr()
    assert "onnx__Concat.md:29:18: warning[unread-line]" in shown.err
    assert "(requird)" in shown.err
    assert "^" in shown.err
    assert "1 of them not whole" in shown.out
    assert "constraint onnx_concat_13_inputs_type" in (out / "constraints.rules").read_text()
    assert "op onnx.Concat" not in (out / "signatures_in_uir.rules").read_text()


def test_no_documentation_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mine", "docs", str(tmp_path)]) == Exit.INPUT
    assert "this folder holds no files" in capsys.readouterr().err
    (tmp_path / "notes.md").write_text("# Notes\n")
    assert run(["mine", "docs", str(tmp_path)]) == Exit.INPUT
    assert "no file here is documentation" in capsys.readouterr().err
    assert run(["mine", "docs", str(tmp_path / "missing")]) == Exit.INPUT


def test_a_file_of_another_form_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    path = DATA / "pages" / "onnx__If.md"
    assert run(["mine", "docs", str(path), "--as", "markdown"]) == Exit.INPUT
    assert "--as pages" in capsys.readouterr().err


def test_saving_documents_needs_documents_that_are_made(tmp_path: Path) -> None:
    assert run(["mine", "docs", str(DATA), "--save-docs", str(tmp_path)]) == Exit.INPUT


def test_a_document_of_which_nothing_can_be_read_does_not_flood_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "Changelog.md"
    path.write_text("\n" + '### <a name="Abs"</a>**Abs-1**</a>\n' * 80)
    assert run(["mine", "docs", str(path)]) == Exit.INPUT
    shown = capsys.readouterr().err
    assert 1 <= shown.count("warning[unread-line]") <= 3
    assert "… and 77 more like it (lines 5, 6, " in shown and "the layout is neither" in shown


def test_the_comparison_for_tools(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert run(["mine", "docs", str(DATA), "--check", "--format", "json"]) == Exit.OK
    said = json.loads(capsys.readouterr().out)
    assert said["documents"] == 7
    assert said["check"]["facts"]["version"]["stated"] == 26
    assert all(d["explanation"] for d in said["check"]["differences"])


def test_what_is_not_written_is_said_and_odd_names_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = str(DATA / "pages" / "onnx__Concat.md")
    assert run(["mine", "docs", page]) == Exit.OK
    assert "nothing written: -o FOLDER" in capsys.readouterr().out
    assert run(["mine", "docs", page, "-o", str(tmp_path / "x.txt")]) == Exit.INPUT
    assert "not in .txt" in capsys.readouterr().err
    assert not (tmp_path / "x.txt").exists()
