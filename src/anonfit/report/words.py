# SPDX-License-Identifier: Apache-2.0
"""Figures and names as people read them; and what was found, as sentences: the audit's figures of sensitive columns and
targets, what came of the attack, and what a data steward hands to a review board.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

from anonfit import errors
from anonfit.privacy.catalogue import MODELS
from anonfit.privacy.likeness import MaxConfidence

if TYPE_CHECKING:
    from jinja2 import Environment

Json = Mapping[str, Any]
"""Parts of reports, manifests and audits, as plain data."""
SPACE = "\u00a0"
"""A space at which no line is broken."""


def value_text(value: Any) -> str:
    """Any figure, or the text that stands where it may not be told."""
    if isinstance(value, Mapping):
        return value_text(next(iter(value.values()), ""))
    if isinstance(value, float):
        return f"{value:,.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(value_text(entry) for entry in value)
    return "" if value is None else str(value)


def percent(value: float) -> str:
    """A share, with as many digits as it takes not to be 0 or 1 by rounding."""
    digits = 1 if 0.0005 < abs(value) < 0.9995 or abs(value) >= 1 or value == 0 else 3
    return f"{100 * value + 0.0:.{digits}f}{SPACE}%"  # + 0.0: there is no less than nothing in "-0.0"


def share_text(value: Any) -> str:
    """A share of persons, or the text that stands where it may not be told."""
    if isinstance(value, Mapping):
        value = value.get("share", value.get("found", value.get("value", "")))
    return percent(value) if isinstance(value, float) else value_text(value)


def share_in_words(share: float | None) -> str:
    """A share, or that it may not be told."""
    return "not told" if share is None else percent(share)


def number_text(value: float) -> str:
    """A number with three digits."""
    return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def shortened(words: str, most: int) -> str:
    """A text of at most so many letters."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def joined(names: Sequence[str]) -> str:
    """Names as a sentence has them."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else list(names))


def counted(number: Any, singular: str, plural: str = "") -> str:
    """A number of things, such as `1 selection` or `3 selections`."""
    return errors.counted(number if isinstance(number, int) else value_text(number), singular, plural)


@cache
def _texts(finalize: Callable[[Any], Any]) -> Environment:
    from anonfit.report.environment import environment

    return environment(finalize, autoescape=False)  # they are no pages


def text_of(template: str, *, finalize: Callable[[Any], Any] = str, **context: Any) -> str:
    """A text by its template, in which nothing is escaped but by `finalize`; functions of the context are filters."""
    texts = _texts(finalize)
    texts.filters |= {name: function for name, function in context.items() if callable(function)}
    return texts.get_template(template).render(**context)


ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", "#": r"\#"})
"""Of values among sentences: a name may have line ends, or begin as a title does."""


def _escaped(value: Any) -> str:
    return str(value).translate(ESCAPES)


def sentences_of(template: str, **context: Any) -> dict[str, list[str]]:
    """The sentences of a text, one a line, by the titles above them, which begin with #; without a title by none."""
    text = text_of(template, finalize=_escaped, **context)
    sentences: dict[str, list[str]] = {"": []}
    title = ""
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# "):
            title = line.removeprefix("# ")
            sentences[title] = []
        else:
            sentences[title].append(re.sub(r"\\(.)", lambda sign: "\n" if sign[1] == "n" else sign[1], line))
    return sentences


# --- what was found ---------------------------------------------------------------------------------------------

TIE = 1e-9
"""Figures that are so near to each other are equal."""
SHORT = (Decimal("1e-6"), Decimal("1e15"))
"""Figures between these are written out, others with an exponent."""


def diversity_content(audit: Json) -> list[dict[str, Any]]:
    """A sentence for each model that was measured of a column; `audit` is a public one."""
    return [
        {name: measured[name] for name in ("column", "model", "met")} | {"sentence": _sentence(measured)}
        for measured in audit.get("diversity", ())
    ]


def _sentence(measured: Json) -> str:
    """The sentence of a finding; with several quasi-identifiers it says in whose groups."""
    figure, columns = measured["found"], measured["settings"].get("quasi_identifier")
    if not isinstance(figure, int | float):  # not measured, infinite, or about too few persons to be told
        words = measured["sentence"]
    elif measured["asked"] is None:
        values = "value" if figure == 1 else "values"
        words = f"every group has at least {figure:g} different {values}; nothing was asked of it."
    else:
        words = _words(measured)
    where = "" if columns is None else f"in the groups of {', '.join(columns)}, "
    return f"{measured['column']}: {where}{words}"


def _number(value: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A figure with four digits, more where its whole part has more; a limit is not rounded to the wrong side."""
    written = Decimal(str(value))  # the shortest number that is meant
    if written and not SHORT[0] <= abs(written) < SHORT[1]:
        return f"{written.quantize(Decimal(1).scaleb(written.adjusted() - 3), rounding).normalize():e}"
    if float(value).is_integer():
        return f"{int(value):,}"
    exact = Decimal(value)
    digits = max(3 - exact.adjusted(), 0)
    # What was asked may be missed by a rounding error, which the audit forgives; so does the text.
    nearest = round(exact, digits)
    if abs(nearest - exact) > Decimal(TIE):
        nearest = exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding)
    text = f"{nearest:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _words(measured: Json) -> str:
    """A model's sentence with the worst group's figure, and what was asked."""
    model = MODELS.get(measured["model"], MaxConfidence)
    settings = {
        name: _number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
        for name, value in measured["settings"].items()
    }
    rounding = ROUND_FLOOR if model.bound == "at least" else ROUND_CEILING
    sentence = model.sentence_of(settings).format(_number(measured["found"], rounding))
    return f"{sentence} (asked: {model.bound} {_number(measured['asked'])})."


def attack_sentences(content: Json) -> list[str]:
    """What came of an attack, in words."""

    def in_words(share: float | str | None) -> str:
        if isinstance(share, str):  # fewer than k, or all but fewer than k
            return share
        return "a share that is not told, since too few are or are not," if share is None else percent(share)

    def off(saved: float) -> str:
        return f"{percent(abs(saved))} {'less' if saved >= 0 else 'more'} off"

    return sentences_of("attack.txt", attack=content, in_words=in_words, off=off, percent=percent)[""]


def board_content(report: Json) -> list[dict[str, Any]]:
    """Paragraphs with their titles, from the rest of a report."""
    words: Any = {
        "figure": value_text,
        "share": share_text,
        "percent": percent,
        "number": number_text,
        "joined": joined,
        "counted": counted,
    }
    paragraphs = sentences_of("board.txt", report=report, **words)
    return [{"title": title, "sentences": sentences} for title, sentences in paragraphs.items() if sentences]
