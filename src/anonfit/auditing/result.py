# SPDX-License-Identifier: Apache-2.0
"""What an audit found: plain, frozen data, and the verdict on it in sentences. Figures know how many persons they rest
on, so that a public report can leave out those about few. Of a release, the verdict always names what it claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import isinf
from typing import Any

from anonfit.errors import listed

PERSONS = {"persons": True}  # metadata of a field that is itself a number of persons
APART = {"apart": True}  # metadata of a field that is told in sentences, not among the figures
_IDENTIFYING = 0.9  # different values per row
WITHHELD, DROPPED, BYTES, SUPPRESSION = "withheld rows", "dropped rows", "file content", "suppression limit"
"""Findings on source rows that are not released, and on what a file holds beside its rows."""
JOINT = "joint cells"
"""The finding on two releases together, which only a caller asks for."""
PUBLIC_SOURCE = ("by_labels", "compared", "not_in_source", "unmatched", "absent_inside", "in_several")
"""What everybody may know of the comparison with the source."""
UNKNOWN_PERSONS = "rows in place of persons"
"""What is counted where persons have several rows and nothing says which."""


@dataclass(frozen=True, slots=True)
class Share:
    """Some of all persons (or rows)."""

    persons: int
    of: int

    @property
    def share(self) -> float:
        """The part of the whole, 0 of nothing."""
        return self.persons / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class CountedFigure:
    """A number computed on some persons; `rest` persons are told apart from them by it."""

    value: float
    persons: int
    rest: int = 0


def few(number: int, k: int) -> bool:
    """Whether a number of persons is some, but fewer than k."""
    return 0 < number < k


def plain(value: Any, k: int = 0) -> Any:
    """A tree of dataclasses as JSON-ready values; with k, every figure about fewer than k persons is a text instead."""
    if isinstance(value, Share):
        words = f"fewer than {k}" if few(value.persons, k) else f"all but fewer than {k}"
        if few(value.persons, k) or few(value.of - value.persons, k):
            return {"persons": words, "share": f"{words} persons"}
        return {"persons": value.persons, "share": value.share}
    if isinstance(value, CountedFigure):
        return f"fewer than {k}" if few(value.persons, k) or few(value.rest, k) else plain(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            entry.name: f"fewer than {k}" if hidden else plain(part, k)
            for entry in fields(value)
            if "apart" not in entry.metadata
            for part in (getattr(value, entry.name),)
            for hidden in ("persons" in entry.metadata and part is not None and few(part, k),)
        }
    if isinstance(value, (list, tuple)):
        return [plain(part, k) for part in value]
    return "infinite" if isinstance(value, float) and isinf(value) else value  # JSON has no such number


def _of_demands(audit: Audit) -> Iterator[str]:
    """What the one who audits asked."""
    asked = audit.asked
    if not asked and not audit.claims:
        yield "Nothing was asked: the figures say what the file protects, and nothing was held against them."
    for head, met in (("Asked and missed", False), ("Asked and not checked", None), ("Asked and met", True)):
        words = [_words(finding, audit) for finding in asked if finding.met is met]
        if words:
            yield f"{head}: {'; '.join(words)}."


def _of_claims(audit: Audit) -> Iterator[str]:
    """What a release claims of itself."""
    if not audit.claims:
        return
    claims = "; ".join(audit.claims)
    faults = [finding for finding in audit.missed if finding.claimed]
    broken = [finding for finding in faults if finding.met is False]
    names = "; ".join(_words(finding, audit) for finding in broken or faults)
    if not faults:
        yield f"The release holds what it claims: {claims}."
    elif broken:
        yield f"The release does not hold what it claims ({claims}): {names}."
    else:
        yield f"Whether the release holds what it claims ({claims}) was not checked in full: {names}."
    yield from (finding.sentence for finding in audit.findings if finding.name == "attack_limit")
    if audit.not_recounted:
        sections = ", ".join(audit.not_recounted).replace("_", " ")
        yield f"Not recounted were those figures of its report that do not follow from the folder: {sections}."


def _of_nobody(audit: Audit) -> Iterator[str]:
    """What nobody asked, where the figures are such that somebody might."""
    names = {finding.name for finding in audit.findings}
    if not {"k", "prosecutor risk", "journalist risk"} & names and audit.sizes.smallest is not None:
        together = ", ".join(audit.quasi_identifiers)
        yield f"Nobody asked for a k of {together}: the smallest group has {audit.sizes.smallest}."
    above = [
        f"{_percent(risk.above.share)} are above {risk.name} ({risk.threshold:g}, groups of {risk.size})"
        for risk in audit.prosecutor.above
        if risk.above.persons
    ]
    if above and "prosecutor risk" not in names:
        yield f"Nobody asked for a highest risk, and of all persons {'; '.join(above)}."
    for measured in audit.diversity:
        if measured.asked is None and measured.found is not None:
            found = measured.found.value
            least = f"a group has {figure_words(found)} different value{'' if found == 1 else 's'}"
            yield f"Nobody asked anything of the sensitive column '{measured.column}': {least}."
    alike = [column.name for column in audit.raw_columns if column.distinct.value > _IDENTIFYING and audit.rows > 1]
    if alike and not audit.claims:
        yield f"Nobody asked whether rows can be told apart by these columns, and they can: {listed(alike)}."


def _percent(share: float) -> str:
    """A share as pages write it, with as many digits as it takes not to be none or all by rounding."""
    return f"{100 * share:.{1 if share in (0, 1) or 0.0005 < share < 0.9995 else 3}f} %"


def _words(finding: Finding, audit: Audit) -> str:
    """A demand with what it is of and, unless it is met, what was found."""
    of = finding.where or (", ".join(audit.quasi_identifiers) if finding.name == "k" else None)
    asked = f" {figure_words(finding.asked)}" if isinstance(finding.asked, (int, float)) and finding.asked else ""
    sign = " =" if finding.name == "k" else ""
    words = f"{finding.name}{sign}{asked}{f' of {of}' if of else ''}"
    if finding.met is False and isinstance(finding.found, (int, float)) and not isinstance(finding.found, bool):
        return f"{words} (found {figure_words(finding.found)})"
    return words


def figure_words(value: Any) -> str:
    """A figure or names, as they are."""
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "nothing" if value is None else str(value)


@dataclass(frozen=True, slots=True)
class Finding:
    """One demand: what was asked, what was found, and whether it is met (None: it could not be checked). Where nothing
    was asked, it is only a remark.
    """

    name: str
    asked: Any
    found: Any
    met: bool | None
    sentence: str
    where: str | None = None  # a column, a set of columns or a file
    persons: int | None = None  # the persons that `found` tells of
    asked_persons: int | None = None  # the persons that `asked` tells of
    claimed: bool = field(default=False, metadata=APART)  # by a release of itself; False: asked by who audits it

    def hidden(self, k: int) -> Finding:
        """The same without numbers of fewer than k persons, or of source rows that are not released."""
        found, asked, words = self.found, self.asked, f"fewer than {k}"
        if self.name in (WITHHELD, DROPPED):
            found, asked = ("as stated" if self.met else "not as stated"), "as stated"
        else:
            found = words if few(self.persons or 0, k) else found
            asked = words if few(self.asked_persons or 0, k) else asked
        return replace(self, found=found, asked=asked, persons=None, asked_persons=None)


@dataclass(frozen=True, slots=True)
class Bin:
    """Groups of `low` to `high` persons (None: and more)."""

    low: int
    high: int | None
    groups: CountedFigure
    persons: Share


@dataclass(frozen=True, slots=True)
class GroupSizes:
    """The sizes of the groups, in persons; k is the smallest."""

    groups: int
    smallest: int | None = field(metadata=PERSONS)  # None: there are no rows
    lower_quartile: int | None = field(metadata=PERSONS)
    median: int | None = field(metadata=PERSONS)
    upper_quartile: int | None = field(metadata=PERSONS)
    largest: int | None = field(metadata=PERSONS)
    mean: float | None
    groups_below_k: CountedFigure | None  # None: no k was asked
    persons_below_k: Share | None
    histogram: tuple[Bin, ...]
    of_size: Mapping[int, int] = field(default_factory=dict, repr=False, metadata=APART)  # how many groups there are


@dataclass(frozen=True, slots=True)
class SetSizes:
    """The groups of one of several quasi-identifiers, with its own k."""

    columns: tuple[str, ...]
    k: int | None
    sizes: GroupSizes


@dataclass(frozen=True, slots=True)
class Diversity:
    """What a diversity model measures of a sensitive column or a target in its worst group."""

    column: str
    model: str
    found: CountedFigure | None  # None: it could not be measured
    asked: float | None  # None: it was only measured
    met: bool | None  # of all groups; None: nothing was asked, or it could not be checked
    sentence: str
    settings: dict[str, Any]  # of the demand, beside what was asked
    by_rows: bool = field(default=False, metadata=APART)  # the same whether rows or persons are counted


@dataclass(frozen=True, slots=True)
class ThresholdShare:
    """The persons whose risk is above a threshold: those in groups of fewer than `size`."""

    name: str
    threshold: float
    size: int
    source: str
    above: Share


@dataclass(frozen=True, slots=True)
class ProsecutorRisk:
    """The attacker knows that a person is in the file."""

    highest: CountedFigure
    average: CountedFigure
    above: tuple[ThresholdShare, ...]


@dataclass(frozen=True, slots=True)
class JournalistRisk:
    """The attacker knows that a person is in the population the file was drawn from; `basis` says how that is known."""

    basis: str
    highest: CountedFigure
    average: CountedFigure
    above: tuple[ThresholdShare, ...]
    larger_than_population: int  # groups with more persons than the population has there


@dataclass(frozen=True, slots=True)
class FrequentLabels:
    """How many different labels a column has, and those that most persons have (or rows, where these were counted)."""

    different: int
    persons: int
    labels: frozenset[Any]


@dataclass(frozen=True, slots=True)
class GroupCells:
    """The groups of a release as cells of its recoding."""

    columns: Mapping[str, tuple[Sequence[Sequence[tuple[int, int]] | None], Any]]
    """The runs of cells that are each label (None: of none), and the label of every group."""
    sizes: Any  # (group,) in persons


@dataclass(frozen=True, slots=True)
class RawColumn:
    """What the groups reveal of a column that is released as it is."""

    name: str
    sensitive: bool
    certain: Share  # all members of the group have the same value
    likely: Share  # 90 % of the members have the same value
    smallest: int | None = field(metadata=PERSONS)  # of the groups of the quasi-identifiers and this column together
    distinct: CountedFigure  # different values per row


@dataclass(frozen=True, slots=True)
class LabelCheck:
    """Whether the labels can be read, are allowed by the recoding, and do not overlap."""

    unreadable: dict[str, int]  # column -> labels
    not_allowed: dict[str, int]
    overlapping: int | None  # groups; None: the labels of some column cannot be read
    no_region: int | None  # groups that are no region of the recoding; None: not asked, or as above


@dataclass(frozen=True, slots=True)
class SourceCheck:
    """Raw rows inside each released label against the released rows of that label, as multisets."""

    by_labels: bool  # False: some labels have no meaning, so raw columns are compared over the whole file
    compared: tuple[str, ...]
    not_in_source: tuple[str, ...]
    rows: CountedFigure
    unmatched: Share  # released rows that no source row explains
    absent: Share  # source rows that are not released
    absent_inside: Share  # of these, rows inside the label of a released group
    in_several: Share  # source rows inside the labels of several groups
    beyond_domain: int = field(metadata=PERSONS)
    unknown_values: int = field(metadata=PERSONS)
    dropped: int = field(default=0, metadata=APART)  # of the absent rows, those left out for a missing value
    in_vain: int = field(default=0, metadata=APART)  # those withheld though their groups meet all demands
    not_observed: int = field(default=0, metadata=APART)  # groups whose labels are not what their records have

    @property
    def misplaced(self) -> int:
        """Rows that keep the groups from being the source's rows inside their labels, all of them."""
        return self.unmatched.persons + self.absent_inside.persons + self.in_several.persons


