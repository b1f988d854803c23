# SPDX-License-Identifier: GPL-2.0-only
"""The order in which programs touched pages of mapped files: on disk, recorded, replayed."""
