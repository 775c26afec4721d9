# SPDX-License-Identifier: Apache-2.0
"""What a spec says of k-anonymous decision trees: their settings, and what goes with none of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anonfit.errors import listed
from anonfit.spec.faults import Faults, Numbers
from anonfit.spec.model import MethodSpec, OutputSpec, Spec, WorkloadSpec
from anonfit.spec.refining import REFINING, SPLITTING
from anonfit.tables.schema import Role, Split

__all__ = ["POPULATIONS", "VARIANTS", "check_tree", "read_max_spans", "read_pruning"]

VARIANTS = ("c45", "id3")
POPULATIONS = ("exact", "relative", "majority")
CONFIDENCE = Numbers("a number of at least 0 and at most 0.5 (0: no pruning)", lambda number: 0 <= number <= 0.5)
TREES = ("variant", "pruning", "max_spans")
"""Settings of the method that only trees have."""
DIVERSITY = "entropy-l"
"""The model of diversity that spans can be held to."""


def read_pruning(table: Mapping[str, Any], faults: Faults) -> float | None:
    """The confidence of `method.pruning`; None where it is not given."""
    return faults.number(table, "pruning", "method", CONFIDENCE, 0.0) if "pruning" in table else None


def read_max_spans(table: Mapping[str, Any], faults: Faults) -> int:
    """The most spans of `method.max_spans`."""
    found: int = faults.kind(table, "max_spans", "method", int, "a whole number", MethodSpec().max_spans)
    if found < 1:
        faults.add(f"method.max_spans must be at least 1; found {found}.")
    return max(found, 1)


def check_tree(spec: Spec, faults: Faults) -> None:
    """Faults between the algorithm, its settings, the roles and the workload."""
    if spec.method.algorithm != "tree":
        _check_others(spec, faults)
        return
    default = MethodSpec()
    for names, owner in ((SPLITTING, "mondrian"), (REFINING, "tdr")):
        for name in names:
            if getattr(spec.method, name) != getattr(default, name):
                faults.add(f"method.{name} is for algorithm = '{owner}' only; remove it.")
    for name in ("denoise", "selections", "weights", "features", "selected_by", "weights_from"):
        if getattr(spec.workload, name) != getattr(WorkloadSpec(), name):
            faults.add(f"workload.{name} steers algorithm = 'mondrian' only; remove it, or use that.")
    if spec.privacy.quasi_identifiers:
        faults.add("privacy.quasi_identifiers is for algorithm = 'tdr' only; remove it, or use that.")
    for role in (Role.ENTITY, Role.COUNT, Role.SAMPLE_WEIGHT):
        if held := spec.of_role(role):
            faults.add(
                f"columns.{held[0]}: algorithm = 'tree' takes a row for a person, so no column can have the role "
                f"'{role}'; use mondrian or tdr."
            )
    for name, column in spec.columns.items():
        if column.split in (Split.BINARY, Split.SUBSET):
            faults.add(
                f"columns.{name}.split = '{column.split}': algorithm = 'tree' divides names along their taxonomy; use "
                "multiway, or remove it."
            )
    if spec.privacy.attack_limit < 1:
        faults.add("privacy.attack_limit is not for algorithm = 'tree'; remove it.")
    _check_target(spec, faults)
    _check_diversity(spec, faults)


def _check_others(spec: Spec, faults: Faults) -> None:
    """Settings of trees say nothing about other algorithms."""
    for name in TREES:
        if getattr(spec.method, name) != getattr(MethodSpec(), name):
            faults.add(f"method.{name} is for algorithm = 'tree' only; remove it, or use that.")
    if spec.privacy.class_is_public:
        faults.add("privacy.class_is_public is for algorithm = 'tree' only; remove it, or use that.")
    if spec.output.populations != OutputSpec().populations:
        faults.add("output.populations is for algorithm = 'tree' only; remove it, or use that.")


def _check_target(spec: Spec, faults: Faults) -> None:
    """The one class."""
    if len(spec.targets) != 1:
        if not faults.within("workload.targets") and not faults.unread:
            found = listed(target.column for target in spec.targets) if spec.targets else "none"
            faults.add(f"method.algorithm = 'tree' tells the classes of one target; found {found}.")
        return
    target = spec.targets[0]
    column = spec.columns.get(target.column)
    if column is not None and column.role == Role.QUASI_IDENTIFIER:
        faults.add(
            f"method.algorithm = 'tree': the target '{target.column}' cannot be a quasi-identifier; give it the role "
            "'target', and say privacy.class_is_public = true if someone could know it."
        )
    if target.model is not None:
        faults.add(f"method.algorithm = 'tree' takes no model of the target '{target.column}'; remove the model.")
    if target.equal_width is not None:
        faults.add(
            f"workload.targets: '{target.column}' has equal_width, whose classes tell the smallest and the largest "
            "value; give algorithm = 'tree' classes = [...] instead."
        )


def _check_diversity(spec: Spec, faults: Faults) -> None:
    """Spans can be held to the diversity of the class, if that is not known anyway."""
    asked = spec.privacy.diversity
    classes = {target.column for target in spec.targets}
    for demand in asked:
        if demand.column not in classes:
            faults.add(
                f"privacy.diversity asks {demand.model} of '{demand.column}': algorithm = 'tree' holds spans to the "
                "diversity of the target only."
            )
        elif demand.model != DIVERSITY:
            faults.add(
                f"privacy.diversity asks {demand.model} of '{demand.column}': algorithm = 'tree' knows '{DIVERSITY}' "
                "and privacy.max_confidence only."
            )
    if spec.privacy.class_is_public and (asked or spec.privacy.max_confidence < 1):
        faults.add(
            "privacy.class_is_public: what is known anyway cannot be kept diverse; remove diversity and "
            "max_confidence, or let the class be private."
        )
