# SPDX-License-Identifier: Apache-2.0
"""The independent audit: recounts a written file and says what it really protects.

It imports nothing of the package but its errors and the compiler; polars and numba are loaded when an audit runs. Its
reader of labels and its files of hashes are there for others, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anonfit.auditing.api import audit, audit_data, audit_release
    from anonfit.auditing.hashing import HashShards
    from anonfit.auditing.labels import ValueSet, read_label
    from anonfit.auditing.meanings import LabelMeaning, LabelTree, LabelType
    from anonfit.auditing.measuring import ROWS_AT_ONCE
    from anonfit.auditing.request import THRESHOLDS
    from anonfit.auditing.result import Audit, Finding
    from anonfit.auditing.tree_folder import TreeAudit
    from anonfit.auditing.trees import audit_tree

__all__ = [
    "ROWS_AT_ONCE",
    "THRESHOLDS",
    "Audit",
    "Finding",
    "HashShards",
    "LabelMeaning",
    "LabelTree",
    "LabelType",
    "TreeAudit",
    "ValueSet",
    "audit",
    "audit_data",
    "audit_release",
    "audit_tree",
    "read_label",
]
_NAMES = {
    "api": ("audit", "audit_data", "audit_release"),
    "hashing": ("HashShards",),
    "labels": ("ValueSet", "read_label"),
    "meanings": ("LabelMeaning", "LabelTree", "LabelType"),
    "measuring": ("ROWS_AT_ONCE",),
    "request": ("THRESHOLDS",),
    "result": ("Audit", "Finding"),
    "tree_folder": ("TreeAudit",),
    "trees": ("audit_tree",),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
