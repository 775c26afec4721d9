# SPDX-License-Identifier: Apache-2.0
"""The spec: what is asked, in frozen dataclasses. Read from TOML by spec_reading, checked as a whole, written back by
spec_writing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anonfit.recoding.values import Values
from anonfit.tables.cuts import CutPoints
from anonfit.tables.schema import ColumnType, Role, Split

__all__ = [
    "ColumnSpec",
    "DataSpec",
    "EngineSpec",
    "MethodSpec",
    "OutputSpec",
    "PrivacySpec",
    "Spec",
]

VERSION = 1


@dataclass(frozen=True, slots=True)
class DataSpec:
    """Where the table is and how to read it."""

    source: Any = field(default=None, repr=False)
    missing: tuple[str, ...] = ("",)
    missing_policy: str = "category"
    default_role: Role | None = None
    delimiter: str | None = None
    header: bool | None = None


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """What is declared of a column."""

    role: Role
    type: ColumnType | None = None
    order: tuple[str, ...] = ()
    domain: tuple[Any, ...] = ()
    date_format: str | None = None
    taxonomy: Any = None
    split: Split | None = None
    release: bool = False


@dataclass(frozen=True, slots=True)
class PrivacySpec:
    """What every group must hold."""

    k: int
    suppression_limit: float = 0.0


@dataclass(frozen=True, slots=True)
class MethodSpec:
    """How the regions are found."""

    algorithm: str = "mondrian"
    criterion: str = "auto"
    cut_points: CutPoints = CutPoints.SIMPLEST
    seed: int = 0


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """Where rows are counted."""

    name: str = "auto"


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """What is written."""

    format: str = "parquet"
    values: Values = Values.LABELS
    regions: str = "domain"
    order: str = "sorted"
    consent: bool = False


@dataclass(frozen=True, slots=True)
class Spec:
    """One request for a release."""

    columns: Mapping[str, ColumnSpec]
    privacy: PrivacySpec
    data: DataSpec = field(default_factory=DataSpec)
    method: MethodSpec = field(default_factory=MethodSpec)
    engine: EngineSpec = field(default_factory=EngineSpec)
    output: OutputSpec = field(default_factory=OutputSpec)
    folder: Path | None = None
    """Where relative paths of the spec start: the folder of its file."""

    def of_role(self, role: Role) -> tuple[str, ...]:
        """The names of the columns that are declared to have a role."""
        return tuple(name for name, column in self.columns.items() if column.role == role)
