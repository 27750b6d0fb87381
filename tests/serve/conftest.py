import secrets
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright
from sqlalchemy import create_engine
from starlette.testclient import TestClient

from telic.completion import Completer, PrefixIndex, Relevance, UserState
from telic.completion.learning.adaqac import FeedbackDesign
from telic.completion.learning.do_no_harm import Gate
from telic.completion.learning.feedback import FEATURES
from telic.serve import Settings, create_app
from telic.serve.state.store import Store

sys.path.insert(0, str(Path(__file__).parent))
import postgresql_server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
LAUNCH = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
FOODS = {
    "salmon": 9, "salad": 8, "sage": 7, "saffron": 6, "salsify": 5, "sausage": 4, "samosa": 3,
    "soup": 10, "São Paulo stew": 2, "spätzle": 2, "鮭": 2, "鮭おにぎり": 1,
}  # fmt: skip


def hand_made(**changes):
    """A completer in which what was shown for long sinks: its weights are set by hand."""
    weights = np.zeros(len(FEATURES))
    weights[FEATURES.index("DwellT")] = -2.0
    weights[FEATURES.index("Pos@1")] = -0.2
    parts = {
        "index": PrefixIndex.build(list(FOODS), list(FOODS.values())),
        "relevance": Relevance("personal", popular=1.0, personal=1.0),
        "design": FeedbackDesign(np.ones(len(FEATURES)), False),
        "everyone": weights,
        "users": {"ada": UserState(weights.copy(), history={"saffron": 40.0})},
        "gate": Gate.always(1),
        "model": "adaqac-online",
        "n": 10,
        "step_size": 0.1,
        "protocol": "careful",
        "simulated": True,
    }
    return Completer(**(parts | changes))


@pytest.fixture(scope="session")
def make_completer():
    return hand_made


@pytest.fixture(scope="session")
def completer():
    return hand_made()


@pytest.fixture
def settings(tmp_path):
    return Settings.beside(tmp_path / "model")


@pytest.fixture(scope="session")
def postgresql():
    if postgresql_server.programs() is None:
        pytest.skip("no PostgreSQL server here: apt-get install postgresql")
    with postgresql_server.running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def any_settings(request, settings):
    """Settings of a store of each kind, with nothing in it."""
    if request.param == "sqlite":
        return settings
    server = request.getfixturevalue("postgresql")
    name = f"t{secrets.token_hex(8)}"
    engine = create_engine(server.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    engine.dispose()
    return replace(settings, database=server.url.rpartition("/")[0] + f"/{name}")


@pytest.fixture
def store(completer, settings):
    store = Store(settings.database, completer)
    yield store
    store.close()


@pytest.fixture
def client(completer, settings):
    with TestClient(create_app(completer, settings), base_url="http://127.0.0.1:8000") as client:
        yield client


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=LAUNCH)
        yield browser
        browser.close()


AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="session")
def barriers():
    """Name what axe-core finds on a page that keeps people out."""
    if not AXE.exists():
        pytest.skip("no axe-core here: make axe (it takes npm)")
    source = AXE.read_text(encoding="utf-8")

    def found(page):
        page.evaluate(source)  # by the browser's own tools: the page's policy admits no script
        result = page.evaluate("(rules) => axe.run({runOnly: rules})", RULES)
        assert len(result["passes"]) > 10  # it looked
        return [
            f"{each['id']}: {node['html'][:120]}: {node['failureSummary']}"
            for each in result["violations"]
            for node in each["nodes"]
        ]

    return found


@pytest.fixture(scope="module")
def contexts(browser):
    """Contexts that were opened, by what was asked of them: each costs as much as three pages."""
    opened = {}
    yield opened
    for context in opened.values():
        context.close()


@pytest.fixture
def open_page(browser, contexts):
    """Open an empty page of somebody whom no site knows when the test begins."""
    pages = []

    def opened(*, color_scheme=None, reduced_motion=None, **options):
        kind = str(options)
        if kind not in contexts:
            contexts[kind] = browser.new_context(**options)
        page = contexts[kind].new_page()
        page.emulate_media(color_scheme=color_scheme, reduced_motion=reduced_motion)
        page.set_default_timeout(15_000)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.context.set_offline(False)
        page.evaluate("localStorage.clear()")
        page.close()


@pytest.fixture
def visit(open_page, address):
    """Open the page; at the end of the test, no error and no request elsewhere may have been."""
    problems = []

    def visited(path="/", **options):
        page = open_page(**options)
        page.on("console", lambda m: problems.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "request",
            lambda request: request.url.startswith(address) or problems.append(request.url),
        )
        page.goto(address + path)
        page.wait_for_selector("#about:not(:empty)")
        return page

    yield visited
    assert problems == []
