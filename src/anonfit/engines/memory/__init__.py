# SPDX-License-Identifier: Apache-2.0
"""The in-memory engine: packed rows and compiled kernels."""
