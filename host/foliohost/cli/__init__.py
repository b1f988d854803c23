# SPDX-License-Identifier: GPL-2.0-only
"""The command line: a module for each command, whose docstring is its help."""