@dataclass(frozen=True, slots=True)
class JointCells:
    """Two releases of one table: the cells (group here, group there) that hold fewer than k persons. That a release
    does not hold a person is a group, too: whoever has both sees whom only one of them holds.
    """

    cells: int
    smallest: int | None = field(metadata=PERSONS)
    cells_below_k: CountedFigure | None
    persons_below_k: Share | None
    is_known: bool = field(default=True, metadata=APART)  # False: one of them does not hold the source's rows


@dataclass(frozen=True, slots=True)
class Audit:
    """What a file protects. `passed` is about what was asked; the figures are there in any case."""

    rows: int
    persons: int
    counted: str  # what a person is: rows, count column or entities; or UNKNOWN_PERSONS
    quasi_identifiers: tuple[str, ...]
    sizes: GroupSizes
    suppressed_rows: Share  # rows with * in every quasi-identifier; they are a group like any other
    sets: tuple[SetSizes, ...]
    diversity: tuple[Diversity, ...]
    prosecutor: ProsecutorRisk
    journalist: JournalistRisk | None
    marketer: CountedFigure
    raw_columns: tuple[RawColumn, ...]
    labels: LabelCheck | None
    source: SourceCheck | None
    joint: JointCells | None
    sorted: bool | None  # None: not asked
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    _rounded: Audit | None = field(default=None, repr=False, compare=False)
    """The same with persons in multiples of k, where persons are entities: see `measuring`."""
    claims: tuple[str, ...] = field(default=(), metadata=APART)  # what a release says that it holds
    not_recounted: tuple[str, ...] = field(default=(), metadata=APART)  # what a release tells and nobody counted here
    frequent: Mapping[str, FrequentLabels] = field(default_factory=dict, repr=False, metadata=APART)
    """Of every column of the file that holds a quasi-identifier."""
    groups: GroupCells | None = field(default=None, repr=False, compare=False, metadata=APART)
    """None: labels do not say of which region a group is, or nobody asked."""

    @property
    def k(self) -> int | None:
        """The persons in the smallest group; None without rows, and where rows were counted in place of persons."""
        return None if self.counted == UNKNOWN_PERSONS else self.sizes.smallest

    @property
    def rounded(self) -> Audit:
        """The same as it may be told: with persons in multiples of k, where persons are entities."""
        return self if self._rounded is None else self._rounded

    @property
    def passed(self) -> bool | None:
        """Whether every demand and claim is met; one that could not be checked is not. None: nothing was asked."""
        return not self.missed if self.claims or self.asked else None

    @property
    def asked(self) -> tuple[Finding, ...]:
        """What was asked by who audits, met or not; what a release claims of itself is not among it."""
        own = (finding for finding in self.findings if not finding.claimed)
        return tuple(finding for finding in own if finding.met is False or finding.asked is not None)

    @property
    def verdict(self) -> tuple[str, ...]:
        """In sentences: what was asked and met, what was asked and missed, what is claimed, and what nobody asked."""
        return (*_of_demands(self), *_of_claims(self), *_of_nobody(self))

    @property
    def missed(self) -> tuple[Finding, ...]:
        """Demands that are not met, or that nobody knows to be: what was asked could not be checked."""
        return tuple(
            finding
            for finding in self.findings
            if finding.met is False or (finding.met is None and finding.asked is not None)
        )

    @property
    def unchecked(self) -> tuple[Finding, ...]:
        """What this audit had not the means to check."""
        return tuple(finding for finding in self.findings if finding.met is None)

    def to_dict(self) -> dict[str, Any]:
        """Everything, JSON-ready: for the internal report."""
        return {"passed": self.passed, "verdict": list(self.verdict), "k": self.k, **plain(self)}

    def public(self, k: int) -> dict[str, Any]:
        """The same without any figure about fewer than k persons, or all but fewer than k.

        Figures of the groups of one of several quasi-identifiers are held against its own k. Of source rows that are
        not released nothing is told here: what may be told of them, the manifest says.
        """
        if self._rounded is not None:
            return self._rounded.public(k) | {"passed": self.passed}
        own = {", ".join(part.columns): k if part.k is None else part.k for part in self.sets}
        places = [(part.where or "").rpartition(" in groups of ")[2] for part in self.findings]
        hidden = (part.hidden(own.get(place, k)) for part, place in zip(self.findings, places, strict=True))
        groups_of = [", ".join(part.settings.get("quasi_identifier", ())) for part in self.diversity]
        source = self.source and {name: plain(getattr(self.source, name), k) for name in PUBLIC_SOURCE}
        return {
            "passed": self.passed,
            "k": f"fewer than {k}" if self.k is not None and few(self.k, k) else self.k,
            **plain(replace(self, findings=tuple(hidden)), k),
            "source": source,
            "sets": [plain(part, own[", ".join(part.columns)]) for part in self.sets],
            "diversity": [plain(part, own.get(of, k)) for part, of in zip(self.diversity, groups_of, strict=True)],
        }
