# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own mm selftests, on our kernel and on the control."""
