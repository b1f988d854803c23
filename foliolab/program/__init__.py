# SPDX-License-Identifier: GPL-2.0-only
"""A program of the user's in guests: under which settings, with which disks, and what it made the kernel do."""
