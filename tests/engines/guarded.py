# SPDX-License-Identifier: Apache-2.0
"""Random sensitive columns with models that guard them, in the form of both engines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from anonfit.engines.memory.forms import Constraint
from anonfit.privacy.catalogue import make_model
from anonfit.privacy.coding import sensitive_column
from anonfit.privacy.likeness import MaxConfidence
from anonfit.privacy.models import DiversityModel, SensitiveColumn
from anonfit.tables.schema import CodedTable, ColumnType
from anonfit.tables.taxonomy import Taxonomy
from anonfit.testing.reference import Diverse

Array = np.ndarray[Any, np.dtype[Any]]
Random = np.random.Generator
MODELS = (
    "distinct-l",
    "entropy-l",
    "recursive-cl",
    "t-closeness",
    "alpha-k",
    "beta-likeness",
    "delta-disclosure",
    "squared-error",
    "variance",
)
OF_NUMBERS = ("squared-error", "variance")


# --- sensitive columns ------------------------------------------------------------------------------------------


def _values(rng: Random, table: CodedTable, size: int) -> Array:
    """A value per row: by chance, or one that some column's codes tell. (row,)"""
    found = rng.choice(size, table.rows, p=rng.dirichlet(np.full(size, 3.0)))
    if table.codes and rng.random() < 0.5:
        index = int(rng.integers(0, len(table.codes)))
        found = (found + table.codes[index].astype(np.int64)) % size
    return np.asarray(found)


def _with_gaps(rng: Random, values: pl.Series) -> pl.Series:
    """The same values, or some of them missing."""
    if rng.random() < 0.7:
        return values
    return values.scatter(np.flatnonzero(rng.random(len(values)) < 0.2), None)


