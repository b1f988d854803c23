# SPDX-License-Identifier: GPL-2.0-only
"""Disks for guests: of Debian packages, and of storage engines with their databases."""
