# SPDX-License-Identifier: Apache-2.0
"""The shape of a spec: what is asked, as frozen dataclasses, and the same as typed keyword arguments.

What a field means, how it is read and whom it is for stands in `settings`, once; here only what is not said there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from anonfit.criteria.objectives import ALGORITHMS, OBJECTIVES, Algorithm, AlgorithmName, CriterionName, Objective
from anonfit.engines.contract import EngineName
from anonfit.recoding.recoding import Recoding
from anonfit.recoding.values import Values
from anonfit.tables.layout import FileLayout
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import ColumnType, NominalSplit, Role
from anonfit.tables.sources import TITLED, FileForm, FormatName
from anonfit.tables.taxonomy import Taxonomy

if TYPE_CHECKING:
    from anonfit.tables.profile_roles import Proposal

VERSION = 1

Average = Literal["containing", "all"]
Candidates = Literal["boundary", "all"]
MissingPolicy = Literal["category", "drop", "error"]
Order = Literal["sorted", "original"]
Populations = Literal["exact", "relative", "majority"]
Regions = Literal["domain", "observed"]
Intervals = Literal["half-open", "closed"]
SuppressionRule = Literal["all", "best_gain"]
VariantName = Literal["c45", "id3"]
WeightRule = Literal["first", "product", "blend", "naive", "probabilistic", "combined"]
WeightsFrom = Literal["accuracy"]
Auto = Literal["auto"]
AUTO: Auto = "auto"
"""What a target alone asks for (`Spec.serves_targets`)."""
FEWEST_MODELLED = 100
"""Rows of a table whose targets are denoised without being asked to."""


@dataclass(frozen=True, slots=True)
class DataSpec(FileLayout):
    """Where the table is and how to read it."""

    source: Any = field(default=None, repr=False)
    missing: tuple[str, ...] = ("",)
    missing_policy: MissingPolicy = "category"
    default_role: Role | None = None
    table: str | None = None
    query: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """What is declared of a column."""

    role: Role
    type: ColumnType | None = None
    order: tuple[str, ...] = ()
    domain: tuple[Any, ...] = ()
    date_format: str | None = None
    taxonomy: Any = None
    split: NominalSplit | None = None
    release: bool = False
    diversity: str | None = None
    """`none`: nothing is asked of a sensitive column; None: what `privacy.diversity` asks."""
    reason: str | None = None
    missing: tuple[str, ...] = ()
    """Texts and numbers that mean missing in this column, beside `data.missing`."""
    title: str | None = None


@dataclass(frozen=True, slots=True)
class DiversitySpec:
    """What the values of a sensitive column must hold in every group."""

    column: str
    model: str
    parameters: Mapping[str, float | str | bool] = field(default_factory=dict)
    """As they were given, by the names of `privacy.catalogue.MODELS`; what was not given is not in it."""


@dataclass(frozen=True, slots=True)
class QuasiIdentifierSpec:
    """Columns that someone could know together."""

    columns: tuple[str, ...]
    k: int | None = None
    """How many persons must share every combination of them; None: as many as `privacy.k` says."""


@dataclass(frozen=True, slots=True)
class PrivacySpec:
    """What every group must hold."""

    k: int
    suppression_limit: float = 0.0
    max_confidence: float = 1.0
    diversity: tuple[DiversitySpec, ...] = ()
    quasi_identifiers: tuple[QuasiIdentifierSpec, ...] = ()
    class_is_public: bool = False
    attack_limit: float = 1.0

    @property
    def least(self) -> int:
        """The persons that a public figure of raw data must cover: the largest k of all quasi-identifiers."""
        return max([self.k, *(quasi_identifier.k or self.k for quasi_identifier in self.quasi_identifiers)])

    @property
    def has_models(self) -> bool:
        """Whether groups are held against models of sensitive columns or targets."""
        return bool(self.diversity) or self.max_confidence < 1.0


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A column that recipients will predict, and how much that matters."""

    column: str
    classes: tuple[float, ...] = ()
    equal_width: int | None = None
    weight: float = 1.0
    scale: bool = True
    model: Any = field(default=None, repr=False, compare=False)
    """A fitted model whose predictions steer the splits in place of the values; only from Python, never written."""


