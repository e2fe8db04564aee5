"""The leaderboard's page, opened in headless Chromium: on a desk, on a phone, in the dark, on paper."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from stepwell.ptb.leaderboard.page import render_leaderboard
from tests.chromium import CONTRAST, READABLE, find_chromium, found_by, open_page
from tests.ptb_leaderboards import full_boards

HOSTILE = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
PLOTS = {
    "b0": ["ranking", "ablations", "mixture", "penalty", *(f"benchmark-{n}" for n in range(7))],
    "b1": ["ranking", "mixture", "penalty", *(f"benchmark-{n}" for n in range(7))],
}
SECTIONS = ["Ranking", "What the means stand on", "By benchmark", "By base model", "Details"]
ROWS = 6
"""That are ranked in the first table."""

PROBE = r"""
<body style="margin:0"><iframe src="page.html" style="border:0;width:%(width)dpx;height:4000px"></iframe><script>
const frame = document.querySelector("iframe");
%(contrast)s
const within = (from, to, otherFrom, otherTo) => to > otherFrom && otherTo > from;
const crossing = (one, other) =>
  within(one.x, one.right, other.x, other.right) && within(one.y + 2, one.bottom, other.y + 2, other.bottom);
frame.onload = () => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const boxes = (parent, what) => [...parent.querySelectorAll(what)].map((each) => each.getBoundingClientRect());
  const plots = {};
  for (const drawing of page.querySelectorAll("svg.rows")) {
    const at = drawing.getBoundingClientRect(), rows = [...drawing.querySelectorAll("g")];
    const tips = rows.map((row) => {
      const box = row.querySelector(".row-name").getBoundingClientRect();
      const move = { clientX: at.x + at.width / 2, clientY: box.y + box.height / 2, bubbles: true };
      drawing.dispatchEvent(new view.PointerEvent("pointermove", move));
      const tip = page.querySelector(".tip"), shown = tip.getBoundingClientRect();
      const inside = shown.x >= 0 && shown.right <= view.innerWidth;
      return [row.querySelector("title").textContent, tip.hidden ? "" : tip.textContent, inside];
    });
    const texts = boxes(drawing, "text"), labels = boxes(drawing, ".rule-label");
    const drawn = boxes(drawing, "circle, .stretch, .interval, .rule");
    plots[drawing.querySelector("title").id.replace("-title", "")] = {
      tips,
      outside: [...texts, ...drawn].filter((box) => box.x < at.x - 1 || box.right > at.right + 1).length,
      crossing: labels.filter((one, n) => labels.some((other, m) => m < n && crossing(one, other))).length,
      covered: boxes(drawing, ".row-name").filter((name) => drawn.some((box) => crossing(name, box))).length,
      small: Math.min(...[...drawing.querySelectorAll("text")].map(
        (text) => parseFloat(view.getComputedStyle(text).fontSize) * at.width / 460)),
      named: drawing.getAttribute("aria-labelledby").split(" ").every((id) => page.getElementById(id).textContent),
    };
  }
  for (const folded of page.querySelectorAll("details")) folded.open = true;
  const faint = [];
  for (const text of page.querySelectorAll("h1, h2, h3, p, td, th, dt, dd, small, summary, li, .key, svg text")) {
    const found = contrast(view, text);
    if (found < %(readable)s) faint.push(`${text.tagName} ${text.textContent.slice(0, 40)}: ${found}`);
  }
  const clipped = [...page.querySelectorAll("td, th, p, li, summary, h2, dd")]
    .filter((each) => !each.closest(".wide") && each.getBoundingClientRect().right > view.innerWidth + 1)
    .map((each) => `${each.tagName}: ${each.textContent.slice(0, 60)}`);
  const found = {
    plots, faint, clipped, wide: page.documentElement.scrollWidth,
    paper: view.getComputedStyle(page.body).backgroundColor,
    sections: [...page.querySelectorAll("h3")].map((each) => each.textContent),
    tables: boxes(page, "table").map((box) => Math.min(box.width, box.height)),
  };
  const report = document.createElement("pre");
  report.id = "found";
  report.textContent = JSON.stringify(found);
  document.body.append(report);
};
</script></body>
"""


@pytest.fixture(scope="module")
def chromium() -> str:
    """The browser."""
    return find_chromium()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of results that somebody put HTML into."""
    made = tmp_path_factory.mktemp("page")
    (made / "page.html").write_text(render_leaderboard(full_boards(HOSTILE)), encoding="utf-8")
    return made


def probe(chromium: str, folder: Path, width: int, *flags: str) -> dict[str, Any]:
    """Opens the page in a window of a width, moves the pointer over each row, and tells what was seen."""
    harness = folder / f"probe-{width}-{len(flags)}.html"
    harness.write_text(PROBE % {"width": width, "readable": READABLE, "contrast": CONTRAST}, encoding="utf-8")
    return found_by(chromium, harness, *flags)


@pytest.mark.parametrize("width", [1280, 390])
def test_rows_are_drawn_and_answer_the_pointer(chromium: str, folder: Path, width: int) -> None:
    found = probe(chromium, folder, width)
    models = {f"b{n}-model-{m}" for n in range(2) for m in range(4)}
    assert found["plots"].keys() == {f"{board}-{name}" for board, names in PLOTS.items() for name in names} | models
    for name, plot in found["plots"].items():
        assert plot["tips"], name
        for row, tip, inside in plot["tips"]:
            assert tip.startswith(f"{row}"), f"{name}: over the row {row} the pointer says {tip!r}"
            assert re.search(r"\d", tip), name
            assert inside, name
        assert (plot["outside"], plot["crossing"], plot["covered"]) == (0, 0, 0), name
        assert plot["small"] >= 9, f"{name}: labels of {plot['small']:.1f} px cannot be read"
        assert plot["named"], name
    assert len(found["plots"]["b0-ranking"]["tips"]) == ROWS
    assert found["sections"] == [*SECTIONS, *SECTIONS]
    assert min(found["tables"]) > 20
    assert found["wide"] <= width
    assert found["clipped"] == []
    assert found["faint"] == []


def test_what_results_say_runs_nothing(chromium: str, folder: Path) -> None:
    opened = open_page(chromium, folder / "page.html")
    assert opened.console == []
    assert "<title>PostTrainBench leaderboard · Stepwell</title>" in opened.dom
    assert unescape(opened.dom).count(HOSTILE) > 10
    assert "<img" not in opened.dom


def test_the_page_is_dark_where_the_reader_prefers_that(chromium: str, folder: Path) -> None:
    dark = probe(chromium, folder, 1280, "--blink-settings=preferredColorScheme=0")
    assert dark["paper"] == "rgb(19, 22, 25)"
    assert dark["faint"] == []


def test_the_page_prints_with_every_section(chromium: str, folder: Path) -> None:
    paper = folder / "page.pdf"
    flags = (f"--print-to-pdf={paper}", "--generate-pdf-document-outline", "--no-pdf-header-footer")
    open_page(chromium, folder / "page.html", *flags)
    titles = re.findall(rb"/Title \((.*?)\)", paper.read_bytes())
    assert [section for section in SECTIONS if section.encode() not in titles] == []


def test_the_page_names_no_other_source(folder: Path) -> None:
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href)\s*=\s*[\"'](?!data:|#)|https?://|@import|url\(", page.replace(HOSTILE, ""))
    assert " style=" not in page, "the page's policy forbids it"
