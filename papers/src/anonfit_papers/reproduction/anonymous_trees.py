# SPDX-License-Identifier: Apache-2.0
"""k-anonymous trees of Adult, and trees that J48 learns from Adult refined top-down: what three experiments measure.

Training rows are the 30,162 complete ones of adult.data, test rows the 15,060 of adult.test, as they are.
"""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from anonfit.errors import Infeasible
from anonfit.evaluation.learners import learner
from anonfit.evaluation.plain_id3 import PlainId3
from anonfit_papers.datasets import ADULT
from anonfit_papers.datasets_adult import ADULT_COLUMNS, ADULT_TAXONOMIES, complete_adult
from anonfit_papers.datasets_tables import fingerprint
from anonfit_papers.reproduction.frame import Measured, Part, Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from anonfit.estimators.k_anonymous_tree import KAnonymousTreeClassifier

TRAINING = 30_162
KS = (10, 25, 50, 100, 250, 500, 750, 1000, 2000)
CLASS = "class"


@cache
def _adult(folder: Path) -> pl.DataFrame:
    return complete_adult(folder)


@cache
def _mark(folder: Path) -> str:
    return fingerprint(folder, ADULT)


def columns_of(variant: str) -> list[str]:
    """The columns that are asked for: of ID3 the eight nominal ones, of C4.5 all fourteen."""
    return [name for name in ADULT_COLUMNS if name != CLASS and (variant == "c45" or name in ADULT_TAXONOMIES)]


def grown(folder: Path, variant: str, k: int, confidence: float = 1.0) -> KAnonymousTreeClassifier:
    """A k-anonymous tree of the training rows; everything but the class is public."""
    from anonfit.estimators.k_anonymous_tree import KAnonymousTreeClassifier

    rows, names = _adult(folder)[:TRAINING], columns_of(variant)
    taxonomies = {name: ADULT_TAXONOMIES[name] for name in names if name in ADULT_TAXONOMIES}
    kind: Literal["c45", "id3"] = "c45" if variant == "c45" else "id3"
    classifier = KAnonymousTreeClassifier(k, variant=kind, max_confidence=confidence, taxonomies=taxonomies)
    return classifier.fit(rows.select(names), rows[CLASS])


def learned(folder: Path, variant: str, k: int, confidence: float = 1.0) -> Measured:
    """The error of a tree on the test rows in percent, its root, and how many persons' class it exposes; None for the
    error where no tree keeps the confidence.
    """
    test = _adult(folder)[TRAINING:]
    try:
        classifier = grown(folder, variant, k, confidence)
    except Infeasible:
        return {"error": None}
    tree, exposure = classifier.tree_, classifier.exposure()
    assert exposure is not None
    column = int(tree.nodes.column[0])
    return {
        "error": _error(classifier.predict(test.select(columns_of(variant))), test[CLASS]),
        "root": tree.columns[column] if column >= 0 else "",
        "sons": int(tree.nodes.children[0]),
        "leaves": tree.leaves,
        "k": tree.k,
        "exposed": exposure.certain,
        "highest": exposure.highest,
    }


def refined(folder: Path, variant: str, k: int, *, together: bool) -> Measured:
    """The error of J48 that learns from a top-down refinement of the columns, found on training and test rows
    together, as the paper has it, or on training rows alone.
    """
    import anonfit

    rows, names = _adult(folder), columns_of(variant)
    release = anonfit.anonymize(
        (rows if together else rows[:TRAINING]).select([*names, CLASS]),
        quasi_identifiers=names,
        k=k,
        targets=[CLASS],
        taxonomies={name: ADULT_TAXONOMIES[name] for name in names if name in ADULT_TAXONOMIES},
        algorithm="tdr",
    )
    shown = release.recoding.apply(rows.select(names), unseen="ancestor")
    return _taught(shown, rows[CLASS])


def raw(folder: Path, variant: str) -> Measured:
    """The error of J48 that learns from the rows as they are."""
    rows = _adult(folder)
    return _taught(rows.select(columns_of(variant)), rows[CLASS])


def plain(folder: Path) -> Measured:
    """The error of plain ID3 that learns from the eight nominal columns as they are, with the most frequent class of
    the node where a value was not seen, and with such rows counted as errors, as Weka's Id3 does.
    """
    rows, names = _adult(folder), columns_of("id3")
    model = PlainId3().fit(rows[:TRAINING].select(names), rows[:TRAINING][CLASS])
    test, true = rows[TRAINING:].select(names), rows[TRAINING:][CLASS]
    predicted, undecided = model.predict(test).to_numpy(), model.undecided(test)
    return {
        "error": _error(predicted, true),
        "undecided": 100 * float(undecided.mean()),
        "error as Weka counts": 100 * float(((predicted != true.to_numpy()) | undecided).mean()),
    }


def _taught(shown: pl.DataFrame, labels: pl.Series) -> Measured:
    model = learner("j48").make(0).fit(shown[:TRAINING], labels[:TRAINING])
    return {"error": _error(model.predict(shown[TRAINING:]).to_numpy(), labels[TRAINING:])}


def _error(predicted: NDArray[Any], true: pl.Series) -> float:
    """The share of rows that are predicted wrongly, in percent."""
    return 100 * float((predicted != true.to_numpy()).mean())


def grown_part(settings: Settings, variant: str, k: int, confidence: float = 1.0) -> Part:
    """A tree, as a part."""
    key = {"of": "anonymous tree", "data": _mark(settings.data), "variant": variant, "k": k, "confidence": confidence}
    return Part(key, 0.2, partial(learned, settings.data, variant, k, confidence))


def refined_part(settings: Settings, variant: str, k: int, *, together: bool) -> Part:
    """A refinement and what J48 learns from it, as a part."""
    key = {"of": "tdr and J48", "data": _mark(settings.data), "variant": variant, "k": k, "together": together}
    return Part(key, 0.6, partial(refined, settings.data, variant, k, together=together))


def raw_part(settings: Settings, variant: str) -> Part:
    """What J48 learns from the rows as they are, as a part."""
    key = {"of": "J48 on raw rows", "data": _mark(settings.data), "variant": variant}
    return Part(key, 1.5, partial(raw, settings.data, variant))


def plain_part(settings: Settings) -> Part:
    """What plain ID3 learns from the rows as they are, as a part."""
    return Part({"of": "plain ID3 on raw rows", "data": _mark(settings.data)}, 1.0, partial(plain, settings.data))
