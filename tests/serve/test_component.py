"""<telic-search> on somebody else's page, in a real browser, asking a service with keys."""

import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import NamedTuple

import pytest
from playwright.sync_api import expect

from telic.completion.engine.filters import Contexts
from telic.serve import Settings, serving
from telic.serve.callers.tenant_keys import add_key
from telic.serve.callers.tokens import sign_user

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


class Shop(NamedTuple):
    address: str
    service: str
    key: str


@pytest.fixture(scope="module")
def shop(make_completer, tmp_path_factory):
    """A shop's own site, on an origin that may ask; its pages by writing direction."""
    fish = {"salmon", "鮭", "鮭おにぎり"}
    index = make_completer().index
    foods = index.phrases(range(len(index)))
    contexts = Contexts.of({"kind": ["fish" if food in fish else "other" for food in foods]})
    folder = tmp_path_factory.mktemp("shop")
    site = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=site.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{site.server_port}"
    key = add_key(folder / "keys.toml", "shop", origins=[address], visitors=True)
    settings = Settings.beside(folder / "model", port=0, keys=str(folder / "keys.toml"))
    try:
        with serving(make_completer(contexts=contexts), settings) as service:
            for direction in ("ltr", "rtl"):
                text = PAGE.format(service=service, dir=direction)
                (folder / f"{direction}.html").write_text(text)
            strict = PAGE.replace("'self'", "'self'; require-trusted-types-for 'script'")
            (folder / "strict.html").write_text(strict.format(service=service, dir="ltr"))
            module = PAGE.replace(" defer", " type=module").replace(
                "<telic-search", "<telic-search src={service}"
            )
            (folder / "module.html").write_text(module.format(service=service, dir="ltr"))
            (folder / "found.html").write_text("found")
            yield Shop(address, service, key)
    finally:
        site.shutdown()
        thread.join()
        site.server_close()


@pytest.fixture
def visit_shop(open_page, shop):
    problems = []

    def visited(path="ltr.html", *, script="", **options):
        page = open_page(**options)
        if script:
            page.add_init_script(script)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{shop.address}/{path}")
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
    page.wait_for_url(f"{shop.address}/found.html?query=soup")


@pytest.mark.parametrize("consent", [True, False])
def test_consent_is_sent_where_it_is_given(visit_shop, consent):
    page = visit_shop()
    page.locator("telic-search").evaluate("(e, on) => e.toggleAttribute('consent', on)", consent)
    page.get_by_role("combobox").click()
    with page.expect_request("**/suggest") as asked:
        page.keyboard.type("s")
    assert ("consent" in asked.value.post_data_json) == consent


def test_filters_and_boosts_are_sent_with_each_keystroke(visit_shop):
    page = visit_shop()
    element, box = page.locator("telic-search"), page.get_by_role("combobox")
    element.evaluate("e => e.setAttribute('where', '{\"kind\": \"other\"}')")
    box.click()
    for typed in ("s", "sa", "sal"):
        with page.expect_request("**/suggest") as asked:
            page.keyboard.type(typed[-1])
        said = asked.value.post_data_json
        assert (said["q"], said["kind"], "boost" in said) == (typed, "other", False)
    expect(options(page)).to_have_text(["salad", "salsify"])
    # Other limits hold from now on: the query goes on as another composition.
    with page.expect_request("**/suggest") as again:
        element.evaluate("e => { e.where = undefined; e.boost = {kind: {fish: 0.1}}; }")
    expect(options(page)).to_have_text(["salad", "salmon", "salsify"])
    assert again.value.post_data_json["composition"] != said["composition"]
    page.keyboard.press("Enter")
    element.evaluate("e => { e.boost = {kind: {fish: 'much'}}; }")
    page.keyboard.press("ArrowDown")
    expect(options(page)).to_have_count(0)  # those of other limits are not shown again
    with page.expect_response(lambda answer: answer.status == 422):
        page.keyboard.type("m")
    expect(element).to_contain_text("No new suggestions at the moment.")


WRONG = """() => {
  window.told = [];
  addEventListener("telic-error", (event) => told.push(event.detail.message));
  document.querySelector("telic-search").outerHTML =
    '<telic-search where="{kind: other}"></telic-search>';
}"""


