# SPDX-License-Identifier: Apache-2.0
"""What arrays hold, for hints of types."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
AnyIntegers = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
