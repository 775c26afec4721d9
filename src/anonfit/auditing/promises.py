# SPDX-License-Identifier: Apache-2.0
"""What the spec in a manifest promises of the file: roles, demands and how it was written. Nothing in it is skipped:
a setting that the audit does not know could be a demand that it does not check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from anonfit.auditing.diversity import MODELS, DiversityDemand, read_demand
from anonfit.auditing.request import SetDemand
from anonfit.auditing.settings import Settings
from anonfit.errors import ReleaseError

__all__ = ["RAW_ROLES", "Promise", "read_promise"]

RAW_ROLES = ("target", "sensitive", "insensitive", "count", "sample-weight")
_ROLES = ("identifier", "quasi-identifier", "entity", *RAW_ROLES)
_SECTIONS = ("version", "data", "columns", "privacy", "method", "engine", "output", "workload")
_COLUMN = ("role", "type", "order", "domain", "date_format", "taxonomy", "split", "release")


@dataclass(frozen=True, slots=True)
class Promise:
    """A spec, as far as a file can keep it."""

    roles: Mapping[str, str]
    date_formats: Mapping[str, str | None]
    missing: tuple[str, ...]
    drops_missing: bool
    k: int
    sets: tuple[SetDemand, ...]
    diversity: tuple[DiversityDemand, ...]
    max_confidence: float
    values: Literal["labels", "bounds", "representative"]
    regions: Literal["domain", "observed"]
    order: Literal["sorted", "original"]
    consent: bool

    def having(self, role: str) -> tuple[str, ...]:
        """The columns of a role."""
        return tuple(name for name, its in self.roles.items() if its == role)

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
    for name in ("method", "engine", "workload"):  # how the file was made, which is not for the audit to judge
        found.part(name, {})
    columns = _columns(found)
    data = found.part("data", {}).known(("missing", "missing_policy", "default_role"))
    data.word("default_role", _ROLES, None)  # it gave columns their roles when the file was made; here all have one
    policy = data.word("missing_policy", ("category", "drop", "error"), "category")
    return Promise(
        {name: column.word("role", _ROLES) for name, column in columns.items()},
        {name: column.get("date_format", str, None) for name, column in columns.items()},
        missing=data.texts("missing", ("",)),
        drops_missing=policy == "drop",
        **_demands(found.part("privacy")),
        **_output(found.part("output", {})),
    )


def _columns(spec: Settings) -> dict[str, Settings]:
    given = spec.part("columns")
    columns = {str(name): given.part(name).known(_COLUMN) for name in given.entries}
    for role in ("entity", "count"):
        if sum(column.entries.get("role") == role for column in columns.values()) > 1:
            raise ReleaseError(f"The spec of the manifest has two columns with the role '{role}'.")
    return columns


def _demands(privacy: Settings) -> dict[str, Any]:
    privacy.known(("k", "suppression_limit", "max_confidence", "diversity", "quasi_identifiers"))
    privacy.get("suppression_limit", float, 0.0)  # rows that are withheld are stated in the manifest
    k = privacy.get("k", int)
    return {
        "k": k,
        "sets": _sets(privacy.parts("quasi_identifiers", ()), k),
        "diversity": tuple(_diversity(entry) for entry in privacy.parts("diversity", ())),
        "max_confidence": privacy.get("max_confidence", float, 1.0),
    }


def _diversity(entry: Settings) -> DiversityDemand:
    demand = read_demand(entry.entries)
    entry.known(("column", "model", MODELS[demand.model].parameter))
    return demand


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
