"""<telic-search> on somebody else's page, in a real browser, asking a service with keys."""

import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from telic.serve import Settings, serving
from telic.serve.callers.tenant_keys import add_key

expect.set_options(timeout=15_000)  # machines that run tests are busy
pytestmark = pytest.mark.browser
PAGE = """<!doctype html><html lang="en" dir="{dir}"><meta charset="utf-8"><title>Shop</title>
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; script-src {service}; connect-src {service}; form-action 'self'">
<meta name="color-scheme" content="light dark">
<main><h1>Shop</h1>
<script src="{service}/static/telic-search.js" defer></script>
<form action="/found.html"><telic-search name="query" label="Products"></telic-search></form></main>
"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def shop(completer, tmp_path_factory):
    """A shop's own site, on an origin that may ask; its pages by writing direction."""
    folder = tmp_path_factory.mktemp("shop")
    site = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{site.server_port}"
    add_key(folder / "keys.toml", "shop", origins=[address], visitors=True)
    settings = Settings.beside(folder / "model", port=0, keys=str(folder / "keys.toml"))
    try:
        with serving(completer, settings) as service:
            for direction in ("ltr", "rtl"):
                text = PAGE.format(service=service, dir=direction)
                (folder / f"{direction}.html").write_text(text)
            (folder / "found.html").write_text("found")
            yield address
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


@pytest.fixture
def visit_shop(browser, shop):
    contexts, problems = [], []

    def visited(path="ltr.html", **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{shop}/{path}")
        page.evaluate(
            """() => {
              window.searched = [];
              addEventListener("telic-search", (event) => {
                searched.push(event.detail.query);
                if (!window.leave) event.preventDefault();
              });
            }"""
        )
        return page

    yield visited
    for context in contexts:
        context.close()
    assert problems == []


def options(page):
    return page.get_by_role("option")


def test_three_lines_are_a_search_box(visit_shop, shop):
    page = visit_shop()
    box = page.get_by_role("combobox", name="Products")
    box.click()
    page.keyboard.type("sal")
    expect(options(page)).to_have_text(["salmon", "salad", "salsify"])
    expect(box).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("option", selected=True)).to_have_text("salsify")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).to_have_text("salad")
    assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    with page.expect_response("**/submit") as submitted:
        page.keyboard.press("Enter")
    assert submitted.value.json()["learned"] is True
    assert page.evaluate("searched") == ["salad"]
    expect(box).to_have_value("salad")
    expect(box).to_have_attribute("aria-expanded", "false")
    # The same visitor, proved by the same token, searches again and leaves by the form.
    page.evaluate("window.leave = true")
    box.fill("soup")
    expect(options(page)).to_have_text(["soup", "São Paulo stew"][:1])
    with page.expect_request("**/submit") as submitted:
        page.keyboard.press("Enter")
    assert submitted.value.headers["authorization"].startswith("Bearer t1.")
    page.wait_for_url(f"{shop}/found.html?query=soup")


@pytest.mark.parametrize("consent", [True, False])
def test_consent_is_sent_where_it_is_given(visit_shop, consent):
    page = visit_shop()
    page.locator("telic-search").evaluate("(e, on) => e.toggleAttribute('consent', on)", consent)
    page.get_by_role("combobox").click()
    with page.expect_request("**/suggest") as asked:
        page.keyboard.type("s")
    assert ("consent" in asked.value.post_data_json) == consent


def test_escape_closes_then_clears(visit_shop):
    page = visit_shop()
    box = page.get_by_role("combobox")
    box.click()
    page.keyboard.type("so")
    expect(options(page)).to_have_count(1)
    page.keyboard.press("Escape")
    expect(options(page)).to_have_count(0)
    expect(box).to_have_value("so")
    page.keyboard.press("Alt+ArrowDown")
    expect(options(page)).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(box).to_have_value("")


COMPOSE = """(order) => {
  const input = document.querySelector("telic-search").input;
  const enter = (isComposing, keyCode) => input.dispatchEvent(new KeyboardEvent("keydown",
    {key: "Enter", keyCode, isComposing, bubbles: true, cancelable: true}));
  const type = (text) => {
    input.value = text;
    input.dispatchEvent(new InputEvent("input", {isComposing: true, bubbles: true}));
  };
  input.focus();
  input.dispatchEvent(new CompositionEvent("compositionstart", {bubbles: true}));
  type("さ");
  type("鮭");
  const end = () => input.dispatchEvent(new CompositionEvent("compositionend", {bubbles: true}));
  if (order === "key first") { enter(true, 229); end(); } else { end(); enter(false, 13); }
}"""


