# SPDX-License-Identifier: Apache-2.0
"""How useful a release is for the work it is for: models are taught with released rows and tested on others."""
