# SPDX-License-Identifier: Apache-2.0
"""The released table in a database, beside the folder that holds its evidence: looked at before any work is done, and
written after the folder was audited and published.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anonfit.errors import ReleaseError, SpecError
from anonfit.release.result import Draft
from anonfit.runtime.progress import Stage, silent
from anonfit.spec.model import Spec
from anonfit.tables.addresses import KINDS, Address, is_database, read_address

if TYPE_CHECKING:
    import polars as pl

ROWS_AT_ONCE = 1 << 17
"""Rows that are read at once."""


@dataclass(frozen=True, slots=True)
class Target:
    """A table of a database that is to hold a release."""

    address: Address
    table: str

    @property
    def shown(self) -> str:
        """How it may be called: of a server only the kind."""
        name = Path(self.address.place).name if self.address.is_file else "…"
        return f"{self.address.kind}:{name}#{self.table}"

    @classmethod
    def checked(cls, to: str, table: str | None = None, *, folder: Path = Path(), replace: bool) -> Target:
        """The table that an address names, alone or with a name; refused if it cannot be written."""
        from anonfit.tables.database_writing import check_target

        found = target_of(to, table, folder=folder)
        check_target(found.address, found.table, replace=replace)
        return found

    @classmethod
    def of_spec(cls, spec: Spec, *, replace: bool) -> Target | None:
        """The table that a spec names, if it does."""
        output = spec.output
        if output.to is None:
            if output.table is not None:
                raise SpecError(["output.table is a table of a database: name that by output.to."])
            return None
        return cls.checked(output.to, output.table, folder=spec.folder or Path(), replace=replace)


def target_of(to: str, table: str | None = None, *, folder: Path = Path()) -> Target:
    """The table that an address names, alone or with a name; a relative path starts at a folder."""
    if not is_database(to):
        raise ReleaseError(f"a table is written to a database; its address begins with one of {', '.join(KINDS)}.")
    address = read_address(to, folder=folder, key="output.to")
    if (address.table is None) == (table is None):
        raise SpecError(["output.to is a database, so one of output.table and #table after the address names a table."])
    return Target(address, table or address.table or "")


def deliver(
    draft: Draft, target: Target | None, *, replace: bool, published: Path | None = None, stage: Stage = silent
) -> None:
    """Write a released table to its place in a database, if it has one; `published` is its folder, if it has that."""
    if target is None:
        return
    from anonfit.tables.database_writing import write_to_database

    stage("Writing to the database")
    try:
        write_to_database(target.address, target.table, _frames(draft), draft.dtypes, replace=replace)
    except ReleaseError as error:
        if published is None:
            raise
        raise ReleaseError(f"{published} is published, but {error}") from None


def _frames(draft: Draft) -> Iterator[pl.DataFrame]:
    """The released table, some rows at a time."""
    if draft.stored is None or not draft.is_large:
        return draft.table.iter_slices(ROWS_AT_ONCE)
    return draft.stored.scan().collect_batches(chunk_size=ROWS_AT_ONCE, maintain_order=True)
