# SPDX-License-Identifier: GPL-2.0-only
"""What is behind the figures of README and docs: planned, measured, shipped, and held to the documents."""
