# SPDX-License-Identifier: Apache-2.0
"""What was asked of a release, as its public report says it (demands, purpose, and the criterion really used), and as
its audit and its manifest are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anonfit.algorithms.demands import has_classes, redundant, requirements_of
from anonfit.criteria.objectives import TargetKind
from anonfit.errors import listed
from anonfit.privacy.catalogue import MODELS
from anonfit.release.bind import demands_of, workload_of
from anonfit.release.draft import Draft
from anonfit.release.run import FIGURES, rule_of
from anonfit.report.content import nothing_asked
from anonfit.report.words import counted, joined, sentences_of
from anonfit.spec.model import Spec
from anonfit.spec.parse import public_tables
from anonfit.spec.settings import TARGET
from anonfit.tables.codebook import column_type
from anonfit.tables.ingesting import RawColumns
from anonfit.tables.schema import ColumnType, Role, Schema
from anonfit.workload.objectives import feature_weights
from anonfit.workload.targets import TargetRequest, Workload, is_numeric

GIVEN_MODEL = "as a given model predicts it"
UNKNOWN_USE = "The use is not known: "


@dataclass(frozen=True, slots=True)
class Aim:
    """A target: whether it steered splits as a number (as a model's prediction may be), and whether it did at all."""

    request: TargetRequest
    is_number: bool
    is_generalized: bool
    is_used: bool


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """All that a spec asks of quasi-identifiers. `demands` are entries of `[[privacy.diversity]]` as a manifest has
    them, `workload` has weights that were found, and `tried` is the number of ways to weigh columns that were tried,
    where the use is not known.
    """

    spec: Spec
    schema: Schema
    quasi_identifiers: Sequence[str]
    demands: Sequence[Mapping[str, Any]]
    workload: Workload
    aims: Sequence[Aim]
    tried: int | None

    @property
    def refined_by(self) -> str | None:
        """What chose the refinements, where columns were refined top-down."""
        if not self.spec.method.capabilities.refines:
            return None
        against_loss = self.spec.method.objective.against_loss
        return "information gain against anonymity loss" if against_loss else "information gain"

    @property
    def grown_by(self) -> str | None:
        """The kind of tree whose spans the regions are."""
        if not self.spec.method.capabilities.grows_tree:
            return None
        return "C4.5" if self.spec.method.variant == "c45" else "ID3"

    @property
    def algorithm(self) -> str:
        """The name of what made the regions."""
        if self.grown_by is not None:
            return f"k-anonymous decision tree ({self.grown_by})"
        if self.refined_by is not None:
            return f"top-down refinement (TDR) by {self.refined_by}"
        return method_name(self.workload, self.aims)

    @property
    def several(self) -> list[dict[str, Any]]:
        """Several quasi-identifiers: the columns and the k of each, and which one it follows from."""
        demands = demands_of(self.spec)
        implied = dict(redundant(requirements_of(demands, self.quasi_identifiers)))
        return [
            {"columns": list(entry.columns), "k": entry.k, "follows_from": implied.get(number)}
            for number, entry in enumerate(demands.quasi_identifiers)
        ]

    @property
    def waived(self) -> dict[str, str]:
        """Sensitive columns of which nothing is asked, and why."""
        return {name: column.reason or "" for name, column in self.spec.columns.items() if column.diversity is not None}


def aims_of(
    workload: Workload, schema: Schema, frame: RawColumns, *, steered: Mapping[str, bool] | None = None
) -> tuple[Aim, ...]:
    """The targets of a workload, whose raw values are in `frame`. `steered` names those that steered splits, and
    whether as numbers; without it, their values and the criterion decide that.
    """
    declared = {column.name: column for column in schema.columns}
    aims = []
    for request in workload.targets:
        column = declared[request.column]
        number = is_numeric(request, column, frame[request.column], workload.objective)
        kind = TargetKind.NUMBERS if number else TargetKind.CLASSES
        fits = workload.objective.serves in (None, kind)
        used = fits and request in workload.used_targets if steered is None else request.column in steered
        is_number = (steered or {}).get(request.column, number)
        aims.append(Aim(request, is_number, is_generalized=column.role == Role.QUASI_IDENTIFIER, is_used=used))
    return tuple(aims)


def _has_weights(workload: Workload) -> bool:
    return bool(workload.weights) and (workload.objective.uses_weights or workload.objective.explores)


def method_name(workload: Workload, aims: Iterable[Aim]) -> str:
    """The name of the criterion that chose the splits, such as `Selection then LSD Mondrian, weighted`."""
    name = workload.objective.title_for(
        {TargetKind.NUMBERS if aim.is_number else TargetKind.CLASSES for aim in aims if aim.is_used}
    )
    if workload.objective.clusters:
        return f"{name} Mondrian"
    if workload.used_selections:
        name = f"Selection then {name}"
    return f"{name} Mondrian" + (", weighted" if _has_weights(workload) else "")


STOPPED = (
    "Groups were divided only where that tells more of the targets than one more group costs those who learn from "
    "it; a target of which models can tell nothing stops no division. Other uses get less detail for that: "
    "min_gain = 0 divides further."
)


def asked_content(asked: ReleaseRequest) -> dict[str, Any]:
    """What was asked, as plain data and as sentences."""
    spec, privacy, workload, several = asked.spec, asked.spec.privacy, asked.workload, asked.several
    return {
        "k": privacy.k,
        "quasi_identifiers": list(asked.quasi_identifiers),
        # The taxonomy or order of a demand's column stands in the manifest.
        "diversity": [
            {key: value for key, value in demand.items() if key not in ("taxonomy", "order")}
            for demand in asked.demands
        ],
        "max_confidence": privacy.max_confidence,
        "waived": asked.waived,
        "decisions": spec.decisions,
        **({"attack_limit": privacy.attack_limit} if privacy.attack_limit < 1 else {}),
        "algorithm": asked.algorithm,
        "targets": [
            {
                "column": aim.request.column,
                "kind": "number" if aim.is_number else "classes",
                "weight": aim.request.weight,
                "used": aim.is_used,
                **({"classes": list(aim.request.classes)} if aim.request.classes else {}),
                **({"equal_width": aim.request.equal_width} if aim.request.equal_width else {}),
            }
            for aim in asked.aims
        ],
        "denoise": workload.denoise,
        "selections": len(workload.selections),
        "weights": dict(workload.weights),
        **({"several_quasi_identifiers": several} if several else {}),
        "sentences": _sentences(asked),
        "values": str(spec.output.values),
        "regions": spec.output.regions,
        "order": spec.output.order,
        "cut_points": str(spec.method.cut_points),
    }


def _sentences(asked: ReleaseRequest) -> list[str]:
    """Sentences on every demand, on what the release is for, and on how regions were chosen."""
    workload, released = asked.workload, [column.name for column in asked.schema.of_role(Role.TARGET)]
    features = feature_weights(workload, list(asked.quasi_identifiers)) if workload.objective.clusters else {}
    return sentences_of(
        "asked.txt",
        request=asked,
        models=MODELS,
        capped=[target.column for target in asked.spec.capped_targets if target.column in released],
        features=[f"{name} (weight {weight:g})" if weight != 1 else name for name, weight in features.items()],
        has_weights=_has_weights(workload),
        every_weight=set(asked.quasi_identifiers) <= set(workload.weights),
        unknown_use=UNKNOWN_USE,
        figures=[*FIGURES.values(), *(["errors of targets"] if asked.spec.targets else [])],
        rule=rule_of(asked.spec),
        stopped=STOPPED,
        settings=_settings,
        nothing_asked=nothing_asked,
        aim_words=_aim_words,
        joined=joined,
        counted=counted,
        listed=listed,
    )[""]


def _settings(demand: Mapping[str, Any]) -> str:
    """The parameters of a demand in words."""
    settings = []
    for parameter in MODELS[demand["model"]].parameters:
        value = demand.get(parameter.name)
        if value is not None and value is not False:
            is_number = isinstance(value, int | float) and value is not True
            text = f"{value:g}" if is_number else "true" if value is True else str(value)
            settings.append(f"{parameter.name} = {text}")
    return ", ".join(settings)


def _aim_words(aim: Aim) -> str:
    request = aim.request
    kind = "a number" if aim.is_number else "its classes"
    if request.classes:
        kind = f"classes parted at {', '.join(f'{end:g}' for end in request.classes)}"
    if request.equal_width:
        kind = f"{request.equal_width} classes of equal width"
    if request.model is not None:
        kind = GIVEN_MODEL
    weight = f", weight {request.weight:g}" if request.weight != 1 else ""
    return f"{request.column} ({kind}{weight}{', released generalized' if aim.is_generalized else ''})"


# --- of a draft, for the audit, the manifest and the report ------------------------------------------------------


def audited_demands(spec: Spec, schema: Schema, rows: RawColumns) -> list[dict[str, Any]]:
    """The demands on sensitive columns, with all that is declared of these, as `auditing.audit` reads them."""
    types = _types(schema, rows)
    formats = {column.name: column.date_format for column in schema.columns}
    demands = public_tables(spec, schema, types=types)["privacy"]["diversity"]
    return [
        {"type": str(types[demand["column"]]), "date_format": formats[demand["column"]], **demand} for demand in demands
    ]


def audited_targets(spec: Spec, schema: Schema, rows: RawColumns) -> list[dict[str, Any]]:
    """The targets, with what they are: classes, also where these are written as numbers, or numbers."""
    types = _target_types(spec, schema, rows)
    return [
        TARGET.tables(target) | ({"type": str(types[target.column])} if target.column in types else {})
        for target in spec.capped_targets
    ]


def _types(schema: Schema, rows: RawColumns) -> dict[str, ColumnType]:
    """The types of sensitive columns and targets, from the data where they are not declared."""
    columns = schema.of_role(Role.SENSITIVE, Role.TARGET)
    return {column.name: column_type(column, rows.schema[column.name]) for column in columns}


def _target_types(spec: Spec, schema: Schema, rows: RawColumns) -> dict[str, ColumnType]:
    """The types of the targets that are released as they are: nominal, unless they are numbers or classes of such."""
    types = _types(schema, rows)
    columns = {column.name: column for column in schema.of_role(Role.TARGET)}
    types_of_targets = {}
    for target in spec.capped_targets:
        if column := columns.get(target.column):
            by_number = bool(target.classes or target.equal_width)
            asked, values = TargetRequest(column.name), rows[column.name]
            numeric = by_number or not has_classes(asked, column, values, spec.method.objective)
            types_of_targets[column.name] = types[column.name] if numeric else column.type or ColumnType.NOMINAL
    return types_of_targets


def manifest_spec(draft: Draft) -> dict[str, Any]:
    """The spec as everybody may know it. It says of which type the targets are: new data must not be read otherwise."""
    rows = draft.raw_columns
    types = _target_types(draft.spec, draft.schema, rows)
    columns = (replace(column, type=types.get(column.name, column.type)) for column in draft.schema.columns)
    return public_tables(draft.spec, Schema(tuple(columns)), types=_types(draft.schema, rows))


def asked_of(draft: Draft) -> dict[str, Any]:
    """What was asked, for the public report."""
    spec, workload = draft.spec, workload_of(draft.spec)
    if draft.learned is not None:
        workload = replace(workload, weights=draft.learned.weights)
    asked = ReleaseRequest(
        spec,
        draft.schema,
        draft.recoding.quasi_identifiers,
        demands=manifest_spec(draft)["privacy"]["diversity"],
        workload=workload,
        aims=aims_of(workload, draft.schema, draft.raw_columns, steered=draft.steered),
        tried=None if draft.exploration is None else len(draft.exploration["candidates"]),
    )
    return asked_content(asked)
