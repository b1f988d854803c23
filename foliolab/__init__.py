# SPDX-License-Identifier: GPL-2.0-only
"""foliolab: large-folio memory mapping for Linux 6.12, and the lab that proves it."""
