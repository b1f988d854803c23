# SPDX-License-Identifier: GPL-2.0-only
"""Root directories of Debian packages, or of the host's, on disks for guests."""
