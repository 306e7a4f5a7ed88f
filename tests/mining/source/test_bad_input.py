"""Checkouts and extractors with something wrong: clear messages, and what can be had is had."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reprise.lang.diagnostics import RulesError
from reprise.mining.source.extractor import load_extractor
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


def test_an_expression_that_is_too_deep_is_listed(mined: Mine) -> None:
    long, deep = "+".join(["a"] * 5000), "(" * 3000 + "a" + ")" * 3000
    text = f"assert {long} == 0\nassert {deep} == 1\nassert b > 1\n"
    found = mined({"a.py": text}, settings=SETTINGS)
    assert 'value("b") > 1' in assertions(found)
    assert "an expression that is nested too deeply" in {u.why for u in found.derived.unused}


def test_an_empty_checkout_gives_an_empty_file(mined: Mine) -> None:
    found = mined({}, settings=SETTINGS)
    assert not found.files
    assert monitors(found) == {}
    assert "0 files" in summary(found)[-1]


def test_a_keyword_that_occurs_nowhere_is_told_with_names_like_it(mined: Mine) -> None:
    found = mined({"a.py": "p = roundup(a, b)\n"}, settings=SETTINGS)
    assert "keyword `round_up` occurs nowhere; there is `roundup`" in list(notes(found))


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


def test_other_keywords_mean_reading_again(mined: Mine) -> None:
    files: dict[str, str | bytes] = {"a.py": "p = up(a, b)\n"}
    assert assertions(mined(files, settings=SETTINGS)) == []
    assert 'value("p") % value("b") == 0' in assertions(
        mined(files, settings=SETTINGS.replace("round_up", "up"))
    )
