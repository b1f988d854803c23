# SPDX-License-Identifier: GPL-2.0-only
"""The Linux Test Project's tests of mapped files and memory, on our kernel and on the control."""
