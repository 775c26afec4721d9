# SPDX-License-Identifier: Apache-2.0
"""Rows in Spark: counted and routed where they are, on one machine or many."""
