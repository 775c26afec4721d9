# SPDX-License-Identifier: Apache-2.0
"""What a column's values say about it: how many differ, how many stand alone, their type and shape.

Called by `profile`. No value of a record is kept, only counts, formats and the names of shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

MISSING_TEXTS = ("", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "-", ".", "#N/A")
_SAMPLE = 2000
_MOSTLY = 0.8
MANY_WORDS = 20  # different texts; fewer are the names of categories
_FITS = 0.95  # of the sampled values must have a shape; a few typing errors do not hide an e-mail column

_PHONE = r"^((\+|00)\d[\d \-/().]{6,18}|0\d{1,5}[ \-/]\d[\d \-/]{4,14}|\(?\d{3}\)?[ -]\d{3}-\d{4})$"
_POSTAL = r"^(\d{5}(-\d{4})?|\d{4} ?[A-Z]{2}|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d)$"
_IDENTITY = (
    r"^(756\.\d{4}\.\d{4}\.\d{2}|[A-CEGHJ-PR-TW-Z]{2} ?\d{2} ?\d{2} ?\d{2} ?[A-D]"
    r"|[A-Z]{6}\d{2}[A-Z]\d{2}[A-Z]\d{3}[A-Z]"
    r"|\d{8}-?[A-HJ-NP-TV-Z]|[XYZ]\d{7}[A-Z]|\d{6}[-+A]\d{3}[\dA-Z]"
    r"|\d{3}\.\d{3}\.\d{3}-\d{2}|\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2})$"
)
_TITLE = r"(Dr|Prof|Mr|Mrs|Ms|Herr|Frau|Mme|M|Sr|Sra)\.?"
_CAPITAL, _PART = r"\p{Lu}[\p{L}'’-]*\p{Ll}[\p{L}'’-]*", r"(\p{Lu}\.|von|van|de|der|den|di|da|del|la|le|\p{Lu}\p{L}+)"
_STREET = "street|st|road|rd|avenue|ave|lane|ln|drive|dr|way|court|ct|place|pl|boulevard|blvd|square|terrace|rue"
_STRASSE = "straße|strasse|str|weg|platz|allee|gasse|ring|damm|ufer|chaussee"
_RUE = "rue|avenue|boulevard|chemin|place|calle|avenida|plaza|paseo|via|piazza|c/"
_SHAPES = {
    "e-mail addresses": r"^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$",
    "web addresses": r"^(https?://|www\.)\S+$",
    "network addresses": r"^\d{1,3}(\.\d{1,3}){3}$",
    "random identifiers": r"^([0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-fA-F]{32,})$",
    "bank accounts": r"^[A-Z]{2}\d{2} ?([A-Z0-9]{4} ?){2,7}[A-Z0-9]{0,4}$",
    "social security numbers": r"^\d{3}-\d{2}-\d{4}$",
    "national identity numbers": _IDENTITY,
    "telephone numbers": _PHONE,
    "postal codes": _POSTAL,
    "names of people": rf"^({_TITLE} )*{_CAPITAL}(, ?| )({_PART} )*{_CAPITAL}$",
    "street addresses": rf"(?i)(^\d+[a-z]?,? .*\b({_STREET})\b|\b\S*({_STRASSE})\.? ?\d+ ?[a-z]?\b|^({_RUE}) .*\d)",
    "diagnosis codes": r"^[A-TV-Z]\d{2}(\.\d{1,4})?$",
    "numbers with a decimal comma": r"^-?\d+(\.\d{3})*,\d+$",
}

_DAY, _MONTH, _YEAR, _SHORT = r"(0[1-9]|[12]\d|3[01])", r"(0[1-9]|1[0-2])", r"(1[89]|20|21)\d\d", r"\d\d"
_CLOCK, _SECONDS = r"([01]\d|2[0-3]):[0-5]\d", r":[0-5]\d"
# Day first stands before month first, the custom of more countries; the other is then the alternative.
DATE_PATTERNS = {
    "%Y-%m-%d": rf"^{_YEAR}-{_MONTH}-{_DAY}$",
    "%d.%m.%Y": rf"^{_DAY}\.{_MONTH}\.{_YEAR}$",
    "%d/%m/%Y": rf"^{_DAY}/{_MONTH}/{_YEAR}$",
    "%m/%d/%Y": rf"^{_MONTH}/{_DAY}/{_YEAR}$",
    "%d-%m-%Y": rf"^{_DAY}-{_MONTH}-{_YEAR}$",
    "%m-%d-%Y": rf"^{_MONTH}-{_DAY}-{_YEAR}$",
    "%Y/%m/%d": rf"^{_YEAR}/{_MONTH}/{_DAY}$",
    "%Y%m%d": rf"^{_YEAR}{_MONTH}{_DAY}$",
    "%d.%m.%y": rf"^{_DAY}\.{_MONTH}\.{_SHORT}$",
    "%d/%m/%y": rf"^{_DAY}/{_MONTH}/{_SHORT}$",
    "%m/%d/%y": rf"^{_MONTH}/{_DAY}/{_SHORT}$",
    "%Y-%m-%d %H:%M": rf"^{_YEAR}-{_MONTH}-{_DAY} {_CLOCK}$",
    "%Y-%m-%d %H:%M:%S": rf"^{_YEAR}-{_MONTH}-{_DAY} {_CLOCK}{_SECONDS}$",
    "%Y-%m-%dT%H:%M:%S": rf"^{_YEAR}-{_MONTH}-{_DAY}T{_CLOCK}{_SECONDS}$",
    "%d.%m.%Y %H:%M": rf"^{_DAY}\.{_MONTH}\.{_YEAR} {_CLOCK}$",
    "%d.%m.%Y %H:%M:%S": rf"^{_DAY}\.{_MONTH}\.{_YEAR} {_CLOCK}{_SECONDS}$",
    "%d/%m/%Y %H:%M": rf"^{_DAY}/{_MONTH}/{_YEAR} {_CLOCK}$",
    "%m/%d/%Y %H:%M": rf"^{_MONTH}/{_DAY}/{_YEAR} {_CLOCK}$",
}
_SCALES = (
    {"very low", "low", "medium", "high", "very high"},
    {"low", "moderate", "high"},
    {"none", "mild", "moderate", "severe", "critical"},
    {"sehr niedrig", "niedrig", "mittel", "hoch", "sehr hoch"},
    {"gering", "mittel", "hoch"},
    {"faible", "moyen", "eleve", "élevé"},
    {"bajo", "medio", "alto"},
    {"poor", "fair", "good", "very good", "excellent"},
    {"never", "rarely", "sometimes", "often", "always"},
    {"strongly disagree", "disagree", "neutral", "agree", "strongly agree"},
    {"xs", "s", "m", "l", "xl", "xxl"},
    {"i", "ii", "iii", "iv", "v"},
)


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What was measured of one column.

    `distinct_share` is of the values that are not missing; `unique_share` is the share of all rows whose
    value occurs once; `separation` is the share of pairs of rows told apart, missing counted as a value.
    """

    name: str
    dtype: str
    rows: int
    missing: int
    missing_texts: tuple[str, ...]
    distinct: int
    distinct_share: float
    unique_share: float
    separation: float
    type: str  # continuous | nominal | date
    shape: str | None  # such as 'postal codes'; None where the values have none we know
    date_format: str | None
    date_format_alternative: str | None  # another format that reads every value, with other dates
    effective: float = 1.0  # as many equally frequent values are as mixed as these are


