# SPDX-License-Identifier: GPL-2.0-only
"""Experiments on machines that are no guests: bundles, what runs them there, and machines behind ssh."""
