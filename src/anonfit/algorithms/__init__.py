# SPDX-License-Identifier: Apache-2.0
"""How regions are found."""
