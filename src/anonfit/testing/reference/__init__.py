# SPDX-License-Identifier: Apache-2.0
"""A plain engine that every other one is tested against: Mondrian in the words of the definition, with no regard to
speed.
"""

from anonfit.testing.reference.growing import grow
from anonfit.testing.reference.records import Diverse

__all__ = ["Diverse", "grow"]
