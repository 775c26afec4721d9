# SPDX-License-Identifier: Apache-2.0
"""Populations for the demo, tests and benchmarks, and measurements of what a purpose gains."""
