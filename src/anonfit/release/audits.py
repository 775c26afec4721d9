# SPDX-License-Identifier: Apache-2.0
"""The audits of folders as everybody has them: lent the code that tells a folder's texts anew, which they may not
import."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from anonfit.auditing import release_folder, trees
from anonfit.release.retelling import expected_report, expected_tree_report

Words = ParamSpec("Words")
Found = TypeVar("Found")


def _lent(audit: Callable[Words, Found], **code: Callable[..., Any]) -> Callable[Words, Found]:
    """The same audit, which is lent code that it may not import."""

    @wraps(audit)
    def lent(*args: Words.args, **words: Words.kwargs) -> Found:
        return audit(*args, **{**code, **words})  # type: ignore[arg-type]

    return lent


audit_release = _lent(release_folder.audit_release, retell=expected_report)
audit_tree = _lent(trees.audit_tree, retell=expected_tree_report)
