# SPDX-License-Identifier: GPL-2.0-only
"""From sources and our patches to kernels, modules, packages and mailboxes."""
