# SPDX-License-Identifier: Apache-2.0
"""From what was measured of a column and what its name says to a role, with the reason. Called by `profile`.

What could link to a person and is not clearly a secret is a quasi-identifier. No column is ever proposed
insensitive: only people who know the data can say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from anonfit.tables import profile_columns as names
from anonfit.tables.profile_columns import ColumnProfile, NameMeaning

_ENOUGH_ROWS = 20  # below, "all different" says nothing: so are the ages of ten people
_MANY_ROWS = 1000  # from here on, a text that nearly always differs is no diagnosis, whatever its name
_NEARLY_ALL = 0.95
RAW_LIMIT = 0.9  # a raw column with more distinct values needs `release = true`
_FEW = 20
_MOST_CODES = 9  # whole numbers that follow each other; more of them rather count
_ROWS_PER_CODE = 20
_MOST_ROWS_PER_PERSON = 100
_OFTEN_NEW = 0.3
_OF_PEOPLE = ("a family or household",)

_PERSON_SHAPES = ("e-mail addresses", "random identifiers", "social security numbers", "national identity numbers")
_DIRECT_SHAPES = (*_PERSON_SHAPES, "web addresses", "network addresses", "bank accounts", "telephone numbers")


@dataclass(frozen=True, slots=True)
class ColumnProposal:
    """A role for one column, the reason for it, and what is left for a person to decide."""

    name: str
    role: str
    type: str
    date_format: str | None
    taxonomy: str | None  # 'mask': mask the codes from the right; None: nothing to suggest
    reason: str
    decision: str | None
    profile: ColumnProfile
    codes: tuple[str, ...] = ()  # values that may mean missing
    hierarchy: str | None = None  # a file beside the table that has groups of its values
    title: str | None = None  # what the file says that it is


@dataclass(frozen=True, slots=True)
class Proposal:
    """A role for every column, and how far the proposed quasi-identifiers together single rows out."""

    columns: tuple[ColumnProposal, ...]
    k: int
    rows: int
    unique_rows: int  # alone with their combination of quasi-identifiers
    rows_below_k: int  # in a combination of fewer than k rows
    separation: float  # share of pairs of rows that the combination tells apart
    strongest: str | None  # the quasi-identifier without which the fewest rows are unique
    notes: tuple[str, ...]
    layout: Mapping[str, Any] = field(default_factory=dict)
    """What was guessed of how the file lays its table out, to be written down, or given."""
    given: frozenset[str] = frozenset()  # those settings of the layout that were given


class _Verdict(NamedTuple):
    """What a rule found: the role, why, and what to decide."""

    role: str
    reason: str
    decision: str | None = None


_NOTHING = NameMeaning("", "", frozenset())  # what a name means that says nothing we know


def propose_column(profile: ColumnProfile) -> ColumnProposal:
    """The first rule that has something to say decides the role."""
    meaning = names.meaning_of(profile.name) or _NOTHING
    verdict = next(decided for rule in _RULES if (decided := rule(profile, meaning)) is not None)
    column_type = _type(profile, meaning)
    decisions = [verdict.decision]
    if verdict.role not in ("identifier", "entity"):
        decisions += _type_decisions(profile, column_type)
    return ColumnProposal(
        name=profile.name,
        role=verdict.role,
        type=column_type,
        date_format=profile.date_format if column_type == "date" else None,
        taxonomy="mask" if verdict.role == "quasi-identifier" and _postal(profile, meaning) else None,
        reason=verdict.reason,
        decision=" ".join(filter(None, decisions)) or None,
        profile=profile,
    )


def _could_be_entity(column: ColumnProposal) -> bool:
    """Whether the column numbers persons who have several rows, by its name or by the shape of its values."""
    profile = column.profile
    meaning = names.meaning_of(profile.name) or _NOTHING
    official = meaning.says == "an official number" and column.role == "identifier"
    known = profile.rows - profile.missing
    return (
        profile.rows >= _ENOUGH_ROWS
        and column.type != "date"
        and (official or names.is_person_id(profile.name) or profile.shape in _PERSON_SHAPES)
        and profile.distinct < known <= _MOST_ROWS_PER_PERSON * profile.distinct
        and profile.separation > _NEARLY_ALL
    )


def with_counted_persons(columns: Sequence[ColumnProposal]) -> tuple[ColumnProposal, ...]:
    """The columns, of which one says whom rows stand for. Persons with several rows need an entity: the strictest
    candidate; other keys of persons are left out, and so are all but the first weight, and all but the first count, or
    all of these beside an entity.
    """
    candidates = [column for column in columns if _could_be_entity(column)]
    entity = min(candidates, key=lambda column: column.profile.distinct, default=None)
    taken = {} if entity is None else {"count": entity.name}
    settled = []
    for column in columns:
        role, reason, decision = "identifier", "", None
        if column is entity:
            each = (column.profile.rows - column.profile.missing) / column.profile.distinct
            role = "entity"
            reason = f"It leads to a person, and a value has {each:.3g} rows on average, so k counts its values."
            decision = "If it does not number persons, make it an identifier (left out) or a quasi-identifier."
        elif entity is not None and column in candidates:
            reason = f"It leads to a person, as {entity.name!r} does, so it is left out."
        elif column.role in ("sample-weight", "count"):
            other = taken.setdefault(column.role, column.name)
            if other != column.name:
                reason = f"{column.reason} A table has one such column, and {other!r} is taken, so it is left out."
                decision = f"If it is the right one, exchange the roles of it and {other!r}."
        changed = replace(column, role=role, reason=reason, decision=decision, taxonomy=None)
        settled.append(changed if reason else column)
    return tuple(settled)


def percent(share: float) -> str:
    """A share for people; 100.0 % and 0.0 % are said only where they are exact."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    return f"{100 * share:.1f} %"


