# SPDX-License-Identifier: Apache-2.0
"""The audits of folders as everybody has them. They may not import the code that writes a folder's texts, which they
compare with: it is lent to them here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from anonfit.auditing import release_folder, trees
from anonfit.release.retelling import expected_report, expected_tree_report

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def _lent(audit: Callable[Arguments, Result], **code: Callable[..., Any]) -> Callable[Arguments, Result]:
    """The same audit, with code that it may not import."""

    @wraps(audit)
    def lent(*args: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        return audit(*args, **{**code, **keywords})  # type: ignore[arg-type]

    return lent


audit_release = _lent(release_folder.audit_release, retell=expected_report)
audit_tree = _lent(trees.audit_tree, retell=expected_tree_report)
