# SPDX-License-Identifier: GPL-2.0-only
"""Tools for a machine in use: what its programs read of mapped files, and what helps.

Python 3.9 and its standard library are all that may be imported here.
"""

VERSION = "0.1.0"
