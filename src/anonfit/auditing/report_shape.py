# SPDX-License-Identifier: Apache-2.0
"""The parts of a report that cannot be recounted from a release folder: figures of raw rows and of utility. An audit
cannot say whether such a figure is right; it sees to it that there is nothing else in its place, such as a text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from anonfit.auditing.labels import cell_reader, read_label, speller
from anonfit.auditing.meanings import LabelMeaning, object_of, text_of
from anonfit.auditing.result import Finding

Json = Mapping[str, Any]
Retell = Callable[[Path, Json, Json], tuple[Json, Mapping[str, str]]]
"""Given a folder, its manifest and its report: the report with all that follows from the rest told anew, and the texts
of other files by their names. Who audits lends it, since the audit shares no code with what writes reports."""
Derived = tuple[Sequence[str], str, str]
"""Files, and what is said of them if they follow from the report, and if they do not."""
_FEW = re.compile(r"(all but )?fewer than (?P<few>\d{1,18})( persons)?|not told", re.ASCII)
_LARGE = 1 << 63
_MOST_POINTS, _MOST_RULES, _MOST_GIVEN = 20, 30, 2
_SPANS = (0.05, 0.25, 0.5, 1, None)
"""The shares of all persons up to which labels are sorted."""
_ABOUT = ("column", "number", "k", "up_to")
"""What an entry of a list is about."""
_PART = re.compile(r"[<≥] [-+.\de]+|\[[-+.\de]+, [-+.\de]+\)|(-?\d+ days?, )?\d+:\d\d:\d\d(\.\d+)?", re.ASCII)
"""Parts of numbers, and spans and times of day, which files write in many ways."""
_WORDS = (
    *("classes", "number", "accuracy", "explained variance", "sensitive", "target", "ncp", "wdm"),
    *("order", "date", "time"),
)


@dataclass(frozen=True, slots=True)
class KnownTexts:
    """What texts in a report may be: names of columns, labels of these, and values of columns released as they are."""

    columns: frozenset[str]
    meanings: Mapping[str, LabelMeaning]
    values: Callable[[str], frozenset[str]]  # as `spelled`
    least: int  # the persons that a figure of raw rows covers
    selections: int


Check = Callable[[Any, Mapping[str, Any], KnownTexts], bool]
"""Of a value, what stands beside it, and what is known."""


def _figure(value: Any, _: Mapping[str, Any], known: KnownTexts) -> bool:
    """A number, nothing, or the words that stand for a number of few persons: fewer than those that a figure covers."""
    if isinstance(value, str):
        matched = _FEW.fullmatch(value)
        return matched is not None and matched["few"] in (None, str(known.least))
    return value is None or isinstance(value, float) or (isinstance(value, int) and abs(value) < _LARGE)


def _word(value: Any, _: Mapping[str, Any], __: KnownTexts) -> bool:
    return value is None or value in _WORDS


def _column(value: Any, _: Mapping[str, Any], known: KnownTexts) -> bool:
    return isinstance(value, str) and value in known.columns


def _label(value: Any, beside: Mapping[str, Any], known: KnownTexts) -> bool:
    """A label of the column that is named beside it."""
    meaning = known.meanings.get(str(beside.get("column")))
    return meaning is not None and isinstance(value, str) and _is_label(value, meaning)


def _is_label(text: str, meaning: LabelMeaning) -> bool:
    values = read_label(text, meaning)
    if values is None or meaning.missing is None:
        return values is not None
    return speller(meaning, observed=False)(text, values, cell_reader(meaning)(values))


def _span(value: Any, _: Mapping[str, Any], __: KnownTexts) -> bool:
    return not isinstance(value, bool) and value in _SPANS


def _selection(value: Any, _: Mapping[str, Any], known: KnownTexts) -> bool:
    """The number of a selection, from 1 on."""
    return type(value) is int and 0 < value <= known.selections


def _selections(value: Any, _: Mapping[str, Any], known: KnownTexts) -> bool:
    return type(value) is int and value == known.selections


def _item(value: Any, _: Mapping[str, Any], known: KnownTexts) -> bool:
    """A column, and a label or value of it or a part of its numbers."""

    def is_of(name: str, rest: str) -> bool:
        if name in known.meanings:
            return _is_label(rest, known.meanings[name])
        return bool(_PART.fullmatch(rest)) or spelled(rest) in known.values(name)

    return isinstance(value, str) and any(
        is_of(name, value[len(name) + 1 :]) for name in known.columns if value.startswith(f"{name} ")
    )


def spelled(value: object) -> str:
    """A value as a text, however a file or a report writes it."""
    text = str(value)
    for read in (float, datetime.fromisoformat):
        try:
            return str(read(text))
        except ValueError:
            continue
    return text.lower() if text in ("True", "False") else text


def _elsewhere(_: Any, __: Mapping[str, Any], ___: KnownTexts) -> bool:
    """Sentences are compared with those that follow from the figures, and a picture with the groups."""
    return True


def _figures(*names: str) -> dict[str, Check]:
    return dict.fromkeys(names, _figure)


_SHARE = _figures("persons", "share")
_BOTH = _figures("blind", "purpose")
_PRECISION = _figures("imprecision", "precision", "recall")
_SHAPES: dict[str, Any] = {
    "attack": {
        "persons": _figure,
        "linked": _SHARE,
        "re_identification": _figures("chance", "highest", "blind_chance", "sharing_with_fewer_than_k"),
        "inference": [
            {
                "column": _column,
                "role": _word,
                "kind": _word,
                **_figures("accuracy", "accuracy_by_others", "baseline", "gain", "gain_by_others"),
                **_figures("error_saved", "error_saved_by_others"),
                "learned": _figures("at_least", "sure", "right", "sure_by_group"),
            }
        ],
        "sentences": _elsewhere,
    },
    "detail": [
        {
            "column": _column,
            "frequent_label": _label,
            "persons_by_span": [{"up_to": _span, "persons": _figure}],
            "records_by_span": [{"up_to": _span, "records": _figure}],
            **_figures("kept", "ruled_out", "at_most", "labels", "frequent_persons", "frequent_records"),
        }
    ],
    "partition": _elsewhere,
    "predictions": [
        {
            "column": _column,
            "kind": _word,
            "measure": _word,
            "typical_error": _figures("table", "regions"),
            **_figures("table", "regions"),
        }
    ],
    "initial_risk": {"alone": _SHARE, "below_k": _SHARE, **_figures("smallest", "average")},
    "comparison": {
        **_figures("known_rows", "held_out_rows", "sampled"),
        "groups": _BOTH,
        "targets": [{"column": _column, "measure": _word, **_figures("whole", "different", "gain", "noise"), **_BOTH}],
        "selections": {"asked": _selections, "blind": _PRECISION, "purpose": _PRECISION},
        "columns": {
            "weighted_discernibility": _BOTH,
            "columns": [{"column": _column, "weight": _figure, "ncp": _BOTH, "together": _BOTH, "disagree": _word}],
        },
    },
    "curve": {
        **_figures("known_rows", "held_out_rows"),
        "points": [
            {
                **_figures("k", "highest_risk", "average_risk", "kept", "precision"),
                "targets": [{"column": _column, "measure": _word, "value": _figure}],
            },
            _MOST_POINTS,
        ],
    },
    "columns_lost": {
        **_figures("gcp", "weighted_discernibility"),
        "columns": [{"column": _column, **_figures("weight", "ncp", "squares", "together")}],
    },
    "clusters": {
        **_figures("clusters", "rows", "agreement"),
        **dict.fromkeys(("original", "release"), _figures("within", "between")),
    },
    "selections": {
        "asked": _selections,
        "multiples_of": _figure,
        "answers": [{"number": _selection, **_PRECISION}],
    },
    "queries": _figures("asked", "told", "multiples_of", "imprecision", "precision", "count_error"),
    "rules": {
        **_figures("found", "hold", "not_told"),
        "rules": [
            {"given": [_item, _MOST_GIVEN], "then": _item, **_figures("support", "confidence", "lift", "holds")},
            _MOST_RULES,
        ],
    },
    "measured_on": {**_figures("rows", "of"), "sentence": _elsewhere},
}
NOT_RECOUNTED = tuple(_SHAPES)
"""The sections of a report whose figures nobody can recount from its folder, or not all of them."""
_ALWAYS = ("attack", "detail", "initial_risk", "columns_lost")
"""Those that every report has: without one, nobody would ask what it says."""


def has_shape(report: Mapping[str, Any], known: KnownTexts) -> bool:
    """Whether the sections of a report that are not recounted hold figures and nothing else, and none is left out that
    every report has.
    """
    whole = all(report.get(name) for name in _ALWAYS) and set(entries(report["attack"])) == set(_SHAPES["attack"])
    return whole and all(_fits(report.get(name), shape, {}, known) for name, shape in _SHAPES.items())


def _fits(value: Any, shape: Any, beside: Mapping[str, Any], known: KnownTexts) -> bool:
    """Whether a value of JSON is as a shape says; nothing may stand in place of an object or a list."""
    if callable(shape):
        return bool(shape(value, beside, known))
    if value is None:
        return True
    if isinstance(shape, list):
        fit = isinstance(value, list) and all(_fits(entry, shape[0], beside, known) for entry in value)
        about = [name for name in _ABOUT if not callable(shape[0]) and name in shape[0]]
        return fit and (len(shape) == 1 or len(value) <= shape[1]) and _are_different(value, about)
    return isinstance(value, Mapping) and all(
        name in shape and _fits(part, shape[name], value, known) for name, part in value.items()
    )


def _are_different(lines: list[Any], about: Sequence[str]) -> bool:
    """Whether lines that are each about a column, a selection, a k or a share are about different ones, each about one,
    and texts are different ones: more could not be told, but carried.
    """
    of = [[entries(line).get(name, line) for line in lines] for name in about]
    if any(name not in entries(line) for name in about for line in lines):
        return False
    of += [lines] if not about and all(isinstance(line, str) for line in lines) else []
    return all(len(set(map(str, values))) == len(values) for values in of)


def as_recounted(name: str, same: bool, good: str, bad: str) -> Finding:
    """The finding on whether something written is what was recounted."""
    return Finding(name, "as recounted", "as recounted" if same else "another", same, good if same else bad)


def alike(left: Any, right: Any) -> bool:
    """Whether two values of JSON are the same, but for the last digits of numbers that are not whole."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return set(left) == set(right) and all(alike(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, float) and isinstance(right, (int, float)) and not isinstance(right, bool):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return type(left) is type(right) and bool(left == right)


