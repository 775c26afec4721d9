# SPDX-License-Identifier: Apache-2.0
"""Decision trees as releases: what they are, how k-anonymous ones are grown, and what they give away."""
