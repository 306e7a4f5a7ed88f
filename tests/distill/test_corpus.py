"""A corpus is disjoint from every run, the same however it is made, and survives being cut off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from reprise.campaign.records import StoreError
from reprise.cli.fuzz import fuzz
from reprise.cli.gen import gen
from reprise.distill.corpus import FIRST_SEED, MANIFEST, TESTS, Corpus, CorpusRequest, collect
from reprise.oracle.verdict import Verdict
from reprise.patterns.check import UsageError
from reprise.solve.signatures import Signatures

REQUEST = CorpusRequest("onnxruntime", 40, generation={"nodes": 4})


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return collect(REQUEST, tmp_path_factory.mktemp("corpus") / "c")


def text(corpus: Corpus) -> str:
    return (corpus.path / TESTS).read_text()


@pytest.mark.slow
def test_every_test_is_there_in_order(corpus: Corpus) -> None:
    assert [entry.index for entry in corpus.entries] == list(range(40))
    assert corpus.verdicts[Verdict.OK] >= 30


@pytest.mark.slow
def test_passing_programs_can_be_read_again(corpus: Corpus) -> None:
    signatures = Signatures.load()
    for entry in list(corpus.passing())[:5]:
        assert corpus.graph(entry, signatures).nodes


@pytest.mark.slow
def test_the_number_of_processes_does_not_matter(corpus: Corpus, tmp_path: Path) -> None:
    assert text(collect(REQUEST, tmp_path / "two", jobs=2)) == text(corpus)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [0, 1, 700])
def test_a_corpus_that_was_cut_off_is_completed(corpus: Corpus, tmp_path: Path, cut: int) -> None:
    folder = tmp_path / "cut"
    folder.mkdir()
    (folder / MANIFEST).write_bytes((corpus.path / MANIFEST).read_bytes())
    (folder / TESTS).write_bytes((corpus.path / TESTS).read_bytes()[: 3000 + cut])
    assert text(collect(REQUEST, folder)) == text(corpus)


def test_another_request_does_not_mix_with_it(corpus: Corpus) -> None:
    other = CorpusRequest("onnxruntime", 40, seed=1, generation={"nodes": 4})
    with pytest.raises(UsageError, match="another request"):
        collect(other, corpus.path)


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("")
    with pytest.raises(UsageError, match="other files"):
        collect(REQUEST, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["precious"]


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        "[" * 99999,
        "\ufffd",
        '{"index": 7, "verdict": "ok"}',
        '{"index": 0, "verdict": "fine"}',
        '{"index": 0, "verdict": []}',
        '{"index": 0, "verdict": "ok", "program": 5}',
        '{"index": 0, "verdict": "ok", "signature": null}',
    ],
)
def test_a_damaged_corpus_is_refused_by_line(corpus: Corpus, tmp_path: Path, line: str) -> None:
    (tmp_path / MANIFEST).write_bytes((corpus.path / MANIFEST).read_bytes())
    (tmp_path / TESTS).write_text(line + "\n")
    with pytest.raises(StoreError, match=rf"{TESTS}:1: "):
        Corpus.open(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "[" * 99999, json.dumps({"request": 1}), '{"request": {}, "versions": {}}'],
)
def test_what_is_no_corpus_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)
    with pytest.raises(StoreError, match="is no corpus"):
        Corpus.open(tmp_path)


@pytest.mark.parametrize("command", [fuzz, gen])
def test_no_run_can_have_the_seed_of_a_corpus(command: object) -> None:
    arguments = ["--seed", str(FIRST_SEED), "--tests", "1", "--out", "x"]
    result = CliRunner().invoke(command, arguments)  # type: ignore[arg-type]
    assert result.exit_code == 2
    assert "seed" in result.output
