# SPDX-License-Identifier: Apache-2.0
"""Releases side by side: figures against plain counting, what cannot be compared is said, and the page."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import anonfit as af
from anonfit.errors import ReleaseError, RequestError
from anonfit.evaluation.comparing_page import COLOURS, detail_chart, detail_lines, mark, sections
from anonfit.metrics.losses import stated_extents
from anonfit.report.words import percent
from waivers import waived

PLACES = {
    "name": "*",
    "children": [
        {"name": "north", "children": [{"name": "Kiel"}, {"name": "Lund"}, {"name": "Oslo"}]},
        {"name": "Rome"},
    ],
}
NAMES = ["age", "place"]


def people(rows: int = 400, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, rows)
    return pl.DataFrame(
        {
            "age": age,
            "place": rng.choice(["Kiel", "Lund", "Oslo", "Rome"], rows),
            "illness": np.where(age + rng.normal(0, 15, rows) > 50, "heart", "flu"),
            "outcome": rng.choice(["yes", "no"], rows),
            "many": rng.integers(1, 4, rows),
            "who": np.arange(rows) // 2,
        }
    )


def release(frame: pl.DataFrame | None = None, *, k: int = 5, **words: Any) -> af.Release:
    """A release of people, persons being rows unless `words` say otherwise."""
    frame = people() if frame is None else frame
    used = {words.get("count"), words.get("entity")}
    words.setdefault("quasi_identifiers", NAMES)
    words.setdefault("sensitive", waived("illness"))
    if words.setdefault("targets", ["outcome"]) == ["outcome"]:
        words.setdefault("criterion", "infogain")
    words.setdefault("taxonomies", {"place": PLACES})
    words.setdefault("insensitive", [name for name in ("many", "who") if name in frame.columns and name not in used])
    return af.anonymize(frame, k=k, **words)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two releases of one table, one of a part of it."""
    path = tmp_path_factory.mktemp("releases")
    people().write_csv(path / "people.csv")
    release(k=5).save(path / "fine")
    release(k=25).save(path / "coarse", format="csv")
    return path


def test_figures_are_those_of_the_released_table(folder: Path) -> None:
    found = af.compare(folder / "fine", folder / "coarse").to_dict()
    assert [one["name"] for one in found["releases"]] == ["fine", "coarse"]
    assert found["differences"] == []
    assert found["together"] == []
    for one, k in zip(found["releases"], (5, 25), strict=True):
        table = af.load(folder / one["name"]).data
        sizes = table.group_by(NAMES).len()["len"]
        utility = one["utility"]
        assert utility["discernibility"] == sum(size * size for size in sizes.to_list())
        assert utility["average_group"] == pytest.approx(400 / len(sizes))
        assert utility["c_avg"] == pytest.approx(400 / len(sizes) / k)
        assert one["risk"]["smallest_group"] == sizes.min() >= k
        assert one["risk"]["average"] == pytest.approx(len(sizes) / 400)
        counts = table.group_by([*NAMES, "outcome"]).len()
        most = counts.group_by(NAMES).agg(pl.col("len").max())["len"].sum()
        target = utility["targets"][0]
        assert target["column"] == "outcome"
        assert target["classification_metric"] == pytest.approx(1 - most / 400)
        entropy = counts.join(counts.group_by(NAMES).agg(pl.col("len").sum().alias("size")), on=NAMES).select(
            (-(pl.col("len") / 400) * (pl.col("len") / pl.col("size")).log(2)).sum()
        )
        assert target["conditional_entropy"] == pytest.approx(entropy.item())


def test_names_lost_are_counted_by_hand(folder: Path) -> None:
    for one in af.compare(folder / "fine", folder / "coarse").to_dict()["releases"]:
        labels = af.load(folder / one["name"]).data["place"].cast(pl.String).to_list()
        penalty = {"*": 1.0, "north": 3 / 4, "Kiel": 0.0, "Lund": 0.0, "Oslo": 0.0, "Rome": 0.0}
        ncp = {line["name"]: line["ncp"] for line in one["utility"]["losses"]["columns"]}
        assert ncp["place"] == pytest.approx(sum(penalty[label] for label in labels) / len(labels))


