# SPDX-License-Identifier: Apache-2.0
"""What all of the package stands on: compiled functions, threads, files, progress, interrupts."""
