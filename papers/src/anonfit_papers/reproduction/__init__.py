# SPDX-License-Identifier: Apache-2.0
"""The papers' experiments, each by its number: what was claimed, what is measured, and whether it holds."""
