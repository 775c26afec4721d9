# SPDX-License-Identifier: Apache-2.0
"""Faults between the workload of a spec, its columns and its method: what would change nothing is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from anonfit.algorithms.demands import not_capped
from anonfit.criteria.objectives import ALGORITHMS, Algorithm, TargetKind
from anonfit.errors import did_you_mean, listed
from anonfit.spec.columns import without_role
from anonfit.spec.kinds import Faults, Setting
from anonfit.spec.model import Spec, TargetSpec
from anonfit.spec.settings import METHOD, QUERY_LOG, SECTIONS, WORKLOAD
from anonfit.tables.schema import ColumnType, NominalSplit, Role
from anonfit.workload.selections import why_not_selectable
from anonfit.workload.targets import not_scaled

# --- the workload -----------------------------------------------------------------------------------------------


def check_workload(spec: Spec, faults: Faults) -> None:
    """Faults between the workload, the columns and the method."""
    twice = [name for name, times in Counter(target.column for target in spec.targets).items() if times > 1]
    if twice:
        faults.add(f"workload.targets names {listed(twice)} twice; one entry says all of a target.")
    for target in spec.workload.targets or ():
        _check_target(target, spec, faults)
    unusable = ", so nobody can select by it; name a quasi-identifier or a column that is released as it is"
    for name in (selection.each for selection in spec.workload.selections if selection.each is not None):
        if _check_released(name, f"workload.selections: each = '{name}'", spec, faults, more=unusable):
            role, is_capped = spec.columns[name].role, spec.privacy.max_confidence < 1
            if why := why_not_selectable(name, role, is_capped=is_capped):
                faults.add(f"workload.selections: each = {why}")
    _check_quasi_identifiers(spec.workload.weights, "workload.weights", spec, faults)
    _check_quasi_identifiers(spec.method.split_on, "method.split_on", spec, faults)
    if len(set(spec.method.split_on)) < len(spec.method.split_on):
        faults.add("method.split_on names a column twice.")
    _check_query_log(spec, faults)
    if not faults.within("workload") and not faults.unread:
        _check_method(spec, faults)


def _check_target(target: TargetSpec, spec: Spec, faults: Faults) -> None:
    name, column = target.column, spec.columns.get(target.column)
    if column is None:
        if name not in faults.unread:
            faults.add(f"workload.targets names {without_role(name, Role.TARGET, spec)}")
        return
    if column.role == Role.SENSITIVE and not spec.method.capabilities.grows_tree:
        faults.add(
            f"workload.targets: '{name}' is sensitive: a column cannot be both protected and predicted, since what "
            "predicts it well tells it of persons; give it the role 'target', or leave it out of the targets."
        )
    elif column.role not in (Role.TARGET, Role.QUASI_IDENTIFIER, Role.SENSITIVE):
        faults.add(
            f"workload.targets: the role of '{name}' is '{column.role}'; a target's role is 'target' (released as it "
            "is) or 'quasi-identifier' (released generalized)."
        )
    by_classes = spec.method.objective.serves == TargetKind.CLASSES or not spec.method.capabilities.splits
    is_class = target.classes or target.equal_width or column.type in (ColumnType.NOMINAL, ColumnType.ORDINAL)
    if not target.scale and (by_classes or is_class):
        faults.add(not_scaled(name))
    setting = "classes" if target.classes else "equal_width" if target.equal_width else None
    if setting and column.type not in (ColumnType.CONTINUOUS, None):
        faults.add(f"workload.targets: {setting} of '{name}' makes classes of numbers; its type is '{column.type}'.")


def _check_released(name: str, said: str, spec: Spec, faults: Faults, *, more: str = "") -> bool:
    """Whether a column that recipients use is released in some way; `said` is how a message begins."""
    column = spec.columns.get(name)
    if column is None:
        # Without a role of its own it has the default one; whether there is such a column, only the data can say.
        if spec.data.default_role is None and name not in faults.unread:
            faults.add(f"{said} has no role; {did_you_mean(name, spec.columns)}")
        return False
    is_released = column.role == Role.QUASI_IDENTIFIER or column.role.is_released_raw
    if not is_released:
        faults.add(f"{said} is not released (its role is '{column.role}'){more}.")
    return is_released


def _check_quasi_identifiers(names: Iterable[str], where: str, spec: Spec, faults: Faults) -> None:
    known = spec.of_role(Role.QUASI_IDENTIFIER)
    for name in names if known else ():
        if name not in known and name not in faults.unread:
            faults.add(f"{where} names '{name}', which is no quasi-identifier; {did_you_mean(name, known)}")


SOME_TARGET = "give a column the role 'target', or list one in workload.targets."


def _check_method(spec: Spec, faults: Faults) -> None:
    """What the method and the demands need of a workload, and what of it would change nothing."""
    method, workload, objective = spec.method, spec.workload, spec.method.objective
    criterion = f"criterion = '{method.criterion}'"
    learns = workload.query_log is not None and workload.query_log.learn
    has_selections = learns or any(selection.weight for selection in workload.selections)
    has_weights = bool(spec.weights or workload.weights_from or learns)
    if objective.needs == "targets" and not spec.targets:
        faults.add(f"method.{criterion} needs a target: {SOME_TARGET}")
    if objective.needs == "selections" and not has_selections:
        faults.add(f"method.{criterion} needs selections with a weight above 0: write them as [[workload.selections]].")
    if workload.weights and not any(workload.weights.get(name, 1.0) for name in spec.of_role(Role.QUASI_IDENTIFIER)):
        faults.add("workload.weights are 0 for every quasi-identifier, so none matters; raise one, or remove them.")
    if objective.needs == "weights" and not has_weights:
        faults.add(f"method.{criterion} needs weights: write them in [workload.weights].")
    is_steered = bool(spec.targets) and (objective.uses_targets or objective.uses_features)
    has_least_gain = METHOD.is_changed(method, "min_gain") and method.min_gain != 0
    if has_least_gain and not is_steered and not objective.uses_features:
        leaves_out = f"{criterion} leaves targets out; remove min_gain, or choose another criterion."
        steers = leaves_out if spec.targets else f"remove it, or {SOME_TARGET}"
        faults.add(f"method.min_gain is a gain in what regions tell of targets, and none steers the splits: {steers}")
    if workload.denoise is True and not spec.targets:
        faults.add(f"workload.denoise has no target to work on: {SOME_TARGET}")
    elif workload.denoise is True and not objective.uses_targets and not objective.explores:
        faults.add(f"workload.denoise does not go with {criterion}, which uses no targets; remove it.")
    is_mondrian = method.capabilities.splits and not objective.uses_features
    steers_no_classes = not is_steered or objective.serves == TargetKind.NUMBERS
    if METHOD.is_changed(method, "candidates") and is_mondrian and steers_no_classes:
        faults.add(
            "method.candidates is where cuts for the classes of targets are looked for, and none steers; remove it."
        )
    elif METHOD.is_changed(method, "candidates") and spec.denoises:
        faults.add(
            "method.candidates is where the classes of rows change, and models of the targets stand in their place; "
            "remove it, or write workload.denoise = false."
        )
    if spec.privacy.max_confidence < 1 and not method.capabilities.grows_tree:
        _check_capped(spec, faults)
    if method.weight_rule not in (None, "first") and not has_weights:
        faults.add(f"method.weight_rule = '{method.weight_rule}' needs weights: write them in [workload.weights].")
    for setting in METHOD.settings:
        other, *words = setting.needs or ("",)
        is_asked = not words or getattr(method, other) in words or faults.within(f"method.{other}")
        if METHOD.is_changed(method, setting.name) and not is_asked:
            named = " or ".join(f"'{word}'" for word in words)
            faults.add(f"method.{setting.name} is for {other} = {named} only; write that, or remove {setting.name}.")


def _check_capped(spec: Spec, faults: Faults) -> None:
    """`max_confidence` needs a target that is released as it is, and classes of each such target."""
    if not spec.targets and not spec.of_role(Role.TARGET):
        faults.add(f"privacy.max_confidence is of targets, and there is none: {SOME_TARGET}")
    elif not spec.of_role(Role.TARGET):
        faults.add(
            "privacy.max_confidence caps targets that are released as they are, and all are quasi-identifiers, which "
            "are released generalized: give a column the role 'target', or remove max_confidence."
        )
    for target in spec.capped_targets:
        column = spec.columns.get(target.column)
        if column is None or column.role != Role.TARGET or target.classes or target.equal_width or column.taxonomy:
            continue
        if column.type in (ColumnType.CONTINUOUS, ColumnType.DATE):
            faults.add(f"privacy.{not_capped(target.column, column.type)}")


def _check_query_log(spec: Spec, faults: Faults) -> None:
    """Faults between a log and the method."""
    log, method = spec.workload.query_log, spec.method
    if log is None:
        return
    if not log.learn:
        for name in ("selections", "minterms"):
            if QUERY_LOG.is_changed(log, name):
                faults.add(
                    f"workload.query_log.{name} is of what is learned, and learn = false; remove one of the two."
                )
        return
    teaches = "workload.query_log teaches"
    if log.minterms and QUERY_LOG.is_changed(log, "selections"):
        faults.add("workload.query_log.minterms stand in place of selections; remove selections, or minterms.")
    if method.objective.is_blind:
        faults.add(f"{teaches} what criterion = 'median' does not use; write learn = false, or 'auto'.")
    if spec.workload.weights_from is not None:
        faults.add(f"{teaches} weights, and workload.weights_from finds them; remove it, or write learn = false.")
    if method.objective.explores:
        faults.add(f"{teaches} weights, and criterion = 'explore' tries its own; write learn = false, or 'auto'.")
    if not method.capabilities.splits:
        faults.add(
            f"{teaches} selections and weights, which algorithm = '{method.algorithm}' does not use; write learn = "
            "false to have the release judged by its queries only, or use 'mondrian'."
        )


# --- the application --------------------------------------------------------------------------------------------


def check_application(spec: Spec, faults: Faults) -> None:
    """Faults between what is said of the application, the columns and the method."""
    for setting in ("features", "selected_by"):
        for name in getattr(spec.workload, setting):
            _check_released(name, f"workload.{setting} names '{name}', which", spec, faults)
    if faults.within("workload") or faults.unread:
        return
    _check_weights(spec, faults)
    _check_named(spec, faults)
    method, objective = spec.method, spec.method.objective
    for name in ("weight_rule", "candidates") if objective.clusters else ():
        if METHOD.is_changed(method, name):
            faults.add(f"method.{name} does not go with criterion = 'clustering', where weights are of dispersion.")
    for name in ("candidates", "weight_rule", "alpha", "min_gain") if objective.explores else ():
        if METHOD.is_changed(method, name) and getattr(method, name) != 0:
            faults.add(f"method.{name} does not go with criterion = 'explore', which tries several; remove it.")
    if objective.explores and spec.workload.denoise is True:
        faults.add(
            "workload.denoise does not go with criterion = 'explore', which tries it for targets of itself; remove it."
        )
    if not objective.explores and not method.capabilities.refines and method.time_budget is not None:
        faults.add("method.time_budget is for algorithm = 'tdr' or criterion = 'explore' only; remove it.")
    if objective.clusters or objective.explores:
        _check_features(spec, faults)


def _check_weights(spec: Spec, faults: Faults) -> None:
    method, workload = spec.method, spec.workload
    if workload.weights_from is not None:
        if workload.weights:
            faults.add("workload.weights_from finds weights, and workload.weights gives them; remove one of the two.")
        if not spec.targets:
            faults.add(f"workload.weights_from = 'accuracy' needs a target: {SOME_TARGET}")
        if method.objective.uses_features:
            faults.add(f"workload.weights_from does not go with criterion = '{method.criterion}'; remove it.")
    for name in ("weights", "weights_from", "features", "selected_by") if method.objective.is_blind else ():
        if getattr(workload, name):
            faults.add(
                f"workload.{name} steers nothing with criterion = 'median', which is blind; remove it, or use another "
                "criterion."
            )
    if method.weight_rule == "combined" and (not spec.targets or not method.objective.uses_targets):
        faults.add(
            "method.weight_rule = 'combined' weighs what is gained for targets, and none steers the splits: name a "
            "target and a criterion that uses it, or use another rule."
        )


def _check_named(spec: Spec, faults: Faults) -> None:
    """Columns that recipients learn from or select by say which quasi-identifiers matter, unless weights do."""
    method, workload, known = spec.method, spec.workload, set(spec.of_role(Role.QUASI_IDENTIFIER))
    if method.objective.clusters and workload.selected_by:
        faults.add("workload.selected_by does not go with criterion = 'clustering', which selects nothing; remove it.")
    if not method.objective.is_blind and not method.objective.uses_features:
        for name in ("features", "selected_by"):
            for other in ("weights", "weights_from"):
                if getattr(workload, name) and getattr(workload, other):
                    faults.add(f"workload.{name} and workload.{other} both say what matters; remove one of the two.")
            named = set(getattr(workload, name))
            if named and not named & known and spec.data.default_role is None:
                faults.add(f"workload.{name} names no quasi-identifier, so it steers nothing; name one, or remove it.")
    if WORKLOAD.is_changed(workload, "clusters") and not method.objective.clusters and not workload.features:
        faults.add(
            "workload.clusters is for criterion = 'clustering', or for features; write one of them, or remove it."
        )


def _check_features(spec: Spec, faults: Faults) -> None:
    """Clusters are made of quasi-identifiers, at least one of which matters."""
    known, features, named = spec.of_role(Role.QUASI_IDENTIFIER), spec.workload.features, spec.method.criterion
    if features and known and not set(features) & set(known):
        faults.add(f"method.criterion = '{named}' needs a quasi-identifier among workload.features.")
        return
    kept = [name for name in known if not features or name in features]
    if kept and all(spec.workload.weights.get(name, 1.0) == 0 for name in kept):
        faults.add(f"method.criterion = '{named}' needs a feature whose weight is above 0.")


# --- against the algorithm --------------------------------------------------------------------------------------


def check_algorithm(spec: Spec, faults: Faults) -> None:
    """Faults between the algorithm, its settings, the roles and the workload."""
    for name, section in SECTIONS.items():
        for setting in section.settings:
            is_used = spec.method.algorithm in setting.algorithms
            if not is_used and section.is_changed(getattr(spec, name), setting.name):
                _refuse_setting(name, setting, spec.method.capabilities, faults)
    if spec.method.capabilities.refines:
        _check_refining(spec, faults)
    if spec.method.capabilities.grows_tree:
        _check_tree(spec, faults)


def _refuse_setting(section: str, setting: Setting, algorithm: Algorithm, faults: Faults) -> None:
    """A setting that the algorithm does not use."""
    place, owner = f"{section}.{setting.name}", setting.algorithms[0]
    if setting.name == "time_budget" and algorithm.splits:
        return  # exploring has one, too
    if section == "engine":
        faults.add(f"{place} is not for method.algorithm = '{algorithm.name}'; leave it out.")
    elif len(setting.algorithms) > 1:
        faults.add(f"{place} is not for algorithm = '{algorithm.name}'; remove it.")
    elif section == "workload":
        faults.add(f"{place} steers algorithm = '{owner}' only; remove it, or use that.")
    else:
        is_far = section == "method" and (ALGORITHMS[owner].splits or algorithm.grows_tree)
        faults.add(f"{place} is for algorithm = '{owner}' only; remove it{'' if is_far else ', or use that'}.")


def _check_refining(spec: Spec, faults: Faults) -> None:
    """What top-down refinement cannot do."""
    is_lossy = len(spec.privacy.quasi_identifiers) > 1 and spec.method.objective.against_loss
    if METHOD.is_changed(spec.method, "average") and not is_lossy:
        faults.add(
            "method.average is of the anonymity that several quasi-identifiers lose by criterion = 'score'; remove it."
        )
    _check_only_target(spec, "refines for", faults)
    for name, column in spec.columns.items():
        if column.split == NominalSplit.BINARY:
            faults.add(f"columns.{name}.split = 'binary' is for algorithm = 'mondrian' only; use multiway or subset.")
    if spec.output.regions == "observed" and spec.privacy.quasi_identifiers:
        faults.add(
            "output.regions = 'observed' tells what the groups of all columns together have, and several "
            "quasi-identifiers do not protect those; use 'domain', or one quasi-identifier."
        )
    known, sets = spec.of_role(Role.QUASI_IDENTIFIER), spec.privacy.quasi_identifiers
    for number, quasi_identifier in enumerate(sets):
        where = f"privacy.quasi_identifiers[{number}]"
        _check_quasi_identifiers(quasi_identifier.columns, where, spec, faults)
    named = {name for quasi_identifier in sets for name in quasi_identifier.columns}
    unnamed = [name for name in known if name not in named]
    if sets and unnamed:
        is_one = len(unnamed) == 1
        words = (
            "is in none of them; add it to one, or give it"
            if is_one
            else "are in none of them; add each to one, or give them"
        )
        faults.add(f"privacy.quasi_identifiers: {listed(unnamed)} {words} another role.")


def _check_tree(spec: Spec, faults: Faults) -> None:
    """What decision trees cannot do."""
    for role in (Role.ENTITY, Role.COUNT, Role.SAMPLE_WEIGHT):
        if held := spec.of_role(role):
            faults.add(
                f"columns.{held[0]}: algorithm = 'tree' takes a row for a person, so no column can have the role "
                f"'{role}'; use mondrian or tdr."
            )
    for name, column in spec.columns.items():
        if column.split in (NominalSplit.BINARY, NominalSplit.SUBSET):
            faults.add(
                f"columns.{name}.split = '{column.split}': algorithm = 'tree' divides names along their taxonomy; use "
                "multiway, or remove it."
            )
    _check_only_target(spec, "tells", faults)
    if len(spec.targets) == 1 and spec.targets[0].equal_width is not None:
        faults.add(
            f"workload.targets: '{spec.targets[0].column}' has equal_width, whose classes tell the smallest and the "
            "largest value; give algorithm = 'tree' classes = [...] instead."
        )
    _check_class(spec, faults)


def _check_only_target(spec: Spec, does: str, faults: Faults) -> None:
    """Refinement and trees are for the classes of one target, which is no quasi-identifier and has no model."""
    algorithm = spec.method.capabilities
    named = f"method.algorithm = '{algorithm.name}'"
    if len(spec.targets) != 1 and not faults.within("workload.targets") and not faults.unread:
        number = listed(target.column for target in spec.targets) if spec.targets else "none"
        faults.add(f"{named} {does} the classes of one target; found {number}.")
    if len(spec.targets) != 1 and algorithm.grows_tree:
        return
    more = ", and say privacy.class_is_public = true if someone could know it" if algorithm.grows_tree else ""
    for target in spec.targets:
        column = spec.columns.get(target.column)
        if column is not None and column.role == Role.QUASI_IDENTIFIER:
            faults.add(
                f"{named}: the target '{target.column}' cannot be a quasi-identifier; give it the role 'target'{more}."
            )
        if target.weight != 1:
            faults.add(
                f"{named}: the weight of '{target.column}' is beside other targets, and it is the only one; remove it."
            )
        if target.model is not None:
            faults.add(f"{named} takes no model of the target '{target.column}'; remove the model.")


def _check_class(spec: Spec, faults: Faults) -> None:
    """Spans can be held to the diversity of the class, if that is not known anyway."""
    classes = {target.column for target in spec.targets}
    for demand in spec.privacy.diversity:
        asks = f"privacy.diversity asks {demand.model} of '{demand.column}': algorithm = 'tree'"
        if demand.column not in classes:
            faults.add(f"{asks} holds spans to the diversity of the target only.")
        elif demand.model != "entropy-l":
            faults.add(f"{asks} knows 'entropy-l' and privacy.max_confidence only.")
    if spec.privacy.class_is_public and spec.privacy.has_models:
        faults.add(
            "privacy.class_is_public: what is known anyway cannot be kept diverse; remove diversity and "
            "max_confidence, or let the class be private."
        )
