"""Checkouts and extractors with something wrong: clear messages, and what can be had is had."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from reprise.cli.main import Exit, run
from reprise.lang.diagnostics import RulesError
from reprise.lang.format import format_text
from reprise.lang.lint import lint_rules
from reprise.lang.ruleset import load_text
from reprise.mining.source.extractor import load_extractor
from reprise.mining.source.mine import Mined
from reprise.mining.source.summary import notes, summary
from tests.mining.source.conftest import Mine, assertions, monitors

SETTINGS = """
target = "small"
languages = ["python", "cpp"]
include = ["**"]
[keywords]
assert = ["CHECK"]
pad = ["round_up"]
"""


def test_a_file_that_does_not_parse_gives_what_it_can(mined: Mine) -> None:
    text = "x = = 3\nassert a % b == 0\n"
    found = mined({"a.py": text, "b.py": "assert a % b == 0\n"}, settings=SETTINGS)
    confidence = {m.meta["from"][0]: m.meta["confidence"][0] for m in monitors(found).values()}
    assert confidence["b.py:1"] == "high"
    assert confidence["a.py:2"] in ("medium", "low")
    assert any("a.py" in line and "do not parse" in line for line in notes(found))


@pytest.mark.slow
def test_a_site_in_a_broken_statement_has_low_confidence(mined: Mine) -> None:
    found = mined(
        {"a.cc": "void f() { CHECK(a % b == 0 + ); CHECK(c % d == 0); }\n"}, settings=SETTINGS
    )
    assert {m.meta["confidence"] for m in monitors(found).values()} <= {("low",), ("medium",)}
    assert 'value("c") % value("d") == 0' in assertions(found)


def test_a_large_file_is_skipped_with_a_message(mined: Mine) -> None:
    big = "x = 1\n" * 2000
    found = mined({"a.py": big, "b.py": "assert a % b == 0\n"}, settings=SETTINGS, most_bytes=5000)
    assert list(found.files) == ["b.py"]
    assert "skipped a.py: 12,000 bytes; --max-bytes sets the limit" in list(notes(found))


def test_links_that_lead_round_in_circles_are_followed_once(mined: Mine, tmp_path: Path) -> None:
    (tmp_path / "checkout" / "sub").mkdir(parents=True)
    os.symlink(tmp_path / "checkout", tmp_path / "checkout" / "sub" / "up")
    os.symlink(tmp_path / "nowhere.py", tmp_path / "checkout" / "dangling.py")
    found = mined({"sub/a.py": "assert a % b == 0\n"}, settings=SETTINGS)
    assert list(found.files) == ["sub/a.py"]
    assert [s.path for s in found.skipped] == ["dangling.py"]


def test_latin_1_is_read(mined: Mine) -> None:
    text = "# Größe\nassert größe % b == 0\n".encode("latin-1")
    assert assertions(mined({"a.py": text}, settings=SETTINGS)) == [
        'value("größe") % value("b") == 0'
    ]


@pytest.mark.slow
def test_an_expression_that_is_too_deep_is_listed(mined: Mine) -> None:
    long, deep = "+".join(["a"] * 5000), "(" * 3000 + "a" + ")" * 3000
    text = f"assert {long} == 0\nassert {deep} == 1\nassert b > 1\n"
    found = mined({"a.py": text}, settings=SETTINGS)
    assert 'value("b") > 1' in assertions(found)
    assert "an expression that is nested too deeply" in {u.why for u in found.derived.unused}


@pytest.mark.slow
def test_an_empty_checkout_gives_an_empty_file(mined: Mine) -> None:
    found = mined({}, settings=SETTINGS)
    assert not found.files
    assert monitors(found) == {}
    assert "0 files" in summary(found)[-1]


def test_a_keyword_that_occurs_nowhere_is_told_with_names_like_it(mined: Mine) -> None:
    found = mined({"a.py": "p = roundup(a, b)\n"}, settings=SETTINGS)
    assert "keyword `round_up` occurs nowhere; there is `roundup`" in list(notes(found))


@pytest.mark.slow
@pytest.mark.parametrize("path", ["a.py", "src/a.py"])
def test_for_the_wrong_extractor_the_right_one_is_named_in_place_of_every_keyword(
    mined: Mine, path: str
) -> None:
    words = load_extractor("inductor").keywords
    calls = "".join(f"{name}(x)\n" for names in words.values() for name in names)
    found = mined({path: calls}, extractor="tvm")
    assert found.better is not None and found.better.name == "inductor"
    assert found.better.share == 1
    told = [line for line in notes(found) if "keyword" in line]
    assert len(told) == bool(found.files)
    assert all("`--extractor inductor` fits better" in line for line in told)
    assert mined({path: calls}, extractor="inductor").better is None


def test_a_keyword_that_occurs_elsewhere_is_told(mined: Mine) -> None:
    found = mined({"a.py": "round_up = 3\n"}, settings=SETTINGS)
    assert "keyword `round_up` occurs, but nowhere where it is looked for" in list(notes(found))


@pytest.mark.parametrize(
    ("settings", "place", "message"),
    [
        ('target = "x"\nlanguages = ["pyhton"]\ninclude = ["**"]', (2, 15), "`pyhton` is none of"),
        ('target = "x"\nlanguages = []\ninclude = ["**"]', (2, 1), "a list of strings"),
        ('target = "x"\nkeyword = 3', (2, 1), "no setting is called `keyword`"),
        ("target = 3", (1, 1), "`target` is a compiler's name"),
        ('target = "x', (1, 12), ""),
        (SETTINGS + "tile = 3", (8, 1), "`keywords.tile` is a list of strings"),
        (SETTINGS + 'tile = ["a\\nb"]', (8, 1), "`a\\nb` is no name"),
        (SETTINGS + f"tile = {[f't{i}' for i in range(1001)]}", (8, 1), "more than 1,000 names"),
        (SETTINGS + '[device]\na = "device("', (9, 1), "`device.a`: missing `)`"),
        (SETTINGS + '[device]\na = "1"\nb = "frob(1)"', (10, 1), "`device.b`: "),
        (SETTINGS + "[values]\nround_up = 3", (9, 1), "`values.round_up` is a table"),
    ],
)
def test_a_wrong_extractor_is_told_with_its_place(
    mined: Mine, settings: str, place: tuple[int, int], message: str
) -> None:
    with pytest.raises(RulesError) as caught:
        mined({}, settings=settings)
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.span.file.endswith("extractor.toml")
    assert (diagnostic.span.line, diagnostic.span.column) == place
    assert message in diagnostic.message


def test_an_extractor_that_does_not_exist_is_told_with_the_ones_that_do() -> None:
    with pytest.raises(RulesError) as caught:
        load_extractor("genesis")
    assert "genesys" in (caught.value.diagnostics[0].hint or "")


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("(call\n  function: (identifer) @x) @site.mine", (2, 14)),
        ("\n(call (argument_list) @x", (2, 25)),
        ("(call function: (identifier) @x (#any-of? @x $nothing)) @site.mine", (1, 46)),
    ],
)
def test_a_broken_query_is_told_with_its_place(
    mined: Mine, query: str, place: tuple[int, int]
) -> None:
    with pytest.raises(RulesError) as caught:
        mined({"a.py": "f(x)\n"}, settings=SETTINGS, queries={"python-mine.scm": query})
    span = caught.value.diagnostics[0].span
    assert span.file.endswith("python-mine.scm")
    assert (span.line, span.column) == place


def test_an_interrupted_run_keeps_what_it_read(mined: Mine) -> None:
    from contextlib import contextmanager

    files: dict[str, str | bytes] = {f"f{i}.py": f"assert a{i} % b == 0\n" for i in range(6)}

    @contextmanager
    def stopped(total: int):  # type: ignore[no-untyped-def]
        def tell(done: int) -> None:
            if done == 4:
                raise KeyboardInterrupt

        yield tell

    with pytest.raises(KeyboardInterrupt):
        mined(files, settings=SETTINGS, progress=stopped)
    again = mined(files, settings=SETTINGS)
    assert again.parsed == 2
    assert len(monitors(again)) == 6


@pytest.mark.slow
def test_a_second_run_reads_only_what_has_changed(mined: Mine) -> None:
    files: dict[str, str | bytes] = {"a.py": "assert a % b == 0\n", "b.py": "assert c % d == 0\n"}
    first = mined(files, settings=SETTINGS)
    assert (first.parsed, mined(files, settings=SETTINGS).parsed) == (2, 0)
    changed = mined({"a.py": "assert a % e == 0\n"}, settings=SETTINGS)
    assert changed.parsed == 1
    assert assertions(changed) == [
        'value("a") % value("e") == 0',
        'value("c") % value("d") == 0',
    ]


@pytest.mark.slow
def test_other_keywords_mean_reading_again(mined: Mine) -> None:
    files: dict[str, str | bytes] = {"a.py": "p = up(a, b)\n"}
    assert assertions(mined(files, settings=SETTINGS)) == []
    assert 'value("p") % value("b") == 0' in assertions(
        mined(files, settings=SETTINGS.replace("round_up", "up"))
    )


ONE = "p = round_up(a, b)\nassert a % b == 0\n"


def assert_well_formed(found: Mined) -> None:
    """What was written lints, is in the formatter's layout and can be stored as UTF-8."""
    lint_rules(load_text(found.text))
    assert format_text(found.text) == found.text
    found.text.encode()