def test_a_box_says_what_it_cannot_read_and_asks_nothing_until_it_can(visit_shop):
    page = visit_shop()
    asked = []
    page.on("request", lambda request: asked.append(request))
    page.evaluate(WRONG)
    element, box = page.locator("telic-search"), page.get_by_role("combobox")
    said = page.get_by_text("No suggestions: ")
    expect(said).to_have_text("No suggestions: 'where' is no JSON object.")
    box.fill("sal")
    page.keyboard.press("Enter")
    assert page.evaluate("searched") == ["sal"]  # it is a field still
    element.evaluate("e => { e.where = ['kind']; }")
    element.evaluate("e => { e.where = undefined; e.setAttribute('boost', '3'); }")
    expect(said).to_have_text("No suggestions: 'boost' is no JSON object.")
    element.evaluate("e => { e.setAttribute('pad', '512px'); e.setAttribute('boost', ''); }")
    expect(said).to_have_text("No suggestions: 'pad' is no number of bytes.")
    wrong = [f"'{name}' is no JSON object." for name in ("where", "where", "boost", "boost")]
    assert page.evaluate("told") == [*wrong, "'pad' is no number of bytes."]
    box.fill("salm")
    assert asked == []
    element.evaluate("e => e.removeAttribute('pad')")
    expect(options(page)).to_have_text(["salmon"])
    expect(said).to_have_count(0)


def test_what_the_service_refuses_is_told_to_the_page(visit_shop):
    page = visit_shop()
    page.evaluate(
        "addEventListener('telic-error', (event) => { window.told = event.detail.message; })"
    )
    page.locator("telic-search").evaluate("e => { e.where = {colour: 'red'}; }")
    page.get_by_role("combobox").fill("s")
    expect(page.get_by_text("No new suggestions")).to_be_visible()
    assert page.evaluate("told").startswith("Nothing here is named 'colour'. There are only q,")


def test_limits_that_a_page_sets_before_the_box_is_there_hold(visit_shop):
    early = """addEventListener("readystatechange", () => {
      const box = document.querySelector("telic-search");
      if (document.readyState === "interactive") Object.assign(box, {where: {kind: "fish"}});
    }, {capture: true});"""
    page = visit_shop(script=early)
    page.get_by_role("combobox").click()
    page.keyboard.type("sal")
    expect(options(page)).to_have_text(["salmon"])


def test_requests_are_padded_where_the_page_says_so(visit_shop):
    page = visit_shop()
    box = page.get_by_role("combobox")
    asked_for = {"": [], "400": []}
    for pad, seen in asked_for.items():
        page.locator("telic-search").evaluate("(e, pad) => e.setAttribute('pad', pad)", pad)
        for typed in ("s", "sä", "salmon", "鮭" * 200):
            with page.expect_request("**/suggest") as asked:
                box.fill(typed)
            assert asked.value.post_data_json["q"] == typed
            seen.append(asked.value.post_data_buffer)
        with page.expect_request("**/submit") as asked:
            page.keyboard.press("Enter")
        seen.append(asked.value.post_data_buffer)
    assert [body.strip() for body in asked_for[""]] == asked_for[""]
    assert [len(body) for body in asked_for["400"]] == [400, 400, 400, 800, 800]


def test_a_search_is_not_submitted_where_the_page_says_so(visit_shop):
    page = visit_shop()
    page.locator("telic-search").evaluate("e => e.setAttribute('no-submit', '')")
    asked = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    box = page.get_by_role("combobox")
    box.fill("sal")
    expect(options(page)).to_have_text(["salmon", "salad", "salsify"])
    page.keyboard.press("Enter")
    assert page.evaluate("searched") == ["sal"]
    page.evaluate("window.leave = true")
    box.fill("soup")
    page.keyboard.press("Enter")
    page.wait_for_url("**/found.html?query=soup")
    assert "suggest" in asked
    assert "submit" not in asked


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
  const enter = (isComposing, keyCode) => new KeyboardEvent("keydown",
    {key: "Enter", keyCode, isComposing, bubbles: true, cancelable: true});
  const type = (text) => {
    input.value = text;
    input.dispatchEvent(new InputEvent("input", {isComposing: true, bubbles: true}));
  };
  input.focus();
  input.dispatchEvent(new CompositionEvent("compositionstart", {bubbles: true}));
  type("さ");
  type("鮭");
  const end = new CompositionEvent("compositionend", {bubbles: true});
  const both = order === "key first" ? [enter(true, 229), end] : [end, enter(false, 13)];
  for (const event of both) {
    input.dispatchEvent(event);
    for (const busy = performance.now(); performance.now() < busy + 80;);  // as a page may be
  }
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


