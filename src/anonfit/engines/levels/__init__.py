# SPDX-License-Identifier: Apache-2.0
"""Growing where rows live outside: whole levels are counted by an engine, small nodes are finished in memory."""
