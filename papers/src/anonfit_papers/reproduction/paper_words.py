# SPDX-License-Identifier: Apache-2.0
"""Where numbers come from that the text of a paper at hand does not print: every reading that uses one says so."""

from __future__ import annotations

AUTHORS_K = "The text prints the ends of k only; those between are of the authors' program."
K_BETWEEN = "The text prints the ends of k only; those between are ours."
K_OURS = "Which k the paper's figure shows is not in the text at hand: these are ours."
K_OF_AXIS = (
    "The text prints k = 750 and 1000; the other k are recalled from the axis of the paper's figures, not checked "
    "against them."
)


def from_memory(what: str) -> str:
    """Says which numbers of KDD 2006 are recalled.

    Example:
        >>> from_memory("k = 25")
        'The copy of the paper at hand has lost its digits; from memory, not checked, are: k = 25.'
    """
    return f"The copy of the paper at hand has lost its digits; from memory, not checked, are: {what}."
