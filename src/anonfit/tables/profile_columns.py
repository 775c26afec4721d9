# SPDX-License-Identifier: Apache-2.0
"""What a column's name and its values say about it: how many differ, how many stand alone, their type and shape; and
what is doubtful about them, in a sentence each, which `init` writes into the spec and `run` into the internal record.
No value of a record is kept, only counts, formats and the names of shapes. The words are in `column_words.toml`.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anonfit.errors import counted
from anonfit.tables.number_signs import Signs


@dataclass(frozen=True, slots=True)
class NameMeaning:
    """What a name points to: the role that goes with it, and the words and stems that give it away."""

    says: str
    role: str
    words: frozenset[str]
    stems: tuple[str, ...] = ()
    codes: bool = False  # numbers in such a column are names of categories, not quantities

    def fits(self, words: tuple[str, ...]) -> bool:
        """Whether one of the words is, or holds, one of this meaning's."""
        return any(word in self.words or any(stem in word for stem in self.stems) for word in words)


_HELD = tomllib.loads((files("anonfit.tables") / "column_words.toml").read_text(encoding="utf-8"))
_GROUPED = tuple(Signs(*signs).grouped for signs in ((",", "."), (".", ","), (",", " ")))
_WORDS = {name: frozenset(words.split()) for name, words in _HELD["words"].items()}
_MEANINGS = tuple(
    NameMeaning(**entry | {"words": frozenset(entry["words"].split()), "stems": tuple(entry.get("stems", "").split())})
    for entry in _HELD["meanings"]
)
_JOINED_ID = re.compile(r"^(pat|patient|person|personen|user|customer|kunden|client|member|subject|pers)(id|nr|no)$")


def has_word(name: str, kind: str) -> bool:
    """Whether a word of a column's name is one of a set of words, such as `measured` or `how_many`."""
    return not _WORDS[kind].isdisjoint(words_of(name))


def _has_only(name: str, *kinds: str) -> bool:
    """Whether a column's name has words, all of them of some sets."""
    words = words_of(name)
    return bool(words) and all(any(word in _WORDS[kind] for kind in kinds) for word in words)


def words_of(name: str) -> tuple[str, ...]:
    """The words of a column name in lower case without accents: 'GeburtsDatum_2' gives geburts, datum."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", plain)
    return tuple(re.findall(r"[^\W\d_]+", spaced.lower()))


def meaning_of(name: str) -> NameMeaning | None:
    """What the name points to, or None where it says nothing we know."""
    words = words_of(name)
    is_name = has_word(name, "person_name") and _has_only(name, "person_name", "persons", "name_companions")
    if is_name or _has_only(name, "other_persons", "person_name"):
        return _MEANINGS[0]
    return next((meaning for meaning in _MEANINGS if meaning.fits(words)), None)


def is_record_id(name: str) -> bool:
    """Whether the name is that of a number or key: of persons, but also of rows, wards or products."""
    return has_word(name, "record") or any(map(_JOINED_ID.match, words_of(name)))


def is_person_id(name: str) -> bool:
    """Whether the name is that of a number or key of persons."""
    return any(map(_JOINED_ID.match, words_of(name))) or (
        has_word(name, "record") and _has_only(name, "record", "persons")
    )


def counts_persons(name: str) -> bool:
    """Whether the name says how many persons a row stands for; a plain 'count' does not say of what."""
    return has_word(name, "how_many") and has_word(name, "plural_persons")


def is_sample_weight(name: str) -> bool:
    """Whether the name is that of a survey weight; a plain 'weight' may be that of a body."""
    return has_word(name, "sample_weight") or (has_word(name, "weight") and has_word(name, "sample"))


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

_WITHOUT_DIGITS = ("e-mail addresses", "web addresses", "random identifiers")

_DATE_PARTS = {
    "%Y": r"(1[89]|20|21)\d\d",
    "%y": r"\d\d",
    "%m": r"(0[1-9]|1[0-2])",
    "%d": r"(0[1-9]|[12]\d|3[01])",
    "%H": r"([01]\d|2[0-3])",
    "%M": r"[0-5]\d",
    "%S": r"[0-5]\d",
}
DATE_PATTERNS = {
    form: "^" + re.sub("%.", lambda part: _DATE_PARTS[part[0]], form.replace(".", r"\.")) + "$"
    for form in _HELD["date_formats"]
}


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
    effective: float = 1.0  # so many equally frequent values are as mixed: the exponential of the entropy


class _Kind(NamedTuple):
    """The type and shape of a column's values."""

    type: str
    shape: str | None = None
    date_format: str | None = None
    date_format_alternative: str | None = None


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
    groups = np.append(present, missing)
    shares = np.sort(groups[groups > 0]) / max(series.len(), 1)  # sorted: sums depend on the order
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
        separation=separation_of(groups),
        **kind._asdict(),
        effective=float(np.exp(-(shares * np.log(shares)).sum())),
    )


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
    if not values.is_empty() and values.dtype in (pl.Date, pl.Datetime):
        return _Kind("date")
    if not values.is_empty() and values.dtype.is_numeric():
        return _Kind("continuous", _number_shape(values))
    if values.is_empty() or values.dtype != pl.String:
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
    if most - least + 1 == len(values) > 1:
        return "consecutive numbers"
    # Beside few answers stand codes for missing ones.
    known = [value for value in values if value not in CODES or value == -1] if len(values) <= len(CODES) else []
    return "consecutive numbers" if len(known) > 1 and max(known) - min(known) + 1 == len(known) else None