def entries(value: Any) -> Json:
    """The entries of an object of JSON; of anything else, none."""
    return value if isinstance(value, Mapping) else {}


def read_report(path: Path, kind: str) -> dict[str, Any] | None:
    """The object of a JSON file that is a report of this kind; None for anything else."""
    try:
        content = object_of(text_of(path))
    except (OSError, ValueError):
        return None
    return content if (content.get("format"), content.get("version")) == (kind, 1) else None


def listed_objects(value: Any) -> list[Json]:
    """The objects of a list of JSON; of anything else, none."""
    return [entry for entry in (value if isinstance(value, list) else ()) if isinstance(entry, Mapping)]


def as_retold(
    folder: Path,
    manifest: Json,
    report: Json,
    retell: Retell | None,
    derived: Mapping[str, Derived],
    *,
    code: str,
    what: str,
) -> list[Finding]:
    """Whether a report and the texts of files are those that follow from its figures, as far as this version of anonfit
    can say; `retell` is None where nobody lent the code.
    """
    if retell is None:
        sentence = f"Not compared: nobody lent this audit the code that {code}."
        return [Finding(name, None, None, None, sentence) for name in derived]
    try:
        retold, pages = retell(folder, manifest, report)
        same = {
            name: all(text_of(folder / file) == pages[file] for file in files) for name, (files, *_) in derived.items()
        }
        same["report texts"] = alike(dict(report), dict(retold))
    except Exception:  # something of another shape than any that was ever written
        same = dict.fromkeys(derived, False)
    if all(same.values()) or manifest.get("anonfit") == version("anonfit"):
        return [as_recounted(name, same[name], good, bad) for name, (_, good, bad) in derived.items()]
    sentence = f"Not checked: another version of anonfit made {what} and may say it in other words; audit it with that."
    return [Finding(name, "as told anew", None, None, sentence) for name in derived]
