# SPDX-License-Identifier: Apache-2.0
"""What may be asked: settings in TOML and keywords, read, checked and written."""
