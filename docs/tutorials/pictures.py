# SPDX-License-Identifier: Apache-2.0
"""The pictures of README and tutorials, made of the demo's people: python docs/tutorials/pictures.py docs/figures."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from markupsafe import Markup

import anonfit as af
from anonfit.demo.population import hospital, hospital_taxonomies
from anonfit.report.environment import TEMPLATES
from anonfit.report.pictures import element, shape, svg, text, tiling_figure, together

SHOWN = ["age", "sex", "postcode", "length_of_stay", "outcome"]
ROW, WIDTHS = 24.0, (88, 62, 78, 78, 92)
STYLE = """
.paper { fill: #ffffff; } .band { fill: #eef2f5; } text { fill: #1b2530; font: 12px system-ui, sans-serif; }
.head { font-weight: 600; } .soft { fill: #55626f; } .title { font-size: 14px; font-weight: 600; }
.arrow { fill: none; stroke: #3576a3; stroke-width: 2; } .tip { fill: #3576a3; }
@media (prefers-color-scheme: dark) {
  .paper { fill: #141a20; } .band { fill: #1d252d; } text { fill: #e4eaf0; } .soft { fill: #a2afbb; }
}
"""


def _release() -> tuple[pl.DataFrame, af.Release]:
    people = hospital(3000)
    trees = hospital_taxonomies()
    release = af.anonymize(
        people.drop("cost", "admission", "nationality"),
        quasi_identifiers=["age", "sex", "postcode", "length_of_stay"],
        identifiers=["patient_id"],
        sensitive={"diagnosis": {"model": "distinct-l", "l": 2}},
        targets=["outcome"],
        criterion="infogain",
        taxonomies={"postcode": trees["postcode"]},
        k=10,
    )
    return people, release


def _table(x: float, title: str, note: str, rows: Sequence[Sequence[str]]) -> list[Markup]:
    width = float(sum(WIDTHS)) + 12
    parts = [text(x, 22, title, "title"), text(x, 40, note, "soft")]
    for line, cells in enumerate([SHOWN, *rows]):
        y = 52 + ROW * line
        if line % 2 == 0:
            parts.append(shape("rect", x=x, y=y, width=width, height=ROW, class_="band"))
        at = x + 8
        for cell, room in zip(cells, WIDTHS, strict=True):
            parts.append(text(at, y + 16, cell.replace("length_of_stay", "days"), "" if line else "head"))
            at += room
    return parts


def in_and_out(people: pl.DataFrame, release: af.Release) -> str:
    """A few rows as they are, and as they are released."""
    released = release.data.with_columns(pl.col(SHOWN).cast(pl.String))
    counts = released.group_by(SHOWN[:-1]).agg(pl.len().alias("persons"), pl.col("outcome").n_unique().alias("mixed"))
    telling = counts.filter(pl.col("age").str.starts_with("["), pl.col("sex") != "*", pl.col("postcode") != "*")
    group = telling.sort("mixed", "persons", *SHOWN[:-1], descending=[True, *[False] * 5]).select(SHOWN[:-1]).row(0)
    same = released.filter(pl.all_horizontal(pl.col(n) == v for n, v in zip(SHOWN[:-1], group, strict=True)))
    after = same.select(SHOWN).sort("outcome", descending=True).head(6).rows()
    working = release.recoding.apply(people.select(SHOWN[:-1])).with_columns(pl.all().cast(pl.String))
    inside = pl.all_horizontal(working[n] == v for n, v in zip(SHOWN[:-1], group, strict=True))
    before = people.filter(pl.select(inside).to_series()).select(pl.col(SHOWN).cast(pl.String))
    right, height = float(sum(WIDTHS)) + 92, 52 + ROW * 7 + 12
    parts = [
        element("style", Markup(STYLE)),
        shape("rect", width=right + sum(WIDTHS) + 24, height=height, class_="paper"),
        *_table(
            8, "What goes in", "made-up patients, one a row", before.sort(*SHOWN[::-1], descending=True).head(6).rows()
        ),
        shape("path", d=f"M{right - 66:.0f} 136 h38", class_="arrow"),
        shape("path", d=f"M{right - 30:.0f} 130 l12 6 l-12 6 z", class_="tip"),
        *_table(right, "What comes out", f"{len(same)} patients share this combination (asked: 10)", after),
    ]
    drawn = svg(right + sum(WIDTHS) + 24, height, parts, "Rows of a table before and after anonymization")
    return str(drawn).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def regions(release: af.Release) -> str:
    """The regions of two columns, as the report draws them, in colours of its stylesheet."""
    style = (TEMPLATES / "style.css").read_text(encoding="utf-8").partition("* {")[0]
    rules = "".join(f".s{n} {{ fill: var(--s{n}); }} " for n in range(5))
    rules += "text { fill: var(--ink); font: 11px system-ui, sans-serif; } .edge { stroke: var(--paper); }"
    drawn = str(tiling_figure(release.report["partition"], 10)).partition("<figure>")[2].partition("<figcaption>")[0]
    begin, end, rest = drawn.partition("</title>")
    inside = together([Markup(begin + end), element("style", Markup(style + rules)), Markup(rest)])
    return str(inside).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def pictures() -> dict[str, str]:
    """Every picture by its file name."""
    people, release = _release()
    return {"in-and-out.svg": in_and_out(people, release), "regions.svg": regions(release)}


if __name__ == "__main__":
    for name, drawn in pictures().items():
        (Path(sys.argv[1]) / name).write_text(drawn, encoding="utf-8")
