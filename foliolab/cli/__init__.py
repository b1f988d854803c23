# SPDX-License-Identifier: GPL-2.0-only
"""The command line, a module a command: ``add_parser`` and ``handle``."""
