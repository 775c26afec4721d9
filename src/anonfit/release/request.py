# SPDX-License-Identifier: Apache-2.0
"""What was asked of a release, as its public report says it (demands, purpose, and the criterion really used), and as
its audit and its manifest are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anonfit.algorithms.demands import has_classes, redundant, requirements_of
from anonfit.algorithms.exploring import RULE
from anonfit.criteria.objectives import TargetKind
from anonfit.errors import listed
from anonfit.privacy.catalogue import MODELS
from anonfit.release.bind import demands_of, workload_of
from anonfit.release.draft import Draft
from anonfit.release.run import FIGURES
from anonfit.report.content import nothing_asked
from anonfit.report.words import joined
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
RULES = {
    "first": "the weight decides first, then the width",
    "product": "weight times what a split is worth",
    "blend": "a mean of the weight and what a split is worth",
    "naive": "the weight decides first, then the width, whatever a split gains",
    "probabilistic": "drawn at random, the likelier the more weight times what a split is worth",
    "combined": "what a split gains, weight times width, and how evenly it divides",
}


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
    "Groups were divided only where that tells more of the targets than one more group costs those who learn from it. "
    "Other uses get less detail for that: min_gain = 0 divides further."
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
        "sentences": [*_demands(asked), *_purpose(asked)],
        "values": str(spec.output.values),
        "regions": spec.output.regions,
        "order": spec.output.order,
        "cut_points": str(spec.method.cut_points),
    }


def _demands(asked: ReleaseRequest) -> list[str]:
    """A sentence for each demand."""
    privacy, sentences = asked.spec.privacy, []
    alone = {"columns": asked.quasi_identifiers, "k": privacy.k, "follows_from": None}
    several = asked.several or [alone]
    for entry in several:
        k, implying = entry["k"], entry["follows_from"]
        sentence = f"k = {k}: every combination of {joined(entry['columns'])} is shared by at least {k} persons."
        if implying is not None:
            sentence += f" This follows from what is asked of {joined(several[implying]['columns'])}."
        sentences.append(sentence)
    for demand in asked.demands:
        model, settings = MODELS[demand["model"]], []
        for parameter in model.parameters:
            value = demand.get(parameter.name)
            if value is not None and value is not False:
                is_number = isinstance(value, int | float) and value is not True
                text = f"{value:g}" if is_number else "true" if value is True else str(value)
                settings.append(f"{parameter.name} = {text}")
        sentences.append(f"{demand['column']}: {demand['model']} with {', '.join(settings)}: {model.words}.")
    sentences += [nothing_asked(name, reason) for name, reason in asked.waived.items()]
    released = [column.name for column in asked.schema.of_role(Role.TARGET)]
    capped = [target.column for target in asked.spec.capped_targets if target.column in released]
    if capped and privacy.max_confidence < 1:
        sentences.append(
            f"{joined(capped)}: no class has more than {privacy.max_confidence:.4g} of a group (max_confidence)."
        )
    if privacy.attack_limit < 1:
        sentences.append(
            "A model learned from all groups together is sure of the sensitive value of at most "
            f"{privacy.attack_limit:.4g} of the persons (attack_limit)."
        )
    return sentences


def _purpose(asked: ReleaseRequest) -> list[str]:
    """Sentences on what the release is for and how splits were chosen."""
    workload = asked.workload
    aims = [aim for aim in asked.aims if aim.is_used]
    sentences = []
    if asked.tried is not None:  # the ways themselves are not public
        sentences.append(
            f"{UNKNOWN_USE}{asked.tried} ways to weigh columns were tried and held against each other by their figures "
            f"({', '.join(FIGURES.values())}). Published is, {RULE}. The others are not published."
        )
    if aims:
        sentences.append(f"Made to predict {joined([_aim_words(aim) for aim in aims])}{_denoised(workload, aims)}.")
    if workload.used_selections:
        sentences.append(
            f"Made to answer {len(workload.used_selections)} selection(s); their texts are not public, but cuts may "
            "lie where they begin and end."
        )
    if workload.objective.clusters:
        features = feature_weights(workload, list(asked.quasi_identifiers))
        words = [f"{name} (weight {weight:g})" if weight != 1 else name for name, weight in features.items()]
        sentences.append(f"Made for clustering: rows of a region are to be alike in {joined(words)}.")
    if _has_weights(workload):
        weights = ", ".join(f"{name} {weight:g}" for name, weight in workload.weights.items())
        rest = "" if set(asked.quasi_identifiers) <= set(workload.weights) else "; others 1"
        learned = ", found from how well each column alone predicts" if workload.weights_from else ""
        sentences.append(f"Columns matter by their weights ({weights}{rest}{learned}): {RULES[workload.weight_rule]}.")
    sentences += _unused(asked)
    if not sentences:
        sentences.append("No purpose was stated: every column counts the same.")
    if workload.split_on:
        sentences.append(f"Only {joined(workload.split_on)} may be split.")
    if workload.min_gain is None and aims:
        sentences.append(STOPPED)
    elif workload.min_gain and (aims or workload.objective.clusters):
        sentences.append(f"A split that gains less than {workload.min_gain:g} is not made.")
    if asked.grown_by is not None:
        how = (
            f"Regions are the spans of a k-anonymous decision tree ({asked.grown_by}): what it can make of a person's "
            "quasi-identifiers, whatever the person's other values are."
        )
    elif asked.refined_by is None:
        how = f"Splits were chosen by {asked.algorithm}."
    else:
        how = f"Every column was refined by itself, one refinement after another, chosen by {asked.refined_by}."
    return [*sentences, how]


def _unused(asked: ReleaseRequest) -> list[str]:
    """Sentences on what was declared of the purpose and did not steer the splits."""
    workload = asked.workload
    sentences = []
    if unused := [aim.request.column for aim in asked.aims if not aim.is_used]:
        denoised = "; so they were not denoised" if workload.denoise and len(unused) == len(asked.aims) else ""
        sentences.append(f"Declared as targets without steering the splits: {listed(unused)}{denoised}.")
    if workload.selections and not workload.used_selections:
        sentences.append(
            f"Declared without steering the splits: {len(workload.selections)} selection(s), whose texts are not "
            "public."
        )
    return sentences


def _denoised(workload: Workload, aims: Sequence[Aim]) -> str:
    """Which targets are denoised: a model that is given is taken as it is."""
    denoised = [aim.request.column for aim in aims if aim.request.model is None]
    if not workload.denoise or not denoised:
        return ""
    which = "" if len(denoised) == len(aims) else f"{joined(denoised)} "
    return f", {which}judged by the predictions of models fitted on other rows"


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