LIMITED = {
    "other contexts": "box => { box.where = { kind: 'fish' }; }",
    "other boosts": "box => { box.boost = { kind: { fish: 2 } }; }",
    "another user": "box => { box.token = 'another'; }",
    "nobody": "box => { box.token = 'one'; box.token = ''; }",
    "another service": "box => { box.setAttribute('src', '/elsewhere/'); }",
}


@pytest.mark.parametrize("limited", LIMITED.values(), ids=LIMITED)
def test_a_list_asked_for_within_other_limits_or_as_somebody_else_cannot_be_picked(
    visit_shop, limited
):
    page = visit_shop()
    box = page.get_by_role("combobox")
    box.press_sequentially("sal")
    expect(options(page)).to_have_count(3)
    box.press("ArrowDown")
    page.route("**/suggest", lambda route: route.abort())
    change(page, limited)
    expect(page.locator("telic-search ul")).to_have_attribute("data-old", "")
    options(page).first.click(force=True)
    box.press("ArrowDown")
    expect(page.get_by_role("option", selected=True)).to_have_count(0)
    box.press("Enter")
    assert page.evaluate("searched") == ["sal"]


def test_a_box_asks_again_within_other_limits_when_the_network_is_back(visit_shop):
    page = visit_shop()
    page.get_by_role("combobox").press_sequentially("sal")
    expect(options(page)).to_have_count(3)
    page.route("**/suggest", lambda route: route.fulfill(status=422, json={}))  # no second try
    change(page, "box => { box.where = { kind: 'fish' }; }")
    expect(page.get_by_text("No new suggestions")).to_be_visible()
    page.unroute("**/suggest")
    page.evaluate("dispatchEvent(new Event('online'))")
    expect(options(page)).to_have_text(["salmon"])


def test_after_a_search_no_earlier_list_can_be_opened(visit_shop):
    page = visit_shop()
    box = page.get_by_role("combobox")
    for clear in (False, True):  # as a page does that keeps the box for the next search
        if clear:
            change(
                page,
                "box => box.addEventListener('telic-search', () => { box.value = ''; })",
            )
        box.fill("")
        box.press_sequentially("sal")
        expect(options(page)).to_have_count(3)
        options(page).first.click()
        box.click()
        expect(page.locator("telic-search li")).to_have_count(0)
        expect(box).to_have_attribute("aria-expanded", "false")
        expect(box).to_have_value("" if clear else "salmon")
    box.press_sequentially("sou")
    expect(options(page)).to_have_text(["soup"])


def test_text_that_a_page_puts_in_is_asked_for_like_what_is_typed(visit_shop):
    page = visit_shop()
    box, held = page.get_by_role("combobox"), []
    box.press_sequentially("sa")
    expect(options(page)).not_to_have_count(0)
    page.route("**/suggest", lambda route: held.append(route))
    with page.expect_request("**/suggest"):
        box.press("l")
    with page.expect_request("**/suggest") as again:
        change(page, "box => { box.value = 'soup'; }")
    assert again.value.post_data_json["q"] == "soup"
    until(page, lambda: len(held) == 2)
    held[0].fulfill(json=["sal", ["salad"], [""], [""], {"suggestions": [{}]}])
    page.wait_for_timeout(200)
    expect(page.locator("telic-search ul")).to_have_attribute("data-old", "")
    held[1].continue_()
    expect(options(page)).to_have_text(["soup"])


