# SPDX-License-Identifier: Apache-2.0
"""The page of a report: whole, self-contained, escaped, accessible, small; and opened in a real browser."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from reported import KINDS, ODD, K, people, released

import anonfit as af
from anonfit.report.page import internal_page, page, report_page
from anonfit.report.words import percent, share_text, value_text

VOID = {"meta", "link", "br", "img", "hr"}


class Page(HTMLParser):
    """What a page holds; fails where elements do not close as they opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A published release of every kind, one of new rows, and one of many columns with long and odd names."""
    root = tmp_path_factory.mktemp("releases")
    for kind in KINDS:
        released(kind).save(root / kind)
    released("classes", people(1200)).extend(people(600, seed=9), suppression_limit=1.0).save(root / "withheld")
    wide().save(root / "wide")
    af.run(released("classes")._draft.spec, root / "curve", curve=[5, 20, 50])
    return root


def wide() -> af.Release:
    rng = np.random.default_rng(0)
    names = [
        f"{'a_very_long_name_without_an_end_' * 3}{number}" if number % 6 == 0 else f"c{number}" for number in range(40)
    ]
    names[1], names[2] = ODD, "a name\nof two lines"
    frame = pl.DataFrame(
        {
            name: rng.integers(0, 50, 800) if place % 3 else rng.choice(list("abcd<&"), 800)
            for place, name in enumerate(names)
        }
    )
    return af.anonymize(frame, quasi_identifiers=names[:30], k=5, targets=names[30:33], default_role="insensitive")


PAGES = [*KINDS, "withheld", "wide", "curve"]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kind", PAGES)
def test_the_page_is_whole_and_needs_nothing_else(folders: Path, kind: str) -> None:
    for path in (folders / kind / "report.html", folders / f"{kind}.internal.html"):
        text = path.read_text(encoding="utf-8")
        page = Page(text)
        assert len(text.encode()) < 300_000
        assert not {"script", "iframe", "object", "embed", "form", "base"} & {tag for tag, _ in page.elements}
        assert "url(" not in text
        assert "@import" not in text
        assert "@font-face" not in text
        for _, attributes in page.elements:
            assert not {"src", "onload", "onclick", "srcset"} & set(attributes)
            assert (attributes.get("href") or "#").startswith(("#", "data:,"))


@pytest.mark.sampled(11)
@pytest.mark.parametrize("kind", PAGES)
def test_the_page_can_be_read_by_everybody(folders: Path, kind: str) -> None:
    text = (folders / kind / "report.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.all("html")[0]["lang"] == "en"
    assert (
        len(page.all("h1"))
        == len(page.all("main"))
        == len(page.all("title"))
        - len(page.all("svg"))
        + len([one for one in page.all("svg") if one.get("aria-hidden")])
    )
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(one.get("scope") in ("col", "row") for one in page.all("th"))
    for picture in page.all("svg"):
        assert picture.get("aria-hidden") == "true" or (picture["role"] == "img" and picture["aria-label"])
    names = Counter(attributes["id"] for _, attributes in page.elements if "id" in attributes)
    assert set(names.values()) == {1}
    for link in page.all("a"):
        assert str(link["href"]).removeprefix("#") in names


def test_every_text_is_escaped(folders: Path) -> None:
    text = (folders / "wide" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "alert(&#39;x&#39;)&lt;/script&gt;" in text
    page = Page(text)
    assert any(ODD in one for one in page.texts)
    assert any(ODD in str(one.get("aria-label")) for one in page.all("svg"))


def test_the_page_is_made_of_report_and_manifest_alone(folders: Path) -> None:
    for kind in PAGES:
        report, manifest = (
            json.loads((folders / kind / name).read_text(encoding="utf-8")) for name in ("report.json", "manifest.json")
        )
        assert report_page(report, manifest) == (folders / kind / "report.html").read_text(encoding="utf-8")


SECTIONS = {
    "blind": {"asked", "attacker", "audit", "risk", "detail", "columns", "sizes", "attack", "partition", "losses"},
    "classes": {"workload", "comparison"},
    "selections": {"answers", "comparison"},
    "curve": {"curve"},
}


def test_sections_are_there_where_there_is_something_to_tell(folders: Path) -> None:
    for kind, more in SECTIONS.items():
        page = Page((folders / kind / "report.html").read_text(encoding="utf-8"))
        expected = (
            SECTIONS["blind"]
            | {"board", "checks", "signatures"}
            | more
            | (SECTIONS["classes"] if kind == "curve" else set())
        )
        assert {one["id"] for one in page.all("section")} == expected


def test_a_further_figure_of_all_columns_is_shown() -> None:
    line = {"column": "age", "weight": 1.0, "ncp": 0.1, "squares": 3, "together": 0.2}
    lost = {"gcp": 0.1, "weighted_discernibility": 14.0, "columns": [line]}
    assert "Worst column" not in page("report/losses.html", report={"columns_lost": lost})
    assert "<p>Worst column: 0.18.</p>" in page(
        "report/losses.html", report={"columns_lost": {**lost, "worst_column": 0.18}}
    )


def test_the_internal_page_says_that_it_is_private(folders: Path) -> None:
    internal = (folders / "selections.internal.html").read_text(encoding="utf-8")
    public = (folders / "selections" / "report.html").read_text(encoding="utf-8")
    assert "do not publish it" in internal
    assert "age = 30" in internal
    assert "do not publish" not in public
    assert "age = 30" not in public
    assert "internal report" in internal
    report = json.loads((folders / "selections" / "report.json").read_text(encoding="utf-8"))
    assert "public report" in report_page(report)
    assert "internal report" in internal_page(report)


def test_the_review_board_gets_sentences(folders: Path) -> None:
    report = json.loads((folders / "everything" / "report.json").read_text(encoding="utf-8"))
    board = {part["title"]: " ".join(part["sentences"]) for part in report["board"]}
    assert list(board) == ["Method", "Variables", "Initial risk", "Threshold", "Residual risk", "Utility", "Limits"]
    assert "Selection then InfoGain and LSD Mondrian, weighted" in board["Method"]
    assert "name: identifier, removed." in board["Variables"]
    assert "age: quasi-identifier, generalized (continuous," in board["Variables"]
    assert f"k = {K}" in board["Threshold"]
    assert "EMA policy 0070" in board["Threshold"]
    assert f"has {report['audit']['sizes']['smallest']} persons" in board["Residual risk"]
    assert "on held-out records" in board["Utility"]
    assert "Minimality" in board["Limits"]
    page = Page((folders / "everything" / "report.html").read_text(encoding="utf-8"))
    for part in report["board"]:
        for sentence in part["sentences"]:
            assert any(sentence in text for text in page.texts)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0 %"),
        (1.0, "100.0 %"),
        (0.5, "50.0 %"),
        (0.0001, "0.010 %"),
        (0.9999, "99.990 %"),
        (-0.0, "0.0 %"),
        (-0.031, "-3.1 %"),
        (-1.25, "-125.0 %"),
    ],
)
def test_shares_are_not_rounded_to_none_or_all(share: float, text: str) -> None:
    assert percent(share).replace("\u00a0", " ") == text  # at which no line is broken
    assert share_text({"persons": 3, "share": share}) == percent(share)


def test_what_is_not_told_stays_a_text() -> None:
    assert share_text({"persons": "fewer than 7", "share": "fewer than 7 persons"}) == "fewer than 7 persons"
    assert value_text(["a", 1000]) == "a, 1,000"


# --- in a browser ------------------------------------------------------------------------------------------------

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="NO BROWSER: the page was not opened; install chromium")


def browse(tmp_path: Path, address: str, *options: str) -> tuple[str, list[str]]:
    """The document as a browser has it, and what it wrote to its console."""
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr", "--v=0", *options, "--dump-dom"]
    done = subprocess.run([*command, address], capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@needs_browser
@pytest.mark.parametrize("kind", ["everything", "wide"])
def test_the_page_opens_without_a_word_on_the_console(folders: Path, tmp_path: Path, kind: str) -> None:
    for path in (folders / kind / "report.html", folders / f"{kind}.internal.html"):
        document, console = browse(tmp_path, path.as_uri())
        assert "For the review board" in document
        assert console == []


@needs_browser
def test_the_console_would_be_heard(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<script>console.error('told')</script>")
    assert len(browse(tmp_path, page.as_uri())[1]) == 1


@needs_browser
@pytest.mark.parametrize("width", [320, 390, 1400])
def test_no_page_must_be_scrolled_sideways(folders: Path, tmp_path: Path, width: int) -> None:
    frames = "".join(
        f'<iframe src="{(folders / kind / "report.html").as_uri()}" width={width}></iframe>' for kind in PAGES
    )
    measure = "[...document.querySelectorAll('iframe')].map(f => f.contentDocument.documentElement.scrollWidth)"
    page = tmp_path / "frames.html"
    page.write_text(
        f"{frames}<p></p><script>onload = () => {{ document.querySelector('p').textContent = {measure}; }}</script>"
    )
    document, _ = browse(tmp_path, page.as_uri(), "--allow-file-access-from-files", "--virtual-time-budget=5000")
    widths = document.partition("<p>")[2].partition("</p>")[0].split(",")
    assert len(widths) == len(PAGES)
    assert all(int(one) <= width for one in widths), dict(zip(PAGES, widths, strict=True))


@needs_browser
def test_the_page_can_be_printed(folders: Path, tmp_path: Path) -> None:
    printed = tmp_path / "report.pdf"
    browse(tmp_path, (folders / "everything" / "report.html").as_uri(), f"--print-to-pdf={printed}")
    data: Any = printed.read_bytes()
    assert data.startswith(b"%PDF")
    assert b"/MediaBox" in data


@needs_browser
@pytest.mark.parametrize("kind", ["everything", "selections", "curve"])
def test_what_a_board_must_read_is_printed_on_five_pages_at_most(folders: Path, tmp_path: Path, kind: str) -> None:
    text, annex, _ = (folders / kind / "report.html").read_text(encoding="utf-8").partition('<div class="annex">')
    assert annex
    page, printed = tmp_path / "main.html", tmp_path / "main.pdf"
    page.write_text(f"{text}</main></div></body></html>", encoding="utf-8")
    browse(tmp_path, page.as_uri(), f"--print-to-pdf={printed}")
    assert 1 <= printed.read_bytes().count(b"/MediaBox") <= 5
