# SPDX-License-Identifier: Apache-2.0
"""A release folder made by hand, so that faults can be planted in it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from anonfit.auditing.api import audit_release
from anonfit.auditing.result import Audit
from anonfit.errors import AnonfitError
from json_layout import write_json

ORDER = ["low", "mid", "high"]
TREE = {"name": "*", "children": [
    {"name": "Europe", "children": [{"name": "FR"}, {"name": "DE"}, {"name": "Côte, d"}]},
    {"name": "Asia", "children": [{"name": "JP"}, {"name": "IN"}]},
]}  # fmt: skip
COLUMNS = [
    {"name": "age", "type": "continuous", "missing": True, "domain": [0, 120], "cuts": [30, 60], "other": None},
    {"name": "country", "type": "nominal", "missing": False, "taxonomy": TREE, "other": None},
    {"name": "rank", "type": "ordinal", "missing": False, "order": ORDER},
]
NODES = {  # age into three; the first of them by country, the last by rank
    "column": [0, 1, -1, 2, -1, -1, -1, -1],
    "children": [3, 2, 0, 2, 0, 0, 0, 0],
    "start": [0, 0, 2, 3, 0, 3, 0, 2],
    "set": [],
    "sets": [],
}
ROLES = {
    "patient": "identifier", "age": "quasi-identifier", "country": "quasi-identifier", "rank": "quasi-identifier",
    "outcome": "target", "diagnosis": "sensitive", "note": "insensitive",
}  # fmt: skip
RELEASED = ["age", "country", "rank", "outcome", "diagnosis", "note"]
K = 5


def raw_rows(seed: int = 0) -> pl.DataFrame:
    """160 persons; every group of `released_rows` has at least 5 of them, the smallest exactly 5."""
    rng = random.Random(seed)
    rows = []
    for number in range(160):
        age = rng.choice([None, rng.randint(0, 29), rng.randint(30, 59), rng.randint(60, 120)])
        country = rng.choice(["FR", "DE", "Côte, d", "JP", "IN"])
        rows.append({
            "patient": f"p{number:03}", "age": age, "country": country, "rank": rng.choice(ORDER),
            "outcome": rng.choice(["well", "ill"]), "diagnosis": rng.choice("abcdef"), "note": rng.randint(1, 4),
        })  # fmt: skip
    frame = pl.DataFrame(rows)
    smallest = frame.filter((pl.col("age") >= 60) & (pl.col("rank") == "high"))
    return pl.concat([frame.join(smallest, on="patient", how="anti"), smallest[:K]])


def released_rows(raw: pl.DataFrame) -> pl.DataFrame:
    """The release: missing or [0, 30) by country; [30, 60) as it is; [60, 120] by rank."""
    young = pl.col("age").is_null() | (pl.col("age") < 30)
    old = pl.col("age") >= 60
    asia = pl.col("country").is_in(["JP", "IN"])
    high = old & (pl.col("rank") == "high")
    whole, age, country, rank = pl.lit("*"), pl.lit("[30, 60)"), pl.lit("Europe"), pl.lit("< high")
    labels = raw.select(
        age=pl.when(young).then(pl.lit("missing or [0, 30)")).when(old).then(pl.lit("[60, 120]")).otherwise(age),
        country=pl.when(young & asia).then(pl.lit("Asia")).when(young).then(country).otherwise(whole),
        rank=pl.when(high).then(pl.lit("high")).when(old).then(rank).otherwise(whole),
        outcome="outcome",
        diagnosis="diagnosis",
        note="note",
    )
    return labels.sort(RELEASED)


def write_folder(
    path: Path,
    data: pl.DataFrame,
    *,
    columns: list[dict[str, Any]],
    nodes: dict[str, Any],
    spec: dict[str, Any],
    rows: dict[str, Any],
    source: pl.DataFrame | None = None,
) -> Path:
    """A release folder of any shape, with hashes."""
    path.mkdir()
    data.write_parquet(path / "data.parquet")
    recoding = {"format": "anonfit recoding", "version": 1, "columns": columns, "nodes": nodes}
    manifest = {
        "format": "anonfit release",
        "version": 1,
        "spec": spec,
        "data": {"file": "data.parquet", "rows": len(data), "columns": data.columns},
        "rows": {"released": len(data), **rows},
    }
    write_json(path / "recoding.json", recoding)
    write_manifest(path, manifest, source)
    return path


def write_manifest(path: Path, manifest: dict[str, Any], source: object = None) -> None:
    """The manifest and the reports of a folder, which tell the figures of its file, whatever faults it has."""
    _write_files(path, manifest, {})
    with contextlib.suppress(AnonfitError):
        audit = audit_release(path, source=source)
        privacy = manifest["spec"]["privacy"]
        figures = audit.public(max([privacy["k"], *(one.get("k", 0) for one in privacy.get("quasi_identifiers", ()))]))
        met = [
            one
            for one in figures["findings"]
            if one["met"] and not one["name"].startswith(("report", "files", "other files"))
        ]
        report = {
            "format": "anonfit report",
            "version": 1,
            "asked": {
                "k": privacy["k"],
                "quasi_identifiers": list(audit.quasi_identifiers),
                "max_confidence": privacy.get("max_confidence", 1.0),
                "diversity": privacy.get("diversity", []),
                "several_quasi_identifiers": [
                    {"columns": one["columns"], "k": one.get("k", privacy["k"])}
                    for one in privacy.get("quasi_identifiers", ())
                ],
            },
            "rows": {**manifest["rows"], "read": read_rows(manifest["rows"])},
            "columns": column_lines(path, manifest["spec"]["columns"], audit),
            "group_sizes": size_bins(audit, manifest["spec"]),
            **not_recounted(manifest["spec"], audit),
            "audit": {**figures, "passed": True, "findings": met, "source": None},
        }
        _write_files(path, {**manifest, "audit": {"passed": True, "findings": met}}, report)


def not_recounted(spec: dict[str, Any], audit: Audit) -> dict[str, Any]:
    """The sections that every report has and no audit recounts, or not all of them."""
    columns, output = spec["columns"], spec.get("output", {})
    is_usual = (output.get("values", "labels"), output.get("regions", "domain")) == ("labels", "domain")
    known = [name for name, column in columns.items() if column["role"] == "quasi-identifier"]
    held = {name: audit.frequent[name] for name in known if is_usual and name in audit.frequent}
    secrets = [name for name, column in columns.items() if column["role"] in ("sensitive", "target")]
    attack: dict[str, Any] = {"persons": 0, "linked": {}, "re_identification": {}, "sentences": []}
    return {
        "attack": {**attack, "inference": [{"column": name} for name in secrets]},
        "detail": [
            {
                "column": name,
                "labels": one.different,
                "frequent_label": min(filter(None, one.labels), default=None),
                "frequent_persons": one.persons,
            }
            for name, one in held.items()
        ]
        or [{"column": known[0]}],
        "initial_risk": {"smallest": 1},
        "columns_lost": {"gcp": 0.5},
    }


def read_rows(rows: dict[str, Any]) -> int | str:
    """The rows that were read, as far as that may be told."""
    counts = [rows.get(name, 0) for name in ("released", "withheld", "dropped")]
    return sum(counts) if all(isinstance(one, int) for one in counts) else f"{counts[0]} or slightly more"


def column_lines(path: Path, columns: dict[str, Any], audit: Audit) -> list[dict[str, Any]]:
    """What a report says of every column."""
    types = {one["name"]: one["type"] for one in json.loads((path / "recoding.json").read_text("utf-8"))["columns"]}
    return [
        {"name": name, "role": column["role"]}
        | (
            {"type": types[name], "different": audit.frequent[name].different if name in audit.frequent else None}
            if column["role"] == "quasi-identifier"
            else {}
        )
        for name, column in columns.items()
    ]


def size_bins(audit: Audit, spec: dict[str, Any]) -> list[dict[str, int]]:
    """A bin for every size that a group has; of persons with several rows, in multiples of the largest k."""
    privacy, persons = spec["privacy"], any(column["role"] == "entity" for column in spec["columns"].values())
    step = max([privacy["k"], *(one.get("k", 0) for one in privacy.get("quasi_identifiers", ()))]) if persons else 1
    sizes: Counter[int] = Counter()
    for size, groups in audit.sizes.of_size.items():
        sizes[size // step * step] += groups
    return [{"low": size, "high": size, "groups": n, "persons": n * size} for size, n in sorted(sizes.items())]


def _write_files(path: Path, manifest: dict[str, Any], report: dict[str, Any]) -> None:
    write_json(path / "report.json", report)
    (path / "report.html").write_text("<p>", encoding="utf-8")
    names = [path.name for path in path.glob("data.*")] + ["recoding.json", "report.json", "report.html"]
    digests = {name: hashlib.sha256((path / name).read_bytes()).hexdigest() for name in names}
    write_json(path / "manifest.json", {**manifest, "files": digests})


class Folder:
    """A release folder under repair: change `manifest`, `recoding` or `data`, then `write`."""

    def __init__(self, path: Path, raw: pl.DataFrame | None = None, kind: str = "parquet") -> None:
        self.path = path
        self.raw = raw_rows() if raw is None else raw
        self.data = released_rows(self.raw)
        self.kind = kind
        self.recoding: dict[str, Any] = {
            "format": "anonfit recoding",
            "version": 1,
            "columns": json.loads(json.dumps(COLUMNS)),
            "nodes": json.loads(json.dumps(NODES)),
        }
        self.manifest: dict[str, Any] = {
            "format": "anonfit release",
            "version": 1,
            "spec": {
                "columns": {name: {"role": role} for name, role in ROLES.items()},
                "privacy": {"k": K},
                "output": {"format": kind, "values": "labels", "regions": "domain", "order": "sorted"},
            },
            "data": {"file": f"data.{kind}", "rows": self.data.height, "columns": list(RELEASED)},
            "rows": {"released": self.data.height, "withheld": 0},
        }

    @property
    def spec(self) -> dict[str, Any]:
        return self.manifest["spec"]

    def write(self, *, sort: bool = True) -> Path:
        """Write everything, hashes last; a fault in the data is hashed with it."""
        texts = [name for name, dtype in self.data.schema.items() if dtype in (pl.String, pl.Categorical, pl.Enum)]
        self.manifest["data"].setdefault("texts", texts)
        self.path.mkdir(exist_ok=True)
        data = self.data.sort([name for name in RELEASED if name in self.data.columns]) if sort else self.data
        if self.kind == "csv":
            data.write_csv(self.path / "data.csv")
        else:
            data.write_parquet(self.path / "data.parquet")
        write_json(self.path / "recoding.json", self.recoding)
        write_manifest(self.path, self.manifest, self.raw)
        return self.path

    def relabel(self, column: str, old: str, new: str | None, **others: str) -> None:
        """Give all rows with a label (and other labels) a new one."""
        chosen = pl.col(column) == old
        for name, value in others.items():
            chosen &= pl.col(name) == value
        self.data = self.data.with_columns(pl.when(chosen).then(pl.lit(new)).otherwise(pl.col(column)).alias(column))

    def edit(self, row: int, **values: Any) -> None:
        """Change one row."""
        rows = self.data.to_dicts()
        rows[row].update(values)
        self.data = pl.DataFrame(rows, schema=self.data.schema)

    def recount(self) -> None:
        """Let the manifest tell the number of rows that are there."""
        self.manifest["data"]["rows"] = self.manifest["rows"]["released"] = self.data.height
