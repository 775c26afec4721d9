# SPDX-License-Identifier: Apache-2.0
"""Guesses what the labels of a foreign file mean from the raw values of the source, where nobody has said it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from anonfit.auditing.axes import as_moments, distinct_texts
from anonfit.auditing.labels import read_label
from anonfit.auditing.meanings import Meaning
from anonfit.auditing.reading import Table
from anonfit.auditing.released import Released, label_texts

__all__ = ["guess_meanings"]


def guess_meanings(released: Released, source: Table) -> Mapping[str, Meaning]:
    """A meaning per quasi-identifier under which all its labels can be read; a column without one is left out."""
    found = {}
    for name, columns in released.columns.items():
        if name not in source.schema:
            continue
        raw = source.frame([name]).to_series()
        if len(columns) > 1:
            found[name] = Meaning(name, "date" if raw.dtype.is_temporal() else "continuous")
            continue
        labels = label_texts(released, name)
        fitting = [meaning for meaning in _candidates(name, raw) if _fits(labels, meaning, raw)]
        if fitting:
            found[name] = fitting[0]
    return found


def _candidates(name: str, raw: pl.Series) -> Sequence[Meaning]:
    """What the raw values could be, the most telling first."""
    nominal = Meaning(name, "nominal")
    if raw.dtype.is_temporal():
        return Meaning(name, "date"), nominal
    if raw.dtype.is_numeric():
        return Meaning(name, "continuous"), nominal
    if raw.dtype == pl.Boolean:
        return (nominal,)
    texts = raw.cast(pl.String)
    numbers = texts.cast(pl.Float64, strict=False)
    if numbers.null_count() == texts.null_count():
        return Meaning(name, "continuous"), nominal
    if as_moments(texts).null_count() == texts.null_count():
        return Meaning(name, "date"), nominal
    return (nominal,)


def _fits(labels: Sequence[str], meaning: Meaning, raw: pl.Series) -> bool:
    """Whether every label can be read and, of names, is made of raw values."""
    sets = [read_label(label, meaning) for label in labels]
    if meaning.type != "nominal":
        return None not in sets
    known = set(distinct_texts(raw)[1])
    return all(found is not None and known.issuperset(found.names) for found in sets)
