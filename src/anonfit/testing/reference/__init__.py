# SPDX-License-Identifier: Apache-2.0
"""A plain engine that all are tested against: Mondrian in the words of the definition, without regard to speed."""

from anonfit.testing.reference.growing import grow
from anonfit.testing.reference.records import Diverse

__all__ = ["Diverse", "grow"]