@dataclass(frozen=True, slots=True)
class _Kind:
    """The type and shape of a column's values."""

    type: str
    shape: str | None = None
    date_format: str | None = None
    alternative: str | None = None


def profile_column(series: pl.Series) -> ColumnProfile:
    """Everything we measure of one column: exact, except for a text's shape, judged on evenly spaced rows."""
    nested = series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary)
    comparable = series.drop_nulls().hash(seed=0) if nested else series.drop_nulls()
    table = comparable.alias("value").value_counts(name="rows")
    values, counts = table["value"], table["rows"].to_numpy()
    if isinstance(values.dtype, pl.Categorical | pl.Enum):
        values = values.cast(pl.String)
    absent, texts = _absent(values)
    present = counts[~absent]
    filled = int(present.sum())
    missing = series.len() - filled
    kind = _Kind("nominal", "nested values") if nested else _kind(values.filter(~absent), series)
    return ColumnProfile(
        name=series.name,
        dtype=series.dtype.base_type().__name__,  # str(dtype) would list the values of an Enum
        rows=series.len(),
        missing=missing,
        missing_texts=texts,
        distinct=len(present),
        distinct_share=len(present) / filled if filled else 0.0,
        unique_share=int((present == 1).sum()) / series.len() if filled else 0.0,
        separation=separation_of(np.append(present, missing)),
        type=kind.type,
        shape=kind.shape,
        date_format=kind.date_format,
        date_format_alternative=kind.alternative,
        effective=_effective(np.append(present, missing)),
    )


def _effective(counts: NDArray[np.integer]) -> float:
    """How many equally frequent values would be as mixed as these: the exponential of the entropy."""
    shares = np.sort(counts[counts > 0]) / max(int(counts.sum()), 1)  # sorted: sums depend on the order
    return float(np.exp(-(shares * np.log(shares)).sum()))


