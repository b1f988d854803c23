# SPDX-License-Identifier: GPL-2.0-only
"""foliolab: readahead and large folios of mapped files for Linux 6.1 to 7.3, and the lab that proves it."""

import sys
from pathlib import Path

# The tools for a machine in use, which the lab imports and which import nothing of it, lie in a directory of their own.
sys.path.append(str(Path(__file__).resolve().parent.parent / "host"))