def test_a_page_may_put_back_what_was_typed_or_change_it(visit_shop):
    page = visit_shop()
    change(
        page,
        "box => box.addEventListener('input', () => { box.value = box.value.toLowerCase(); })",
    )
    change(
        page,
        """box => {
          const suggest = box.client.suggest.bind(box.client);
          box.client.suggest = (...given) => { window.asked += 1; return suggest(...given); };
        }""",
    )
    for typed in ("sal", "SAL"):
        page.get_by_role("combobox").fill("")
        page.evaluate("window.asked = 0")
        page.get_by_role("combobox").press_sequentially(typed)
        expect(options(page)).to_have_count(3)
        # What is put back unchanged is not asked for again, and what is changed is.
        assert page.evaluate("asked") == (3 if typed == "sal" else 6)
        # Their order tells how long the lists before were looked at.
        assert {*options(page).all_inner_texts()} == {"salmon", "salad", "salsify"}


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


def until(page, happened):
    """Wait for what the page does, ten seconds at most."""
    for _ in range(500):
        if happened():
            return
        page.wait_for_timeout(20)
    raise AssertionError("it did not happen")


def change(page, script, value=None):
    """Run a function of the first search box."""
    return page.locator("telic-search").first.evaluate(script, value)


def test_results_say_where_a_search_leads_and_no_search_waits_for_the_service(visit_shop, shop):
    page = visit_shop(script="AbortSignal.timeout = () => new AbortController().signal")
    page.evaluate("window.leave = true")
    page.route("**/submit", lambda _: None)  # never answered, and no limit ends it
    box = page.get_by_role("combobox")
    change(page, "box => document.querySelector('main').append(box)")  # out of the form
    box.fill("tea & {q}")
    page.keyboard.press("Enter")
    page.wait_for_timeout(400)
    assert page.evaluate("searched") == ["tea & {q}"]  # without results and form, the event alone
    change(page, "(box, to) => box.setAttribute('results', to)", "/found.html?a={q}&b={q}")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{shop.address}/found.html?a=tea%20%26%20%7Bq%7D&b=tea%20%26%20%7Bq%7D")


def test_a_template_makes_text_or_a_node_of_a_suggestion(visit_shop, shop):
    page = visit_shop()
    change(page, "box => { box.template = ({ text, url }, q) => `${q}: ${text} ${url}`; }")
    box = page.get_by_role("combobox")
    box.fill("so")
    expect(options(page)).to_have_text([f"so: soup {shop.service}/search?q=soup"])
    change(
        page,
        """box => { box.template = ({ text }) =>
          Object.assign(document.createElement("b"), { textContent: text }); }""",
    )
    box.fill("sou")
    expect(page.locator("telic-search li > b")).to_have_text(["soup"])
    # What fails is told, and what is shown is what a click searches for.
    change(page, "box => { box.template = ({ payload }) => `${payload.stock}`; }")
    page.evaluate("addEventListener('telic-error', (event) => { window.told = event.detail; })")
    asked = []
    page.on("request", lambda request: request.url.endswith("/suggest") and asked.append(request))
    box.fill("sal")
    expect(options(page)).to_have_text(["salmon", "salad", "salsify"])
    assert "'template' failed" in page.evaluate("told.message")
    expect(page.get_by_text("No new suggestions")).to_be_hidden()
    page.wait_for_timeout(600)  # the first retry would come by now
    assert len(asked) == 1
    change(page, "box => { box.template = () => null; }")
    box.fill("soup")
    expect(page.locator("telic-search li")).to_have_text(["soup"])
    expect(page.locator("telic-search li > b")).to_have_count(0)


def test_while_an_answer_is_slow_the_old_list_is_grey_and_a_late_one_is_never_shown(visit_shop):
    page = visit_shop()
    held = []
    box = page.get_by_role("combobox")
    box.press_sequentially("sal")
    expect(options(page)).to_have_count(3)
    box.press("ArrowDown")
    page.route("**/suggest", lambda route: held.append(route))
    box.press("m")
    expect(page.locator("telic-search ul")).to_have_attribute("data-old", "")
    expect(page.locator("telic-search ul")).to_have_attribute("aria-busy", "true")
    chosen = page.get_by_role("option", selected=True)
    expect(chosen).to_have_count(0)
    box.press("ArrowDown")
    expect(chosen).to_have_count(0)
    options(page).first.click(force=True)
    assert page.evaluate("searched") == []
    with page.expect_event("requestfailed") as given_up:
        box.press("Backspace")
        box.press("Backspace")
    assert given_up.value.post_data_json["q"] == "salm"
    page.wait_for_timeout(50)
    expect(page.get_by_text("No new suggestions")).to_be_hidden()  # it is only slow
    held[-1].continue_()
    expect(options(page)).to_have_count(8)
    expect(page.locator("telic-search ul")).to_have_attribute("aria-busy", "false")
    # One that nothing aborts in time: a page's own client may not look at the signal.
    change(
        page,
        """box => { box.client.suggest = (q) => new Promise((answer) => {
          setTimeout(() => answer([{ text: `found for ${q}` }]), q === "s" ? 100 : 0); }); }""",
    )
    box.fill("s")
    box.fill("so")
    page.wait_for_timeout(200)
    expect(options(page)).to_have_text(["found for so"])