def _text_kind(values: pl.Series, sample: pl.Series) -> _Kind:
    """Dates, then shapes, then numbers: 20240131 is a date and 01067 a code, though both read as numbers."""
    if formats := _date_formats(values, sample):
        return _Kind("date", None, *formats[:2])
    shape = _text_shape(sample) or _scale(values)
    coded = bool(values.str.contains(r"^-?0\d").any())
    numeric = not coded and values.cast(pl.Float64, strict=False).null_count() == 0
    if numeric and shape is None and values.str.contains(".", literal=True).any():
        shape = "numbers with decimals"
    return _Kind("continuous" if numeric else "nominal", shape)


def _text_shape(sample: pl.Series) -> str | None:
    if sample.is_empty():
        return None
    texts, times = sample.alias("text").value_counts(name="times")  # each text is looked at once
    rows = len(sample)

    def fitting(pattern: str) -> int:
        return int(times.filter(texts.str.contains(pattern)).sum())

    with_digits, with_gaps = fitting(r"\d"), fitting("[ ,]")
    for shape, pattern in _SHAPES.items():
        # Most patterns need a digit, or a blank: to look for that first is faster than to read them.
        at_most = with_gaps if shape == "names of people" else rows if shape in _WITHOUT_DIGITS else with_digits
        if at_most >= _FITS * rows and fitting(pattern) >= _FITS * rows:
            return shape
    letters = int((texts.str.len_chars() * times).sum()) / rows
    words = int((texts.str.count_matches(r"\S+") * times).sum()) / rows
    if (letters >= 40 or words >= 4) and len(texts) > 0.3 * rows:
        return "free text"
    return "many words" if len(texts) > MANY_WORDS and fitting(r"\p{L}{3}") >= _MOSTLY * rows else None


def _scale(values: pl.Series) -> str | None:
    """Whether the values are steps of a common scale; at least three, since two have no order to keep."""
    if not 3 <= len(values) <= 6:
        return None
    steps = set(values.str.strip_chars().str.to_lowercase())
    return "steps of a scale" if any(steps.issubset(scale) for scale in _HELD["scales"]) else None


def _date_formats(values: pl.Series, sample: pl.Series) -> list[str]:
    """The formats that read every value: more than one where no day is beyond 12."""
    if sample.is_empty() or not sample.str.contains(r"\d").all():
        return []
    return [
        date_format
        for date_format, pattern in DATE_PATTERNS.items()
        if sample.str.contains(pattern).all()
        and values.str.contains(pattern).all()
        and values.str.to_datetime(date_format, strict=False, time_unit="us").null_count() == 0
    ]


