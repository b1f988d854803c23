# SPDX-License-Identifier: GPL-2.0-only
"""An experiment small enough to run in seconds."""

from pathlib import Path

_SMALL = """
question = "Does a small one do the same?"
metric = "read_bytes"
floor = "floor_bytes"
repetitions = 1
variants = ["off"]
cells = [{ pattern = "random" }, { pattern = "stride", stride = 37 }, { pattern = "sequential" }]
[workload]
argv = ["sparse-mmap", "--file", "{data}", "--fraction", "{fraction}", "--seed", "{repetition}", "--drop-caches"]
[parameters]
filesystem = "ext4"
cpus = 2
read_ahead_kb = 128
watermark_scale_factor = 10
fraction = 0.05
deadline_seconds = 60
[scales.quick]
factor = 1
memory = "256M"
file = "64M"
"""


def small_experiment(directory: Path) -> Path:
    """Its file, made in ``directory``."""
    file = directory / "small.toml"
    file.write_text(_SMALL)
    return file
