# SPDX-License-Identifier: Apache-2.0
"""How databases write what a recoding needs: names, texts, numbers, moments and tables of constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from anonfit.errors import RecodingError, did_you_mean
from anonfit.tables.scales import Cut, Scale

DialectName = Literal["postgresql", "duckdb", "sqlite", "mysql", "mariadb", "mssql"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MOMENTS = {
    "postgresql": "CAST(EXTRACT(EPOCH FROM CAST({} AS TIMESTAMP)) * 1000000 AS DOUBLE PRECISION)",
    "duckdb": "CAST(epoch_us(CAST({} AS TIMESTAMP)) AS DOUBLE PRECISION)",
    "sqlite": "(strftime('%s', {0}) * 1000000e0 + substr(strftime('%f', {0}), 4) * 1000e0)",
    "mysql": "CAST(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {}) AS DOUBLE)",
    "mariadb": "CAST(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {}) AS DOUBLE)",
    "mssql": "CAST(DATEDIFF_BIG(MICROSECOND, CAST('1970-01-01' AS DATETIME2), CAST({} AS DATETIME2)) AS FLOAT)",
}
"""Microseconds since 1970."""


def number(value: float) -> str:
    """A number as floating point in every dialect: others take one without an exponent for an exact one."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def moment(cut: Cut) -> float:
    """The microseconds of a date or a moment, as the recoding writes it."""
    found = datetime.fromisoformat(str(cut))
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return float((found - EPOCH) // (datetime.resolution))


def edge(cut: Cut, scale: Scale) -> float:
    """A cut on the line of numbers that values of its scale are put on."""
    return float(cut) if scale.is_number else moment(cut)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One of the kinds of SQL."""

    name: DialectName

    @property
    def is_mysql(self) -> bool:
        """Whether it is MySQL or its sister."""
        return self.name in ("mysql", "mariadb")

    @property
    def recursive(self) -> bool:
        """Whether it walks down a tree by recursion; SQL Server does so a row at a time."""
        return self.name != "mssql"

    @property
    def double(self) -> str:
        """The type of floating point numbers."""
        return "DOUBLE" if self.is_mysql else "FLOAT" if self.name == "mssql" else "DOUBLE PRECISION"

    def quoted(self, name: str) -> str:
        """A name."""
        if self.is_mysql:
            return "`" + name.replace("`", "``") + "`"
        return f"[{name.replace(']', ']]')}]" if self.name == "mssql" else '"' + name.replace('"', '""') + '"'

    def text(self, text: str) -> str:
        """A text; one with signs that a setting of MySQL would change, by its bytes."""
        if self.is_mysql and "\\" in text:
            return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)"
        return ("N'" if self.name == "mssql" else "'") + text.replace("'", "''") + "'"

    def constant(self, value: object) -> str:
        """A value of any kind that is released."""
        if value is None:
            return "NULL"
        return repr(value) if isinstance(value, int | float) else self.text(str(value))

    def key(self, name: str) -> str:
        """A text that is compared: with every sign of it, its case and the blanks at its end."""
        if self.is_mysql:
            return f"X'{name.encode().hex()}'"
        return self.text(f"{name}.") if self.name == "mssql" else self.text(name)

    def key_of(self, value: str) -> str:
        """The expression that is compared with such texts."""
        if self.is_mysql:
            return f"CAST(CONVERT({value} USING utf8mb4) AS BINARY)"
        if self.name == "mssql":
            return f"CONCAT(CAST({value} AS NVARCHAR(3999)), N'.') COLLATE Latin1_General_BIN2"
        return f"CAST({value} AS TEXT)"

    def number_of(self, value: str, scale: Scale) -> str:
        """The expression of a value on the line of numbers."""
        return f"CAST({value} AS {self.double})" if scale.is_number else MOMENTS[self.name].format(value)

    def table(self, name: str, columns: Sequence[str], rows: Sequence[str], *, numbers: Sequence[str] = ()) -> str:
        """A table of constants that stands before a query; each row is what is between its brackets."""
        word = "ROW" if self.name == "mysql" else ""
        listed = ",\n  ".join(f"{word}({row})" for row in rows)
        named = ", ".join(columns)
        if self.name in ("postgresql", "mssql"):  # the first takes constants for exact numbers
            once = " MATERIALIZED" if self.name == "postgresql" else ""
            chosen = ", ".join(f"CAST({one} AS {self.double}) AS {one}" if one in numbers else one for one in columns)
            return f"{name} AS{once} (\n SELECT {chosen} FROM (VALUES\n  {listed}\n ) AS listed({named})\n)"  # noqa: S608
        return f"{name}({named}) AS (\n VALUES\n  {listed}\n)"


def dialect_named(name: str) -> Dialect:
    """The dialect of a name."""
    known = get_args(DialectName)
    if name not in known:
        raise RecodingError(f"dialect = '{name}' is not known; {did_you_mean(name, known)}")
    return Dialect(name)  # type: ignore[arg-type]
