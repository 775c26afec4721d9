# SPDX-License-Identifier: Apache-2.0
"""What a release is for: the selections and targets of its recipients, in the form that criteria read."""
