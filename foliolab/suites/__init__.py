# SPDX-License-Identifier: GPL-2.0-only
"""Test suites of others, run on two kernels and compared."""
