"""The page: one file that asks for nothing, shows what it is given as text, and works in a browser
with and without scripts, wide and narrow, and for a long night's run."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reprise.campaign.records import Record
from reprise.campaign.report.page import page
from reprise.campaign.report.summary import Report
from reprise.campaign.store import Run
from reprise.campaign.writer import RunWriter
from reprise.oracle.verdict import Verdict
from tests.campaign.browser import Browser, chromium, needs_chromium
from tests.campaign.reported import WRONG, counted, defect, files, run
from tests.campaign.runs import info

HOSTILE = "</script><script>window.owned=1</script><img src=x onerror=window.owned=1>\"'&\x1b\u202e"
VOID = {"meta", "link", "input", "br", "hr"}


def html(path: Path) -> str:
    return page(Report(Run.open(path)))


class Balanced(HTMLParser):
    """Raises AssertionError where an element is closed that is not open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data


def read(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    parser.close()
    assert not parser.open
    return parser


def wrong(path: Path) -> Path:
    """A run with a wrong result that a rule knows, a new crash, and a fault of ours."""
    writer = RunWriter.create(path, info(rules=("ort_32228", "ort_24158")))
    known = Record(0, Verdict.WRONG_RESULT, "pass:GemmTransposeFusion", "is wrong", "ort_32228")
    writer.add(known, files(known, evidence=WRONG))
    new = defect(1, "new")
    writer.add(new, files(new, evidence={"message": "in gemm", "frames": ["a.cc:f", "b.cc:g"]}))
    ours = Record(2, Verdict.INVALID, "bad", "our fault")
    writer.add(ours, files(ours))
    for index in range(3, 40):
        writer.add(Record(index, Verdict.OK))
    writer.commit()
    writer.close()
    return path


def hostile(path: Path) -> Path:
    """A run in which every text that comes from elsewhere is an attack."""
    of = info(target=f"ort@{HOSTILE}", versions={HOSTILE: HOSTILE}, options={HOSTILE: HOSTILE})
    writer = RunWriter.create(path, of)
    for index in range(3):
        record = Record(index, Verdict.CRASH, f"{HOSTILE}{index}", HOSTILE,
                        HOSTILE if index else None)  # fmt: skip
        program = 'x: float32[2]\ny = foo(x, a="</svg><script>window.owned=1</script>")\n'
        evidence = {HOSTILE: HOSTILE, "message": HOSTILE, "log": HOSTILE, "differences": [HOSTILE],
                    "ablation": {"cures": [HOSTILE]}}  # fmt: skip
        kept = files(record, evidence=evidence, versions={HOSTILE: HOSTILE},
                     outcome={"log": HOSTILE})  # fmt: skip
        if index == 0:
            kept["program.uir"] = program.encode()
        writer.add(record, kept)
    writer.commit()
    writer.close()
    return path


def test_the_page_says_all_that_a_triager_needs(tmp_path: Path) -> None:
    found = read(html(wrong(tmp_path / "r")))
    for part in (
        "ort_32228", "an identity Transpose before Gemm", "GemmTransposeFusion disabled",
        "3 of 16 elements differ", "[0, 2]: 8.25, expected -6.5", "14.75 absolute, 2.5 relative",
        "0.001 absolute and 0.01 relative", "baseline", "repro.py", "print('fails')",
        "transpose(x, perm=[0, 1])", "onnxruntime 1.27.0", "a.cc:f", "our fault", "R_w", "²D",
        "chance that two reports", "the nodes that ort_32228 matches",
    ):  # fmt: skip
        assert part in found.text
    links = [a.get("href") for tag, a in found.tags if tag == "a"]
    assert "https://github.com/microsoft/onnxruntime/issues/32228" in links
    assert {f"#{id_}" for id_ in ("D1", "D2")} <= set(links)


def test_ids_are_unique_and_links_inside_lead_somewhere(tmp_path: Path) -> None:
    found = read(html(wrong(tmp_path / "r")))
    assert len(found.ids) == len(set(found.ids))
    inside = {a["href"] for tag, a in found.tags if tag == "a" and a["href"].startswith("#")}  # type: ignore[union-attr, index]
    assert {link[1:] for link in inside if link} <= set(found.ids)
    copies = {a["data-copies"] for _, a in found.tags if "data-copies" in a}
    assert copies <= set(found.ids)


@pytest.mark.slow
def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    text = html(wrong(tmp_path / "r"))
    found = read(text)
    assert not [
        a for _, a in found.tags if {"src", "srcset", "action", "data", "poster"} & a.keys()
    ]
    assert not {tag for tag, _ in found.tags} & {"link", "iframe", "object", "embed", "img", "base"}
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", text)


@pytest.mark.slow
def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    text = html(hostile(tmp_path / "r"))
    found = read(text)
    assert len([tag for tag, _ in found.tags if tag == "script"]) == 1
    assert not [tag for tag, _ in found.tags if tag == "img"]
    assert not [name for _, a in found.tags for name in a if name.startswith("on")]
    assert not {"\x1b", "\u202e"} & set(text)
    assert "<img src=x onerror" in found.text  # shown


def test_a_program_that_cannot_be_read_is_shown_as_it_is(tmp_path: Path) -> None:
    path = run(tmp_path / "r", [defect(0, "a")])
    (path / "findings" / "00000000" / "program.uir").write_text("x: float32[2]\ny = nonsense(x)\n")
    found = read(html(path))
    assert "The program cannot be read: " in found.text
    assert "y = nonsense(x)" in found.text
    assert "print('fails')" in found.text


@pytest.mark.slow
def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    path = wrong(tmp_path / "r")
    assert html(path) == html(path)


def test_a_run_of_nothing_has_a_page(tmp_path: Path) -> None:
    found = read(html(run(tmp_path / "r", [])))
    assert "No test has ended yet." in found.text


@pytest.mark.slow
def test_a_long_run_has_a_page_of_a_few_megabytes_in_seconds(tmp_path: Path) -> None:
    counts = {f"d{number}": 1 + number % 40 for number in range(500)}
    path = run(tmp_path / "r", counted(counts, 100_000))
    start = time.process_time()
    text = html(path)
    assert time.process_time() - start < 10
    assert len(text) < 5_000_000
    found = read(text)
    assert {f"D{number}" for number in range(1, 501)} <= set(found.ids)


# --- in a browser ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    written = {}
    for name, path in {
        "wrong": wrong(folder / "w"),
        "hostile": hostile(folder / "h"),
        "many": run(folder / "m", counted({"rule:ort_32228": 5, "beta": 11, "gamma": 2}, 60)),
    }.items():
        written[name] = folder / f"{name}.html"
        written[name].write_text(html(path), "utf-8")
    return written


ROWS = "[...document.querySelectorAll('#defects tbody tr')]"


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("name", ["wrong", "hostile", "many"])
def test_a_browser_asks_for_the_page_alone_and_does_not_complain(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    browser.requests.clear()
    browser.messages.clear()
    browser.open(pages[name])
    assert browser.requests == [pages[name].as_uri()]
    assert browser.messages == []
    assert browser.value("window.owned === undefined") is True


@pytest.mark.slow
@needs_chromium
def test_the_policy_forbids_scripts_that_are_put_in(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    harmed = tmp_path / "harmed.html"
    text = pages["wrong"].read_text("utf-8")
    harmed.write_text(text.replace("</h1>", "</h1><script>window.owned=1</script>", 1), "utf-8")
    browser.open(harmed)
    assert browser.value("window.owned === undefined") is True


@needs_chromium
def test_a_click_sorts_and_another_turns_round(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["many"])
    counts = f"{ROWS}.map(row => row.cells[1].textContent)"
    click = "document.querySelectorAll('#defects th button')[1].click()"
    assert browser.value(counts) == ["11", "5", "2"]
    browser.value(click)
    assert browser.value(counts) == ["11", "5", "2"]  # numbers: the largest first
    browser.value(click)
    assert browser.value(counts) == ["2", "5", "11"]


@needs_chromium
def test_words_and_kinds_filter(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["many"])
    shown = f"{ROWS}.filter(row => row.offsetHeight).map(row => row.dataset.id)"
    choose = (
        "(kind, words) => {{ const s = document.querySelector('.filters select'),"
        " i = document.querySelector('.filters input'); s.value = kind; i.value = words;"
        " s.dispatchEvent(new Event('change')); i.dispatchEvent(new Event('input')); }}"
    ).replace("{{", "{").replace("}}", "}")  # fmt: skip
    assert len(browser.value(shown)) == 3
    browser.value(f"({choose})('known', '')")
    assert browser.value(shown) == ["D1"]
    browser.value(f"({choose})('new', 'crash gamma')")
    assert browser.value(shown) == ["D3"]
    assert browser.value("document.getElementById('D1').offsetHeight") == 0


@needs_chromium
def test_the_button_copies_the_reproducer(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["wrong"])
    browser.value(
        "navigator.clipboard && Object.defineProperty(navigator.clipboard, 'writeText',"
        " {value: async (text) => { window.copied = text; }})"
    )
    browser.value("document.querySelector('[data-copies=D1-repro] button').click()")
    assert "print('fails')" in browser.value("window.copied")


@needs_chromium
def test_without_scripts_everything_is_there_and_nothing_is_dead(
    browser: Browser, pages: dict[str, Path], tmp_path: Path
) -> None:
    browser.open(pages["many"], script=False)
    browser.picture(tmp_path / "plain.png")
    browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert browser.value(f"{ROWS}.length") == 3
    assert browser.value("document.querySelectorAll('button').length") == 0
    assert browser.value("document.querySelector('.filters').offsetHeight") == 0


@needs_chromium
@pytest.mark.parametrize("width", [320, 390, 768, 1280])
@pytest.mark.parametrize("name", ["wrong", "hostile", "many"])
def test_the_page_fits_any_screen(
    browser: Browser, pages: dict[str, Path], name: str, width: int
) -> None:
    browser.open(pages[name], width, 800)
    assert browser.value("document.documentElement.scrollWidth") <= width


CONTRAST = """
(() => {
  const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const parse = (s) => (s.match(/[\\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  let worst = [99, ""];
  for (const e of document.querySelectorAll("main *, header.top *, footer")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.getClientRects().length) continue;
    const svg = e instanceof SVGElement;
    const fore = light(parse(getComputedStyle(e)[svg ? "fill" : "color"]));
    const back = light(ground(e));
    const ratio = (Math.max(fore, back) + 0.05) / (Math.min(fore, back) + 0.05);
    if (!svg || e.localName === "text")
      if (ratio < worst[0]) worst = [ratio, e.outerHTML.slice(0, 120)];
  }
  return worst;
})()
"""


@needs_chromium
@pytest.mark.parametrize("dark", [False, True])
def test_every_text_stands_out_from_its_ground(
    browser: Browser, pages: dict[str, Path], dark: bool
) -> None:
    browser.open(pages["wrong"], dark=dark)
    ratio, element = browser.value(CONTRAST)
    assert ratio >= 4.5, element  # WCAG AA


@needs_chromium
def test_no_text_leaves_its_box_in_a_drawing(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["wrong"])
    beyond = browser.value(
        "[...document.querySelectorAll('svg.graph g > rect')].flatMap(rect => {"
        " const box = rect.getBoundingClientRect();"
        " return [...rect.parentElement.querySelectorAll('.head, .more')]"
        "  .filter(t => { const r = t.getBoundingClientRect();"
        "   return r.left < box.left || r.right > box.right || r.bottom > box.bottom + 1; })"
        "  .map(t => t.textContent); })"
    )
    assert beyond == []
    assert browser.value("document.querySelectorAll('svg.graph g > rect').length") > 5
