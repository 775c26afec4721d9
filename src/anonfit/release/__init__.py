# SPDX-License-Identifier: Apache-2.0
"""The release: its table, its folder, reading it back."""
