"""Answers that are kept in a file: they belong to what was asked."""

from __future__ import annotations

from pathlib import Path

from reprise.distill.asking import Answer, Answers


def kept(path: Path, about: str) -> Answers:
    return Answers(path, {"about": about})


def test_answers_are_there_for_the_same_question_only(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    first = kept(path, "one defect")
    first.keep("program", Answer.YES)
    first.close()
    assert kept(path, "one defect")["program"] is Answer.YES
    assert "program" not in kept(path, "another defect")


def test_lines_that_say_nothing_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    first = kept(path, "a defect")
    first.keep("program", Answer.NO)
    first.close()
    junk = ['["a", "no such answer", 0]', '["b", [], 0]', "[" * 99999, '["c", "passes", 1e999]']
    with path.open("a") as file:
        file.write("\n".join([*junk, '["cut off", "pas']))
    again = kept(path, "a defect")
    again.keep("next", Answer.YES)
    again.close()
    last = kept(path, "a defect")
    assert last["program"] is Answer.NO and last["next"] is Answer.YES
    assert not any(key in last for key in ("a", "b", "c", "cut off"))


def test_a_file_that_is_no_text_is_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_bytes(b"\xff\xfe")
    answers = kept(path, "a defect")
    answers.keep("program", Answer.UNUSABLE)
    assert answers["program"] is Answer.UNUSABLE
