# SPDX-License-Identifier: Apache-2.0
"""What each column of a table is: its role, its type, and what is declared of its values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from anonfit.tables.taxonomy import Taxonomy

__all__ = ["Column", "ColumnType", "Role", "Schema", "Split"]


class Role(StrEnum):
    """What part a column plays in a release."""

    IDENTIFIER = "identifier"
    QUASI_IDENTIFIER = "quasi-identifier"
    SENSITIVE = "sensitive"
    TARGET = "target"
    ENTITY = "entity"
    COUNT = "count"
    SAMPLE_WEIGHT = "sample-weight"
    INSENSITIVE = "insensitive"

    @property
    def is_released_raw(self) -> bool:
        """Whether the column's values are released as they are."""
        return self in (Role.SENSITIVE, Role.TARGET, Role.COUNT, Role.SAMPLE_WEIGHT, Role.INSENSITIVE)


class ColumnType(StrEnum):
    """How a column's values are ordered."""

    CONTINUOUS = "continuous"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATE = "date"


class Split(StrEnum):
    """How a nominal column is divided."""

    MULTIWAY = "multiway"
    BINARY = "binary"
    SUBSET = "subset"


@dataclass(frozen=True, slots=True)
class Column:
    """What is declared of a column; None where the data decides."""

    name: str
    role: Role
    type: ColumnType | None = None
    order: tuple[str, ...] = ()
    domain: tuple[object, ...] = ()
    date_format: str | None = None
    taxonomy: Taxonomy | None = None
    split: Split | None = None
    release: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """The declared columns, in the table's order."""

    columns: tuple[Column, ...] = field(default=())

    def of_role(self, *roles: Role) -> tuple[Column, ...]:
        """The columns that have one of the roles."""
        return tuple(column for column in self.columns if column.role in roles)

    def name_of(self, role: Role) -> str | None:
        """The name of the first column of a role, if there is one."""
        return next((column.name for column in self.columns if column.role == role), None)

    @property
    def quasi_identifiers(self) -> tuple[Column, ...]:
        """The columns that are generalized."""
        return self.of_role(Role.QUASI_IDENTIFIER)

    @property
    def released_raw(self) -> tuple[Column, ...]:
        """The columns whose values are released as they are."""
        return tuple(column for column in self.columns if column.role.is_released_raw)