@pytest.mark.parametrize(
    "name",
    [
        "new\nline.py",
        "tab\tname.py",
        "we'ird na\"me.py",
        "back\\slash.py",
        "esc\x1b[31m.py",
        "right\u202eleft.py",
        "{brace}.py",
        "folder.py/in.py",
        os.fsdecode(b"no-utf-8-\xff\xfe.py"),
    ],
)
def test_a_file_of_any_name_gives_rules_that_load(mined: Mine, name: str) -> None:
    found = mined({name: ONE}, settings=SETTINGS)
    assert_well_formed(found)
    where = os.fsencode(name).decode("utf-8", "backslashreplace")
    assert monitors(found)
    assert {m.meta["from"] for m in monitors(found).values()} <= {
        (f"{where}:1",),
        (f"{where}:2",),
    }


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "latin-1"])
def test_a_marked_encoding_is_read(mined: Mine, encoding: str) -> None:
    found = mined({"a.py": f"# ä\n{ONE}".encode(encoding)}, settings=SETTINGS)
    assert 'value("a") % value("b") == 0' in assertions(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        'assert "\u2028" % x == 0\n',
        'assert "%d" % x == "3"\nassert ("a" * n) % 2 == 0\n',
        "assert a[\x01\x07\x1b[31m] % b == 0\n",
        "assert a\x0b % b == 0\n\x0cassert a\0b % c == 0\n",
        "assert a\u202e % b == 0\nassert aa % b == 0  # \u202e\n",
        f"assert a % {'9' * 10000} == 0\n",
        "MAX_RANK = -1\nMAX_TENSOR_SIZE = 1 << 99999999\nMAX_DIM_SIZE = " + "9" * 9000 + "\n",
        "assert True % 2 == 0\nassert a % -0 == 0\nassert a % 1e400 == 0\n",
    ],
)
def test_whatever_a_text_holds_the_rules_load(mined: Mine, text: str) -> None:
    assert_well_formed(mined({"a.py": ONE + text}, settings=SETTINGS))


