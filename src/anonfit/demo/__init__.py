# SPDX-License-Identifier: Apache-2.0
"""The made-up hospital of `anonfit demo`."""
