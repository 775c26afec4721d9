# SPDX-License-Identifier: Apache-2.0
"""What a column is and how it becomes codes: schema, domains, taxonomies, reading."""
