# SPDX-License-Identifier: Apache-2.0
"""Random specs that are right, with all that a spec can say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime

from hypothesis import strategies as st

from anonfit.spec.model import (
    ColumnSpec,
    DataSpec,
    DiversitySpec,
    EngineSpec,
    MethodSpec,
    OutputSpec,
    PrivacySpec,
    SelectionSpec,
    Spec,
    TargetSpec,
    WorkloadSpec,
)
from anonfit.tables.scales import CutPoints
from anonfit.tables.schema import ColumnType, NominalSplit, Role

WORDS = st.text(max_size=6)
NAMES = WORDS.filter(bool)
SHOWN = st.characters(categories=["L", "N", "P", "S", "Zs"]).filter(lambda sign: sign.isprintable() or sign.isspace())
REASONS = st.text(SHOWN, min_size=1, max_size=9).filter(str.strip)
FORMS = st.sampled_from(["%d.%m.%Y", "%Y", "%d %b %y", "%Y-%m-%dT%H:%M"])
ENDS = st.sampled_from(
    [
        (0, 120),
        (-1.5, 1e22),
        (date(2020, 1, 1), date(2024, 1, 1)),
        (datetime(2020, 1, 1, 5), datetime(2024, 1, 1)),
        ("2020-01-01", "2024-01-01"),
    ]
)


@st.composite
def column_specs(draw: st.DrawFn) -> ColumnSpec:
    role = draw(
        st.sampled_from([Role.QUASI_IDENTIFIER, Role.SENSITIVE, Role.TARGET, Role.INSENSITIVE, Role.IDENTIFIER])
    )
    if role == Role.SENSITIVE and draw(st.booleans()):
        return draw(
            st.sampled_from(
                [ColumnSpec(role, ColumnType.ORDINAL, order=("low", "high")), ColumnSpec(role, taxonomy="a b.csv")]
            )
        )
    if role != Role.QUASI_IDENTIFIER:
        if role == Role.IDENTIFIER:
            return ColumnSpec(role)
        codes = tuple(draw(st.lists(st.sampled_from(["-9", "999", "unknown"]), unique=True)))
        return ColumnSpec(role, release=draw(st.booleans()), missing=codes)
    kind = draw(st.none() | st.sampled_from(ColumnType))
    if kind == ColumnType.ORDINAL:
        return ColumnSpec(role, kind, order=tuple(draw(st.lists(st.text(max_size=5), min_size=1, unique=True))))
    if kind in (ColumnType.CONTINUOUS, ColumnType.DATE):
        return ColumnSpec(
            role,
            kind,
            domain=draw(st.just(()) | ENDS),
            date_format=draw(st.none() | FORMS) if kind == ColumnType.DATE else None,
        )
    if draw(st.booleans()):
        tree = {
            "name": "*",
            "children": [
                {"name": name}
                for name in draw(st.lists(NAMES.filter(lambda name: name != "*"), min_size=1, unique=True))
            ],
        }
        return ColumnSpec(
            role,
            kind,
            taxonomy=draw(st.sampled_from(["a b.csv", tree])),
            split=draw(st.none() | st.sampled_from([NominalSplit.MULTIWAY, NominalSplit.BINARY])),
        )
    return ColumnSpec(
        role,
        kind,
        split=draw(st.none() | st.sampled_from(NominalSplit)),
        domain=tuple(draw(st.lists(NAMES, unique=True))),
    )


WEIGHTS = st.floats(0, 1e9) | st.integers(0, 9).map(float)
NUMBERS = st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def demands(draw: st.DrawFn, columns: Mapping[str, ColumnSpec]) -> tuple[DiversitySpec, ...]:
    """Demands on sensitive columns, t-closeness among them where it is what a taxonomy or order is for."""
    names = [name for name, column in columns.items() if column.role == Role.SENSITIVE]
    some = st.one_of(
        st.builds(lambda l: ("distinct-l", {"l": l}), st.integers(2, 99)),  # noqa: E741
        st.builds(lambda l: ("entropy-l", {"l": l}), st.floats(1.1, 99)),  # noqa: E741
        st.builds(lambda c, l: ("recursive-cl", {"c": c, "l": l}), st.floats(0.1, 9), st.integers(2, 9)),  # noqa: E741
        st.builds(lambda t: ("t-closeness", {"t": t, "distance": "equal"}), st.floats(0, 0.9)),
        st.builds(lambda beta, on: ("beta-likeness", {"beta": beta, "enhanced": on}), st.floats(0.1, 9), st.booleans()),
    )
    found = [
        DiversitySpec(name, model, parameters)  # type: ignore[arg-type]
        for name in names
        for model, parameters in draw(st.lists(some, max_size=2))
    ]
    found += [
        DiversitySpec(name, "t-closeness", {"t": 0.25})
        for name in names
        if columns[name].order or columns[name].taxonomy
    ]
    return tuple(draw(st.permutations(found)))


@st.composite
def workloads(draw: st.DrawFn, columns: Mapping[str, ColumnSpec]) -> WorkloadSpec:
    """A workload over columns, among which is at least one quasi-identifier."""
    links = [name for name, column in columns.items() if column.role == Role.QUASI_IDENTIFIER]
    targets = [name for name, column in columns.items() if column.role == Role.TARGET] + links
    guarded = (Role.SENSITIVE, Role.TARGET)  # a target that is capped cannot be selected by
    raw = [name for name, column in columns.items() if column.role.is_released_raw and column.role not in guarded]
    raw += links
    listed = draw(st.none() | st.lists(st.sampled_from(targets), unique=True))

    def target(name: str) -> TargetSpec:
        is_number = columns[name].type in (ColumnType.CONTINUOUS, None)
        kind = draw(st.sampled_from(["raw", "classes", "equal_width"])) if is_number else "raw"
        classes = sorted({float(number) for number in draw(st.lists(NUMBERS, min_size=1, max_size=3))})
        return TargetSpec(
            name,
            classes=tuple(classes) if kind == "classes" else (),
            equal_width=draw(st.integers(2, 9)) if kind == "equal_width" else None,
            weight=draw(st.floats(1e-9, 1e9)),
            scale=kind != "raw"
            or columns[name].type in (ColumnType.NOMINAL, ColumnType.ORDINAL)
            or draw(st.booleans()),
        )

    where = st.builds(SelectionSpec, where=st.text(min_size=1).filter(str.strip), weight=WEIGHTS)
    each = st.builds(SelectionSpec, each=st.sampled_from(raw), weight=WEIGHTS)
    found = None if listed is None else tuple(target(name) for name in listed)
    has_targets = bool(found) or (found is None and len(targets) > len(links))
    some_weight = st.dictionaries(st.sampled_from(links), WEIGHTS)
    weights = draw(some_weight.filter(lambda found: not found or any(found.get(name, 1.0) for name in links)))
    released = [name for name, column in columns.items() if column.role.is_released_raw] + links
    weights_from = "accuracy" if has_targets and not weights and draw(st.booleans()) else None
    some = st.just(()) if weights or weights_from else st.lists(st.sampled_from(released), unique=True, max_size=2)
    named = some.map(tuple).filter(lambda names: not names or set(names) & set(links))
    features = draw(named)
    return WorkloadSpec(
        targets=found,
        denoise=has_targets and draw(st.booleans()),
        selections=tuple(draw(st.lists(where | each, max_size=3))),
        weights=weights,
        features=features,
        selected_by=draw(named),
        weights_from=weights_from,
        clusters=draw(st.integers(2, 20)) if features else 5,
    )


@st.composite
def methods(draw: st.DrawFn, columns: Mapping[str, ColumnSpec], workload: WorkloadSpec) -> MethodSpec:
    """A method that the workload can feed."""
    links = [name for name, column in columns.items() if column.role == Role.QUASI_IDENTIFIER]
    has_targets = any(column.role == Role.TARGET for column in columns.values())
    has_targets = has_targets if workload.targets is None else bool(workload.targets)
    has_weights = bool(workload.weights or workload.weights_from)
    is_free = not (has_weights or workload.features or workload.selected_by or workload.denoise)
    is_scaled = all(target.scale for target in workload.targets or ())
    criteria = ["auto"] + ["median"] * is_free + ["infogain"] * (has_targets and is_scaled) + ["lsd"] * has_targets
    criteria += ["selection"] * any(selection.weight for selection in workload.selections) + ["weighted"] * (
        has_weights and not workload.denoise
    )
    in_clusters = [name for name in links if not workload.features or name in workload.features]
    if workload.weights_from is None and any(workload.weights.get(name, 1.0) > 0 for name in in_clusters):
        is_raw = not workload.denoise
        criteria += ["clustering"] * (is_raw and not workload.selected_by) + ["explore"] * is_raw
    criterion = draw(st.sampled_from(criteria))
    is_steered = has_targets and criterion not in ("median", "weighted", "clustering", "explore")
    is_fixed = criterion in ("clustering", "explore")
    by_classes = is_steered and criterion != "lsd" and workload.denoise is False
    rules = ["first", "product", "blend", "naive", "probabilistic"] + ["combined"] * is_steered
    rule = draw(st.sampled_from(rules)) if has_weights and not is_fixed else None
    return MethodSpec(
        criterion=criterion,
        cut_points=draw(st.sampled_from(CutPoints)),
        seed=draw(st.integers(-9, 9)),
        candidates=draw(st.sampled_from(["boundary", "all"])) if by_classes else "boundary",
        split_on=tuple(draw(st.lists(st.sampled_from(links), unique=True))),
        weight_rule=rule,
        alpha=draw(st.floats(0, 1)) if rule in ("blend", "combined") else 0.5,
        beta=draw(st.floats(0, 1)) if rule == "combined" else 0.25,
        gamma=draw(st.floats(0, 1)) if rule == "combined" else 0.25,
        time_budget=draw(st.none() | st.floats(0.1, 100)) if criterion == "explore" else None,
        min_gain=draw(WEIGHTS) if is_steered else 0.0,
    )


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    consent = draw(st.booleans())
    regions = draw(st.sampled_from(["domain", "observed"])) if consent else "domain"
    order = draw(st.sampled_from(["sorted", "original"])) if consent else "sorted"
    columns = draw(st.dictionaries(WORDS, column_specs(), max_size=4)) | {"q": ColumnSpec(Role.QUASI_IDENTIFIER)}
    workload = draw(workloads(columns))
    asked = draw(demands(columns))
    unasked = {name for name, column in columns.items() if column.role == Role.SENSITIVE} - {
        one.column for one in asked
    }
    waived = {name: replace(columns[name], diversity="none", reason=draw(REASONS)) for name in sorted(unasked)}
    has_target, has_sensitive = (
        any(column.role == role for column in columns.values()) for role in (Role.TARGET, Role.SENSITIVE)
    )
    method = draw(methods(columns, workload))
    method = method if consent else replace(method, cut_points=CutPoints.SIMPLEST)
    regions = draw(st.sampled_from(["domain", "observed"])) if consent else "domain"
    order = draw(st.sampled_from(["sorted", "original"])) if consent else "sorted"
    return Spec(
        columns=columns | waived,
        privacy=PrivacySpec(
            draw(st.integers(1, 10**6)),
            draw(st.floats(0, 1)),
            draw(st.floats(0.1, 1)) if has_target else 1.0,
            asked,
            attack_limit=draw(st.floats(0, 1)) if has_sensitive else 1.0,
        ),
        data=DataSpec(
            source=draw(st.none() | st.text(min_size=1, max_size=8)),
            missing=tuple(draw(st.lists(st.text(SHOWN, max_size=4), max_size=3))),
            missing_policy=draw(st.sampled_from(["category", "drop", "error"])),
            default_role=draw(st.none() | st.just(Role.INSENSITIVE)),
            delimiter=draw(st.none() | st.characters(codec="ascii", exclude_characters='\0\r\n"')),
            header=draw(st.none() | st.booleans()),
            encoding=draw(st.sampled_from([None, "cp1252", "utf-16"])),
            skip_rows=draw(st.none() | st.integers(0, 9) | st.lists(st.integers(1, 9)).map(tuple)),
            thousands=draw(st.sampled_from([None, "", ".", " "])),
        ),
        method=method,
        engine=EngineSpec(draw(st.sampled_from(["auto", "memory"]))),
        output=OutputSpec(
            draw(st.sampled_from(["csv", "parquet", "arrow"])),
            draw(st.sampled_from(["labels", "bounds", "representative"])),  # type: ignore[arg-type]
            regions,
            order,
            consent and (regions, order, method.cut_points) != ("domain", "sorted", CutPoints.SIMPLEST),
        ),
        workload=workload,
        decisions=draw(st.none() | st.just("accepted")),
    )