@dataclass(frozen=True, slots=True)
class SelectionSpec:
    """Rows that recipients will ask for: those a predicate holds of, or those of each value of a column.

    One that says neither is of a release that was loaded: selections are not public, only their number is.
    """

    where: str | None = None
    each: str | None = None
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class QueryLogSpec:
    """A log of queries that the release is for."""

    path: tuple[str, ...]
    dialect: str | None = None
    table: str | None = None
    learn: bool = True
    selections: int = 50
    minterms: int = 0


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """What the release is for."""

    targets: tuple[TargetSpec, ...] | None = None
    denoise: bool | Auto = AUTO
    selections: tuple[SelectionSpec, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    query_log: QueryLogSpec | None = None
    rules: bool = False
    features: tuple[str, ...] = ()
    selected_by: tuple[str, ...] = ()
    weights_from: WeightsFrom | None = None
    clusters: int = 5


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """How the regions are found."""

    algorithm: AlgorithmName = "mondrian"
    criterion: CriterionName = "auto"
    cut_points: CutPoints = CutPoints.SIMPLEST
    seed: int = 0
    candidates: Candidates = "boundary"
    split_on: tuple[str, ...] = ()
    weight_rule: WeightRule | None = None
    """How weights enter the choice of a split; None: `first`, and for weights that a query log teaches `product`."""
    alpha: float = 0.5
    min_gain: float | Auto = AUTO
    average: Average = "containing"
    suppression: SuppressionRule = "all"
    zero_gain: bool = False
    time_budget: float | None = None
    beta: float = 0.25
    gamma: float = 0.25
    variant: VariantName = "c45"
    pruning: float | None = None
    max_spans: int = 1_000_000
    start: Any = field(default=None, repr=False, compare=False)
    """The recoding that refining begins with: a path, or from Python a `Recoding`; None: every column is one part."""

    @property
    def objective(self) -> Objective:
        """What the criterion stands for."""
        return OBJECTIVES[self.criterion]

    @property
    def capabilities(self) -> Algorithm:
        """What the algorithm can do."""
        return ALGORITHMS[self.algorithm]


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """Where rows are counted."""

    name: EngineName = "auto"
    memory: int | None = None
    """In bytes."""
    spill: str | None = None
    hand_over: int | None = None
    sample: int | None = None


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """What is written."""

    format: FormatName = "parquet"
    values: Values = Values.LABELS
    regions: Regions = "domain"
    order: Order = "sorted"
    consent: bool = False
    to: str | None = field(default=None, repr=False)  # it may hold a password
    table: str | None = None
    populations: Populations = "exact"
    intervals: Intervals = "half-open"
    delimiter: str = ","
    decimal: str = "."
    bom: bool = False

    def of_format(self, name: FormatName) -> OutputSpec:
        """The same in another format, which has not the layout of this one."""
        return self if name == self.format else replace(self, format=name, delimiter=",", decimal=".", bom=False)

    @property
    def form(self) -> FileForm:
        """How the data file is laid out."""
        return FileForm(self.delimiter, self.decimal, bom=self.bom)


@dataclass(frozen=True, slots=True)
class ReportSpec:
    """What the report is headed by: words of the owner of the data, which everybody may read."""

    title: str | None = None
    table_name: str | None = None
    contact: str | None = None


@dataclass(frozen=True, slots=True)
class Spec:
    """One request for a release."""

    columns: Mapping[str, ColumnSpec]
    privacy: PrivacySpec
    data: DataSpec = field(default_factory=DataSpec)
    method: MethodSpec = field(default_factory=MethodSpec)
    engine: EngineSpec = field(default_factory=EngineSpec)
    output: OutputSpec = field(default_factory=OutputSpec)
    workload: WorkloadSpec = field(default_factory=WorkloadSpec)
    report: ReportSpec = field(default_factory=ReportSpec)
    decisions: str | None = None
    """`accepted`: what `init` proposed was taken as it is, without a look at what it left open."""
    folder: Path | None = None
    """Where relative paths of the spec start: the folder of its file."""

    @property
    def form(self) -> FileForm:
        """How the data file is laid out; those of statistics programs tell the titles of columns."""
        titled = self.columns.items() if self.output.format in TITLED else ()
        titles = tuple((name, column.title) for name, column in titled if column.title is not None)
        return replace(self.output.form, titles=titles)

    def of_role(self, role: Role) -> tuple[str, ...]:
        """The names of the columns that are declared to have a role."""
        return tuple(name for name, column in self.columns.items() if column.role == role)

    def in_order_of(self, names: Iterable[str]) -> Spec:
        """The same with its columns in the order of a table, which a manifest tells: what follows from columns then
        does not depend on the order in which a file declares them.
        """
        return replace(self, columns={name: self.columns[name] for name in names if name in self.columns})

    @property
    def targets(self) -> tuple[TargetSpec, ...]:
        """What is to be predicted: the targets of the workload, or all columns of that role if it lists none."""
        if self.workload.targets is not None:
            return self.workload.targets
        return tuple(TargetSpec(name) for name in self.of_role(Role.TARGET))

    @property
    def weights(self) -> Mapping[str, float]:
        """How much quasi-identifiers matter: as given, or 1 for those that recipients learn from or select by and 0 for
        the others. Empty where nothing says that some matter more.
        """
        named = {*self.workload.features, *self.workload.selected_by}
        known = self.of_role(Role.QUASI_IDENTIFIER)
        if self.workload.weights or self.workload.weights_from or not named & set(known):
            return self.workload.weights
        return {name: float(name in named) for name in known}

    @property
    def serves_targets(self) -> bool:
        """Whether targets alone say how splits are chosen, in the best way that is known: no criterion is named."""
        return self.method.capabilities.splits and self.method.criterion == AUTO and bool(self.targets)

    @property
    def denoises(self) -> bool:
        """Whether models say what is expected of the targets."""
        return self.serves_targets if self.workload.denoise == AUTO else bool(self.workload.denoise)

    @property
    def min_gain(self) -> float | None:
        """What a split must gain for the targets; None: more than one more group costs. Weights ask for detail in
        columns, whatever these tell of targets; models that are given are taken as they are.
        """
        if self.method.min_gain != AUTO:
            return float(self.method.min_gain)
        has_more = self.weights or self.workload.weights_from or any(each.model is not None for each in self.targets)
        return None if self.serves_targets and self.denoises and not has_more else 0.0

    def settled(self, rows: int) -> Spec:
        """The same with what `auto` stands for in a table of so many rows: of few, models learn nothing. Where several
        ways are explored, that depends on the way.
        """
        if not self.method.capabilities.splits or self.method.objective.explores:
            return self
        denoises = self.denoises and (rows >= FEWEST_MODELLED or self.workload.denoise is True)
        settled = replace(self, workload=replace(self.workload, denoise=denoises))
        least = AUTO if settled.min_gain is None else settled.min_gain
        return replace(settled, method=replace(self.method, min_gain=least))

    @property
    def capped_targets(self) -> tuple[TargetSpec, ...]:
        """What `max_confidence` caps: all targets, also columns of that role that the workload does not list."""
        listed = {target.column for target in self.targets}
        return (*self.targets, *(TargetSpec(name) for name in self.of_role(Role.TARGET) if name not in listed))


@dataclass(frozen=True, slots=True)
class ProposedSpec(Spec):
    """A spec that was proposed from a table. No release is made of it until every question is settled."""

    questions: Mapping[str, str] = field(default_factory=dict)
    """What somebody has yet to decide, by the table of the spec that it is about, such as `columns.age`."""
    proposal: Proposal | None = field(default=None, repr=False)
    """Why each column has its role, and how far the quasi-identifiers single rows out."""
    taxonomies: Mapping[str, Taxonomy] = field(default_factory=dict, repr=False)
    """Codes masked from the right, for columns that look like postal codes; the spec does not use them yet."""


class ColumnSettings(TypedDict, total=False):
    """What is declared of a column beside its role: `columns={"age": Column(type="continuous", domain=[0, 120])}`."""

    type: Literal["continuous", "ordinal", "nominal", "date"]
    order: Sequence[str]
    domain: Sequence[Any]
    date_format: str
    taxonomy: Taxonomy | str | Path | Mapping[str, Any]
    split: Literal["multiway", "binary", "subset"]
    release: bool
    missing: Sequence[str | float]


Column = ColumnSettings
"""Its public name."""


class RecodingSettings(TypedDict, total=False):
    """Keyword arguments that `anonymize` and `Anonymizer` have in common: all that the recoding follows from."""

    entity: str | None
    count: str | None
    sample_weight: str | None
    types: Mapping[str, str] | None
    orders: Mapping[str, Sequence[str]] | None
    domains: Mapping[str, Sequence[Any]] | None
    date_formats: Mapping[str, str] | None
    taxonomies: Mapping[str, Taxonomy | str | Path | Mapping[str, Any]] | None
    splits: Mapping[str, str] | None
    missing: Sequence[str]
    missing_policy: MissingPolicy
    max_confidence: float
    requirements: Sequence[Sequence[str] | Mapping[str, Any] | QuasiIdentifierSpec] | None
    denoise: bool | Auto
    selections: Sequence[str | Mapping[str, Any] | SelectionSpec] | None
    weights: Mapping[str, float] | None
    features: Sequence[str] | None
    selected_by: Sequence[str] | None
    weights_from: WeightsFrom | None
    algorithm: AlgorithmName
    criterion: CriterionName
    candidates: Candidates
    split_on: Sequence[str] | None
    weight_rule: WeightRule | None
    alpha: float
    beta: float
    gamma: float
    min_gain: float | Auto
    cut_points: Literal["simplest", "value"]
    seed: int
    average: Average
    suppression: SuppressionRule
    zero_gain: bool
    time_budget: float | None
    variant: VariantName
    pruning: float | None
    max_spans: int
    start: Recoding | str | Path | None


class Settings(RecodingSettings, total=False):
    """Keyword arguments of `anonymize`: also where the table is, what is released of it, and by which engine."""

    identifiers: Sequence[str]
    insensitive: Sequence[str]
    release: Sequence[str]
    default_role: Literal["insensitive"] | None
    table: str | None
    query: str | None
    suppression_limit: float
    attack_limit: float
    clusters: int
    query_log: str | Path | Sequence[str | Path] | Mapping[str, Any] | None
    rules: bool
    engine: EngineName
    memory: str | None
    spill: str | None
    sample: int | None
    values: Literal["labels", "bounds", "representative"]
    regions: Regions
    intervals: Intervals
    order: Order
    consent: bool
    title: str | None
    table_name: str | None
    contact: str | None
