# SPDX-License-Identifier: Apache-2.0
"""The disclosure rule: a figure computed on raw data is disclosed only if it covers at least so many persons, and
its complement none or as many. Every figure of a report passes one `Disclosure`, with the persons that it covers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Disclosed = int | str
Number = TypeVar("Number", int, NDArray[np.int64])


@dataclass(frozen=True, slots=True)
class Disclosure:
    """What may be disclosed to whom.

    `min_persons` is k for what everybody may read, and 0 for the owner of the data, from whom nothing is hidden. Where
    a person may have several rows, numbers of rows say nothing of how many persons they cover, and the recipients, who
    can count the released rows, could subtract from them any exact number of persons.
    """

    min_persons: int
    rows_are_persons: bool = True

    def below_threshold(self, persons: int) -> bool:
        """Whether there are some persons, but too few to give their number."""
        return 0 < persons < self.min_persons

    def may_disclose(self, persons: int, of: int) -> bool:
        """Whether a figure may be disclosed that sets some of all persons apart from the others."""
        return not self.below_threshold(persons) and not self.below_threshold(of - persons)

    def may_disclose_rows(self, rows: int, of: int) -> bool:
        """The same of a figure that sets some of all rows apart: k of them may be one person's."""
        if self.min_persons and not self.rows_are_persons:
            return rows in (0, of)
        return self.may_disclose(rows, of)

    def rounded(self, persons: Number) -> Number:
        """Numbers of persons that are large enough to be disclosed: rounded down to multiples of `min_persons` where
        persons may have several rows.
        """
        if self.rows_are_persons or not self.min_persons:
            return persons
        return persons // self.min_persons * self.min_persons

    def number(self, persons: int) -> Disclosed:
        """A number of persons."""
        return f"fewer than {self.min_persons}" if self.below_threshold(persons) else self.rounded(persons)

    def rows(self, rows: int, persons: int) -> Disclosed:
        """A number of rows of the input: not exactly where they are of few persons."""
        return f"fewer than {self.min_persons}" if self.below_threshold(min(rows, persons)) else rows

    def share(self, persons: int, of: int) -> dict[str, Any]:
        """Some of all persons, in the words in which the audit tells such figures."""
        if self.below_threshold(persons):
            return {"persons": f"fewer than {self.min_persons}", "share": f"fewer than {self.min_persons} persons"}
        if self.below_threshold(of - persons):
            words = f"all but fewer than {self.min_persons}"
            return {"persons": words, "share": f"{words} persons"}
        persons, of = self.rounded(persons), self.rounded(of)
        return {"persons": persons, "share": persons / of if of else 0.0}


EVERYTHING = Disclosure(0)
"""For the owner of the data."""
