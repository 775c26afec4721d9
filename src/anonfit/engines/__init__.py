# SPDX-License-Identifier: Apache-2.0
"""Where rows live and are counted; the only place that loops over them."""
