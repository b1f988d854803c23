# SPDX-License-Identifier: GPL-2.0-only
"""foliolab: large-folio memory mapping for Linux 6.12, and the lab that proves it."""

import sys
from pathlib import Path

# The tools for a machine in use, which the lab imports and which import nothing of it, lie in a directory of their own.
sys.path.append(str(Path(__file__).resolve().parent.parent / "host"))
