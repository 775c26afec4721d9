# SPDX-License-Identifier: Apache-2.0
"""The SQL that selections are written in. Imported only where one is read: it needs sqlglot."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import tokens
from sqlglot.dialects.dialect import Dialect

__all__ = ["SelectionSql"]


class SelectionSql(Dialect):
    """Standard SQL, in which a name may also stand in backticks or square brackets."""

    class Tokenizer(tokens.Tokenizer):
        """Splits a text into words."""

        IDENTIFIERS: ClassVar = ['"', "`", ("[", "]")]