FAST = """(() => {
  const { setTimeout, clearTimeout } = window;
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  window.pace = window.limitPace = 1;
  window.waits = [];
  window.limits = [];
  window.setTimeout = (run, ms) => { waits.push(ms); return setTimeout(run, ms * pace); };
  window.stopped = [];
  window.clearTimeout = (id) => { stopped.push(id); clearTimeout(id); };
  AbortSignal.timeout = (ms) => { limits.push(ms); return timeout(ms * limitPace); };
})()"""
"""A page that notes all its waits, and can make them short."""


def test_it_asks_again_later_and_later_and_six_times_at_most(visit_shop):
    page = visit_shop(script=FAST)
    box = page.get_by_role("combobox")
    box.fill("sal")
    expect(options(page)).to_have_count(3)
    page.evaluate("waits.length = limits.length = 0; pace = 1 / 200; limitPace = 1 / 50")
    asked = []
    page.route("**/suggest", lambda route: asked.append(route))  # no answer: the limit ends it
    box.fill("salm")
    expect(page.get_by_text("No new suggestions")).to_be_visible()
    until(page, lambda: page.evaluate("limits.length") == 6)
    page.wait_for_timeout(250)
    assert page.evaluate("waits") == [500, 1000, 2000, 4000, 8000]
    assert page.evaluate("limits") == [8000] * 6
    # One keystroke, whose time stays its own. A loaded machine may end a request before it is sent.
    assert len({route.request.post_data_json["t"] for route in asked}) == 1
    page.unroute("**/suggest")
    page.evaluate("pace = limitPace = 1")
    box.fill("salmo")
    expect(options(page)).to_have_text(["salmon"])
    expect(page.get_by_text("No new suggestions")).to_be_hidden()


def test_what_the_service_refuses_is_asked_again_only_where_it_is_too_much(visit_shop):
    page = visit_shop(script=FAST)
    statuses, answered = [503, 422, 503, 429, 200], []

    def answer(route):
        answered.append(statuses.pop(0))
        if answered[-1] == 200:
            route.continue_()
        else:
            route.fulfill(status=answered[-1], headers={"access-control-allow-origin": "*"})

    page.route("**/suggest", answer)
    page.evaluate("pace = 1000")
    box = page.get_by_role("combobox")
    box.fill("s")
    expect(page.get_by_text("No new suggestions")).to_be_visible()
    timer = change(page, "box => box.asked.timer")
    page.evaluate("pace = 1 / 40")
    box.fill("so")
    until(page, lambda: len(answered) == 2)
    page.wait_for_timeout(100)
    assert timer in page.evaluate("stopped")  # what was typed since is asked in its place
    assert answered == [503, 422]
    box.fill("sou")
    expect(options(page)).to_have_text(["soup"])
    assert answered == [503, 422, 503, 429, 200]


