# SPDX-License-Identifier: GPL-2.0-only
"""Storage engines, their drivers, and disks with their databases."""
