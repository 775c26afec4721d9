# SPDX-License-Identifier: Apache-2.0
"""scikit-learn's own checks of estimators. What cannot pass is listed with its reason here and in docs/learning.md."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
from sklearn.utils import estimator_checks

from anonfit import Anonymizer, RegionEncoder, anonymize
from anonfit.estimators.anonymizer import AS_IN_ANONYMIZE

TEXTS = "labels are texts and bounds have empty cells; the check computes with the output"
TYPED = "columns of a frame keep their types; the check makes its own frame of an array without types"

EXPECTED = {
    "check_estimators_pickle": TEXTS,
    "check_fit_idempotent": TEXTS,
    "check_methods_sample_order_invariance": TEXTS,
    "check_methods_subset_invariance": TEXTS,
    "check_pipeline_consistency": TEXTS,
    "check_transformer_data_not_an_array": TEXTS,
    "check_transformer_general": TEXTS,
}
"""Checks that an Anonymizer of labels or bounds fails. One of features fails none, nor does the encoder."""

FRAMES = (
    "check_dataframe_column_names_consistency",
    "check_get_feature_names_out_error",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
)
"""Checks of feature names and frames, which scikit-learn runs for its own estimators only."""

EXPECTED_OF_FRAMES = {
    "check_global_output_transform_pandas": TYPED,
    "check_global_set_output_transform_polars": TYPED,
    "check_set_output_transform": TEXTS,
    "check_set_output_transform_pandas": TYPED,
    "check_set_output_transform_polars": TYPED,
}

OF_FEATURES = [
    RegionEncoder(),
    RegionEncoder("expected"),
    Anonymizer(),
    Anonymizer(k=2),
    Anonymizer(k=2, output="expected"),
]
OF_FRAMES = [Anonymizer(k=2, output="labels"), Anonymizer(k=2, output="bounds")]


def outcome(estimator: Any, expected: dict[str, str]) -> dict[str, str]:
    """What became of each check that did not pass."""
    found = estimator_checks.check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    return {str(entry["check_name"]): str(entry["status"]) for entry in found if entry["status"] != "passed"}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("estimator", OF_FEATURES, ids=repr)
def test_estimators_of_features_pass_every_check(estimator: Any) -> None:
    # The array API is checked only where an environment variable asks for it.
    assert set(outcome(estimator, {}).items()) <= {("check_array_api_input", "skipped")}


@pytest.mark.parametrize("estimator", OF_FRAMES, ids=repr)
def test_estimators_of_frames_fail_only_what_is_listed(estimator: Any) -> None:
    found = {name: status for name, status in outcome(estimator, EXPECTED).items() if status != "skipped"}
    assert found == dict.fromkeys(EXPECTED, "xfail")


@pytest.mark.sampled(7)
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize("check", FRAMES)
@pytest.mark.parametrize("estimator", OF_FEATURES[:2] + OF_FEATURES[3:], ids=repr)
def test_names_and_frames_of_features_pass_every_check(estimator: Any, check: str) -> None:
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


@pytest.mark.sampled(7)
@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize("check", FRAMES)
@pytest.mark.parametrize("estimator", OF_FRAMES, ids=repr)
def test_names_and_frames_of_frames_fail_only_what_is_listed(estimator: Any, check: str) -> None:
    if check in EXPECTED_OF_FRAMES:
        with pytest.raises((AssertionError, TypeError)):
            getattr(estimator_checks, check)(type(estimator).__name__, estimator)
    else:
        getattr(estimator_checks, check)(type(estimator).__name__, estimator)


def test_what_fails_is_documented_with_its_reason() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "learning.md").read_text(encoding="utf-8")
    for name, reason in (EXPECTED | EXPECTED_OF_FRAMES).items():
        assert f"`{name}`" in text
        assert reason in text.replace("\n", " ")


def test_parameters_are_those_of_anonymize_with_its_defaults() -> None:
    own, others = (inspect.signature(door).parameters for door in (Anonymizer, anonymize))
    for name in AS_IN_ANONYMIZE:
        assert name in others, name
        default, other = own[name].default, others[name].default
        assert default == other or (default is None and not other), name