def test_the_client_asks_as_one_user(visit_shop, shop):
    page = visit_shop()
    asked = []
    page.on("request", lambda request: asked.append(request))

    def client(script, *given):
        return page.evaluate(f"([service, ...given]) => ({script})", [shop.service, *given])

    ada = sign_user(shop.key, "ada")
    suggest = "new TelicClient(service, given[0]).suggest('sal', {composition: 'c', t: 5})"
    found = client(suggest, ada)
    assert [each["text"] for each in found] == ["salmon", "salad", "salsify"]
    assert found[0]["url"] == f"{shop.service}/search?q=salmon"
    (request,) = [each for each in asked if each.method == "POST"]
    assert request.headers["authorization"] == f"Bearer {ada}"
    assert request.post_data_json == {"q": "sal", "composition": "c", "t": 5}
    learned = client("new TelicClient(service, given[0]).submit('salad', 'c')", ada)
    assert learned["learned"] is True
    # Without a token it is one visitor, whose token the browser keeps.
    asked.clear()
    for _ in range(2):
        client("new TelicClient(service).suggest('sal')")
    posts = [each for each in asked if each.method == "POST"]
    assert [each.url.rpartition("/")[2] for each in posts] == ["visitor", "suggest", "suggest"]
    assert len({each.headers["authorization"] for each in posts[1:]}) == 1
    # One that ends within a day is exchanged before it does.
    asked.clear()
    page.evaluate(
        """(place) => { const kept = JSON.parse(localStorage.getItem(place));
          kept.expires = Date.now() / 1000 + 23 * 3600;
          localStorage.setItem(place, JSON.stringify(kept)); }""",
        f"telic-visitor {shop.service}/",
    )
    client("new TelicClient(service).suggest('sal')")
    assert [each.url for each in asked if each.url.endswith("/visitor")]
    # A user's own token that is no longer good makes no visitor of the user.
    asked.clear()
    refused = "new TelicClient(service, given[0]).suggest('s').catch((error) => error.status)"
    assert client(refused, "t1.a.b.c.d") == 401
    assert not [each for each in asked if each.url.endswith("/visitor")]
    aborted = """(() => { const abort = new AbortController();
      const asked = new TelicClient(service, given[0]).suggest("s", { signal: abort.signal });
      abort.abort();
      return asked.catch((error) => error.name); })()"""
    assert client(aborted, ada) == "AbortError"


def test_the_box_asks_as_the_user_of_its_token(visit_shop, shop):
    page = visit_shop()
    box = page.get_by_role("combobox")
    for user, way in (("ada", "box.token = token"), ("bob", "box.setAttribute('token', token)")):
        token = sign_user(shop.key, user)
        change(page, f"(box, token) => {{ {way}; }}", token)
        with page.expect_request("**/suggest") as asked:
            box.fill(user)
        assert asked.value.headers["authorization"] == f"Bearer {token}"
        assert change(page, "box => box.token") == token
    change(page, "box => box.setAttribute('src', '/elsewhere')")
    assert change(page, "box => [box.client.service, box.client.token]") == [
        f"{shop.address}/elsewhere/",
        token,
    ]


@pytest.mark.parametrize("path", ["strict.html", "module.html"])
def test_it_stands_on_pages_that_trust_no_markup_and_may_be_a_module(visit_shop, path):
    page = visit_shop(path)
    page.get_by_role("combobox", name="Products").press_sequentially("sal")
    expect(options(page)).to_have_text(["salmon", "salad", "salsify"])


def test_a_script_written_into_the_page_needs_src_alone(visit_shop, shop):
    page = visit_shop("found.html")
    page.add_script_tag(content=(files("telic.serve") / "page/telic-search.js").read_text())
    assert page.evaluate("new TelicClient().service") == f"{shop.address}/"
    page.evaluate(
        """service => {
          const box = document.createElement("telic-search");
          box.setAttribute("src", service);
          document.body.append(box);
        }""",
        shop.service,
    )
    page.get_by_role("combobox").press_sequentially("soup")
    expect(options(page)).not_to_have_count(0)


def test_what_a_page_sets_before_the_box_is_there_is_set_once_and_not_for_ever(visit_shop):
    early = """addEventListener("readystatechange", () => {
      const box = document.querySelector("telic-search");
      if (document.readyState === "interactive") Object.assign(box, {value: "sou", token: "first"});
    }, {capture: true});"""
    page = visit_shop(script=early)
    box = page.get_by_role("combobox")
    expect(box).to_have_value("sou")
    given = "box => { box.token = %s; return [box.client.token, box.hasAttribute('token')]; }"
    assert change(page, "box => box.client.token") == "first"
    assert change(page, given % "'second'") == ["second", True]
    assert change(page, given % "null") == ["", False]
    box.fill("sal")
    expect(options(page)).to_have_text(["salmon", "salad", "salsify"])


