# SPDX-License-Identifier: Apache-2.0
"""The estimators are loaded when they are asked for, and say what they need."""

from __future__ import annotations

import subprocess
import sys


def printed(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_scikit_learn_is_loaded_with_the_first_estimator() -> None:
    code = "import sys, anonfit; before = 'sklearn' in sys.modules; anonfit.{}; print(before, 'sklearn' in sys.modules)"
    for name in ("RegionEncoder", "Anonymizer"):
        assert printed(code.format(name)) == "False True"
    assert printed(code.format("anonymize")) == "False False"


def test_without_scikit_learn_it_is_said_how_to_get_it() -> None:
    code = (
        "import sys, anonfit\n"
        "sys.modules['sklearn'] = None\n"
        "try:\n    anonfit.Anonymizer\nexcept anonfit.errors.MissingPackage as error:\n    print(error)"
    )
    assert "pip install 'anonfit[learn]'" in printed(
        code.replace("import sys, anonfit", "import sys, anonfit.errors, anonfit")
    )
