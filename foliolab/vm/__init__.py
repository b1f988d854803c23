# SPDX-License-Identifier: GPL-2.0-only
"""Guests: what they boot from, how they run, and how they end."""
