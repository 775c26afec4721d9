# SPDX-License-Identifier: Apache-2.0
"""What the spec in a manifest promises of the file: roles, demands and how it was written. Nothing in it is skipped:
a setting that the audit does not know could be a demand that it does not check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from anonfit.auditing.demands import DiversityDemand, demand_settings, read_demand, read_targets
from anonfit.auditing.meanings import TYPES
from anonfit.auditing.models import MODELS
from anonfit.auditing.request import SetDemand
from anonfit.auditing.settings import Settings
from anonfit.errors import ReleaseError, listed

__all__ = ["RAW_ROLES", "Promise", "read_promise"]

RAW_ROLES = ("target", "sensitive", "insensitive", "count", "sample-weight")
_ROLES = ("identifier", "quasi-identifier", "entity", *RAW_ROLES)
_SECTIONS = ("version", "decisions", "data", "columns", "privacy", "method", "engine", "output", "workload")
_COLUMN = ("role", "type", "order", "domain", "date_format", "taxonomy", "split", "release", "diversity", "reason")
_QUASI = "quasi-identifier"
_METHOD = (
    *("algorithm", "criterion", "cut_points", "candidates", "split_on", "weight_rule", "alpha", "beta", "gamma"),
    *("min_gain", "average", "suppression", "zero_gain", "variant", "pruning"),
)
_WORKLOAD = ("targets", "denoise", "selections", "weights", "features", "selected_by", "weights_from", "clusters")


@dataclass(frozen=True, slots=True)
class Promise:
    """A spec, as far as a file can keep it."""

    roles: Mapping[str, str]
    date_formats: Mapping[str, str | None]
    missing: tuple[str, ...]
    drops_missing: bool
    tests_raw_columns: bool  # made by a tree, which may test them
    suppression_limit: float
    max_confidence: float
    attack_limit: float
    k: int
    sets: tuple[SetDemand, ...]
    diversity: tuple[DiversityDemand, ...]
    targets: tuple[DiversityDemand, ...]
    values: Literal["labels", "bounds", "representative"]
    regions: Literal["domain", "observed"]
    order: Literal["sorted", "original"]
    consent: bool

    def having(self, role: str) -> tuple[str, ...]:
        """The columns of a role."""
        return tuple(name for name, its in self.roles.items() if its == role)

    @property
    def tested(self) -> tuple[str, ...]:
        """The raw columns that a tree may have tested, whose missing values it had to know."""
        roles = ("sensitive", "insensitive") if self.tests_raw_columns else ()
        return tuple(name for name, its in self.roles.items() if its in roles)

    @property
    def complete(self) -> tuple[str, ...]:
        """The raw columns that rows with a missing value were left out for, if any were."""
        tested = ("sensitive", "insensitive", "target") if self.tests_raw_columns else ()
        return tuple(name for name, its in self.roles.items() if its in tested)

    @property
    def least(self) -> int:
        """The persons that a public figure of raw data covers: the largest k."""
        return max([self.k, *(demand.k or self.k for demand in self.sets)])

    @property
    def claims(self) -> tuple[str, ...]:
        """What is promised of the groups, in words."""
        sets = self.sets or (SetDemand(self.having("quasi-identifier"), self.k),)
        count, entity = self.only("count"), self.only("entity")
        persons = f" (persons told apart by '{entity}')" if entity else ""
        persons = f" (persons as '{count}' counts them)" if count else persons
        found = [f"k = {demand.k} of {', '.join(demand.columns)}{persons}" for demand in sets]
        for demand in self.diversity:
            parameters = ", ".join(f"{name} = {value:g}" for name, value in demand.parameters.items())
            found.append(f"{demand.model} ({parameters}) of {demand.column}")
        if self.targets:
            found.append(f"max_confidence {self.max_confidence:g} of {', '.join(one.column for one in self.targets)}")
        if self.suppression_limit:
            found.append(f"at most {self.suppression_limit:.4g} of the rows withheld")
        return tuple(found)

    def only(self, role: str) -> str | None:
        """The column of a role that at most one column has."""
        return next(iter(self.having(role)), None)


def read_promise(spec: object) -> Promise:
    """The promises of a spec, given as the mapping in manifest.json."""
    if not isinstance(spec, Mapping):
        raise ReleaseError("The spec of the manifest is not an object.")
    found = Settings(spec, "the spec of the manifest", ReleaseError).known(_SECTIONS)
    if found.get("version", int, 1) != 1:
        raise ReleaseError("The spec of the manifest is of a version this audit does not know: use a newer anonfit.")
    columns = _columns(found)
    found.part("engine", {}).plain(("name",), ())
    method = found.part("method", {}).plain(_METHOD, columns)  # how it was made, which is not for the audit to judge
    privacy, workload = found.part("privacy"), found.part("workload", {}).known(_WORKLOAD)
    diversity, targets = _diversity(privacy), _targets(privacy, workload, columns)
    _check_workload(workload, columns)
    data = found.part("data", {}).known(("missing", "missing_policy", "default_role"))
    data.word("default_role", _ROLES, None)  # it gave columns their roles when the file was made; here all have one
    policy = data.word("missing_policy", ("category", "drop", "error"), "category")
    return Promise(
        {name: column.word("role", _ROLES) for name, column in columns.items()},
        {name: column.get("date_format", str, None) for name, column in columns.items()},
        missing=data.texts("missing", ("",)),
        drops_missing=policy == "drop",
        tests_raw_columns=method.entries.get("algorithm") == "tree",
        diversity=tuple(_declared(demand, columns) for demand in diversity),
        targets=tuple(_declared(demand, columns) for demand in targets),
        **_demands(privacy, [name for name, column in columns.items() if column.entries.get("role") == _QUASI]),
        **_output(found.part("output", {})),
    )


def _columns(spec: Settings) -> dict[str, Settings]:
    given = spec.part("columns")
    columns = {str(name): given.part(name).known(_COLUMN) for name in given.entries}
    for role in ("entity", "count"):
        if sum(column.entries.get("role") == role for column in columns.values()) > 1:
            raise ReleaseError(f"The spec of the manifest has two columns with the role '{role}'.")
    return columns


def _check_workload(workload: Settings, columns: Mapping[str, Settings]) -> None:
    """What the file is for is not judged either: columns with numbers, and plain settings."""
    workload.part("weights", {}).plain(columns, ())
    targets = workload.get("targets", list, [])
    for demand in read_targets(targets, 1 / 2) if targets else ():  # all that is asked of them is that they can be read
        if demand.column not in columns:
            raise ReleaseError(
                f"The spec of the manifest has the target '{demand.column}', which is none of its columns."
            )
    rest = {name: value for name, value in workload.entries.items() if name not in ("weights", "targets")}
    Settings(rest, workload.label, ReleaseError).plain(_WORKLOAD, columns)


def _demands(privacy: Settings, quasi_identifiers: Sequence[str]) -> dict[str, Any]:
    privacy.known(
        (
            "k",
            "suppression_limit",
            "max_confidence",
            "diversity",
            "quasi_identifiers",
            "class_is_public",
            "attack_limit",
        )
    )
    privacy.get("class_is_public", bool, False)
    limit, k = privacy.get("suppression_limit", float, 0.0), privacy.get("k", int)
    if not 0 <= limit <= 1:
        raise ReleaseError("'suppression_limit' in the spec of the manifest is no fraction of the rows.")
    sets = _sets(privacy.parts("quasi_identifiers", ()), k)
    if "quasi_identifiers" in privacy.entries and not sets:
        raise ReleaseError("The spec of the manifest asks for several quasi-identifiers and names none.")
    for columns in (demand.columns for demand in sets):
        if not columns or not set(columns) <= set(quasi_identifiers) or len(set(columns)) < len(columns):
            raise ReleaseError(
                "A set of quasi-identifiers in the spec of the manifest is empty, names a column twice or one that is "
                "none: what it claims of groups means nothing."
            )
    left = [name for name in quasi_identifiers if sets and all(name not in demand.columns for demand in sets)]
    if left:
        raise ReleaseError(
            f"The spec of the manifest claims nothing of the quasi-identifier(s) {listed(left)}: they are in none of "
            "its sets of quasi-identifiers."
        )
    confidence, attack = (privacy.get(name, float, 1.0) for name in ("max_confidence", "attack_limit"))
    return {"k": k, "sets": sets, "suppression_limit": limit, "max_confidence": confidence, "attack_limit": attack}


def _diversity(privacy: Settings) -> list[DiversityDemand]:
    """The demands on sensitive columns."""
    found = []
    for entry in privacy.parts("diversity", ()):
        if entry.entries.get("model") in MODELS:
            entry.known(demand_settings(entry.entries["model"]))
        found.append(read_demand(entry.entries))
    return found


def _targets(privacy: Settings, workload: Settings, columns: Mapping[str, Settings]) -> tuple[DiversityDemand, ...]:
    """The demands on targets, if the spec limits what groups may tell of them: those that the workload lists, and all
    other columns of that role.
    """
    most = privacy.get("max_confidence", float, 1.0)
    if most == 1:
        return ()
    listed = workload.get("targets", list, [])
    named = [target.get("column") if isinstance(target, Mapping) else target for target in listed]
    every = [name for name, column in columns.items() if column.entries.get("role") == "target"]
    return read_targets([*listed, *(name for name in every if name not in named)], most)


def _declared(demand: DiversityDemand, columns: Mapping[str, Settings]) -> DiversityDemand:
    """A demand with what the spec declares of its column."""
    if demand.column not in columns:
        raise ReleaseError(
            f"The spec of the manifest asks something of '{demand.column}', which is none of its columns."
        )
    column = columns[demand.column]
    return demand.with_type(column.word("type", TYPES, None), column.get("date_format", str, None))


def _sets(entries: Sequence[Settings], k: int) -> tuple[SetDemand, ...]:
    return tuple(SetDemand(entry.known(("columns", "k")).texts("columns"), entry.get("k", int, k)) for entry in entries)


def _output(output: Settings) -> dict[str, Any]:
    output.known(("format", "values", "regions", "order", "consent"))
    output.word("format", ("csv", "parquet", "arrow"), "parquet")
    return {
        "values": output.word("values", ("labels", "bounds", "representative"), "labels"),
        "regions": output.word("regions", ("domain", "observed"), "domain"),
        "order": output.word("order", ("sorted", "original"), "sorted"),
        "consent": output.get("consent", bool, False),
    }