def _distinct(profile: ColumnProfile) -> str:
    return f"{percent(profile.distinct_share)} distinct"


def _apart(profile: ColumnProfile) -> str:
    return f"it tells apart {percent(profile.separation)} of all pairs of rows"


def _never_released(profile: ColumnProfile, _: NameMeaning) -> _Verdict | None:
    """Values that are none, that cannot be generalized, or that lead to a person, whatever the name says."""
    reason, decision = None, None
    if not profile.distinct:
        reason = "Every value is missing, so there is nothing to release and it is left out."
    elif profile.shape == "nested values":
        reason = f"Its values are of the type {profile.dtype}, which cannot be generalized, so it is left out."
        decision = "Unfold it to plain columns first if it is needed."
    elif profile.shape in _DIRECT_SHAPES:
        reason = f"Its values look like {profile.shape} ({_distinct(profile)}), which lead to a person directly."
    elif profile.shape == "free text":
        reason = f"It holds long free text ({_distinct(profile)}), which may name anybody, so it is left out."
    return None if reason is None else _Verdict("identifier", reason, decision)


def _rows_to_persons(profile: ColumnProfile, _: NameMeaning) -> _Verdict | None:
    """Weights and counts change what a row stands for, so only a plain name will do."""
    if profile.type == "continuous" and names.is_sample_weight(profile.name):
        reason = "Its name says survey weight: it tells how many people of the population a row speaks for."
        if _nearly_distinct(profile):
            return _left_out(reason, "sample-weight")
        return _Verdict("sample-weight", reason, "If it is a property of the person, make it a quasi-identifier.")
    if profile.type == "continuous" and names.counts_persons(profile.name) and "Int" in profile.dtype:
        decision = "If each row is one person, make it a quasi-identifier: a wrong count weakens k."
        return _Verdict("count", "Its name says that a row stands for so many persons, so k counts them.", decision)
    return None


def _texts_of_people(profile: ColumnProfile, meaning: NameMeaning) -> _Verdict | None:
    """Names, addresses and notes: labels of regions would list them, so they are never generalized unasked."""
    is_common = meaning.role == "quasi-identifier" and not (meaning.says in _OF_PEOPLE and profile.distinct > _FEW)
    if profile.shape != "street addresses" and (profile.shape != "names of people" or is_common):
        return None
    reason = f"Its values look like {profile.shape} ({_distinct(profile)}), and labels would list them; it is left out."
    return _Verdict("identifier", reason, "If they are names of categories, make it a quasi-identifier.")


def _direct_name(profile: ColumnProfile, meaning: NameMeaning) -> _Verdict | None:
    if meaning.role != "identifier":
        return None
    if meaning.says == "free text" and profile.type != "nominal":
        return None
    if profile.distinct <= _FEW and profile.rows >= 10 * _FEW:
        reason = f"Its name points to {meaning.says}, but it has only {profile.distinct} different values."
        if profile.type == "nominal" and profile.distinct > 2:
            decision = "It is left out: make it a quasi-identifier if its values name and reach nobody."
            return _Verdict("identifier", reason, decision)
        return _Verdict("quasi-identifier", reason, "Make it an identifier if its values name or reach a person.")
    reason = f"Its name points to {meaning.says}, which leads to a person directly ({_distinct(profile)})."
    return _Verdict("identifier", reason)


