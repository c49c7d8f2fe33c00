"""A real Chromium for the tests of the dashboard, one for all of them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.tools import PACKAGES, TOOLS, installed

NAMES = ("chromium", "chromium-browser", "google-chrome")


def executable() -> str:
    """Returns the path of Chromium; one that is missing and can't be installed is a failure."""
    if not any(map(shutil.which, NAMES)) or not (PACKAGES / "axe-core").exists():
        installed()
    for name in NAMES:
        if found := shutil.which(name):
            return found
    assert (TOOLS / "chromium").exists(), "install Chromium: apt-get install chromium"
    return str(TOOLS / "chromium")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Runs Chromium until the block ends."""
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=executable(), args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Reader:
    """Someone who reads pages with Chromium; errors of the console are remembered."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url = url
        self.errors: list[str] = []
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(30_000)
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda said: self._hear(said.type, said.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: self._hear("error", f"dialog {dialog.message}"))

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.errors.append(text)

    def open(self, path: str) -> Page:
        self.page.goto(f"{self.url}{path}", wait_until="load")
        return self.page

    @contextmanager
    def as_phone(self) -> Iterator[None]:
        """Shows the same page dark, in a window of 360 pixels."""
        size = self.page.viewport_size
        assert size is not None
        self.page.emulate_media(color_scheme="dark")
        self.page.set_viewport_size({"width": 360, "height": 700})
        try:
            yield
        finally:
            self.page.emulate_media(color_scheme="light")
            self.page.set_viewport_size(size)

    def excess_width(self) -> int:
        """Returns by how much the page is wider than the window."""
        found: int = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return max(0, found)

    def violations(self) -> list[str]:
        """Returns what axe has against the page, as sentences."""
        if not self.page.evaluate("'axe' in window"):
            # By the protocol, as an extension would: the policy of the page forbids a script tag.
            self.page.evaluate((PACKAGES / "axe-core" / "axe.min.js").read_text() + ";0")
        rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
        found: list[str] = self.page.evaluate(
            """rules => axe.run({runOnly: rules}).then(report => report.violations.flatMap(
            each => each.nodes.map(at => `${each.id}: ${at.target} ${at.failureSummary}`)))""",
            rules,
        )
        return found

    def close(self) -> None:
        self.context.close()
