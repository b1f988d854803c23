# SPDX-License-Identifier: GPL-2.0-only
"""Debian's stress-ng and trinity, on our kernel and on the control."""
