# SPDX-License-Identifier: Apache-2.0
"""The recoding φ: cells, boxes, labels, storage, and applying it to a frame."""
