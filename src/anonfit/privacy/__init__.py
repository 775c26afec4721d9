# SPDX-License-Identifier: Apache-2.0
"""May this group exist? Privacy models, and the sensitive columns that they judge."""