def test_a_box_that_is_moved_asks_again_and_one_that_is_gone_never_does(visit_shop):
    page = visit_shop()
    asked, held = [], []
    page.on("request", lambda request: request.url.endswith("/suggest") and asked.append(request))
    page.route("**/suggest", lambda route: held.append(route), times=1)
    with page.expect_request("**/suggest"):
        page.get_by_role("combobox").press_sequentially("s")
    change(page, "box => { window.box = box; box.parentElement.append(box); }")
    expect(page.locator("telic-search li")).to_have_count(10)
    page.evaluate("box.remove(); box.input.value = 'sal'; dispatchEvent(new Event('online'));")
    page.evaluate("box.where = { kind: 'fish' }")
    page.wait_for_timeout(100)
    assert len(asked) == 2


def test_it_is_a_field_of_its_form(visit_shop):
    page = visit_shop()
    box, field = page.get_by_role("combobox"), "box => [...new FormData(box.internals.form)]"
    box.fill("sal")
    expect(options(page)).to_have_count(3)
    assert change(page, field) == [["query", "sal"]]
    change(page, "box => box.internals.form.reset()")
    expect(box).to_have_value("")
    expect(options(page)).to_have_count(0)
    change(
        page,
        """box => {
          const fields = document.createElement("fieldset");
          box.replaceWith(fields);
          fields.append(box);
          box.removeAttribute("name");
          fields.append(Object.assign(document.createElement("telic-search"), { value: "a" }));
          fields.disabled = true;
        }""",
    )
    expect(box.first).to_be_disabled()
    page.locator("fieldset").evaluate("fields => { fields.disabled = false; }")
    expect(box.first).to_be_enabled()
    assert change(page, "() => [...new FormData(document.forms[0])]") == [["q", "a"]]


def test_a_search_by_the_forms_own_button_is_submitted_too_once(visit_shop):
    page = visit_shop()
    told = []
    page.on("request", lambda r: r.url.endswith("/submit") and told.append(r.post_data_json))
    page.evaluate(
        """() => {
          const form = document.forms[0];
          form.append(Object.assign(document.createElement("button"), { textContent: "Go" }));
          form.addEventListener("submit", (event) => event.preventDefault());
          window.leave = true;
        }"""
    )
    box, button = page.get_by_role("combobox"), page.get_by_role("button", name="Go")
    box.press_sequentially("soup")
    expect(options(page)).to_have_text(["soup"])
    page.route("**/suggest", lambda route: None, times=1)  # which nobody waits for any more
    box.press_sequentially("s")
    # A script, as of a filter that somebody changes, submits the form without a search.
    change(page, "box => { const { form } = box.internals; form.requestSubmit(); }")
    expect(page.locator("telic-search li[aria-disabled=true]")).to_have_count(1)
    with page.expect_response("**/submit"):
        button.click()
    expect(page.locator("telic-search li")).to_have_count(0)
    button.click()
    box.fill("sage")
    with page.expect_response("**/submit"):
        page.keyboard.press("Enter")
    page.wait_for_timeout(400)
    assert [each["query"] for each in told] == ["soups", "sage"]


def test_a_screen_reader_hears_of_no_suggestions_that_nobody_asked_for(visit_shop):
    page = visit_shop()
    change(page, "box => { box.where = { kind: 'fish' }; }")
    page.wait_for_timeout(700)
    assert page.locator("telic-search .heard").text_content() == ""
    page.get_by_role("combobox").fill("sal")
    expect(page.locator("telic-search .heard")).to_have_text("1 suggestions")
    page.get_by_role("combobox").press_sequentially("m")
    expect(options(page)).to_have_text(["salmon"])
    change(page, "box => { box.shadowRoot.querySelector('.heard').textContent = ''; }")
    page.get_by_role("combobox").press("Enter")
    page.wait_for_timeout(700)
    assert page.locator("telic-search .heard").text_content() == ""


def test_half_a_character_leads_to_the_results_too(visit_shop, shop):
    page = visit_shop()
    page.evaluate("window.leave = true")
    change(page, "box => box.setAttribute('results', '/found.html?q={q}')")
    page.evaluate("delete String.prototype.toWellFormed")  # as in browsers of 2022
    with page.expect_response("**/submit") as told:
        change(page, "box => { box.search({ text: 'tea \\ud83d' }); }")
    assert told.value.status == 200
    page.wait_for_url(f"{shop.address}/found.html?q=tea%20%EF%BF%BD")
