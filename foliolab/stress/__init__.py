# SPDX-License-Identifier: GPL-2.0-only
"""Debian's stress-ng, on our kernel and on the control."""
