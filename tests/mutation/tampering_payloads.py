# SPDX-License-Identifier: Apache-2.0
"""Kinds of tampering that put something else into lists and texts of a manifest or report, where nobody would look for
it. Whoever does so makes all that follows from a report anew: sentences, page and hashes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from planted import Planted
from tampering import After, kind, never, pick
from tampering_claims import edit, put

from anonfit.release.folder import expected_report

SENTENCE = "Mrs Maria Mueller, 12 Main St, is ill"


def retold(name: str, change: Callable[[dict[str, Any], Planted], Any]) -> None:
    """Enter a kind that edits report.json, or with it the manifest, and makes anew what follows from them."""

    def plant(p: Planted, rng: random.Random) -> After:
        said = json.loads((p.path / "report.json").read_text("utf-8"))
        before = json.dumps([said, p.manifest])
        change(said, p)
        if json.dumps([said, p.manifest]) == before:
            never("nothing changes")

        def after() -> None:
            for _ in range(2):  # the page tells the hash of the report
                p.write_json("report.json", said)
                p.hash()
                with suppress(Exception):  # a page cannot be made of everything
                    content, pages = expected_report(p.path, p.manifest, said)
                    said.update({key: content[key] for key in said if key in content})
                    for file, text in pages.items():
                        (p.path / file).write_text(text, "utf-8")

        return after

    plant.__name__ = name
    kind(plant)


# --- the picture of two columns -----------------------------------------------------------------------------------


def picture(said: dict[str, Any]) -> dict[str, Any]:
    """The picture of a report that has one."""
    return said["partition"] or never("no picture")


def repeated_edges(said: dict[str, Any], _: Planted) -> None:
    for side in ("across", "up"):
        for key in {"edges", "places"} & set(picture(said)[side]):
            picture(said)[side][key] *= 50


def rows_as_rectangles(said: dict[str, Any], p: Planted) -> None:
    repeated_edges(said, p)
    ages = [row % (len(picture(said)["across"]["edges"]) - 1) for row in range(len(p.data))]
    picture(said)["rectangles"] = [[age, age + 1, place % 40, place % 40 + 1, place] for place, age in enumerate(ages)]


def persons_exchanged(said: dict[str, Any], p: Planted) -> None:
    if p.spec["output"]["values"] == "representative" or p.spec["output"]["regions"] == "observed":
        never("nothing says of which region a group is")
    some = picture(said)["rectangles"]
    two = next((one for one in some if one[4] and one[4] != some[0][4]), None)
    if not some[0][4] or two is None or p.manifest["rows"]["released"] == 0:
        never("no two sizes")
    some[0][4], two[4] = two[4], some[0][4]


def edge_of_more_digits(said: dict[str, Any], _: Planted) -> None:
    side = next((picture(said)[s] for s in ("across", "up") if picture(said)[s]["scale"] == "number"), None)
    if side is None:
        never("no numbers")
    place = next(at for at, edge in enumerate(side["edges"]) if edge is not None)
    side["edges"][place] += "0" if "." in side["edges"][place] else ".0"


retold("picture_of_repeated_edges", repeated_edges)
retold("picture_of_raw_rows", rows_as_rectangles)
retold("picture_of_rectangles_over_others", lambda said, _: picture(said)["rectangles"].extend(
    list(one) for one in picture(said)["rectangles"][:9]))  # fmt: skip
retold("picture_of_other_persons", lambda said, _: picture(said)["rectangles"][0].__setitem__(4, 10**6))
retold("picture_of_persons_exchanged", persons_exchanged)
retold("picture_of_an_edge_of_more_digits", edge_of_more_digits)
retold("picture_of_other_regions", lambda said, _: picture(said).update(regions=19800203))


# --- other lists and texts of the report --------------------------------------------------------------------------


def findings(said: dict[str, Any], p: Planted, **values: Any) -> None:
    said["audit"]["findings"][0].update(values)
    p.manifest["audit"]["findings"] = said["audit"]["findings"]


def nothing_learned(said: dict[str, Any], p: Planted, change: Callable[[dict[str, Any]], Any]) -> None:
    """Claim that a model learns little, and tell nothing of it."""
    if not any(column["role"] == "sensitive" for column in p.spec["columns"].values()):
        never("nothing is sensitive")
    p.spec["privacy"]["attack_limit"] = said["asked"]["attack_limit"] = 0.0001
    for line in said["attack"]["inference"]:
        change(line)


retold("bins_of_no_groups", lambda said, _: said["group_sizes"].extend(
    {"low": 10**6 + place, "high": 10**6 + place, "groups": 0, "persons": 0} for place in range(50)))  # fmt: skip
retold("rows_with_a_sentence", lambda said, _: said["rows"].update(note=SENTENCE))
retold("regions_that_are_a_sentence", lambda said, _: said["audit"]["labels"].update(no_region=SENTENCE))
retold("finding_of_hidden_persons", lambda said, p: findings(said, p, persons=SENTENCE))
retold("detail_of_another_span", lambda said, _: next(
    value for key, value in said["detail"][0].items() if key.endswith("_by_span"))[0].update(up_to=0.19800203))  # fmt: skip
retold("attack_limit_without_a_share", lambda said, p: nothing_learned(
    said, p, lambda line: line.get("learned", {}).update(sure=None, right=None)))  # fmt: skip
retold("attack_limit_without_figures", lambda said, p: nothing_learned(said, p, lambda line: line.pop("learned", None)))
retold("attack_limit_that_few_exceed", lambda said, p: nothing_learned(
    said, p, lambda line: line.update(learned={"at_least": 0.9, "sure": few(p), "right": None, "sure_by_group": 0.0})))  # fmt: skip


def few(p: Planted) -> str:
    """The words for few persons."""
    privacy = p.spec["privacy"]
    return f"fewer than {max([privacy['k'], *(one.get('k', 0) for one in privacy.get('quasi_identifiers') or [])])}"


# --- texts of the manifest ----------------------------------------------------------------------------------------


def column(p: Planted, rng: random.Random, *roles: str) -> dict[str, Any]:
    return pick(rng, [one for one in p.spec["columns"].values() if one["role"] in roles], "such column")


def another_type(p: Planted, rng: random.Random) -> None:
    one = pick(rng, p.recoding["columns"])
    p.spec["columns"][one["name"]]["type"] = "nominal" if one["type"] == "continuous" else "continuous"


MISSING = ("spec", "data", "missing")
edit("rows_that_mean_missing", lambda p, _: put(*MISSING, value=["", *(str(row)[:30] for row in p.data.rows())])(p, _))
edit("sentence_that_means_missing", put(*MISSING, value=["", SENTENCE]))
edit("sentence_that_means_missing_in_a_column", lambda p, rng: column(
    p, rng, "quasi-identifier", "insensitive", "target").update(missing=[SENTENCE]))  # fmt: skip
edit("form_of_dates_that_is_a_sentence", lambda p, rng: column(
    p, rng, "sensitive", "insensitive", "target").update(date_format=SENTENCE))  # fmt: skip
edit("form_of_dates_with_words", lambda p, rng: column(
    p, rng, "sensitive", "insensitive", "target").update(date_format="%Y Mueller is ill"))  # fmt: skip
edit("type_that_the_recoding_has_not", another_type)
edit("name_that_is_a_letter", lambda p, _: p.spec["columns"].update({SENTENCE * 10: {"role": "identifier"}}))
edit("name_of_several_lines", lambda p, _: p.spec["columns"].update({"a\nb": {"role": "identifier"}}))


@kind
def texts_told_many_times(p: Planted, rng: random.Random) -> After:
    texts = p.manifest["data"]["texts"] or never("no texts")

    def after() -> None:
        p.manifest["data"]["texts"] = [*texts, *texts]

    return after


@kind
def hash_of_large_letters(p: Planted, rng: random.Random) -> After:
    def after() -> None:
        p.hash()
        p.hashes = False
        p.manifest["files"] = {name: digest.upper() for name, digest in p.manifest["files"].items()}

    return after
