"""The page in a real browser: what it does at each key, what it tells assistive technology."""

import re

import pytest
from playwright.sync_api import expect

from telic.serve import Settings, serving
from telic.serve.callers.tenant_keys import add_key

expect.set_options(timeout=15_000)  # machines that run tests are busy
pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(completer, tmp_path_factory):
    settings = Settings.beside(tmp_path_factory.mktemp("page") / "model", port=0)
    with serving(completer, settings) as address:
        yield address


def type_slowly(page, text, *, pause=0):
    for character in text:
        page.keyboard.type(character)
        expect(page.locator("#list")).to_have_attribute("aria-busy", "false")
        page.wait_for_timeout(pause)


def options(page):
    return page.locator("#list [role=option] .text").all_inner_texts()


def test_what_was_skipped_sinks_and_the_panel_says_why(visit):
    page = visit()
    page.locator("#q").focus()
    type_slowly(page, "sal", pause=1200)
    assert options(page) == ["salmon", "salad", "salsify"]
    assert page.locator("#list .typed").first.inner_text() == "sal"
    page.keyboard.press("Backspace")
    expect(page.locator("#list [role=option]")).to_have_count(8)
    sunk = options(page).index("salmon")
    assert sunk > 0
    expect(page.locator("#list [role=option]").nth(sunk).locator(".move.down")).to_be_visible()
    reason = page.locator(f"#reason-{sunk}")
    expect(reason.locator("b")).to_have_text("salmon")
    expect(reason.locator("p")).to_contain_text(
        re.compile(r"Seen 3× in places 1 to 2 for [\d.]+ s")
    )
    expect(reason.locator(".lowers").first).to_be_visible()
    expect(page.locator("#summary")).to_contain_text("against the static order")


def test_the_keyboard_picks_and_attributes_follow(visit):
    page = visit()
    box = page.locator("#q")
    expect(box).to_have_attribute("role", "combobox")
    expect(box).to_have_attribute("aria-expanded", "false")
    box.focus()
    type_slowly(page, "sal")
    expect(box).to_have_attribute("aria-expanded", "true")
    assert box.get_attribute("aria-controls") == page.locator("[role=listbox]").get_attribute("id")
    assert box.get_attribute("aria-activedescendant") is None

    def active():
        chosen = page.locator("[role=option][aria-selected=true]")
        expect(chosen).to_have_count(1)
        assert box.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
        return chosen.locator(".text").inner_text()

    keys = ("ArrowDown", "ArrowDown", "End", "ArrowDown", "ArrowUp", "Home", "ArrowDown")
    seen = []
    for key in keys:
        page.keyboard.press(key)
        seen.append(active())
    assert seen == ["salmon", "salad", "salsify", "salmon", "salsify", "salmon", "salad"]
    assert box.input_value() == "sal"  # moving chooses nothing
    page.keyboard.press("Enter")
    expect(page.locator("#outcome")).to_contain_text("You searched for “salad”")
    expect(page.locator("#outcome")).to_contain_text("Learned")
    expect(box).to_have_value("salad")
    expect(box).to_have_attribute("aria-expanded", "false")
    assert box.get_attribute("aria-activedescendant") is None
    expect(box).to_be_focused()


def test_escape_closes_then_clears(visit):
    page = visit()
    box = page.locator("#q")
    box.focus()
    type_slowly(page, "so")
    page.keyboard.press("Escape")
    expect(page.locator("#list")).to_be_hidden()
    expect(box).to_have_value("so")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#list")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(box).to_have_value("")
    expect(page.locator("#summary")).to_contain_text("Each suggestion has a relevance")