CODES = tuple(map(int, ["-9", "-99", "-999", "-9999", "-8", "-88", "-888", "-7", "-77", "-1"]))
CODES += tuple(map(int, ["99", "999", "9999", "99999", "98", "998", "9998", "97", "997", "88", "888", "77", "777"]))
"""Numbers that surveys and clinics write for a missing value."""
LEAST = 5  # rows that a code has at least
MOST_ROWS = 50_000  # rows of a table that are looked at; evenly spaced
FEW_WORDS = 5


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What is doubtful about a column, and what to write if it is so."""

    column: str
    text: str
    codes: tuple[str, ...] = ()  # values that may mean missing
    is_of_values: bool = True
    """Whether it is about single values, and not about what the column is, by which its role is proposed."""

    @property
    def sentence(self) -> str:
        """What is said of the table."""
        return f"column '{self.column}': {self.text}"


def suspicions_of(frame: pl.DataFrame, released: Iterable[str]) -> list[Suspicion]:
    """What is doubtful about columns of a table that are to be released, by rows evenly spaced."""
    names = list(released)
    rows = frame.select(names).gather_every(max(1, len(frame) // MOST_ROWS))
    return [suspicion for column in rows for suspicion in _of_column(column)]


def _of_column(column: pl.Series) -> Iterator[Suspicion]:
    """What is doubtful about a column."""
    name, shape = column.name, profile_column(column).shape
    if codes := missing_codes(column):
        texts = ", ".join(f'"{code}"' for code in codes)
        what = "they stand" if len(codes) > 1 else "it stands"
        yield Suspicion(
            name, f"{' and '.join(codes)} may mean missing: {what} apart; if so, write missing = [{texts}].", codes
        )
    if leading := _HELD["leading"].get(shape):
        yield Suspicion(name, f"its values look like {shape}, which {leading}.", is_of_values=False)
    if column.dtype.is_float() and has_word(name, "coordinates"):
        yield Suspicion(
            name, "its numbers look like coordinates, which lead to a household; round them, or leave it out."
        )
    if column.dtype == pl.String:
        yield from _of_texts(name, column.drop_nulls().unique())


def missing_codes(column: pl.Series) -> tuple[str, ...]:
    """Numbers of a column that stand apart from all others and are ones that are written for missing values."""
    if not column.dtype.is_numeric() or isinstance(column.dtype, pl.Decimal):
        return ()
    table = column.drop_nulls().alias("value").value_counts(name="rows")
    values, times = table["value"].cast(pl.Float64).to_numpy(), table["rows"].to_numpy()
    is_code = np.isin(values, CODES)
    counts = dict(zip(values[is_code].tolist(), times[is_code].tolist(), strict=True))
    seen = [code for code in CODES if counts.get(code, 0) >= LEAST]
    others = np.sort(values[~is_code & ~np.isnan(values)])
    if not seen or len(others) < 2:
        return ()
    gap = max(1.0, float(np.median(np.diff(others))))
    far = 3 * gap if len(others) > 20 else 8 * gap
    low, high = others[0], others[-1]
    # Beside few others, -1 is rather a step than a code.
    least = -1 if len(others) >= LEAST else -7
    apart = [
        code for code in seen if (code <= least and low >= 0) or (code > 0 and code - high > far and code > 1.05 * high)
    ]
    return tuple(str(code) for code in sorted(apart))


def _of_texts(name: str, values: pl.Series) -> Iterator[Suspicion]:
    """What is doubtful about texts."""
    values = values.filter(values.str.strip_chars() != "")
    if len(values) < 2 or not values.str.contains(r"\d").any():
        return
    if _are_mostly_dates(values):
        yield Suspicion(
            name, "its dates are of several formats, or some are none, so they are names; write them in one format."
        )
        return
    numbers = values.str.contains(r"^[-+]?\d+([.,]\d+)?$")
    words = values.filter(~numbers)
    if 0 < len(words) <= FEW_WORDS and int(numbers.sum()) >= max(LEAST, 4 * len(words)):
        yield Suspicion(
            name,
            f"it has numbers and {counted(len(words), 'word')}, so all of it is names; if the words mean missing, "
            "list them under missing.",
        )
        return
    if values.str.contains(r"\d[., ]\d{3}").any() and any(values.str.contains(pattern).all() for pattern in _GROUPED):
        yield Suspicion(name, "its texts are numbers with thousands signs; write them as numbers, or data.thousands.")


def _are_mostly_dates(values: pl.Series) -> bool:
    """Whether nearly all texts are dates, but not all of one format."""
    enough = 0.95 * len(values)
    if int(values.str.contains(r"^\d").sum()) < enough:  # as all dates begin, and few other texts
        return False
    fitting = [values.str.contains(pattern) for pattern in DATE_PATTERNS.values()]
    of_any = pl.select(pl.any_horizontal(fitting)).to_series()
    return int(of_any.sum()) >= enough and not any(fits.all() for fits in fitting)