def _unique(profile: ColumnProfile, meaning: NameMeaning) -> _Verdict | None:
    """Hardly any value comes twice: a key, unless the name points to a quantity or a common property."""
    record = names.is_record_id(profile.name)
    if profile.rows < _ENOUGH_ROWS or profile.distinct_share < _NEARLY_ALL:
        if names.is_person_id(profile.name) and profile.rows < _ENOUGH_ROWS:
            reason = "Its name says that it numbers persons, so it identifies the person directly."
            return _Verdict("identifier", reason)
        return None
    quantity = _measured(profile) or profile.type == "date"
    small, text = profile.rows < _MANY_ROWS, profile.type == "nominal"
    known = meaning.role == "quasi-identifier" or (meaning is not _NOTHING and (small or not text))
    if (quantity or known) and not record:
        return None
    all_of_them = "Every value is" if profile.distinct_share == 1 else "Nearly every value is"
    named = " and its name is that of a key" if record else ""
    reason = f"{all_of_them} different ({_distinct(profile)}){named}, so it identifies the person directly."
    return _Verdict("identifier", reason)


def _measured(profile: ColumnProfile) -> bool:
    """Whether the values are fractions, which are measured; whole numbers may number something."""
    return profile.dtype in ("Float32", "Float64", "Decimal") or profile.shape == "numbers with decimals"


def _date(profile: ColumnProfile, meaning: NameMeaning) -> _Verdict | None:
    if profile.type != "date" and profile.shape != "dates written as numbers":
        return None
    what = f"Its name points to {meaning.says}" if meaning.says else "It holds dates"
    return _Verdict("quasi-identifier", f"{what}; others may know such a date, and {_apart(profile)}.")


def _secret(profile: ColumnProfile, meaning: NameMeaning) -> _Verdict | None:
    if meaning.role != "sensitive":
        return None
    if profile.separation == 0 and profile.rows > 1:
        reason = (
            f"Its name points to {meaning.says}, and all rows have one value: to release it tells that of everybody."
        )
        return _Verdict("identifier", reason, "It is left out: nothing can keep a value apart that all have.")
    if profile.shape == "many words" and profile.distinct_share > _OFTEN_NEW:
        reason = f"Its name points to {meaning.says}, written in words that are often new ({_distinct(profile)})."
        return _Verdict("identifier", reason, "It is left out: if it holds no notes on persons, make it sensitive.")
    reason = f"Its name points to {meaning.says}, a secret that others seldom know ({_distinct(profile)})."
    if _nearly_distinct(profile):
        return _left_out(reason, "sensitive")
    decision = "It is released as it is: demand diversity for it, or make it a quasi-identifier if others know it."
    return _Verdict("sensitive", reason, decision)


def _purpose(profile: ColumnProfile, meaning: NameMeaning) -> _Verdict | None:
    if meaning.role != "target" or (profile.type == "nominal" and profile.distinct > _FEW):
        return None
    what = "" if profile.type == "continuous" else f" with {profile.distinct} different values"
    if _nearly_distinct(profile):
        return _left_out(f"Its name points to {meaning.says}.", "target")
    reason = f"Its name points to {meaning.says}{what}, so the release is made to keep it predictable."
    decision = "It is released as it is: make it sensitive if it must not be learned of a person."
    return _Verdict("target", reason, decision)


def _nearly_distinct(profile: ColumnProfile) -> bool:
    """Whether the column can be released as it is only where that is written."""
    return profile.rows >= _ENOUGH_ROWS and profile.distinct_share > RAW_LIMIT


def _left_out(reason: str, role: str) -> _Verdict:
    """A column that would be released as it is, though whoever knows a value finds the row."""
    return _Verdict(
        "identifier",
        f"{reason} Nearly all its values differ, so whoever knows one finds the row; it is left out.",
        f'To release it, write role = "{role}" and release = true, or make it a quasi-identifier.',
    )


def _constant(profile: ColumnProfile, _: NameMeaning) -> _Verdict | None:
    if profile.separation > 0 or profile.rows < 2:
        return None
    reason = "All rows have the same value, so it tells nobody apart here, but it could in new rows."
    return _Verdict("quasi-identifier", reason)


