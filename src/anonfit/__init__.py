# SPDX-License-Identifier: Apache-2.0
"""anonfit: anonymous releases of tables about people that stay useful for a stated purpose."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anonfit.algorithms.trees.nearest import nearest_safe_tree
    from anonfit.api import Release, TreeRelease, anonymize, load, load_tree, run, run_tree
    from anonfit.auditing.api import audit
    from anonfit.auditing.result import Audit
    from anonfit.auditing.tree_folder import TreeAudit
    from anonfit.errors import (
        AnonfitError,
        AuditFailed,
        DataError,
        DemandError,
        EngineError,
        Infeasible,
        MissingPackage,
        RecodingError,
        ReleaseError,
        RequestError,
        SpecError,
        TaxonomyError,
        TooManyGroups,
    )
    from anonfit.estimators.anonymizer import Anonymizer
    from anonfit.estimators.k_anonymous_tree import KAnonymousTreeClassifier
    from anonfit.estimators.region_encoder import RegionEncoder
    from anonfit.evaluation.comparing import compare
    from anonfit.evaluation.grid import evaluate
    from anonfit.evaluation.result import Evaluation
    from anonfit.recoding.recoding import Recoding
    from anonfit.release.folder import audit_release, audit_tree
    from anonfit.spec.model import Column, Spec
    from anonfit.spec.parse import parse_spec, read_spec
    from anonfit.spec.write import propose, write_spec
    from anonfit.tables import taxonomy_builders as taxonomies
    from anonfit.tables.taxonomy import Taxonomy
    from anonfit.tables.taxonomy_files import read_taxonomy, write_taxonomy

__all__ = [
    "AnonfitError",
    "Anonymizer",
    "Audit",
    "AuditFailed",
    "Column",
    "DataError",
    "DemandError",
    "EngineError",
    "Evaluation",
    "Infeasible",
    "KAnonymousTreeClassifier",
    "MissingPackage",
    "Recoding",
    "RecodingError",
    "RegionEncoder",
    "Release",
    "ReleaseError",
    "RequestError",
    "Spec",
    "SpecError",
    "Taxonomy",
    "TaxonomyError",
    "TooManyGroups",
    "TreeAudit",
    "TreeRelease",
    "__version__",
    "anonymize",
    "audit",
    "audit_release",
    "audit_tree",
    "compare",
    "evaluate",
    "load",
    "load_tree",
    "nearest_safe_tree",
    "parse_spec",
    "propose",
    "read_spec",
    "read_taxonomy",
    "run",
    "run_tree",
    "taxonomies",
    "write_spec",
    "write_taxonomy",
]

_NAMES = {
    "anonfit.algorithms.trees.nearest": ("nearest_safe_tree",),
    "anonfit.api": ("Release", "TreeRelease", "anonymize", "load", "load_tree", "run", "run_tree"),
    "anonfit.auditing": ("Audit", "TreeAudit", "audit"),
    "anonfit.estimators.anonymizer": ("Anonymizer",),
    "anonfit.estimators.k_anonymous_tree": ("KAnonymousTreeClassifier",),
    "anonfit.estimators.region_encoder": ("RegionEncoder",),
    "anonfit.evaluation.comparing": ("compare",),
    "anonfit.evaluation.grid": ("evaluate",),
    "anonfit.evaluation.result": ("Evaluation",),
    "anonfit.recoding.recoding": ("Recoding",),
    "anonfit.release.folder": ("audit_release", "audit_tree"),
    "anonfit.spec.model": ("Column", "Spec"),
    "anonfit.spec.parse": ("parse_spec", "read_spec"),
    "anonfit.spec.write": ("propose", "write_spec"),
    "anonfit.tables.taxonomy": ("Taxonomy",),
    "anonfit.tables.taxonomy_files": ("read_taxonomy", "write_taxonomy"),
}
"""The public names of each module; all others are errors."""
_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package costs nothing."""
    if name == "__version__":
        from importlib.metadata import version

        return version("anonfit")
    if name == "taxonomies":
        return import_module("anonfit.tables.taxonomy_builders")
    if name not in __all__:
        raise AttributeError(f"module 'anonfit' has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "anonfit.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
