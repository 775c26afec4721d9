# SPDX-License-Identifier: Apache-2.0
"""What people read of a release: report.json and report.html."""
