"""Markup in the catalogue, with an id and a payload, is shown as text by every page."""

import json

import pytest
from playwright.sync_api import expect

from telic.completion import fit_files
from telic.serve import Settings, serving

expect.set_options(timeout=15_000)  # machines that run tests are busy
pytestmark = pytest.mark.browser
MARKUP = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    '<svg/onload="alert(3)">',
    "<b>&lt;i&gt;</b>",
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("markup")
    rows = [
        {"text": text, "weight": 9 - i, "id": text, "payload": {"note": text}}
        for i, text in enumerate(MARKUP)
    ]
    (folder / "list.jsonl").write_text("\n".join(map(json.dumps, rows)))
    settings = Settings.beside(folder / "model", port=0)
    with serving(fit_files(folder / "list.jsonl"), settings) as address:
        yield address


def no_element_was_made(page, where):
    for made in ("script", "img", "svg", "b > i"):
        expect(page.locator(f"{where} {made}")).to_have_count(0)


def test_the_page_shows_markup_as_text(visit):
    page = visit()
    page.locator("#q").press("<")
    expect(page.locator("#list [role=option] .text")).to_have_text(MARKUP)
    expect(page.locator("#reasons b")).to_have_text(MARKUP)
    page.locator("#list [role=option]").first.click()
    expect(page.locator("#outcome strong")).to_have_text(f"You searched for “{MARKUP[0]}”")
    for where in ("#list", "#reasons", "#outcome"):
        no_element_was_made(page, where)


def test_the_component_shows_markup_as_text(visit, address):
    page = visit()
    page.add_script_tag(url=f"{address}/static/telic-search.js")
    page.evaluate("document.querySelector('main').append(document.createElement('telic-search'))")
    box = page.locator("telic-search input")
    box.fill("<")
    shown = page.locator("telic-search [role=option]")
    expect(shown).to_have_text(MARKUP)
    no_element_was_made(page, "telic-search ul")
    page.locator("telic-search").evaluate(
        "box => { box.template = ({ id, payload }) => `${id} ${payload.note}`; }"
    )
    box.fill("<b")
    expect(shown).to_have_text([f"{MARKUP[3]} {MARKUP[3]}"])
    expect(page.locator("telic-search li > *")).to_have_count(0)


def test_the_dashboard_shows_markup_as_text(open_page, address):
    page = open_page()
    for user in range(5):
        given = {"user": f"u{user}", "composition": "c", "query": MARKUP[1]}
        assert page.request.post(f"{address}/submit", data=given).ok
    page.goto(f"{address}/dashboard")
    expect(page.locator("#popular td").first).to_have_text(MARKUP[1])
    no_element_was_made(page, "table")
