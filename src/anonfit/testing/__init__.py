# SPDX-License-Identifier: Apache-2.0
"""For tests of what is added to the package: a plain reference, and checks."""