@pytest.mark.timeout(20)
def test_what_is_no_plain_file_is_told_and_not_waited_for(mined: Mine, tmp_path: Path) -> None:
    (tmp_path / "checkout").mkdir()
    os.mkfifo(tmp_path / "checkout" / "pipe.py")
    os.symlink("/dev/zero", tmp_path / "checkout" / "zero.py")
    found = mined({"a.py": ONE}, settings=SETTINGS)
    assert {(s.path, s.why) for s in found.skipped} == {
        ("pipe.py", "no plain file"),
        ("zero.py", "no plain file"),
    }
    assert list(found.files) == ["a.py"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_is_told(mined: Mine, tmp_path: Path) -> None:
    closed = tmp_path / "checkout" / "closed"
    closed.mkdir(parents=True)
    closed.chmod(0)
    found = mined({"a.py": ONE}, settings=SETTINGS)
    closed.chmod(0o700)
    assert [s.path for s in found.skipped] == ["closed/"]


@pytest.mark.slow
def test_a_file_that_vanishes_meanwhile_is_told(mined: Mine, tmp_path: Path) -> None:
    from contextlib import contextmanager

    @contextmanager
    def removing(total: int):  # type: ignore[no-untyped-def]
        def tell(done: int) -> None:
            (tmp_path / "checkout" / "b.py").unlink(missing_ok=True)

        yield tell

    found = mined({"a.py": ONE, "b.py": ONE}, settings=SETTINGS, progress=removing)
    assert [s.path for s in found.skipped] == ["b.py"]
    assert list(found.files) == ["a.py"]
    again = mined({"b.py": ONE}, settings=SETTINGS)
    assert list(again.files) == ["a.py", "b.py"]


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "text",
    [
        "x = " + "f(" * 20000 + ")" * 20000 + "\n",
        "x = " + "round_up(" * 3000 + "a, b" + ", c)" * 3000 + "\n",
        "".join(f"def f{i}(n):\n    assert q % n == 0\n    q = {i}\n" for i in range(1500)),
    ],
    ids=["deep calls", "deep sites", "many functions"],
)
def test_deep_and_wide_files_take_no_more_than_seconds(mined: Mine, text: str) -> None:
    assert_well_formed(mined({"a.py": ONE + text}, settings=SETTINGS))


