# SPDX-License-Identifier: GPL-2.0-only
"""Where things live: the checkout, the cache outside of it, the results."""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
KERNEL = REPOSITORY / "kernel"
GUEST = REPOSITORY / "guest"
MODULE = REPOSITORY / "module"
MODEL = REPOSITORY / "model"
EXPERIMENTS = REPOSITORY / "experiments"
TRACES = REPOSITORY / "traces"
RELEASE = REPOSITORY / "release"


def cache_directory() -> Path:
    """The cache that outlives the clone: ``$FOLIOLAB_CACHE``, else the user's cache directory."""
    if chosen := os.environ.get("FOLIOLAB_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "foliolab"


def results_directory() -> Path:
    """The sample store's directory: ``$FOLIOLAB_RESULTS``, else ``results/`` in the checkout."""
    chosen = os.environ.get("FOLIOLAB_RESULTS")
    return Path(chosen) if chosen else REPOSITORY / "results"


def state_directory() -> Path:
    """What has to be put back one day: ``$FOLIOLAB_STATE``, else the user's state directory."""
    if chosen := os.environ.get("FOLIOLAB_STATE"):
        return Path(chosen)
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(base) / "foliolab"
