# SPDX-License-Identifier: GPL-2.0-only
"""From a Debian package and our hooks to a bootable kernel."""