def test_enter_submits_what_was_typed_and_the_user_stays_the_same(visit, address):
    page = visit()
    page.locator("#q").focus()
    type_slowly(page, "so")
    with page.expect_request(f"{address}/submit") as first:
        page.keyboard.press("Enter")
    expect(page.locator("#outcome")).to_contain_text("no choice to learn from")
    page.reload()
    page.locator("#q").focus()
    type_slowly(page, "so")
    with page.expect_request(f"{address}/submit") as second:
        page.get_by_role("button", name="Search", exact=True).click()
    one, two = first.value.post_data_json, second.value.post_data_json
    assert one["user"] == two["user"]
    assert one["composition"] != two["composition"]
    page.get_by_role("button", name="Become someone new").click()
    assert page.evaluate("localStorage.getItem('telic-user')") != one["user"]


def test_a_late_answer_is_not_drawn(visit):
    page = visit()
    held = []

    def hold_first(route):
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/suggest*", hold_first)
    page.locator("#q").focus()
    page.keyboard.type("s")
    page.wait_for_timeout(100)
    type_slowly(page, "p")
    expect(page.locator("#list [role=option]")).to_have_count(1)
    held[0].fulfill(json=["s", ["late"], [""], [""], {"suggestions": []}])
    page.wait_for_timeout(200)
    assert options(page) == ["spätzle"]


def test_enter_searches_for_what_was_typed_since_an_option_was_chosen(visit):
    page = visit()
    page.locator("#q").focus()
    type_slowly(page, "sal")
    page.keyboard.press("ArrowDown")
    page.route("**/suggest*", lambda _: None)  # no answer
    page.keyboard.type("t")
    expect(page.locator("#list")).to_have_attribute("data-old", "")
    page.locator("#list [role=option]").first.click(force=True)  # of an earlier text: nothing
    page.keyboard.press("ArrowDown")
    expect(page.locator("[role=option][aria-selected=true]")).to_have_count(0)
    with page.expect_request("**/submit") as submitted:
        page.keyboard.press("Enter")
    assert submitted.value.post_data_json["query"] == "salt"


def test_suggestions_of_any_direction_are_written_in_their_own(visit):
    page = visit()

    def in_hebrew(route):
        answer = route.fetch().json()
        answer[4]["suggestions"][0]["text"] = "תה ירוק (חדש)!"
        route.fulfill(json=answer)

    page.route("**/suggest*", in_hebrew)
    page.locator("#q").fill("soup")
    page.locator("#q").evaluate("e => { e.value = 'תה'; }")
    expect(page.locator("#reasons b")).to_have_text("תה ירוק (חדש)!")
    for place in ("#q", "#list .text", "#reasons b"):
        direction = page.locator(place).evaluate("e => getComputedStyle(e).direction")
        assert direction == "rtl", place


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(visit, scheme):
    page = visit(
        viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True,
        color_scheme=scheme, reduced_motion="reduce",
    )  # fmt: skip
    box = page.locator("#q")
    box.tap()
    type_slowly(page, "sa")
    width = "document.documentElement.scrollWidth"
    assert page.evaluate(width) <= 360
    assert page.locator("#panel").bounding_box()["y"] > box.bounding_box()["y"]
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", ground)[:3])) / 3
    assert (brightness > 128) == (scheme == "light")
    page.locator("[role=option]", has_text="saffron").tap()
    expect(page.locator("#outcome")).to_contain_text("“saffron”")
    assert page.evaluate(width) <= 360


def test_search_from_the_browsers_bar(visit):
    page = visit("/search?q=sal%22%3E%3Cb%3E")
    expect(page.locator("#q")).to_have_value('sal"><b>')
    page = visit("/search?q=S%C3%A3o")
    expect(page.locator("[role=option] .text")).to_have_text(["São Paulo stew"])
    expect(page.locator("#list .typed")).to_have_text(["São"])


def test_it_says_what_serves_and_that_people_were_simulated(visit):
    about = visit().locator("#about")
    expect(about).to_contain_text("adaQAC-Online")
    expect(about).to_contain_text("simulated people, not real ones")
    expect(about).to_contain_text("Re-ranks everywhere")


