# SPDX-License-Identifier: Apache-2.0
"""What a log of queries says about the use of a table. Statements are read, never executed."""
