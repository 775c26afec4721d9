# SPDX-License-Identifier: Apache-2.0
"""How useful a release is: measures of what its regions cost those who use it."""