def test_numbers_are_measured_between_the_same_ends_in_all(folder: Path) -> None:
    fine, coarse = (af.load(folder / name).recoding for name in ("fine", "coarse"))
    lows, highs = zip(*((one["age"].low, one["age"].high) for one in map(stated_extents, (fine, coarse))), strict=True)
    low, high = min(lows), max(highs)
    found = af.compare(folder / "fine", folder / "coarse").to_dict()
    for one in found["releases"]:
        table = af.load(folder / one["name"]).data
        widths = []
        for label in table["age"].cast(pl.String):
            ends = [float(number) for number in re.findall(r"[\d.]+", label)]
            if re.fullmatch(r"\d+", label):
                ends = [ends[0] - 0.5, ends[0] + 0.5]  # one whole number alone
            start = low if label.startswith("<") or label == "*" else ends[0]
            stop = high if label.startswith("≥") or label == "*" else ends[-1]
            widths.append((stop - start) / (high - low))
        ncp = {line["name"]: line["ncp"] for line in one["utility"]["losses"]["columns"]}
        assert ncp["age"] == pytest.approx(np.mean(widths))
        assert one["utility"]["losses"]["gcp"] == pytest.approx((ncp["age"] + ncp["place"]) / 2)


def test_releases_in_memory_have_the_same_figures(folder: Path) -> None:
    names = ["fine", "coarse"]
    in_memory = af.compare(release(k=5), release(k=25), names=names)
    from_files = af.compare(folder / "fine", folder / "coarse")
    assert json.dumps(in_memory.to_dict(), sort_keys=True) == json.dumps(from_files.to_dict(), sort_keys=True)
    assert repr(in_memory) == "Comparison(fine, coarse)"
    assert [one["name"] for one in af.compare(release(), folder / "coarse").releases] == ["release 1", "coarse"]


# --- what differs -----------------------------------------------------------------------------------------------


def told(*releases: af.Release, **words: Any) -> str:
    return " ".join(af.compare(*releases, names=["here", "there", "elsewhere"][: len(releases)], **words).differences)


def test_other_quasi_identifiers_are_said() -> None:
    other = release(quasi_identifiers=["age"], insensitive=["place", "many", "who"], taxonomies={})
    found = told(release(), other)
    assert "different quasi-identifiers: 'place' only in here" in found
    assert "different tables" not in found


def test_other_tables_are_said() -> None:
    assert "were made from 400 and 300 rows" in told(release(), release(people(300)))
    assert "hold other values of 'illness', 'many', 'outcome'" in told(release(), release(people(seed=1)))
    assert "'who' only in here" in told(release(), release(people().drop("who")))
    third = told(release(), release(), release(people(300)))
    assert "here and elsewhere were made from" in third
    assert "here and there" not in third


def test_columns_that_are_measured_otherwise_are_said() -> None:
    flat = release(
        taxonomies={}, splits={"place": "subset"}, domains={"place": ["Kiel", "Lund", "Oslo", "Rome", "Nice"]}
    )
    assert "do not tell the same values of 'place' apart" in told(release(), flat)
    named = release(types={"age": "nominal"})
    assert "do not tell the same values of 'age' apart" in told(release(), named)


def test_rare_values_that_one_release_does_not_name_are_counted_in_both() -> None:
    towns = ["Kiel"] * 200 + ["Lund"] * 170 + [f"village {number}" for number in range(3) for _ in range(10)]
    frame = people().with_columns(place=pl.Series(towns))
    fine, coarse = release(frame, k=5, taxonomies={}), release(frame, k=20, taxonomies={})
    comparison = af.compare(fine, coarse, names=["fine", "coarse"])
    assert comparison.differences == ()
    # Villages are named with k = 5, and with k = 20 they are one value, other, that stands for three of five.
    penalty = {"other": 3 / 5, "Kiel": 0.0, "Lund": 0.0, "{Kiel, other}": 4 / 5, "{Lund, other}": 4 / 5, "*": 1.0}
    penalty |= {"{Kiel, Lund}": 2 / 5}
    labels = coarse.data["place"].cast(pl.String).to_list()
    ncp = {line["name"]: line["ncp"] for line in comparison.to_dict()["releases"][1]["utility"]["losses"]["columns"]}
    assert ncp["place"] == pytest.approx(sum(penalty[label] for label in labels) / len(labels))


def test_other_classes_of_a_target_are_said() -> None:
    words = {"insensitive": ["outcome", "who"]}
    here = release(targets=[{"column": "many", "classes": [2]}], **words)
    there = release(targets=[{"column": "many", "classes": [3]}], **words)
    assert "many: here and there have different classes" in told(here, there)
    assert told(here, here) == ""


