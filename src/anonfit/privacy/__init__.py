# SPDX-License-Identifier: Apache-2.0
"""May this group exist? One small model per file."""
