# SPDX-License-Identifier: Apache-2.0
"""The scikit-learn faces: learning from regions, and anonymizing inside a pipeline."""

from anonfit.errors import MissingPackage

try:
    import sklearn  # noqa: F401 - only to say how to get it
except ModuleNotFoundError:
    raise MissingPackage("scikit-learn", "learn", "Learning from regions") from None
