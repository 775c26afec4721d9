# SPDX-License-Identifier: Apache-2.0
"""`python -m anonfit` is `anonfit`."""

from anonfit.cli.main import main

if __name__ == "__main__":
    main()
