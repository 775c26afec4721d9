# SPDX-License-Identifier: Apache-2.0
"""The verdict of an audit in sentences: what was asked and met, what was asked and missed, what a release claims of
itself and whether that holds, and what nobody asked. A claim is always named beside what is said of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from anonfit.errors import listed

if TYPE_CHECKING:
    from anonfit.auditing.result import Audit, Finding

__all__ = ["figure_words", "verdict_of"]

_IDENTIFYING = 0.9  # different values per row


def verdict_of(audit: Audit) -> tuple[str, ...]:
    """The sentences of a verdict: demands first, then claims, then what nobody asked."""
    return (*_of_demands(audit), *_of_claims(audit), *_of_nobody(audit))


def _of_demands(audit: Audit) -> Iterator[str]:
    """What the one who audits asked."""
    asked = audit.asked
    if not asked:
        if not audit.claims:
            yield "Nothing was asked: the figures say what the file protects, and nothing was held against them."
        return
    for head, met in (("Asked and missed", False), ("Asked and not checked", None), ("Asked and met", True)):
        some = [finding for finding in asked if finding.met is met]
        if some:
            yield f"{head}: {_several(_words(one, audit) for one in some)}."


def _of_claims(audit: Audit) -> Iterator[str]:
    """What a release claims of itself."""
    if not audit.claims:
        return
    claims = _several(audit.claims)
    faults = [finding for finding in audit.missed if finding.claimed]
    broken = [one for one in faults if one.met is False]
    if not faults:
        yield f"The release holds what it claims: {claims}."
    elif broken:
        yield f"The release does not hold what it claims ({claims}): {_several(_words(one, audit) for one in broken)}."
    else:
        names = _several(_words(one, audit) for one in faults)
        yield f"Whether the release holds what it claims ({claims}) was not checked in full: {names}."
    yield from (one.sentence for one in audit.findings if one.name == "attack_limit")
    if audit.not_recounted:
        told = ", ".join(audit.not_recounted).replace("_", " ")
        yield f"Not recounted were those figures of its report that do not follow from the folder: {told}."


def _of_nobody(audit: Audit) -> Iterator[str]:
    """What nobody asked, where the figures are such that somebody might."""
    names = {finding.name for finding in audit.findings}
    if not {"k", "prosecutor risk", "journalist risk"} & names and audit.sizes.smallest is not None:
        together = ", ".join(audit.quasi_identifiers)
        yield f"Nobody asked for a k of {together}: the smallest group has {audit.sizes.smallest}."
    if "prosecutor risk" not in names:
        above = [one for one in audit.prosecutor.above if one.above.persons]
        told = [
            f"{one.above.share:.2%} are above {one.name} ({one.threshold:g}, groups of {one.size})" for one in above
        ]
        if told:
            yield f"Nobody asked for a highest risk, and of all persons {_several(told)}."
    free = [one for one in audit.diversity if one.asked is None and one.found is not None]
    for one in free:
        least = figure_words(one.found.value) if one.found else ""
        yield f"Nobody asked anything of the sensitive column '{one.column}': a group has {least} different value(s)."
    if not audit.claims:
        alike = [one.name for one in audit.raw_columns if one.distinct.value > _IDENTIFYING and audit.rows > 1]
        if alike:
            yield f"Nobody asked whether rows can be told apart by these columns, and they can: {listed(alike)}."


def _words(finding: Finding, audit: Audit) -> str:
    """A demand with what it is of and, unless it is met, what was found."""
    of = finding.where or (", ".join(audit.quasi_identifiers) if finding.name == "k" else None)
    asked = f" {figure_words(finding.asked)}" if isinstance(finding.asked, (int, float)) and finding.asked else ""
    sign = " =" if finding.name == "k" else ""
    words = f"{finding.name}{sign}{asked}{f' of {of}' if of else ''}"
    if finding.met is False and isinstance(finding.found, (int, float)) and not isinstance(finding.found, bool):
        return f"{words} (found {figure_words(finding.found)})"
    return words


def _several(words: Iterable[str]) -> str:
    return "; ".join(words)


def figure_words(value: Any) -> str:
    """A figure or names, as they are."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "nothing" if value is None else str(value)
