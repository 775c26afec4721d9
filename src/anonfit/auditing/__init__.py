# SPDX-License-Identifier: Apache-2.0
"""The independent audit: recounts a written file and says what it really protects.

It imports nothing of the package but its errors and the compiler; polars and numba are loaded when an audit runs. Its
reader of labels and its files of hashes are there for others, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anonfit.auditing.api import audit as audit
    from anonfit.auditing.hashing import HashShards as HashShards
    from anonfit.auditing.labels import ValueSet as ValueSet
    from anonfit.auditing.labels import read_label as read_label
    from anonfit.auditing.meanings import LabelMeaning as LabelMeaning
    from anonfit.auditing.meanings import LabelTree as LabelTree
    from anonfit.auditing.meanings import LabelType as LabelType
    from anonfit.auditing.measuring import ROWS_AT_ONCE as ROWS_AT_ONCE
    from anonfit.auditing.release_folder import audit_data as audit_data
    from anonfit.auditing.release_folder import audit_release as audit_release
    from anonfit.auditing.request import THRESHOLDS as THRESHOLDS
    from anonfit.auditing.result import Audit as Audit
    from anonfit.auditing.result import Finding as Finding
    from anonfit.auditing.tree_folder import TreeAudit as TreeAudit
    from anonfit.auditing.trees import audit_tree as audit_tree

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

_HOMES = {
    "ROWS_AT_ONCE": "measuring",
    "THRESHOLDS": "request",
    "Audit": "result",
    "Finding": "result",
    "HashShards": "hashing",
    "LabelMeaning": "meanings",
    "LabelTree": "meanings",
    "LabelType": "meanings",
    "TreeAudit": "tree_folder",
    "ValueSet": "labels",
    "audit": "api",
    "audit_data": "release_folder",
    "audit_release": "release_folder",
    "audit_tree": "trees",
    "read_label": "labels",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
