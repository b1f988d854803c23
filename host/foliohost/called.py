# SPDX-License-Identifier: GPL-2.0-only
"""What this program is called."""

import os
import sys

NAME = "foliolab-host"


def called() -> str:
    """What to type for this program: as it was called, or what ``$FOLIOLAB_PROGRAM`` says."""
    typed = sys.argv[0] if os.path.basename(sys.argv[0]) == NAME else NAME  # noqa: PTH119 pathlib takes time to import
    return os.environ.get("FOLIOLAB_PROGRAM") or typed
