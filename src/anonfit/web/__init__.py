# SPDX-License-Identifier: Apache-2.0
"""The page in the browser and the REST door: `anonfit web`. Whatever they do is an edit of a folder's spec.toml and a
call of the functions that every other door calls; rows are touched in processes of their own only.
"""
