# SPDX-License-Identifier: Apache-2.0
"""Additive integer statistics: what an engine counts and models are made of."""
