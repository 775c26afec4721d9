# SPDX-License-Identifier: Apache-2.0
"""The settings of the learners, in the words of the page; those of Weka are its defaults unless others are named."""

from __future__ import annotations

J48_SETTINGS = "J48 of Weka 3.9 (C4.5), pruned at confidence 0.25, at least 2 rows a leaf"
BAYES_SETTINGS = "NaiveBayes of Weka with supervised discretization of numbers (-D)"
FOREST_SETTINGS = "RandomForest of Weka, 40 trees, seeded by the fold or trial"
SVM_SETTINGS = "SMO of Weka, C = 1, linear kernel"
NOBODY = "Nothing is learned."
NO_CLASSES = "No class is predicted."
TREE_SETTINGS = (
    "k-anonymous trees: ID3 by gain, not pruned; C4.5 by gain ratio, numbers cut in two, pruned by replacement at "
    "confidence 0.25"
)