def test_folders_may_be_nested_deeply(mined: Mine) -> None:
    found = mined({"d/" * 400 + "a.py": ONE}, settings=SETTINGS)
    assert len(found.files) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "stored", [b"", b"\0" * 50, pickle.dumps(5), pickle.dumps((1, 2, 3)), pickle.dumps(("x", 5))]
)
def test_a_damaged_cache_is_none(mined: Mine, cache: Path, stored: bytes) -> None:
    first = mined({"a.py": ONE}, settings=SETTINGS)
    for path in (cache / "reprise").glob("mine-*.pickle"):
        path.write_bytes(stored)
    assert mined({"a.py": ONE}, settings=SETTINGS).text == first.text


def test_a_query_that_captures_less_than_ours_gives_less(mined: Mine) -> None:
    query = "(identifier) @compare @site.mine"
    found = mined({"a.py": ONE}, settings=SETTINGS, queries={"python.scm": query})
    assert_well_formed(found)


def _checkout(tmp_path: Path) -> tuple[Path, list[str]]:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "a.py").write_text(ONE)
    (tmp_path / "small" / "extractor.toml").write_text(SETTINGS)
    folder = str(tmp_path / "small")
    return tmp_path / "small" / "a.py", ["mine", "source", folder, "--extractor", folder]


def test_a_source_is_not_written_over(tmp_path: Path) -> None:
    source, command = _checkout(tmp_path)
    assert run([*command, "-o", str(source)]) == Exit.INPUT
    assert source.read_text() == ONE


@pytest.mark.parametrize("option", ["-o", "--output", "--out"])
def test_the_folder_of_the_output_is_made(tmp_path: Path, option: str) -> None:
    _, command = _checkout(tmp_path)
    assert run([*command, option, str(tmp_path / "new" / "folder" / "x.rules")]) == Exit.OK
    assert (tmp_path / "new" / "folder" / "x.rules").read_text().startswith("// Mined from")


def test_a_link_and_a_device_stay_what_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, command = _checkout(tmp_path)
    os.symlink("real.rules", tmp_path / "link.rules")
    assert run([*command, "-o", str(tmp_path / "link.rules")]) == Exit.OK
    assert (tmp_path / "link.rules").is_symlink()
    assert (tmp_path / "real.rules").is_file()
    os.symlink("/dev/full", tmp_path / "full")
    capsys.readouterr()
    assert run([*command, "-o", str(tmp_path / "full")]) == Exit.INPUT
    assert "full: No space left on device" in capsys.readouterr().err


def test_a_summary_for_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    _, command = _checkout(tmp_path)
    assert run([*command, "--format", "json"]) == Exit.OK
    said = json.loads(capsys.readouterr().out)
    assert said["files"] == 1
    assert {row["template"] for row in said["templates"]} == {"guards", "padding"}
    assert said["missing"] == {"CHECK": []}


def test_of_a_generated_table_the_first_sites_are_read(
    mined: Mine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reprise.mining.source.sites.MOST_SITES", 3)
    table = ", ".join(f"np.lcm({number}, b)" for number in range(2, 9))
    found = mined({"table.py": f"T = [{table}]\n"})
    assert len(found.derived.found) == 3
    assert "table.py: 4 further sites not looked at" in list(notes(found))


def test_a_checkout_without_files_of_the_kind_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "extractor.toml").write_text(
        'target = "a"\nlanguages = ["cpp"]\ninclude = ["src/**"]\n'
    )
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "a.rs").touch()
    given = ["mine", "source", str(tmp_path / "toy"), "--extractor", str(tmp_path)]
    assert run(given) == Exit.INPUT
    error = capsys.readouterr().err
    assert error.startswith("reprise: no file of ")
    assert "(include = src/**; languages = cpp); the files there: .rs (1)" in error