@pytest.mark.parametrize("width", [320, 1000])
def test_the_dashboard_shows_what_was_searched_for(open_page, address, width):
    page = open_page()
    page.set_viewport_size({"width": width, "height": 740})
    for user in range(5):
        given = {"user": f"d{user}", "composition": f"{width}", "query": "sage & onion"}
        assert page.request.post(f"{address}/submit", data=given).ok
    problems = []
    page.on("console", lambda m: problems.append(m.text) if m.type != "log" else None)
    page.goto(f"{address}/dashboard")
    expect(page.locator("#popular td").first).to_have_text("sage & onion")
    expect(page.locator("#tenants td").first).to_have_text("all")
    expect(page.locator("#gate th")).to_have_text(["Characters", "Re-ranks", "p-value"])
    expect(page.locator("#latency")).to_contain_text("/submit")
    expect(page.locator("#latency tr").first).to_have_text("AddressAnswersMean msp50 msp99 ms")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('.wide')].filter((e) => e.scrollWidth > e.clientWidth)"
    assert page.evaluate(f"{wide}.length") == 0  # no table needs to be moved sideways
    page.get_by_role("textbox", name="Tenant").fill("nobody")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#popular")).to_have_text("No query of at least 5 users.")
    assert problems == []


def test_a_late_answer_is_not_shown_on_the_dashboard(open_page, address):
    page = open_page()
    page.goto(f"{address}/dashboard")
    expect(page.locator("#status")).to_have_text("The last 28 days.")
    held = []
    page.route("**/figures*tenant=slow*", lambda route: held.append(route))
    for tenant in ("slow", "quick"):
        page.get_by_role("textbox", name="Tenant").fill(tenant)
        page.get_by_role("button", name="Show").click()
    expect(page.locator("#popular")).to_have_text("No query of at least 5 users.")
    row = {"tenant": "slow", "submissions": 1, "users": 1, "acceptance": 1, "mrr": 1}
    late = {"days": 28, "tenants": [row | {"keystrokes_saved": 1}], "popular": [], "no_hit": []}
    held[0].fulfill(json=late | {"gate": [], "latency": [], "min_users": 5})
    page.wait_for_timeout(200)
    expect(page.locator("#tenants")).not_to_contain_text("slow")


@pytest.mark.parametrize("path", ["/search?q=tea", "/phones"])
def test_pages_of_a_service_with_keys_say_that_they_have_none(
    open_page, make_completer, tmp_path, path
):
    add_key(tmp_path / "keys.toml", "shop")
    settings = Settings.beside(tmp_path / "model", port=0, keys=str(tmp_path / "keys.toml"))
    with serving(make_completer(), settings) as address:
        page = open_page()
        page.goto(address + path)
        said = page.locator("#status" if "phones" in path else "#outcome")
        expect(said).to_contain_text("A key or a user's token is needed.")
        expect(said).to_be_visible()


def test_the_dashboard_needs_no_storage_and_says_when_there_is_no_answer(open_page, address):
    page = open_page()
    blocked = "{ get() { throw new DOMException('blocked', 'SecurityError'); } }"
    page.add_init_script(f"Object.defineProperty(window, 'sessionStorage', {blocked})")
    page.goto(f"{address}/dashboard")
    expect(page.locator("#status")).to_have_text("The last 28 days.")
    page.context.set_offline(True)
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#status")).to_have_text("No answer: Failed to fetch.")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1000), ("dark", 360)])
def test_no_page_keeps_anybody_out(visit, address, barriers, scheme, width):
    """The page with its list open and after a search, the dashboard, the phones, by axe-core."""
    viewport = {"width": width, "height": 740}
    page = visit(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    page.locator("#q").focus()
    type_slowly(page, "sal")
    page.keyboard.press("ArrowDown")
    assert barriers(page) == []
    page.keyboard.press("Enter")
    expect(page.locator("#outcome")).to_contain_text("You searched for")
    assert barriers(page) == []
    page.goto(f"{address}/dashboard")
    expect(page.locator("#latency")).to_contain_text("/submit")
    assert barriers(page) == []
    page.goto(f"{address}/phones")
    assert barriers(page) == []