@pytest.mark.parametrize("order", ["key first", "end first"])
def test_the_enter_that_ends_a_composition_searches_for_nothing(visit_shop, order):
    page = visit_shop()
    asked = []
    page.on(
        "request",
        lambda request: request.url.endswith("/suggest") and asked.append(request.post_data_json),
    )
    page.evaluate(COMPOSE, order)
    expect(options(page)).to_have_text(["鮭", "鮭おにぎり"])
    assert [each["q"] for each in asked] == ["鮭"]  # what was only on its way to it is no keystroke
    assert page.evaluate("searched") == []
    page.wait_for_timeout(100)
    page.keyboard.press("Enter")
    assert page.evaluate("searched") == ["鮭"]


def test_keyboards_that_compose_latin_words_are_answered_at_each_key(visit_shop):
    page = visit_shop()
    page.evaluate(
        """() => {
          const input = document.querySelector("telic-search").input;
          input.focus();
          input.dispatchEvent(new CompositionEvent("compositionstart", {bubbles: true}));
          input.value = "so";
          input.dispatchEvent(new InputEvent("input", {isComposing: true, bubbles: true}));
        }"""
    )
    expect(options(page)).to_have_text(["soup"])


def test_without_a_network_the_old_list_is_grey_and_cannot_be_picked(visit_shop):
    page = visit_shop()
    box = page.get_by_role("combobox")
    box.click()
    page.keyboard.type("sal")
    expect(options(page)).to_have_count(3)
    page.context.set_offline(True)
    page.keyboard.type("m")
    expect(page.locator("telic-search ul")).to_have_attribute("data-old", "")
    expect(options(page).first).to_have_attribute("aria-disabled", "true")
    expect(page.get_by_text("No new suggestions")).to_be_visible()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option", selected=True)).to_have_count(0)
    options(page).nth(1).click(force=True)
    assert page.evaluate("searched") == []
    page.context.set_offline(False)
    expect(options(page)).to_have_text(["salmon"])
    expect(page.locator("telic-search ul")).not_to_have_attribute("data-old", "")
    expect(page.get_by_text("No new suggestions")).to_be_hidden()


def test_a_visitor_whose_token_is_no_longer_good_gets_another(visit_shop):
    page = visit_shop()
    place = page.evaluate(
        "`telic-visitor ${document.querySelector('telic-search').client.service}`"
    )
    page.evaluate(
        "(place) => localStorage.setItem(place, JSON.stringify({user: 'x', token: 't1.a.b.c.d',"
        "expires: 9e9}))",
        place,
    )
    page.get_by_role("combobox").click()
    page.keyboard.type("so")
    expect(options(page)).to_have_text(["soup"])
    assert page.evaluate("(place) => localStorage.getItem(place)", place).count("t1.a.b") == 0


@pytest.mark.parametrize("direction", ["ltr", "rtl"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_both_directions_and_schemes(visit_shop, direction, scheme):
    page = visit_shop(
        f"{direction}.html",
        viewport={"width": 390, "height": 740},
        has_touch=True,
        is_mobile=True,
        color_scheme=scheme,
    )
    page.get_by_role("combobox").tap()
    page.keyboard.type("sa")
    expect(options(page)).to_have_count(8)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    ground = page.locator("telic-search ul").evaluate("e => getComputedStyle(e).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", ground)[:3])) / 3
    assert (brightness > 128) == (scheme == "light")
    box = page.locator("telic-search").bounding_box()
    assert (box["x"] > 60) == (direction == "rtl")
    assert all(each.bounding_box()["height"] >= 44 for each in options(page).all())
    options(page).nth(2).tap()
    assert len(page.evaluate("searched")) == 1


@pytest.mark.parametrize(("scheme", "width"), [("light", 1000), ("dark", 390)])
def test_the_search_box_keeps_nobody_out(visit_shop, barriers, scheme, width):
    """Open with one chosen, and grey without a network, by axe-core's rules."""
    viewport = {"width": width, "height": 740}
    page = visit_shop(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    page.get_by_role("combobox").click()
    page.keyboard.type("sal")
    expect(options(page)).to_have_count(3)
    page.keyboard.press("ArrowDown")
    assert barriers(page) == []
    page.context.set_offline(True)
    page.keyboard.type("m")
    expect(page.get_by_text("No new suggestions")).to_be_visible()
    assert barriers(page) == []
