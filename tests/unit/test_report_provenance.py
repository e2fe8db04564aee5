"""The picture of where the last score comes from."""

import re
from dataclasses import replace

from stepwell.audit.provenance.overview import Overview, overview
from stepwell.report.page import render_page
from stepwell.report.picture import RunPicture
from stepwell.report.provenance import provenance_section
from tests.audited_run import write_run
from tests.book import MemoryBook
from tests.provenance_source import whole_source
from tests.run_plan import EVENTFUL, Plan


async def overview_of(plan: Plan) -> Overview:
    book = MemoryBook()
    await write_run(book, "r", plan)
    found = overview(whole_source(book))
    assert found is not None
    return found


async def test_each_link_of_the_picture_leads_to_something_that_unfolds() -> None:
    section = provenance_section(await overview_of(EVENTFUL))
    links = re.findall(r'<a href="#([^"]+)">', section)
    assert links == [f"version-{number}" for number in range(4)]
    assert [re.search(rf'<details class="lineage-entry"><summary>[^§]*?<div id="{link}">', section) for link in links]
    assert all(section.count(f'id="{link}"') == 1 for link in links)


async def test_it_has_no_style_and_no_script_of_its_own() -> None:
    section = provenance_section(await overview_of(EVENTFUL))
    assert not re.search(r"<script|<style|style=|onclick", section)


async def test_what_the_ledger_says_is_told_as_text() -> None:
    found = await overview_of(Plan())
    hostile = replace(found.versions[0].node, title="<script>alert(1)</script>", taint="<b>")
    section = provenance_section(replace(found, versions=(replace(found.versions[0], node=hostile),)))
    assert "<script>" not in section
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in section
    assert "tainted: &lt;b&gt;" in section


async def test_many_versions_are_drawn_in_rows_that_fit_on_paper() -> None:
    found = await overview_of(Plan())
    many = tuple(replace(found.versions[1], number=number) for number in range(25))
    section = provenance_section(replace(found, versions=many, omitted=3))
    width, height = map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', section).groups())  # type: ignore[union-attr]
    assert (width <= 660, height > 200) == (True, True)
    assert "3 earlier versions are in the ledger." in section


async def test_a_page_says_first_that_versions_are_tainted() -> None:
    page = render_page(RunPicture("r"), provenance=await overview_of(EVENTFUL))
    said = "1 rollout is marked as tainted, so versions 2 to 3 are; the last clean version is 1."
    assert page.index(said) < page.index("<main>")
    clean = render_page(RunPicture("r"), provenance=await overview_of(Plan()))
    assert "as tainted" not in clean