def test_what_is_not_measured_is_said() -> None:
    entities = release(entity="who", k=3)
    comparison = af.compare(entities, release(), names=["entities", "rows"])
    assert any("entities: persons have several rows" in text for text in comparison.differences)
    assert comparison.to_dict()["releases"][0]["utility"]["discernibility"] is None
    observed = release(regions="observed", consent=True)
    figures = af.compare(observed, release(), names=["observed", "rows"]).to_dict()["releases"]
    assert figures[0]["utility"]["losses"] is None
    assert "labels are what the records" in figures[0]["utility"]["losses_not_measured"]
    assert figures[1]["utility"]["losses_not_measured"] is None


def test_persons_are_counted_by_a_count_column() -> None:
    counted = release(count="many", k=12)
    sizes = counted.data.group_by(NAMES).agg(pl.col("many").sum())["many"].to_list()
    found = af.compare(counted, release(), names=["counted", "rows"]).to_dict()["releases"][0]["utility"]
    assert found["discernibility"] == sum(size * size for size in sizes)
    assert found["average_group"] == pytest.approx(sum(sizes) / len(sizes))


def test_withheld_rows_are_charged_where_they_may_be_told() -> None:
    extended = release(k=20, min_gain=0.0).extend(people(200, seed=3), suppression_limit=1.0)
    withheld = extended.report["rows"]["withheld"]
    assert isinstance(withheld, int)
    assert withheld >= 20
    found = af.compare(extended, release(), names=["new", "rows"]).to_dict()["releases"][0]["utility"]
    sizes = extended.data.group_by(NAMES).len()["len"].to_list()
    assert found["discernibility"] == sum(size * size for size in sizes) + withheld * 200


# --- together ---------------------------------------------------------------------------------------------------


def test_two_releases_are_audited_together(folder: Path) -> None:
    found = af.compare(folder / "fine", folder / "coarse", source=folder / "people.csv").pairs
    audit = af.audit_release(folder / "fine", source=folder / "people.csv", other=folder / "coarse")
    assert len(found) == 1
    assert found[0]["k"] == 5
    assert found[0]["faults"] == []
    assert audit.joint is not None
    assert found[0]["joint"]["cells"] == audit.joint.cells
    assert found[0]["joint"] == audit.public(5)["joint"]
    # Held against the smaller k, whichever comes first.
    again = af.compare(folder / "coarse", folder / "fine", source=folder / "people.csv").pairs
    assert again[0]["joint"] == found[0]["joint"]


def test_a_source_that_is_not_theirs_is_a_fault(folder: Path, tmp_path: Path) -> None:
    people(seed=8).write_csv(tmp_path / "others.csv")
    found = af.compare(folder / "fine", folder / "coarse", source=tmp_path / "others.csv").pairs
    assert found[0]["faults"]


def test_representatives_are_audited_together_with_labels(folder: Path, tmp_path: Path) -> None:
    release(values="representative").save(tmp_path / "middle")
    found = af.compare(folder / "fine", folder / "coarse", tmp_path / "middle", source=folder / "people.csv").pairs
    assert [pair["joint"] is None for pair in found] == [False, False, False]
    assert [pair["faults"] for pair in found] == [[], [], []]


# --- wrong requests ---------------------------------------------------------------------------------------------


def test_wrong_requests(folder: Path, tmp_path: Path) -> None:
    fine, coarse = folder / "fine", folder / "coarse"
    with pytest.raises(RequestError, match="two releases or more; 1 given"):
        af.compare(fine)
    with pytest.raises(RequestError, match="two releases or more; 0 given"):
        af.compare()
    with pytest.raises(ReleaseError, match="no such release folder"):
        af.compare(fine, folder / "nowhere")
    with pytest.raises(ReleaseError, match="is a file"):
        af.compare(fine, folder / "people.csv")
    with pytest.raises(ReleaseError, match="not a release"):
        af.compare(fine, tmp_path)
    with pytest.raises(RequestError, match="the same folder"):
        af.compare(fine, fine)
    with pytest.raises(RequestError, match="give each one"):
        af.compare(fine, coarse, names=["one"])
    with pytest.raises(RequestError, match="same name"):
        af.compare(fine, coarse, names=["one", "one"])
    with pytest.raises(RequestError, match="save them"):
        af.compare(fine, release(), source=folder / "people.csv")
    with pytest.raises(RequestError, match="not a DataFrame"):
        af.compare(fine, people())  # type: ignore[arg-type]


