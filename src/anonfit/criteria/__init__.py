# SPDX-License-Identifier: Apache-2.0
"""How good is this split? Objectives, and the impurities and merits they are made of."""
