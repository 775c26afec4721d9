# SPDX-License-Identifier: Apache-2.0
"""The page in a real Chromium: the steward's whole way, and what goes wrong on it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from web_doors import SPEC, Server, people, start_server

from commands import command

pytest.importorskip("playwright")
from walking import CHROMIUM, chromium, give_role, opened, run, settle_all, step, take, whole_way

if CHROMIUM is None:
    pytest.skip(
        "NO CHROMIUM IS INSTALLED, SO THE PAGE IS NOT TESTED IN A BROWSER; install it.", allow_module_level=True
    )
from playwright.sync_api import Browser, Locator, Page, expect

DATA = Path(os.environ.get("ANONFIT_DATA", Path(__file__).parents[3] / "shared" / "data"))
DATA = DATA if DATA.is_dir() else Path("/nowhere")
NAMES = "age,workclass,fnlwgt,education,education-num,marital-status,occupation,relationship,race,sex,capital-gain,capital-loss,hours-per-week,native-country,salary-class"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as held:
        yield held


def released(page: Page, folder: Path) -> None:
    """The ZIP that the page gives is what the command makes of the spec that is shown."""
    step(page, "Hand over")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the release (ZIP)").click()
    packed = zipfile.ZipFile(download.value.path())
    told = command("run", "spec.toml", "--out", "again", "--replace", folder=folder)
    assert told.returncode == 0, told.stderr
    for path in (folder / "again").iterdir():
        assert packed.read(f"release/{path.name}") == path.read_bytes(), path.name
    assert page.locator("#spec-text").input_value() == (folder / "spec.toml").read_text()
    assert page.faults == []  # type: ignore[attr-defined]


def test_the_whole_way_leads_to_the_release_of_the_shown_spec(server: Server, tmp_path: Path, browser: Browser) -> None:
    page = opened(browser, server.link)
    take(page, "people.csv")
    settle_all(page)
    save = page.locator(".weights button")
    save.scroll_into_view_if_needed()
    before = save.evaluate("(button) => { button.dataset.old = 'yes'; return button.getBoundingClientRect().top; }")
    save.click()
    expect(page.locator(".weights button:not([data-old])")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert abs(save.evaluate("(button) => button.getBoundingClientRect().top") - before) < 5  # the page does not jump
    run(page)
    released(page, tmp_path)


@pytest.mark.slow
def test_every_step_of_the_whole_way_is_accessible_light_dark_and_narrow(
    server: Server, tmp_path: Path, browser: Browser, axe: str
) -> None:
    page = opened(browser, server.link)

    def looked_at(name: str) -> None:
        for width, scheme in ((1400, "light"), (400, "dark")):
            page.set_viewport_size({"width": width, "height": 900})
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
            page.evaluate(axe)
            found = page.evaluate("axe.run()")["violations"]
            serious = [each for each in found if each["impact"] in ("serious", "critical")]
            assert [(each["id"], each["nodes"][0]["html"][:200]) for each in serious] == [], (name, width)
        page.set_viewport_size({"width": 1400, "height": 900})

    whole_way(page, "people.csv", looked_at)


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """axe-core, of the npm registry."""
    folder = tmp_path_factory.mktemp("axe")
    if shutil.which("npm") is None:
        pytest.skip("THERE IS NO NPM TO FETCH AXE-CORE WITH, SO ACCESSIBILITY IS NOT TESTED.")
    done = subprocess.run(["npm", "pack", "axe-core@4"], cwd=folder, capture_output=True, check=False)
    packed = next(folder.glob("axe-core-*.tgz"), None)
    if done.returncode or packed is None:
        pytest.skip("AXE-CORE COULD NOT BE FETCHED BY NPM, SO ACCESSIBILITY IS NOT TESTED.")
    with tarfile.open(packed) as archive:
        file = archive.extractfile("package/axe.min.js")
        assert file is not None
        return file.read().decode()


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "uci" / "adult.data").exists(), reason="ADULT IS NOT THERE; set ANONFIT_DATA")
def test_adult_with_hierarchies_of_arx(tmp_path: Path, browser: Browser) -> None:
    rows = [line for line in (DATA / "uci" / "adult.data").read_text().splitlines() if line.strip()]
    (tmp_path / "adult.csv").write_text("\n".join([NAMES, *rows]) + "\n")
    for path in (DATA / "hierarchies" / "arx-adult").glob("*.csv"):
        shutil.copy(path, tmp_path)
    server = start_server(tmp_path)
    page = opened(browser, server.link)
    take(page, "adult.csv")
    expect(page.locator("#found-title")).to_contain_text("32,561 rows, 15 columns")
    step(page, "Columns")
    page.get_by_role("button", name="Use them").click()
    expect(page.get_by_role("button", name="Use them")).to_have_count(0)
    give_role(page, "salary-class", "target")
    for name in ("fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"):
        give_role(page, name, "identifier")
    settle_all(page)
    run(page)
    expect(page.locator("#verdict")).to_contain_text("10-anonymous")
    assert 'taxonomy = "adult_hierarchy_age.csv"' in (tmp_path / "spec.toml").read_text()
    released(page, tmp_path)
    server.end()


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "uci" / "adult.data").exists(), reason="ADULT IS NOT THERE; set ANONFIT_DATA")
def test_the_first_release_of_adult_takes_as_many_clicks_as_the_docs_say(tmp_path: Path, browser: Browser) -> None:
    rows = [line for line in (DATA / "uci" / "adult.data").read_text().splitlines() if line.strip()]
    (tmp_path / "adult.csv").write_text("\n".join([NAMES, *rows]) + "\n")
    server = start_server(tmp_path)
    page, clicks = opened(browser, server.link), 0

    def click(control: Locator) -> None:
        nonlocal clicks
        clicks += 1
        control.click()

    def decide() -> None:
        questions = page.locator(".question input[type=checkbox]")
        for left in range(questions.count(), 0, -1):
            click(questions.first)
            expect(page.locator(".question")).to_have_count(left - 1)

    click(page.get_by_role("button", name="Take it: adult.csv", exact=True))
    click(page.get_by_role("link", name="Next: Columns"))
    expect(page.locator("table.columns")).to_be_visible()
    decide()
    click(page.get_by_role("link", name="Next: Demands"))
    expect(page.locator("#k")).to_be_visible()
    decide()
    click(page.get_by_role("link", name="Next: Explore"))
    click(page.get_by_role("button", name="Run with k"))
    click(page.locator("table.runs a.button", has_text="Hand over"))
    with page.expect_download() as download:
        click(page.get_by_role("link", name="Download the release (ZIP)"))
    assert "release/data.csv" in zipfile.ZipFile(download.value.path()).namelist()
    told = re.search(r"it takes (\d+) clicks", (Path(__file__).parents[2] / "docs" / "web.md").read_text())
    assert told is not None
    assert clicks == int(told[1])
    server.end()


@pytest.mark.slow
def test_a_messy_table_is_put_right_by_clicks(tmp_path: Path, browser: Browser) -> None:
    lines = people(600).splitlines()
    mixed = ["name;age;sex;illness;visits"]
    mixed += [
        ";".join([*line.split(","), "-9" if row % 7 == 0 else str(row % 5)]) for row, line in enumerate(lines[1:])
    ]
    (tmp_path / "messy.csv").write_text("\n".join(mixed) + "\n")
    server = start_server(tmp_path)
    page = opened(browser, server.link)
    take(page, "messy.csv")
    chip = page.get_by_role("button", name="visits: Yes, missing")
    chip.click()
    expect(chip).to_have_count(0)
    assert '"-9"' in (tmp_path / "spec.toml").read_text()
    page.get_by_text("Read it in another way").click()
    page.get_by_label("Delimiter").fill("|")
    page.get_by_role("button", name="Read it like this").click()
    expect(page.locator("#found-title")).to_contain_text("1 columns")
    page.get_by_role("button", name="Undo the last change").click()
    expect(page.locator("#found-title")).to_contain_text("5 columns")
    server.end()


def test_a_tree_is_edited_by_dragging(server: Server, tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "sex.csv").write_text("f;human;*\nm;human;*\nx;other;*\n")
    page = opened(browser, server.link)
    take(page, "people.csv")
    step(page, "Columns")
    page.locator("tbody", has=page.get_by_label("Role of sex", exact=True)).locator("a.hierarchy").click()
    page.get_by_role("button", name="Use it").click()
    other = page.locator(".tree li.group", has=page.get_by_label("other", exact=True)).last
    expect(other.locator("li.leaf")).to_have_count(1)
    page.wait_for_load_state("networkidle")  # a part of the page that is put in anew ends the dragging
    page.locator(".tree li.leaf > label", has_text="m").last.drag_to(other.locator("> label"))
    expect(other.locator("li.leaf")).to_have_count(2)
    assert page.faults == []  # type: ignore[attr-defined]


@pytest.mark.slow
def test_three_hundred_columns_stay_usable(tmp_path: Path, browser: Browser) -> None:
    names = ["age", "sex", *(f"answer_{number}" for number in range(298))]
    rows = [
        [str(20 + row % 60), "fm"[row % 2], *(str((row * 7 + number) % 5) for number in range(298))]
        for row in range(400)
    ]
    (tmp_path / "wide.csv").write_text("\n".join([",".join(names), *(",".join(row) for row in rows)]) + "\n")
    server = start_server(tmp_path)
    page = opened(browser, server.link)
    take(page, "wide.csv")
    step(page, "Columns")
    page.get_by_label("Find").fill("answer_")
    expect(page.get_by_text("298 shown")).to_be_visible()
    page.get_by_label("Tick all shown").check()
    page.locator("#many-role").select_option("insensitive")
    page.locator("#many input[name=settle]").check()
    page.get_by_role("button", name="Change those ticked").click()
    expect(page.locator("tbody tr.role-insensitive")).to_have_count(298)
    assert "find=answer_" in page.url
    settle_all(page)
    run(page)
    server.end()


@pytest.mark.slow
def test_an_infeasible_demand_is_told_and_mended(server: Server, browser: Browser) -> None:
    page = opened(browser, server.link)
    take(page, "people.csv")
    settle_all(page)
    page.locator("#k").fill("5000")
    page.locator("section[aria-labelledby=k-title] button", has_text="Save").first.click()
    expect(page.locator("#k")).to_have_value("5000")
    run(page, "failed")
    expect(page.locator("#verdict")).to_contain_text("came to nothing")
    step(page, "Demands")
    page.locator("#k").fill("5")
    page.locator("section[aria-labelledby=k-title] button", has_text="Save").first.click()
    expect(page.locator("#spec-text")).to_have_value(lambda_of("k = 5  #"))
    run(page)


def lambda_of(text: str):
    return re.compile(re.escape(text))


@pytest.mark.slow
def test_cancel_two_browsers_back_and_reload(tmp_path: Path, browser: Browser) -> None:
    lines = people(20_000).splitlines()
    (tmp_path / "people.csv").write_text("\n".join([lines[0], *lines[1:] * 40]) + "\n")
    server = start_server(tmp_path)
    first = opened(browser, server.link)
    take(first, "people.csv")
    settle_all(first)
    first.get_by_role("button", name="Open in another browser").click()
    link = first.locator(".flash").inner_text().rpartition(" ")[2]
    second = opened(browser, link)
    step(second, "Explore")
    step(first, "Explore")
    first.get_by_role("button", name="Run with k").click()
    expect(first.locator(".state")).to_have_text("running")
    second.reload()
    expect(second.locator("#verdict")).to_contain_text("is at work")
    second.get_by_role("button", name="Cancel run").click()
    expect(second.locator(".state")).to_have_text("cancelled")
    expect(first.locator(".state")).to_have_text("cancelled")
    step(first, "Demands")
    first.go_back()
    expect(first.locator(".rail .here")).to_contain_text("Explore")
    first.go_forward()
    expect(first.locator(".rail .here")).to_contain_text("Demands")
    step(second, "Demands")
    second.locator("#k").fill("7")
    second.locator("section[aria-labelledby=k-title] button", has_text="Save").first.click()
    expect(second.locator("#k")).to_have_value("7")
    first.locator("#spec-text").fill("version = 1\n")
    first.get_by_role("button", name="Save the text").click()
    expect(first.locator(".flash")).to_contain_text("changed in another window")
    assert "k = 7" in (tmp_path / "spec.toml").read_text()
    assert json.loads((next((tmp_path / "runs").iterdir()) / "job.json").read_text())["state"] == "cancelled"
    server.end()


class Keyboard:
    """Somebody who has no mouse, and must see where they are."""

    def __init__(self, page: Page) -> None:
        self.page, self.press = page, page.keyboard.press

    def to(self, words: str, most: int = 250) -> None:
        """Go on with Tab to the control whose label begins so; each one on the way shows that it is focused."""
        for _ in range(most):
            self.press("Tab")
            if self.words.startswith(words):
                return
        raise AssertionError(f"{words} cannot be reached, only {self.words}")

    @property
    def words(self) -> str:
        """The label of the control where the focus is."""
        told: list[str] = self.page.evaluate(
            """() => { const at = document.activeElement, style = getComputedStyle(at);
            return [at.ariaLabel || (at.labels && at.labels[0]?.textContent) || at.textContent || at.value || "",
                at === document.body || at.matches("main, iframe") ? "solid" : style.outlineStyle]; }"""
        )
        assert told[1] != "none", told[0]
        return told[0].strip()

    def enter(self, words: str) -> None:
        """Go to a control and press it."""
        self.to(words)
        self.press("Enter")

    def tick(self, words: str) -> None:
        self.to(words)
        self.press("Space")


@pytest.mark.slow
def test_the_whole_way_is_walked_by_keyboard_alone(server: Server, tmp_path: Path, browser: Browser) -> None:
    page = opened(browser, server.link)
    keys, rail = Keyboard(page), page.locator(".rail .here")
    keys.enter("Take it: people.csv")
    expect(page.locator("#found-title")).to_be_visible()
    keys.enter("Next: Columns")
    expect(rail).to_contain_text("Columns")
    expect(page.locator("#main")).to_be_focused()
    keys.to("Role of illness")
    page.keyboard.type("Ins")
    expect(page.locator("tbody tr.role-insensitive").first).to_be_visible()
    expect(page.get_by_label("Role of illness")).to_be_focused()
    page.keyboard.type("Sen")
    expect(page.locator("tbody tr.role-sensitive").first).to_be_visible()
    keys.press("Shift+Tab")
    keys.to("Skip to the content")
    keys.press("Enter")
    keys.tick("Tick all shown")
    keys.tick("Decided")
    keys.enter("Change those ticked")
    expect(page.locator("tr.decide")).to_have_count(0)
    expect(page.get_by_role("button", name="Change those ticked")).to_be_focused()
    keys.enter("Make a hierarchy")
    expect(page.locator("#preview #levels")).to_be_visible()
    keys.enter("Use this")
    expect(page.locator("#tree")).to_be_visible()
    keys.enter("Skip to the content")
    keys.to("Name")
    page.keyboard.type("somebody")
    keys.tick("[")
    keys.press("Shift+Tab")
    page.get_by_label("Name", exact=True).focus()
    keys.enter("Group those ticked")
    expect(page.locator(".tree li.group", has_text="somebody").first).to_be_visible()
    keys.enter("Back to the columns")
    expect(page.locator("table.columns")).to_be_visible()
    keys.enter("Next: Demands")
    expect(rail).to_contain_text("Demands")
    for left in range(page.locator(".question").count(), 0, -1):
        page.locator("#main").focus()
        keys.tick("Decided")
        expect(page.locator(".question")).to_have_count(left - 1)
    keys.to("k")
    keys.press("Control+A")
    page.keyboard.type("7")
    keys.press("Enter")
    expect(page.locator("#spec-text")).to_have_value(lambda_of("k = 7  #"))
    expect(page.locator("#k")).to_be_focused()
    keys.enter("Next: Explore")
    expect(rail).to_contain_text("Explore")
    keys.enter("Run with k = 7")
    expect(page.locator("table.runs .state")).to_have_text("done")
    keys.enter("Next: Utility")
    expect(rail).to_contain_text("Utility")
    keys.enter("Show some records")
    expect(page.locator("table.beside")).to_be_visible()
    keys.enter("Next: Risk")
    expect(rail).to_contain_text("Risk")
    keys.to("Smallest group that would do")
    before = page.locator(".threshold output").inner_text()
    keys.press("ArrowRight")
    expect(page.locator(".threshold output")).not_to_have_text(before)
    keys.enter("Next: Hand over")
    expect(rail).to_contain_text("Hand over")
    keys.to("Download the release (ZIP)")
    with page.expect_download() as download:
        keys.press("Enter")
    assert "release/data.csv" in zipfile.ZipFile(download.value.path()).namelist()
    assert page.faults == []  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_focus_stays_while_runs_are_looked_at_again_and_again(tmp_path: Path, browser: Browser) -> None:
    lines = people(20_000).splitlines()
    (tmp_path / "people.csv").write_text("\n".join([lines[0], *lines[1:] * 40]) + "\n")
    (tmp_path / "spec.toml").write_text(SPEC)
    server = start_server(tmp_path)
    page = opened(browser, server.link)
    keys = Keyboard(page)
    step(page, "Explore")
    keys.enter("Run with k")
    keys.to("Cancel run 1")
    page.locator("#runs").evaluate("(runs) => { runs.dataset.old = 'yes'; }")
    expect(page.locator("#runs:not([data-old])")).to_be_visible()  # it was put in anew
    expect(page.get_by_role("button", name="Cancel run 1")).to_be_focused()
    button = page.get_by_role("button", name="Cancel run 1")
    button.hover()
    button.evaluate("(button) => { button.dataset.old = 'yes'; }")
    with page.expect_response("**/explore?*"), page.expect_response("**/explore?*"):
        page.mouse.down()
    assert button.get_attribute("data-old") == "yes"  # while it is pressed it stays
    page.mouse.up()
    expect(page.locator(".state")).to_have_text("cancelled")
    server.end()
