# SPDX-License-Identifier: GPL-2.0-only
"""An experiment without a mistake, and a file for it."""

from pathlib import Path

GOOD = """
question = "Does it?"
metric = "read_bytes"
floor = "floor_bytes"
repetitions = 2
variants = ["off", "published"]
cells = [{ pattern = "random" }, { pattern = "stride", stride = [3, 5] }]
[workload]
argv = ["sparse-mmap", "--file", "{data}", "--fraction", "{fraction}", "--seed", "{repetition}"]
[parameters]
filesystem = "ext4"
cpus = 2
read_ahead_kb = 128
watermark_scale_factor = 10
fraction = 0.5
deadline_seconds = 60
[scales.quick]
factor = 0.5
memory = "256M"
file = "16M"
[scales.small]
factor = 0.25
memory = "128M"
file = "8M"
fraction = 0.25
cpus = 1
repetitions = 1
variants = ["off"]
cells = [{ pattern = "random" }]
[[published]]
cell = { pattern = "random" }
variants = ["off"]
read_gib = 2
seconds = 3.5
[[expect]]
says = "it does"
scales = ["quick"]
cell = { pattern = "random" }
variants = ["off"]
metrics = ["read_bytes"]
relative_to = "published figure"
at_most = 1.5
"""


def write(tmp_path: Path, text: str) -> str:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    return str(file)
