# SPDX-License-Identifier: GPL-2.0-only
"""Programs of this machine, on whatever kernel it runs: what their mapped files cost, what they touch, what helps."""
