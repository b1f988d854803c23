# SPDX-License-Identifier: GPL-2.0-only
"""Running plans on a backend, and the store of what was measured."""
