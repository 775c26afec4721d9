# SPDX-License-Identifier: Apache-2.0
"""The steward's way through the page in a real browser, used by tests and by `scripts/screenshots`."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
PATIENCE = 180_000
"""Milliseconds: a machine may be busy."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser of this machine."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def opened(browser: Browser, link: str, **words: object) -> Page:
    """A new window of the page, in which every error of a script and every refusal by the policy counts."""
    page = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **words}).new_page()  # type: ignore[arg-type]
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    page.faults = []  # type: ignore[attr-defined]
    page.on("pageerror", lambda error: page.faults.append(str(error)))  # type: ignore[attr-defined]
    page.on("console", lambda told: told.type == "error" and page.faults.append(told.text))  # type: ignore[attr-defined]
    page.goto(link)
    return page


def step(page: Page, name: str) -> None:
    """Go to a step by the rail, and wait until the page that was there is gone: what is ticked on it would be lost."""
    page.locator("#whole").evaluate("(whole) => { whole.dataset.left = 'yes'; }")
    page.get_by_role("navigation", name="Steps").get_by_role("link", name=name).click()
    expect(page.locator("#whole:not([data-left]) .rail .here")).to_contain_text(name)


def take(page: Page, name: str) -> None:
    """Take a table of the folder."""
    page.get_by_role("button", name=f"Take it: {name}", exact=True).click()
    expect(page.locator("#found-title")).to_be_visible()


def give_role(page: Page, column: str, role: str) -> None:
    """Give a column a role."""
    page.get_by_label(f"Role of {column}", exact=True).select_option(role)
    expect(
        page.locator("tbody", has=page.get_by_label(f"Role of {column}", exact=True)).locator("tr").first
    ).to_have_class(re.compile(f"role-{role}( |$)"))


def settle_all(page: Page) -> None:
    """Tick all that is to be decided, of columns and of demands."""
    step(page, "Columns")
    page.get_by_label("Tick all shown").check()
    page.locator("#many input[name=settle]").check()
    page.get_by_role("button", name="Change those ticked").click()
    expect(page.locator("tr.decide")).to_have_count(0)
    step(page, "Demands")
    questions = page.locator(".question input[type=checkbox]")
    for left in range(questions.count(), 0, -1):
        questions.first.check()
        expect(page.locator(".question")).to_have_count(left - 1)


def run(page: Page, state: str = "done") -> None:
    """Start a run and wait for its end."""
    step(page, "Explore")
    before = page.locator("table.runs tbody tr").count()
    page.get_by_role("button", name="Run with k").click()
    expect(page.locator("table.runs tbody tr")).to_have_count(before + 1)
    expect(page.locator("table.runs tbody tr").first.locator(".state")).to_have_text(state)


def whole_way(page: Page, table: str, shot: Callable[[str], object]) -> None:
    """From an empty page to a release, every step looked at."""
    take(page, table)
    shot("1-table")
    step(page, "Columns")
    page.get_by_role("link", name="Look at every two columns").click()
    expect(page.locator("section[aria-labelledby=combine-title] tbody tr").first).to_be_visible()
    shot("2-columns")
    page.locator("a.hierarchy").first.click()
    expect(page.locator("#preview #levels")).to_be_visible()
    shot("2-hierarchy")
    settle_all(page)
    shot("3-demands")
    run(page)
    shot("4-explore")
    step(page, "Utility")
    page.get_by_role("link", name="Show some records").click()
    expect(page.locator("table.beside")).to_be_visible()
    shot("5-utility")
    step(page, "Risk")
    page.get_by_role("link", name="Show these records").click()
    expect(page.get_by_text("What makes them unique")).to_be_visible()
    shot("6-risk")
    step(page, "Hand over")
    expect(page.get_by_role("link", name="Download the release (ZIP)")).to_be_visible()
    shot("7-handover")
