"""Write docs/images/search-box.png: the search box on simulated typists, in a real browser."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from telic.completion import fit_completer
from telic.serve import Settings, serving
from telic.simulate import geonames_catalogue, simulate_typists, simulated_replay

IMAGE = Path(__file__).resolve().parent.parent / "docs" / "images" / "search-box.png"
CHROMIUM_ARGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
TYPED, SECONDS = "san", 0.9
"""What is typed, and how long each list is looked at: long enough to show moves."""


def photograph(address):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=CHROMIUM_ARGS
        )
        page = browser.new_page(viewport={"width": 1280, "height": 1010})
        page.goto(address)
        page.wait_for_selector("#about b")
        for character in TYPED:
            page.locator("#q").press(character)
            page.wait_for_timeout(1000 * SECONDS)
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(300)
        IMAGE.parent.mkdir(exist_ok=True)
        page.screenshot(path=IMAGE)
        browser.close()


def main():
    catalogue = geonames_catalogue()
    completer = fit_completer(simulated_replay(catalogue, simulate_typists(catalogue)))
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings.beside(Path(folder) / "model", port=0)
        with serving(completer, settings) as address:
            photograph(address)
    print(f"{IMAGE}: {IMAGE.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