def _halves(names: Sequence[str]) -> Taxonomy:
    """A taxonomy in which names are below one of two nodes, and the last one below three."""
    leaves = [{"name": name} for name in names]
    deep = {"name": "lowest", "children": leaves[-1:]}
    low = {"name": "low", "children": leaves[: len(leaves) // 2]}
    high = {"name": "high", "children": [*leaves[len(leaves) // 2 : -1], deep]}
    return Taxonomy.from_tree({"name": "all", "children": [low, high]})


def random_sensitive(
    rng: Random, table: CodedTable, *, numeric: bool, size: int | None = None
) -> tuple[SensitiveColumn, Array]:
    """A sensitive column of a table, numbers or words, in an order, a taxonomy or neither; and the code of each row."""
    weights = np.ones(table.rows, np.int64) if table.counts is None else table.counts.astype(np.int64)
    size = size or int(rng.integers(1, 7))
    values = _values(rng, table, size)
    if numeric:
        numbers = pl.Series("s", values * rng.choice([1.0, 0.1, 3.0]) + rng.choice([0.0, 1e6]))
        return sensitive_column(_with_gaps(rng, numbers), weights, entities=table.entities)
    words = [f"v{value:03}" for value in range(size)]
    texts = _with_gaps(rng, pl.Series("s", [words[value] for value in values], dtype=pl.String))
    if size > 1 and rng.random() < 0.4:
        return sensitive_column(texts, weights, taxonomy=_halves(words), entities=table.entities)
    order = tuple(rng.permutation(words).tolist()) if rng.random() < 0.5 else ()
    kind = ColumnType.ORDINAL if order else None
    return sensitive_column(texts, weights, type=kind, order=order, entities=table.entities)


# --- models -----------------------------------------------------------------------------------------------------


def _between(rng: Random, strictest: float, loosest: float) -> float:
    """A number from the strictest that the whole table satisfies to one that hardly matters; often a tie."""
    if rng.random() < 0.15:
        return strictest
    return float(strictest + rng.random() ** 0.7 * (loosest - strictest))


def _ratio(rng: Random, column: SensitiveColumn, limit: int) -> dict[str, Any]:
    """Recursive diversity with a c above the table's own ratio."""
    least = int(rng.integers(2, max(limit, 2) + 1))
    own = float(make_model(column, "recursive-cl", {"c": 1.0, "l": least}).figure(column.whole))
    # Where the whole table has too few values no c will do, and none may be infinite.
    own = min(own, 1e6)
    # A whole number meets ties: as many persons as c times the rest.
    c = float(np.floor(own) + 1) if rng.random() < 0.3 else own * float(rng.uniform(1.01, 4))
    return {"c": c, "l": least}


def _parameters(rng: Random, name: str, column: SensitiveColumn) -> dict[str, Any]:
    """Parameters that the whole table satisfies, near enough to its own figures to forbid some groups."""
    whole = column.whole
    few = min(int((whole > 0).sum()), 4)
    distances = ["equal", *(["ordered"] if column.ordered else []), *(["hierarchical"] if column.taxonomy else [])]
    if name == "distinct-l":
        return {"l": int(rng.integers(2, max(few, 2) + 1))}
    if name == "entropy-l":
        own = float(make_model(column, name, {"l": 2.0}).figure(whole))
        return {"l": max(min(2.0, own) if rng.random() < 0.3 else _between(rng, own, 1.0), 1.001)}
    if name == "recursive-cl":
        return _ratio(rng, column, few)
    if name == "t-closeness":
        t = float(rng.choice([0.25, 0.5])) if rng.random() < 0.3 else float(rng.uniform(0.05, 0.5))
        return {"t": t, "distance": str(rng.choice(distances))}
    if name == "alpha-k":
        own = float(whole.max() / whole.sum())
        return {"alpha": min(max(own, 0.5) if rng.random() < 0.3 else _between(rng, own, 1.0), 0.999)}
    if name == "beta-likeness":
        beta = 1.0 if rng.random() < 0.3 else float(rng.uniform(0.1, 3))
        return {"beta": beta, "enhanced": bool(rng.integers(2))}
    if name == "delta-disclosure":
        return {"delta": float(np.log(2)) if rng.random() < 0.3 else float(rng.uniform(0.3, 3))}
    key = name.removeprefix("squared-")
    own = float(make_model(column, name, {key: 1.0}).figure(whole))
    # Numbers in fixed point must be a little farther apart than those they stand for. Sums get small in small groups.
    return {key: max(_between(rng, own * 0.99, 0.0), 1e-6) * (0.4 if name == "squared-error" else 1.0)}


def _guarded(rng: Random, table: CodedTable, names: Sequence[str]) -> Constraint | None:
    """A guarded column with models of these names, if they allow its whole table."""
    numeric = any(name in OF_NUMBERS for name in names) or rng.random() < 0.2
    column, codes = random_sensitive(rng, table, numeric=numeric)
    models: list[DiversityModel] = [make_model(column, name, _parameters(rng, name, column)) for name in names]
    kept = tuple(model for model in models if bool(model.allows(column.whole)))
    return Constraint(column, codes, kept) if kept else None


def guarded_by(rng: Random, table: CodedTable, name: str) -> list[Constraint]:
    """One or two columns guarded by a model, sometimes by a second one too. `max_confidence` guards a target."""
    if name == "max_confidence":
        column, codes = random_sensitive(rng, table, numeric=False)
        own = float(column.whole.max() / column.whole.sum())
        return [Constraint(column, codes, (MaxConfidence(column, _between(rng, own, 1.0)),))]
    found = []
    for _ in range(1 + int(rng.random() < 0.2)):
        others = [str(rng.choice(MODELS))] if rng.random() < 0.2 else []
        found.append(_guarded(rng, table, [name, *(other for other in others if other != name)]))
    return [one for one in found if one is not None]


def random_guarded(rng: Random, table: CodedTable) -> list[Constraint]:
    """Columns guarded by any model."""
    return guarded_by(rng, table, str(rng.choice(MODELS)))


def as_diverse(guarded: Sequence[Constraint]) -> list[Diverse]:
    """The same demands as the plain engine reads them."""

    def demand(model: DiversityModel) -> Any:
        return lambda counts: bool(model.allows(counts))

    return [
        Diverse(one.codes.astype(np.int64), one.column.size, demand(model)) for one in guarded for model in one.models
    ]


def reordered_guarded(guarded: Sequence[Constraint], order: Array) -> list[Constraint]:
    """The same demands on the same rows in another order."""
    return [replace(one, codes=one.codes[order]) for one in guarded]
