# SPDX-License-Identifier: Apache-2.0
"""How learners are called in tables and figures."""

from __future__ import annotations

LEARNER_NAMES = {
    "j48": "J48",
    "weka-naive-bayes": "naive Bayes",
    "weka-random-forest": "random forest",
    "smo": "SVM",
    "m5p": "M5P",
    "weka-linear-regression": "linear regression",
}