def separation_of(counts: NDArray[np.integer]) -> float:
    """The share of pairs of rows that lie in different groups, from the sizes of the groups."""
    sizes = counts.astype(np.int64)
    rows = int(sizes.sum())
    together = int((sizes * (sizes - 1)).sum())
    return 1 - together / (rows * (rows - 1)) if rows > 1 else 0.0


def evenly(series: pl.Series, most: int) -> pl.Series:
    """At most twice `most` values, evenly spaced: the same ones every time, unlike a random sample."""
    return series.gather_every(max(1, series.len() // most))


def _absent(values: pl.Series) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Which distinct values stand for a missing one, and the texts among them."""
    if values.dtype == pl.String:
        mask = values.is_in(MISSING_TEXTS)
        seen = set(values.filter(mask))
        return mask.to_numpy(), tuple(text for text in MISSING_TEXTS if text in seen)
    if values.dtype.is_float():
        return values.is_nan().to_numpy(), ()
    return np.zeros(len(values), dtype=np.bool_), ()


def _kind(values: pl.Series, series: pl.Series) -> _Kind:
    """The type and shape of distinct values; `series` has them in row order, to be sampled."""
    if values.is_empty() or values.dtype == pl.Boolean:
        return _Kind("nominal")
    if values.dtype in (pl.Date, pl.Datetime):
        return _Kind("date")
    if values.dtype.is_numeric():
        return _Kind("continuous", _number_shape(values))
    if values.dtype != pl.String:
        return _Kind("nominal")
    sample = evenly(series.drop_nulls(), _SAMPLE).cast(pl.String)
    return _text_kind(values, sample.filter(~sample.is_in(MISSING_TEXTS)))


def _number_shape(values: pl.Series) -> str | None:
    if not values.dtype.is_integer():
        return None
    least, most = int(values.min()), int(values.max())  # type: ignore[arg-type]  # integers, and at least one
    if least >= 18_000_101 and most <= 21_991_231:
        month_day = values % 10_000
        if (month_day // 100).is_between(1, 12).all() and (month_day % 100).is_between(1, 31).all():
            return "dates written as numbers"
    return "consecutive numbers" if most - least + 1 == len(values) > 1 else None


def _text_kind(values: pl.Series, sample: pl.Series) -> _Kind:
    """Dates, then shapes, then numbers: 20240131 is a date and 01067 a code, though both read as numbers."""
    formats = _date_formats(values, sample)
    if formats:
        return _Kind("date", None, formats[0], formats[1] if len(formats) > 1 else None)
    shape = _text_shape(sample) or _scale(values)
    coded = bool(values.str.contains(r"^-?0\d").any())
    numeric = not coded and values.cast(pl.Float64, strict=False).null_count() == 0
    if numeric and shape is None and values.str.contains(".", literal=True).any():
        shape = "numbers with decimals"
    return _Kind("continuous" if numeric else "nominal", shape)


def _text_shape(sample: pl.Series) -> str | None:
    if sample.is_empty():
        return None
    for shape, pattern in _SHAPES.items():
        if sample.str.contains(pattern).sum() >= _FITS * len(sample):
            return shape
    letters = sample.str.len_chars().mean()
    words = sample.str.count_matches(r"\S+").mean()
    long = isinstance(letters, float) and isinstance(words, float) and (letters >= 40 or words >= 4)
    if long and sample.n_unique() > 0.3 * len(sample):
        return "free text"
    are_words = sample.str.contains(r"\p{L}{3}").sum() >= _MOSTLY * len(sample)
    return "many words" if are_words and sample.n_unique() > MANY_WORDS else None


def _scale(values: pl.Series) -> str | None:
    """Whether the values are steps of a common scale; at least three, since two have no order to keep."""
    if not 3 <= len(values) <= 6:
        return None
    steps = set(values.str.strip_chars().str.to_lowercase())
    return "steps of a scale" if any(steps <= scale for scale in _SCALES) else None


def _date_formats(values: pl.Series, sample: pl.Series) -> list[str]:
    """The formats that read every value: more than one where no day is beyond 12."""

    def fits(texts: pl.Series, pattern: str) -> bool:
        return bool(texts.str.contains(pattern).all())

    formats = []
    for date_format, pattern in DATE_PATTERNS.items():
        if not sample.is_empty() and fits(sample, pattern) and fits(values, pattern):
            parsed = values.str.to_datetime(date_format, strict=False, time_unit="us")
            if parsed.null_count() == 0:
                formats.append(date_format)
    return formats
