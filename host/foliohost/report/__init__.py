# SPDX-License-Identifier: GPL-2.0-only
"""What was found, as text for the terminal and as JSON."""
