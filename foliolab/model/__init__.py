# SPDX-License-Identifier: GPL-2.0-only
"""The model of the page cache in ``model/``, called from Python."""
