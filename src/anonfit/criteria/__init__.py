# SPDX-License-Identifier: Apache-2.0
"""How good is this split? One small criterion per file."""
