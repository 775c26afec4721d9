# SPDX-License-Identifier: Apache-2.0
"""Where the public data is that some tests look at; they are skipped without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from anonfit.errors import DataError
from anonfit_papers.purpose_tables import data_folder


def folder_with(*names: str) -> Path:
    """The data folder, if it has these files."""
    try:
        folder = data_folder()
    except DataError as error:
        pytest.skip(str(error))
    for name in names:
        if not (folder / name).is_file():
            pytest.skip(f"{name} is not in the data folder {folder}")
    return folder
