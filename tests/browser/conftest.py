"""A real browser: Debian's Chromium without a window, through its driver. Without either, these tests fail."""

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator[Any]:
    """The driver of a fresh Chromium, which notes what a page writes to its console."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (*ARGUMENTS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def script(browser, tmp_path_factory) -> Callable[..., Any]:
    """Runs JavaScript beside the interpreter, in a page opened from disk: ``script("return …", argument)``."""
    source = "".join(
        f"<script>{files('axiswise.report').joinpath('browser', name).read_text(encoding='utf-8')}</script>"
        for name in ("decoder.js", "geometry.js")
    )
    path = tmp_path_factory.mktemp("page") / "scripts.html"
    path.write_text(f'<!doctype html><meta charset="utf-8"><title>scripts</title>{source}', encoding="utf-8")

    def run(line: str, *arguments: Any) -> Any:
        if browser.current_url != path.as_uri():
            browser.get(path.as_uri())
        return browser.execute_script(line, *arguments)

    return run


def console_errors(browser) -> list[str]:
    """What went wrong in the page, and what it tried to fetch."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
