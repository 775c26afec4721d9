# SPDX-License-Identifier: Apache-2.0
from web_doors import door, server, shared  # noqa: F401
