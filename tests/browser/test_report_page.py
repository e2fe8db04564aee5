"""The page at the end of a run, opened in headless Chromium: on a desk, on a phone, in the dark, on paper."""

import asyncio
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from stepwell.audit.provenance.overview import overview
from stepwell.report.page import render_page
from stepwell.report.picture import RunPicture
from tests.audited_run import write_run
from tests.book import MemoryBook
from tests.chromium import CONTRAST, READABLE, find_chromium, found_by, open_page
from tests.provenance_source import whole_source
from tests.report_story import eventful_page
from tests.run_plan import Plan
from tests.synthetic_run import learning_run

HOSTILE = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
CHARTS = [
    *("entropy", "grad-norm", "lengths", "loss", "masks", "mismatch"),
    *("pass-1", "pass-k", "reward", "staleness", "tokens"),
]
SECTIONS = [
    "Learning",
    "Validations",
    "Where the time went",
    "Rollouts by worker",
    "Prompts and their fates",
    "Failures and recoveries",
    "Budgets",
    "What operators did",
    "What the policy did",
    "How it was verified",
    "Details",
]
FLAT = {"lengths", "masks", "staleness"}
"""Charts of figures that stay the same throughout this run."""

PROBE = r"""
<body style="margin:0"><iframe src="page.html" style="border:0;width:%(width)dpx;height:4000px"></iframe><script>
const frame = document.querySelector("iframe");
%(contrast)s
frame.onload = () => {
  const page = frame.contentDocument, view = frame.contentWindow;
  const charts = {};
  for (const drawing of page.querySelectorAll(".chart svg")) {
    const name = drawing.querySelector("title").id.replace("-title", "");
    const box = drawing.querySelector(".curve").getBoundingClientRect();
    const at = drawing.getBoundingClientRect();
    const move = {clientX: at.x + at.width * 0.6, clientY: at.y + at.height / 2, bubbles: true};
    drawing.dispatchEvent(new view.PointerEvent("pointermove", move));
    const tip = page.querySelector(".tip"), shown = tip.getBoundingClientRect();
    charts[name] = {
      width: box.width, height: box.height, tip: tip.hidden ? "" : tip.textContent,
      tipInside: shown.x >= 0 && shown.right <= view.innerWidth,
      named: drawing.getAttribute("aria-labelledby").split(" ").every((id) => page.getElementById(id).textContent),
      label: parseFloat(view.getComputedStyle(drawing.querySelector(".tick")).fontSize) * at.width / 460,
    };
  }
  const sections = {};
  for (const heading of page.querySelectorAll("h2")) {
    const box = heading.nextElementSibling.getBoundingClientRect();
    sections[heading.textContent] = Math.min(box.width, box.height);
  }
  for (const folded of page.querySelectorAll("details")) folded.open = true;
  const faint = [];
  const texts = "h1, h2, h3, p, td, th, dt, dd, small, summary, code, li, pre, .diff span, .outcome, a, svg text";
  for (const text of page.querySelectorAll(texts)) {
    if (contrast(view, text) < %(readable)s) faint.push(`${text.tagName} ${text.className}: ${contrast(view, text)}`);
  }
  const clipped = [...page.querySelectorAll("td, th, p, li, pre, summary")]
    .filter((each) => !each.closest(".wide") && each.getBoundingClientRect().right > view.innerWidth + 1)
    .map((each) => `${each.tagName}: ${each.textContent.slice(0, 60)}`);
  const lanes = [...page.querySelectorAll(".workers g path")].map((each) => each.getBoundingClientRect().height);
  const marks = page.querySelectorAll(".workers .lost, .workers .failed").length;
  const found = {
    charts, sections, faint, clipped, lanes, marks,
    wide: page.documentElement.scrollWidth, paper: view.getComputedStyle(page.body).backgroundColor,
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


CLICK = """
<body><iframe src="page.html" style="width:900px;height:4000px"></iframe><script>
const frame = document.querySelector("iframe");
frame.onload = () => {
  const page = frame.contentDocument, entry = page.getElementById("version-2").closest("details"), before = entry.open;
  const click = new MouseEvent("click", { bubbles: true, cancelable: true });
  page.querySelector('a[href="#version-2"]').dispatchEvent(click);
  setTimeout(() => { document.title = `${before} ${entry.open}`; }, 200);
};
</script></body>
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of a run of which all is told, and whose policy and operators wrote HTML."""
    made = tmp_path_factory.mktemp("page")
    (made / "page.html").write_text(asyncio.run(eventful_page(HOSTILE)), encoding="utf-8")
    return made


def probe(chromium: str, folder: Path, width: int, *flags: str) -> dict[str, Any]:
    """Opens the page in a window of a width, moves the pointer over each chart, and tells what was seen."""
    harness = folder / f"probe-{width}-{len(flags)}.html"
    harness.write_text(PROBE % {"width": width, "readable": READABLE, "contrast": CONTRAST}, encoding="utf-8")
    return found_by(chromium, harness, *flags)


@pytest.mark.parametrize("width", [1280, 390])
def test_curves_are_drawn_and_answer_the_pointer(chromium: str, folder: Path, width: int) -> None:
    found = probe(chromium, folder, width)
    assert sorted(found["charts"]) == CHARTS
    for name, chart in found["charts"].items():
        assert chart["width"] > 200, name
        assert chart["height"] > 10 or name in FLAT, name
        assert re.search(r"\d", chart["tip"]), name
        assert chart["tipInside"], name
        assert chart["named"], name
        assert chart["label"] >= 9, f"{name}: labels of {chart['label']:.1f} px cannot be read"
    assert found["wide"] <= width
    assert list(found["sections"]) == SECTIONS
    assert min(found["sections"].values()) > 20, found["sections"]
    assert len(found["lanes"]) == 4
    assert min(found["lanes"]) > 0
    assert found["marks"] == 3
    assert found["clipped"] == []
    assert found["faint"] == []


def test_a_click_on_a_version_unfolds_the_batch_that_made_it(chromium: str, tmp_path: Path) -> None:
    picture, book = RunPicture("micro-1"), MemoryBook()
    picture.see_all(learning_run(24).told)
    asyncio.run(write_run(book, "micro-1", Plan()))
    page = render_page(picture, provenance=overview(whole_source(book)))
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    (tmp_path / "click.html").write_text(CLICK, encoding="utf-8")
    assert "<title>false true</title>" in open_page(chromium, tmp_path / "click.html").dom


def test_what_the_policy_wrote_runs_nothing(chromium: str, folder: Path) -> None:
    opened = open_page(chromium, folder / "page.html")
    assert opened.console == []
    assert "<title>micro-1 · Stepwell</title>" in opened.dom
    assert unescape(opened.dom).count(HOSTILE) > 10
    assert "<img" not in opened.dom


def test_the_page_is_dark_where_the_reader_prefers_that(chromium: str, folder: Path) -> None:
    light = probe(chromium, folder, 1280)
    dark = probe(chromium, folder, 1280, "--blink-settings=preferredColorScheme=0")
    assert light["paper"] == "rgb(250, 249, 246)"
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