def _link(profile: ColumnProfile, meaning: NameMeaning) -> _Verdict | None:
    if meaning.role == "quasi-identifier":
        reason = f"Its name points to {meaning.says}; others may know it, and {_apart(profile)}."
        is_body = meaning.says == "the body"
        decision = 'If it is a survey weight, write role = "sample-weight".' if is_body else None
        return _Verdict("quasi-identifier", reason, decision)
    if not _postal(profile, meaning):
        return None
    reason = f"Its values look like postal codes; others may know them, and {_apart(profile)}."
    return _Verdict("quasi-identifier", reason)


def _unclear(profile: ColumnProfile, _: NameMeaning) -> _Verdict:
    if profile.shape == "many words":
        reason = f"It holds many different words ({_distinct(profile)}), and labels would list them; it is left out."
        decision = "If they name categories, and nobody, make it a quasi-identifier, or sensitive."
        return _Verdict("identifier", reason, decision)
    reason = f"Nothing says that others cannot know it, and {_apart(profile)} ({_distinct(profile)})."
    decision = "Make it sensitive if it is a secret, or insensitive if it can be in no other source."
    if profile.shape == "diagnosis codes":
        decision = "Its values look like ICD codes: make it sensitive if they are diagnoses."
    elif profile.type == "continuous" and profile.distinct_share > RAW_LIMIT:
        decision = "Its numbers nearly all differ. " + decision
    elif names.has_word(profile.name, "how_many"):
        decision = 'If a row stands for so many persons, write role = "count".'
    elif names.is_record_id(profile.name):
        decision = "It numbers something: make it an identifier if that is a person."
    return _Verdict("quasi-identifier", reason, decision)


_RULES = [_never_released, _texts_of_people, _rows_to_persons, _direct_name, _unique, _date]
_RULES += [_secret, _purpose, _constant, _link, _unclear]


def _postal(profile: ColumnProfile, meaning: NameMeaning) -> bool:
    """By name, or by shape in a text column whose name says nothing: five digits are often just a number."""
    if meaning is _NOTHING:
        return profile.shape == "postal codes"
    return meaning.says == "a postal code" and profile.type != "date"


def _type(profile: ColumnProfile, meaning: NameMeaning) -> str:
    """Numbers that name categories are nominal, whatever their dtype: codes, and classes, such as 1 and 0, or the few
    values of a target, of columns that are released raw.
    """
    most_classes = {"sensitive": 2, "target": _FEW}.get(meaning.role, 0)
    are_named = meaning.codes and not profile.dtype.startswith("Float")
    if profile.type == "continuous" and (profile.distinct <= most_classes or are_named):
        return "nominal"
    return "nominal" if _postal(profile, meaning) or _are_codes(profile) else profile.type


def _are_codes(profile: ColumnProfile) -> bool:
    """Whether a few whole numbers that follow each other are probably codes, and count or measure nothing."""
    return (
        profile.type == "continuous"
        and "Int" in profile.dtype
        and profile.shape == "consecutive numbers"
        and 2 <= profile.distinct <= _MOST_CODES
        and profile.rows >= _ROWS_PER_CODE * profile.distinct
        and not names.has_word(profile.name, "how_many")
        and not names.has_word(profile.name, "measured")
    )


_OF_SHAPES = {
    "dates written as numbers": "Its numbers read as dates (year, month, day): write them as dates to get dates in the "
    "release.",
    "numbers with a decimal comma": "Its numbers have a decimal comma: write a point to have them read as numbers.",
    "steps of a scale": 'Its values look like steps of a scale: write type = "ordinal" and their order to keep it.',
}


def _type_decisions(profile: ColumnProfile, column_type: str) -> Iterator[str]:
    """What the values leave open about the type, in a sentence each."""
    if profile.date_format_alternative is not None and column_type == "date":
        both = f"{profile.date_format} and {profile.date_format_alternative}"
        yield f"Both {both} read every value: check which is meant."
    yield _OF_SHAPES.get(profile.shape or "", "")
    if column_type == "nominal" and _are_codes(profile):
        yield 'Its few whole numbers may be codes: write type = "continuous" if they count or measure.'
    if column_type == "nominal" and "Int" in profile.dtype and profile.distinct > _FEW:
        yield "Its numbers are codes: check that no leading zeros were lost."