def test_a_damaged_release_is_refused(folder: Path, tmp_path: Path) -> None:
    release().save(tmp_path / "damaged")
    with (tmp_path / "damaged" / "report.json").open("a") as file:
        file.write(" ")
    with pytest.raises(ReleaseError, match="was changed"):
        af.compare(folder / "fine", tmp_path / "damaged")


def test_folders_of_the_same_name_are_told_apart(folder: Path, tmp_path: Path) -> None:
    release().save(tmp_path / "fine")
    found = [one["name"] for one in af.compare(folder / "fine", tmp_path / "fine").releases]
    assert found == [f"{folder.name}/fine", f"{tmp_path.name}/fine"]


# --- the page ---------------------------------------------------------------------------------------------------


class Balanced(HTMLParser):
    """Checks that tags are closed in the order in which they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.marks = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.marks += any(name == "class" and "series" in (value or "") for name, value in attrs)
        if tag not in ("link", "meta"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read_page(text: str) -> Balanced:
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    return parser


def test_the_page_is_whole_and_needs_nothing_else(folder: Path, tmp_path: Path) -> None:
    comparison = af.compare(folder / "fine", folder / "coarse", source=folder / "people.csv")
    path = comparison.save(tmp_path / "compare.html")
    assert path.stat().st_mode & 0o777 == 0o600  # it is for the owner
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?:|src=|@import|url\(|<script", text)
    page = read_page(text)
    for word in ("fine", "coarse", "What was asked", "Detail kept", "Two releases together", "fine with coarse"):
        assert word in page.texts
    # In the chart a mark for each release in the average and in each column, and one each in the legend.
    assert page.marks == 2 * 3 + 2
    with pytest.raises(RequestError, match="already there"):
        comparison.save(path)
    comparison.save(path, replace=True)
    with pytest.raises(RequestError, match="already there"):
        comparison.save(tmp_path, replace=True)
    with pytest.raises(RequestError, match="no such folder"):
        comparison.save(tmp_path / "no" / "compare.html")


def test_targets_with_numbers_are_compared_too() -> None:
    words: dict[str, Any] = {"targets": ["outcome", "many"], "insensitive": ["who"], "types": {"many": "continuous"}}
    releases = [release(k=k, **words) for k in (5, 40)]
    found = af.compare(*releases, names=["fine", "coarse"])
    (section,) = (one for one in sections(found.to_dict()) if one.title == "Targets")
    lines = dict(section.lines)
    for column, told in (("outcome", "accuracy"), ("many", "explained variance")):
        values = []
        for one in releases:
            (figures,) = (line for line in one.report["predictions"] if line["column"] == column)
            assert figures["measure"] == told
            values.append(percent(figures["regions"]))
        assert lines[f"{column}: predicted"] == tuple(values)


def test_names_are_texts_on_the_page() -> None:
    frame = people().rename({"place": "<b>place & 'more'"})
    words: dict[str, Any] = {"quasi_identifiers": ["age", "<b>place & 'more'"], "taxonomies": {}}
    page = af.compare(release(frame, **words), release(frame, k=9, **words), names=["<i>a", 'b"']).to_html()
    assert "<b>" not in page
    assert "<i>" not in page
    assert "<b>place & 'more'" in read_page(page).texts


def test_the_chart_leaves_out_what_was_not_measured() -> None:
    def kept(name: str, **values: float) -> dict[str, Any]:
        return {"name": name, "utility": {"detail_kept": values}}

    assert detail_chart([kept("a"), kept("b")]) == ""
    drawn = detail_chart([kept("a", age=0.5, place=1.0), kept("b", age=0.25, place=0.5), kept("c", age=1.0)])
    page = read_page(drawn)
    assert page.marks == 3 + 2
    assert "b: place 50.0\u00a0%" in page.texts
    drawn = detail_chart([kept("a", age=0.5, place=1.0), kept("b", age=0.25, place=0.5)])
    assert "a: average 75.0\u00a0%" in read_page(drawn).texts
    averages = dict(detail_lines([kept("a", age=0.5, place=1.0), kept("b", age=0.25, place=0.5)]))["average"]
    assert averages == [0.75, 0.375]


def test_every_release_has_a_sign_of_its_own() -> None:
    assert len({mark(which, 0, 0) for which in range(COLOURS)}) == COLOURS
